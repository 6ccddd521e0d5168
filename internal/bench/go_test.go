package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkSeal and the others run the benchmarks of 'jurat bench' under 'go test -bench'.
func BenchmarkSeal(b *testing.B) {
	for _, callers := range []int{16, 64, 256, 1024} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) { goBenchmark(b, Seal, Config{Callers: callers}) })
	}
}

func BenchmarkVerify(b *testing.B) { goBenchmark(b, Verify, Config{}) }

func BenchmarkLedger(b *testing.B) { goBenchmark(b, Ledger, Config{Records: 20_000}) }

func BenchmarkTrial(b *testing.B) { goBenchmark(b, Trial, Config{}) }

func BenchmarkWatch(b *testing.B) { goBenchmark(b, Watch, Config{}) }

func goBenchmark(b *testing.B, run Benchmark, c Config) {
	c.Dir, c.Time = b.TempDir(), 4*time.Second
	for b.Loop() {
		r, err := run(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range r.Figures {
			name := strings.NewReplacer(" ", "_", ",", "").Replace(f.Name)
			b.ReportMetric(f.Value, name+"_"+f.Unit)
			if f.Ratio > 0 {
				b.ReportMetric(f.Ratio, name+"_of_limit")
			}
		}
	}
}

// BenchmarkRecorded measures calls past a recorder in closed mode alone, for profiles (-cpuprofile, -memprofile): of many callers with short answers, of one
// with 50 events, and of one with an answer of 100 MiB.
func BenchmarkRecorded(b *testing.B) {
	for _, m := range []struct {
		name, path string
		callers    int
	}{{"64", shortPath, 64}, {"1", eventsPath, 1}, {"large", largePath, 1}} {
		b.Run(m.name, func(b *testing.B) {
			h, err := furnish(b.Context(), Config{}.complete(), b.TempDir(), "data")
			if err != nil {
				b.Fatal(err)
			}
			w, err := newWays(b.Context(), h, m.callers)
			if err != nil {
				b.Fatal(err)
			}
			var n atomic.Int64
			ask := func(ctx context.Context) error {
				return w.ask(ctx, w.closed+m.path, asking(int(n.Add(1)), 2048), func() {})
			}
			if err := times(b.Context(), int64(m.callers), m.callers, ask, func(int64) {}); err != nil { // connections
				b.Fatal(err)
			}
			before := processorTime()
			b.ReportAllocs()
			b.ResetTimer()
			err = times(b.Context(), int64(b.N), m.callers, ask, func(int64) {})
			b.StopTimer()
			b.ReportMetric(microseconds(processorTime()-before)/float64(b.N), "cpu-µs/op")
			if err = errors.Join(err, w.close(context.WithoutCancel(b.Context())), h.Close()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
