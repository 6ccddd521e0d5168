// Package inorder works on many items at once and hands on the results in their order.
package inorder

import (
	"context"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"

	"jurat/internal/kit/fault"
)

// maxInWork bounds the bytes in work at once. It is large enough to keep every core busy.
const maxInWork = 64 << 20

type outcome[R any] struct {
	result R
	err    error
}

// Do works on many items at once, on all cores, and passes the results to take in the order of the items. It
// holds only a few items at a time, and fewer if they are large: their total by weigh is at most maxInWork bytes, or
// there is only one. Do ends with the first error of take, or of next unless that is io.EOF. It never runs two
// calls of next, or two of take, at the same time. It recovers a panic of next or work in its own goroutine and
// returns it as a *fault.Error.
func Do[T, R any](next func() (T, error), weigh func(T) int, work func(T) R, take func(R) error) error {
	type slot struct {
		thing  T
		weight int64
		err    error
		done   chan outcome[R]
	}
	workers := runtime.GOMAXPROCS(0)
	todo, inTurn := make(chan *slot), make(chan *slot, 4*workers)
	room := semaphore.NewWeighted(maxInWork)
	ctx, stop := context.WithCancel(context.Background()) // stop only ends the waiting for room; next ends with its reader
	var running sync.WaitGroup
	running.Go(func() { // reads, a few items ahead at most
		defer close(inTurn)
		defer close(todo)
		for {
			s := &slot{done: make(chan outcome[R], 1)}
			s.err = fault.Guard(func() (err error) { s.thing, err = next(); return err })
			if s.err == io.EOF {
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
				var o outcome[R]
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

// Each works on a list of items as Do does, and passes the results to take in the order of the items. It ends with the first error of work
// or take.
func Each[T, R any](items []T, work func(T) (R, error), take func(R) error) error {
	next := 0
	return Do(func() (item T, err error) {
		if next == len(items) {
			return item, io.EOF
		}
		next++
		return items[next-1], nil
	}, func(T) int { return 0 }, func(item T) (o outcome[R]) {
		o.result, o.err = work(item)
		return o
	}, func(o outcome[R]) error {
		if o.err != nil {
			return o.err
		}
		return take(o.result)
	})
}
