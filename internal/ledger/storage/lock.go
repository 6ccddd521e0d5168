package storage

import "context"

// A Lock is a mutex for which one waits only as long as a context allows.
type Lock chan struct{}

// NewLock returns one that nobody holds.
func NewLock() Lock { return make(Lock, 1) }

// Acquire waits until nobody else holds it.
func (l Lock) Acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release lets the next one have it.
func (l Lock) Release() { <-l }
