package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"jurat/evidence"
)

// Seal measures sealing, with many concurrent callers, and with one caller that seals one record after the other. A record counts when it
// is signed, stamped by the built-in authority and durable in the log.
func Seal(ctx context.Context, c Config) (*Report, error) {
	return run(c, "seal", func(c Config, dir string, r *Report) (err error) {
		if c.Callers == 0 {
			c.Callers = 256
		}
		h, err := furnish(ctx, c, dir, "data")
		if err != nil {
			return err
		}
		open := true
		defer func() {
			if open {
				err = errors.Join(err, h.Close())
			}
		}()
		b, err := newBare(ctx, h, dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.close()) }()
		r.Settings = Settings{Callers: c.Callers, PayloadBytes: len(b.document), Algorithm: c.Algorithm, BatchTokens: c.Batch}
		if err := sealMany(ctx, c, h, b, r); err != nil {
			return err
		}
		if err := sealAlone(ctx, c, h, b, r); err != nil {
			return err
		}
		open = false
		return errors.Join(h.onDisk(ctx, r))
	})
}

// sealMany lets many callers seal, alternating with the basic operations on all cores.
func sealMany(ctx context.Context, c Config, h *house, b *bare, r *Report) error {
	cores := runtime.NumCPU()
	var many, two, one, signature, token, tokenSignature, canonical meter
	var used time.Duration
	if err := new(meter).during(ctx, 300*time.Millisecond, c.Callers, h.seal); err != nil { // warms up
		return err
	}
	const slice = 100 * time.Millisecond
	end := time.Now().Add(c.Time * 3 / 4)
	for time.Now().Before(end) || many.n == 0 {
		for m, do := range map[*meter]func(context.Context) error{&two: b.twoSignatures, &one: b.signed, &signature: b.sign,
			&token: b.token, &tokenSignature: b.signToken, &canonical: b.canonical} {
			part := slice / 4
			if m == &two {
				part = slice
			}
			if err := m.during(ctx, part, cores, do); err != nil {
				return err
			}
		}
		before := processorTime()
		if err := many.during(ctx, 8*slice, c.Callers, h.seal); err != nil {
			return err
		}
		used += processorTime() - before
		c.Progress("sealed by many", int64(c.Time*3/4-time.Until(end)), int64(c.Time*3/4))
	}
	limit := &Limit{"a record's signature and its token's, alone, on all cores", two.perSecond()}
	if c.Batch {
		limit = &Limit{"a record's canonical form and signature, alone, on all cores", one.perSecond()}
	}
	r.figure(fmt.Sprintf("records/s, %d callers", c.Callers), "1/s", many.perSecond(), limit)
	if used > 0 {
		r.figure("processor time of a record", "µs", microseconds(used)/float64(many.n), &Limit{"the two signatures", microseconds(two.each(cores))})
		r.figure("cores at work", "cores", used.Seconds()/many.in.Seconds(), &Limit{"cores", float64(cores)})
	}
	r.figure("one signature", "µs", microseconds(signature.each(cores)), nil)
	r.figure("one token with its certificate", "µs", microseconds(token.each(cores)), &Limit{"its signature", microseconds(tokenSignature.each(cores))})
	r.figure("canonical form of a payload", "µs", microseconds(canonical.each(cores)), nil)
	return nil
}

// sealAlone lets one caller seal record by record, alternating with the basic operations.
func sealAlone(ctx context.Context, c Config, h *house, b *bare, r *Report) error {
	var fsync, commit, sealed, logged timings
	end := time.Now().Add(c.Time / 4)
	for time.Now().Before(end) || len(logged) < 20 {
		for t, do := range map[*timings]func(context.Context) error{&fsync: b.fsync, &commit: b.commit, &sealed: b.sealed, &logged: h.seal} {
			if err := t.took(func() error { return do(ctx) }); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	r.figure("one caller, a record (median)", "µs", microseconds(logged.median()),
		&Limit{"one page written and synced, and a record with its token without a log", microseconds(fsync.median() + sealed.median())})
	r.figure("one page written and synced (median)", "µs", microseconds(fsync.median()), nil)
	r.figure("one row committed by the database (median)", "µs", microseconds(commit.median()), nil)
	r.figure("one record with its token, without a log (median)", "µs", microseconds(sealed.median()), nil)
	return nil
}

// onDisk closes the installation, and reports how many bytes a record takes on disk.
func (h *house) onDisk(ctx context.Context, r *Report) error {
	var tokens, signatures, payloads, n int64
	const sample = 1000
	for record, err := range h.Ledger.Records(ctx, 0) {
		if err != nil {
			return errors.Join(err, h.Close())
		}
		payloads += int64(len(record.Canonical()))
		signatures += sizes(record.Signatures)
		tokens += stampSizes(record.Timestamps)
		if n++; n == sample {
			break
		}
	}
	size, err := h.Ledger.Size(ctx)
	if err := errors.Join(err, h.Close()); err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(h.config.Dir, "jurat.db"))
	if err != nil || n == 0 || size == 0 {
		return err
	}
	payload := float64(payloads) / float64(n)
	beyond := float64(info.Size())/float64(size) - payload
	r.figure("on disk for each record, beyond the payload", "bytes", beyond, &Limit{"its token and signature", float64(tokens+signatures) / float64(n)})
	return nil
}

func sizes(all [][]byte) (n int64) {
	for _, one := range all {
		n += int64(len(one))
	}
	return n
}

func stampSizes(all []evidence.Timestamp) (n int64) {
	for _, one := range all {
		n += int64(len(one.Token))
	}
	return n
}
