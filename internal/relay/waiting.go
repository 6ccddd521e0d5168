package relay

import (
	"context"
	"sync"
)

// waiting counts what goes on after its call has ended.
type waiting struct{ group sync.WaitGroup }

func (w *waiting) Go(do func()) { w.group.Go(do) }

// Wait returns when all of it has ended, or with the context's error.
func (w *waiting) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		w.group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
