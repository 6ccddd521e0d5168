package verify

import (
	"runtime"
	"sync"
)

// inOrder does work on many things at once, on all cores, and hands on the results in the order in which the things came.
// It holds a few of them at a time, however many there are. It ends with the first error: of next, unless that is last, or
// of take. Next and take are never called at the same time as themselves.
func inOrder[T, R any](next func() (T, error), last error, work func(T) R, take func(R) error) error {
	type slot struct {
		thing T
		err   error
		done  chan R
	}
	workers := runtime.GOMAXPROCS(0)
	todo, inTurn, stop := make(chan *slot), make(chan *slot, 4*workers), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { // reads, and stays at most a few things ahead
		defer close(inTurn)
		defer close(todo)
		for {
			s := &slot{done: make(chan R, 1)}
			s.thing, s.err = next()
			if s.err == last {
				return
			}
			select {
			case inTurn <- s:
			case <-stop:
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
				s.done <- work(s.thing)
			}
		})
	}
	defer running.Wait()
	defer close(stop)
	for s := range inTurn {
		if s.err != nil {
			return s.err
		}
		if err := take(<-s.done); err != nil {
			return err
		}
	}
	return nil
}
