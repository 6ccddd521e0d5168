package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A meter counts operations of many concurrent workers, over several slices of time.
type meter struct {
	n  int64
	in time.Duration
}

func (m *meter) perSecond() float64 {
	if m.in <= 0 {
		return 0
	}
	return float64(m.n) / m.in.Seconds()
}

// each returns the mean time of one operation of one worker.
func (m *meter) each(workers int) time.Duration {
	if m.n == 0 {
		return 0
	}
	return m.in * time.Duration(workers) / time.Duration(m.n)
}

// during lets workers repeat an operation for a slice of time, each at least once. The time counts until the last worker has finished. It
// returns the first error.
func (m *meter) during(ctx context.Context, slice time.Duration, workers int, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begin := time.Now()
	var n atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for first := true; ctx.Err() == nil && (first || time.Since(begin) < slice); first = false {
				if err := do(ctx); err != nil {
					cancel(err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	m.n, m.in = m.n+n.Load(), m.in+time.Since(begin)
	return context.Cause(ctx)
}

// times lets workers perform an operation n times in all. It returns the first error.
func times(ctx context.Context, n int64, workers int, do func(context.Context) error, told func(done int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun, done atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for begun.Add(1) <= n && ctx.Err() == nil {
				if err := do(ctx); err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		select {
		case <-tick.C:
			told(done.Load())
		case <-ended:
			tick.Stop()
			told(done.Load())
			return context.Cause(ctx)
		}
	}
}

// timings are the durations of an operation that is repeated alone.
type timings []time.Duration

func (t *timings) took(do func() error) error {
	begin := time.Now()
	err := do()
	*t = append(*t, time.Since(begin))
	return err
}

func (t timings) median() time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[len(sorted)/2]
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
