package pkcs11_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/pkcs11"
	"jurat/internal/token"
	"jurat/internal/tokentest"
)

// BenchmarkRate measures in one run, in turn: the library alone with 8 sessions, and 64 callers who sign through jurat-token with as many
// sessions. "of-library" is the ratio of the two rates. "of-processor" is the ratio of the processor times of one signature, of all processes
// together: this is the ratio of the rates where no core is idle, and other programs on the machine disturb it less.
// "bound" is what of-processor can be at most while the helper and jurat each verify every signature: sign / (sign + 2 verify).
func BenchmarkRate(b *testing.B) {
	soft := tokentest.New(b)
	k := opened(b, soft)
	for _, algorithm := range algorithms {
		key := generate(b, k, string(algorithm), algorithm)
		b.Run(string(algorithm), func(b *testing.B) { benchmarkRate(b, soft, k, key) })
	}
}

func benchmarkRate(b *testing.B, soft *tokentest.Token, k *pkcs11.Token, key token.Key) {
	c, err := token.New(token.Helper{Program: soft.Helper(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	message := []byte("text")
	data, signature := dataOf(key.Algorithm, message), sign(b, k, key, message)
	id, err := evidence.KeyIDOf(key.Public)
	if err != nil {
		b.Fatal(err)
	}
	alone := func(ctx context.Context) error { return k.SignBare(ctx, key.URI, data) }
	through := func(ctx context.Context) error { _, err := c.Sign(ctx, key.URI, key.Public, data); return err }
	verified := func(context.Context) error {
		return evidence.CheckSignature(key.Public, evidence.SignerInfo{Algorithm: key.Algorithm, KeyID: id}, message, signature)
	}
	const slice = 2000
	var library, protocol, verify, warm sample
	warm.take(b, 200, 64, through)
	helper := childOf(b, os.Getpid())
	b.ResetTimer()
	for left := b.N; left > 0; left -= slice {
		n := min(left, slice)
		library.take(b, n, 8, alone)
		verify.take(b, n, runtime.NumCPU(), verified)
		before := processorTimeOf(b, helper)
		protocol.take(b, n, 64, through)
		protocol.child += processorTimeOf(b, helper) - before
	}
	cost, total := library.each(library.own), protocol.each(protocol.own+protocol.child)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(library.rate(), "library/s")
	b.ReportMetric(protocol.rate(), "protocol/s")
	b.ReportMetric(protocol.rate()/library.rate(), "of-library")
	b.ReportMetric(cost, "library-µs")
	b.ReportMetric(verify.each(verify.own), "verify-µs")
	b.ReportMetric(protocol.each(protocol.child), "helper-µs")
	b.ReportMetric(protocol.each(protocol.own), "jurat-µs")
	b.ReportMetric(cost/total, "of-processor")
	b.ReportMetric(cost/(cost+2*verify.each(verify.own)), "bound")
}

// A sample is what was measured of one operation: how often, how long, and the processor time of this process and of its child.
type sample struct {
	n              int
	in, own, child time.Duration
}

func (s *sample) rate() float64 { return float64(s.n) / s.in.Seconds() }
func (s *sample) each(all time.Duration) float64 {
	return float64(all.Nanoseconds()) / 1000 / float64(s.n)
}

// take has workers do something n times in all.
func (s *sample) take(b *testing.B, n, workers int, do func(context.Context) error) {
	b.Helper()
	own, begin := processorTime(b), time.Now()
	var begun atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for begun.Add(1) <= int64(n) {
				if err := do(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	s.n, s.in, s.own = s.n+n, s.in+time.Since(begin), s.own+processorTime(b)-own
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// processorTimeOf is the time that all threads of a process have used so far.
func processorTimeOf(b *testing.B, pid int) (all time.Duration) {
	b.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, thread.Name()))
		var ran time.Duration
		if _, scan := fmt.Sscan(string(text), &ran); err != nil || scan != nil {
			b.Fatal(err, scan)
		}
		all += ran
	}
	return all
}

// childOf is the only child of a process.
func childOf(b *testing.B, parent int) (child int) {
	b.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		b.Fatal(err)
	}
	for _, entry := range all {
		var pid, ppid int
		text, err := os.ReadFile("/proc/" + entry.Name() + "/status")
		if err != nil {
			continue // no process, or one that has ended
		}
		_, after, _ := strings.Cut(string(text), "\nPPid:")
		if _, err := fmt.Sscan(entry.Name(), &pid); err != nil {
			continue
		}
		if _, err := fmt.Sscan(after, &ppid); err == nil && ppid == parent {
			child = pid
		}
	}
	if child == 0 {
		b.Fatal("the helper does not run")
	}
	return child
}
