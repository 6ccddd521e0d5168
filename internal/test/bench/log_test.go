//go:build unix

package bench

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/log/filestore"
	"jurat/internal/log/installation"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/timestamp"
	"jurat/verify"
)

// BenchmarkSeal seals records of 2 KiB as a server does: signed, stamped by the built-in authority, durable in the log. The limit of many callers is the two
// signatures of each record, alone, on all cores; that of a lone one is a synced page, and a record with its token without a log.
func BenchmarkSeal(b *testing.B) {
	for _, callers := range []int{16, 64, 256, 1024} {
		b.Run(fmt.Sprintf("%d callers", callers), func(b *testing.B) { sealTogether(b, furnish(b), callers) })
	}
	b.Run("64 callers on PostgreSQL", func(b *testing.B) {
		config := installation.Config{Dir: filepath.Join(b.TempDir(), "data"), DB: rig.Database(b), WrappingKey: filepath.Join(b.TempDir(), "wrapping.key")}
		must.Do(b, os.WriteFile(config.WrappingKey, filestore.Generate(), 0o600))
		sealTogether(b, furnishIn(b, config), 64)
	})
	b.Run("1 caller", func(b *testing.B) {
		h := furnish(b)
		alone := newBare(b, h)
		var fsync, sealed, logged timings
		for b.Loop() {
			for t, do := range map[*timings]func(context.Context) error{&fsync: alone.fsync, &sealed: alone.sealed, &logged: h.seal} { // in any order: what came before is felt
				t.took(b, do)
			}
		}
		of(b, "µs/record", logged.median(), fsync.median()+sealed.median())
	})
}

func sealTogether(b *testing.B, h *house, callers int) {
	b.Helper()
	alone := newBare(b, h)
	var many, limit meter
	new(meter).during(b, 300*time.Millisecond, callers, h.seal)
	for b.Loop() {
		limit.during(b, 200*time.Millisecond, runtime.NumCPU(), alone.signatures)
		many.during(b, 800*time.Millisecond, callers, h.seal)
	}
	of(b, "records/s", many.perSecond(), limit.perSecond())
	of(b, "cpu-µs/record", many.cpu(), limit.cpu())
}

// logSize is how many records the large log of BenchmarkAppend has: JURAT_BENCH_RECORDS, or twenty thousand.
func logSize(b *testing.B) int64 {
	b.Helper()
	text := os.Getenv("JURAT_BENCH_RECORDS")
	if text == "" {
		return 20_000
	}
	n, err := strconv.ParseInt(text, 10, 64)
	must.Need(b, err == nil && n >= 10_000, "JURAT_BENCH_RECORDS: %q: want a number from 10,000 on", text)
	return n
}

// BenchmarkAppend appends to a large log. Its limit is the same in a log of a thousand records, in turn.
func BenchmarkAppend(b *testing.B) {
	var sides [2]struct {
		house      *house
		many       meter
		one        timings
		held, disk float64
	}
	for i, n := range []int64{1000, logSize(b)} {
		s := &sides[i]
		s.house = furnish(b)
		times(b, n, 512, s.house.seal)
		must.Do(b, s.house.close())
		info := must.Get(os.Stat(filepath.Join(s.house.config.Dir, "jurat.db")))(b)
		before := inUse()
		s.house = open(b, s.house.config)
		new(meter).during(b, 300*time.Millisecond, 256, s.house.seal)
		s.held, s.disk = inUse()-before, float64(info.Size())/float64(n)
	}
	for b.Loop() {
		for i := range sides {
			sides[i].many.during(b, 500*time.Millisecond, 256, sides[i].house.seal)
		}
		for range 200 {
			for i := range sides {
				sides[i].one.took(b, sides[i].house.seal)
			}
		}
	}
	small, large := sides[0], sides[1]
	of(b, "µs/record", 1e6/large.many.perSecond(), 1e6/small.many.perSecond())
	of(b, "cpu-µs/record", large.many.cpu(), small.many.cpu())
	of(b, "µs/record-alone", large.one.median(), small.one.median())
	b.ReportMetric(large.held/1024, "KiB-open")
	b.ReportMetric(large.disk, "disk-B/record")
}

// BenchmarkVerify verifies records from their bytes, as a reader does, and a whole log, as 'jurat log fsck' does. The limit of the first is the signatures of the
// records and their tokens, checked alone; that of the second is the first.
func BenchmarkVerify(b *testing.B) {
	h := furnish(b)
	const n = 5000
	times(b, n, 256, h.seal)
	var records []*evidence.Record
	for record, err := range h.Ledger.Records(b.Context(), 0) {
		must.Do(b, err)
		records = append(records, record.Record)
	}
	trusted := must.Get(h.Trust(b.Context()))(b)
	key := must.Get(evidence.ParsePublicKey(trusted.Key(records[n-1].Payload.Signers[0].KeyID).PublicKey))(b)
	options := verify.Options{Trust: trusted, Memory: timestamp.NewMemory()}
	roots := timestamp.Options{Memory: timestamp.NewMemory()}
	for _, a := range trusted.Authorities {
		root := must.Get(x509.ParseCertificate(a.Certificate))(b)
		roots.Roots = append(roots.Roots, root)
	}
	var next atomic.Int64
	pick := func() *evidence.Record { return records[len(records)-1-int(next.Add(1))%(n-100)] }
	signatures := func(context.Context) error {
		r := pick()
		if err := r.CheckSignature(0, key); err != nil {
			return err
		}
		token, err := roots.Memory.Parse(r.Timestamps[0].Token)
		if err == nil {
			_, err = token.Verify(r.Imprint(), roots)
		}
		return err
	}
	whole := func(context.Context) error {
		r := pick()
		opened, err := evidence.OpenParts(r.Canonical(), r.Signatures, r.Timestamps)
		if err != nil {
			return err
		}
		report := verify.Record(opened, options)
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
			if f := report.Of(g); f.Status != verify.Proved {
				return fmt.Errorf("%s %s: %s", g, f.Status, f.Reason)
			}
		}
		return nil
	}
	var least, one, log meter
	for b.Loop() {
		least.during(b, 300*time.Millisecond, runtime.NumCPU(), signatures)
		one.during(b, 300*time.Millisecond, runtime.NumCPU(), whole)
		begin := time.Now()
		damages, size, err := installation.Fsck(b.Context(), h.config, func(int64, int64) {})
		must.Need(b, err == nil && len(damages) <= 0, "%v %v", damages, err)
		log.n, log.in = log.n+size, log.in+time.Since(begin)
	}
	of(b, "records/s", one.perSecond(), least.perSecond())
	of(b, "fsck-records/s", log.perSecond(), one.perSecond())
}
