package recording

import (
	"context"
	"sync"
)

// turns has one call at a time do something for each key: the others wait for their turn.
type turns struct {
	mu    sync.Mutex
	under map[string]chan struct{} // closed when the turn ends
}

// enter returns at once if what is to be done is done, and otherwise when nobody else does it. leave must be called. Its error is that of the context.
func (b *turns) enter(ctx context.Context, key string, done func() bool) (leave func(), err error) {
	for {
		b.mu.Lock()
		if done() {
			b.mu.Unlock()
			return func() {}, nil
		}
		other := b.under[key]
		if other == nil {
			if b.under == nil {
				b.under = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			b.under[key] = mine
			b.mu.Unlock()
			return func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				delete(b.under, key)
				close(mine)
			}, nil
		}
		b.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
