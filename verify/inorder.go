package verify

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"

	"jurat/internal/fault"
)

// maxInWork is how many bytes are in work at once: enough for every core to have something to do.
const maxInWork = 64 << 20

// inOrder does work on many things at once, on all cores, and hands on the results in the order in which the things came.
// It holds a few of them at a time, however many there are, and fewer where they are large: what is in work has together at most
// maxInWork bytes by weigh, or is one. It ends with the first error: of next, unless that is last, or
// of take. Next and take are never called at the same time as themselves. A panic of next or work ends it like an error: it is
// caught in its own goroutine, where nothing else could, and returned as a *fault.Error.
func inOrder[T, R any](next func() (T, error), last error, weigh func(T) int, work func(T) R, take func(R) error) error {
	type outcome struct {
		result R
		err    error
	}
	type slot struct {
		thing  T
		weight int64
		err    error
		done   chan outcome
	}
	workers := runtime.GOMAXPROCS(0)
	todo, inTurn := make(chan *slot), make(chan *slot, 4*workers)
	room := semaphore.NewWeighted(maxInWork)
	ctx, stop := context.WithCancel(context.Background()) // only ends the waiting for room: next ends where its reader does
	var running sync.WaitGroup
	running.Go(func() { // reads, and stays at most a few things ahead
		defer close(inTurn)
		defer close(todo)
		for {
			s := &slot{done: make(chan outcome, 1)}
			s.err = fault.Guard(func() (err error) { s.thing, err = next(); return err })
			if s.err == last {
				return
			}
			if s.err == nil {
				s.weight = int64(min(weigh(s.thing), maxInWork))
			}
			if room.Acquire(ctx, s.weight) != nil {
				return
			}
			select {
			case inTurn <- s:
			case <-ctx.Done():
				return
			}
			if s.err != nil {
				return
			}
			todo <- s
		}
	})
	for range workers {
		running.Go(func() {
			for s := range todo {
				var o outcome
				o.err = fault.Guard(func() error { o.result = work(s.thing); return nil })
				s.done <- o
			}
		})
	}
	defer running.Wait()
	defer stop()
	for s := range inTurn {
		if s.err != nil {
			return s.err
		}
		o := <-s.done
		if o.err == nil {
			o.err = take(o.result)
		}
		if o.err != nil {
			return o.err
		}
		room.Release(s.weight)
	}
	return nil
}
