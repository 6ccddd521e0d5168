package bench

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// Verify measures verification of single records, as a reader verifies them, and of a whole log, as 'jurat log fsck' does.
func Verify(ctx context.Context, c Config) (*Report, error) {
	return run(c, "verify", func(c Config, dir string, r *Report) error {
		if c.Records == 0 {
			c.Records = 5000
		}
		h, err := furnish(ctx, c, dir, "data")
		if err != nil {
			return err
		}
		if err := errors.Join(verifyHouse(ctx, c, h, r), h.Close()); err != nil {
			return err
		}
		return examine(ctx, c, h.config, r)
	})
}

// sample is how many records are verified repeatedly. Examining the log measures more than fits into memory.
const sample = 2000

func verifyHouse(ctx context.Context, c Config, h *house, r *Report) error {
	err := times(ctx, int64(c.Records), 256, h.seal, func(done int64) { c.Progress("records sealed", done, int64(c.Records)) })
	if err != nil {
		return err
	}
	records, err := h.sample(ctx)
	if err != nil {
		return err
	}
	trusted, err := h.Trust(ctx)
	if err != nil {
		return err
	}
	r.Settings = Settings{PayloadBytes: len(records[0].Canonical()), Algorithm: c.Algorithm, Records: c.Records}
	b, err := newVerifier(records, trusted)
	if err != nil {
		return err
	}
	cores := runtime.NumCPU()
	var whole, signatures meter
	end := time.Now().Add(c.Time / 2)
	for time.Now().Before(end) || whole.n == 0 {
		if err := errors.Join(signatures.during(ctx, c.Time/40, cores, b.signatures), whole.during(ctx, c.Time/40, cores, b.record)); err != nil {
			return err
		}
		c.Progress("verified", int64(c.Time/2-time.Until(end)), int64(c.Time/2))
	}
	r.figure("records verified/s, all cores", "1/s", whole.perSecond(), &Limit{"a record's signature and its token's, checked alone, on all cores", signatures.perSecond()})
	r.figure("a record verified", "µs", microseconds(whole.each(cores)), &Limit{"its two signatures", microseconds(signatures.each(cores))})
	return nil
}

func (h *house) sample(ctx context.Context) (records []*evidence.Record, err error) {
	for record, err := range h.Ledger.Records(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if records = append(records, record.Record); len(records) == sample {
			break
		}
	}
	return records, nil
}

// A verifier verifies records in turn. It is safe for concurrent use.
type verifier struct {
	records []*evidence.Record
	options verify.Options
	key     crypto.PublicKey // of the records
	roots   timestamp.Options
	next    atomic.Int64
}

func newVerifier(records []*evidence.Record, trusted *trust.Trust) (*verifier, error) {
	v := &verifier{records: records, options: verify.Options{Trust: trusted, Memory: timestamp.NewMemory()}, roots: timestamp.Options{Memory: timestamp.NewMemory()}}
	known := trusted.Key(records[0].Payload.Signers[0].KeyID)
	if known == nil {
		return nil, errors.New("the trust file lacks the key that signed the records")
	}
	var err error
	if v.key, err = evidence.ParsePublicKey(known.PublicKey); err != nil {
		return nil, err
	}
	for _, a := range trusted.Authorities {
		root, err := x509.ParseCertificate(a.Certificate)
		if err != nil {
			return nil, err
		}
		v.roots.Roots = append(v.roots.Roots, root)
	}
	return v, nil
}

func (v *verifier) pick() *evidence.Record { return v.records[int(v.next.Add(1))%len(v.records)] }

// signatures checks the two signatures of a record. Besides that it only parses the token.
func (v *verifier) signatures(context.Context) error {
	r := v.pick()
	if err := r.CheckSignature(0, v.key); err != nil {
		return err
	}
	token, err := v.roots.Memory.Parse(r.Timestamps[0].Token)
	if err != nil {
		return err
	}
	_, err = token.Verify(r.Imprint(), v.roots)
	return err
}

// record verifies a record from its bytes, as a reader does.
func (v *verifier) record(context.Context) error {
	r := v.pick()
	opened, err := evidence.OpenParts(r.Canonical(), r.Signatures, r.Timestamps)
	if err != nil {
		return err
	}
	report := verify.Record(opened, v.options)
	for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
		if f := report.Of(g); f.Status != verify.Proved {
			return fmt.Errorf("%s %s: %s", g, f.Status, f.Reason)
		}
	}
	return nil
}

// examine examines the whole log, alternating with verifying records in memory.
func examine(ctx context.Context, c Config, config installation.Config, r *Report) error {
	h, err := reopen(ctx, config)
	if err != nil {
		return err
	}
	records, err := h.sample(ctx)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	trusted, err := h.Trust(ctx)
	if err := errors.Join(err, h.Close()); err != nil {
		return err
	}
	b, err := newVerifier(records, trusted)
	if err != nil {
		return err
	}
	cores := runtime.NumCPU()
	var log, bare meter
	memory := WatchMemory()
	end := time.Now().Add(c.Time / 2)
	for time.Now().Before(end) || log.n == 0 {
		begin := time.Now()
		damages, size, err := installation.Fsck(ctx, config, func(done, total int64) { c.Progress("records of the log examined", done, total) })
		if err != nil {
			return err
		}
		if len(damages) > 0 {
			return fmt.Errorf("the log is damaged: %v", damages[0])
		}
		log.n, log.in = log.n+size, log.in+time.Since(begin)
		if err := bare.during(ctx, min(time.Since(begin), c.Time/4), cores, b.record); err != nil {
			return err
		}
	}
	r.figure("records/s of a log examined, all cores", "1/s", log.perSecond(), &Limit{"records in memory, verified alone, on all cores", bare.perSecond()})
	r.figure("memory while examining (most)", "MiB", float64(memory())/(1<<20), nil)
	info, err := os.Stat(filepath.Join(config.Dir, "jurat.db"))
	if err == nil {
		r.figure("size of that log", "MiB", float64(info.Size())/(1<<20), nil)
	}
	return err
}

func reopen(ctx context.Context, config installation.Config) (*house, error) {
	i, err := installation.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return &house{Installation: i, config: config}, nil
}
