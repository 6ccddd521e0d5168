package recording

import (
	"context"
	"sync"
)

// beginnings has one act begin each chain: the others wait until it is sealed, because each act but the first names one before it.
type beginnings struct {
	mu    sync.Mutex
	under map[string]chan struct{} // closed when the act that begins the chain is sealed, or was not
}

// enter returns at once if the chain has an act, and otherwise when nobody else begins it. leave must be called.
func (b *beginnings) enter(ctx context.Context, chain string, begun func() bool) (leave func(), err error) {
	for {
		b.mu.Lock()
		if begun() {
			b.mu.Unlock()
			return func() {}, nil
		}
		other := b.under[chain]
		if other == nil {
			if b.under == nil {
				b.under = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			b.under[chain] = mine
			b.mu.Unlock()
			return func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				delete(b.under, chain)
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
