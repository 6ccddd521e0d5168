//go:build unix

package panel_test

import (
	"errors"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"jurat/internal/court/trial"
	"jurat/internal/log/installation"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
)

// BenchmarkThousandTrials conducts a thousand trials at once, in an installation as users have it. Each answer takes 2 s, so the answers alone take 6 s.
// cpu_s is the processor time of the whole process, servers included.
func BenchmarkThousandTrials(b *testing.B) {
	doc, all := servers(b, 2*time.Second)
	for _, s := range all {
		s.Forget()
	}
	p := seat(b, doc+"rounds: 1\n")
	folder := installation.Config{Dir: filepath.Join(b.TempDir(), "data")}
	must.Do(b, installation.Create(b.Context(), folder))
	i := must.Get(installation.Open(b.Context(), folder))(b)
	defer i.Close()
	one := func() error {
		jurors, judge := p.Sit(nil, 0)
		c := trial.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks, Settings: p.Settings(), Jurors: jurors, Judge: judge}
		done, err := trial.Run(b.Context(), c, jurattest.Case(b))
		if err == nil && done.Result.Degraded {
			err = errors.New("degraded: " + done.Result.Absences[0].Detail)
		}
		return err
	}
	before := cpuTime(b)
	for b.Loop() {
		var all sync.WaitGroup
		failed := make(chan error, 1000)
		for range 1000 {
			all.Go(func() {
				if err := one(); err != nil {
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
}

func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
