//go:build unix

package panel_test

import (
	"errors"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"jurat/internal/installation"
	"jurat/internal/panel"
	"jurat/internal/trial"
	"jurat/jurattest"
)

// onEach runs a benchmark with a ledger in memory, and with an installation as users have it: SQLite, its own authority,
// and a claim on each trial. The model servers, with these delays, run in the same process.
func onEach(b *testing.B, more string, delays []time.Duration, run func(*testing.B, *panel.Panel, trial.Config)) {
	sit := func(b *testing.B) *panel.Panel {
		doc, all := servers(b, delays...)
		for _, s := range all {
			s.Forget()
		}
		return seat(b, doc+more)
	}
	b.Run("memory", func(b *testing.B) {
		h := jurattest.New(b)
		run(b, sit(b), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now})
	})
	b.Run("sqlite", func(b *testing.B) {
		folder := installation.Config{Dir: filepath.Join(b.TempDir(), "data")}
		if err := installation.Create(b.Context(), folder); err != nil {
			b.Fatal(err)
		}
		i, err := installation.Open(b.Context(), folder)
		if err != nil {
			b.Fatal(err)
		}
		defer i.Close()
		run(b, sit(b), trial.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks()})
	})
}

// hold conducts one trial. It fails if the trial is degraded.
func hold(b *testing.B, p *panel.Panel, c trial.Config) error {
	s, err := p.Sit(0)
	if err != nil {
		return err
	}
	c.Settings, c.Jurors, c.Judge = p.Settings(), s.Jurors, s.Judge
	done, err := trial.Run(b.Context(), c, jurattest.Case(b))
	if err == nil && done.Result.Degraded {
		err = errors.New("degraded: " + done.Result.Absences[0].Detail)
	}
	return err
}

// BenchmarkTrial has three jurors who take 100, 200 and 300 ms, and a judge who takes 200 ms. The jury agrees after
// phase 1 and one round. A phase takes as long as its slowest juror, so the answers alone take 0.8 s; x_ideal is the
// time as a multiple of that.
func BenchmarkTrial(b *testing.B) {
	delays := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 200 * time.Millisecond}
	onEach(b, "rounds: 2\nthreshold: 2\n", delays, func(b *testing.B, p *panel.Panel, c trial.Config) {
		for b.Loop() {
			if err := hold(b, p, c); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/0.8, "x_ideal")
	})
}

// BenchmarkThousandTrials conducts a thousand trials at once. Each answer takes 2 s, so the answers alone take 6 s.
// cpu_s is the processor time of the whole process, servers included.
func BenchmarkThousandTrials(b *testing.B) {
	onEach(b, "rounds: 1\n", []time.Duration{2 * time.Second}, func(b *testing.B, p *panel.Panel, c trial.Config) {
		before := cpuTime(b)
		for b.Loop() {
			var all sync.WaitGroup
			failed := make(chan error, 1000)
			for range 1000 {
				all.Go(func() {
					if err := hold(b, p, c); err != nil {
						failed <- err
					}
				})
			}
			all.Wait()
			if len(failed) > 0 {
				b.Fatalf("%d of 1000 failed: %v", len(failed), <-failed)
			}
		}
		b.ReportMetric((cpuTime(b)-before).Seconds()/float64(b.N), "cpu_s")
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/6, "x_ideal")
	})
}

func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
