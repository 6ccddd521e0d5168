package bench

import (
	"fmt"
	"strings"
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
