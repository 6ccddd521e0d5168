// Package lock lets one of several processes work on something, such as a trial. A lock ends with its process,
// however that ends, and needs no cleaning up.
//
// On one machine the operating system holds the locks, on files in a folder. Among machines a database holds them:
// postgres.Locks.
package lock

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"jurat/evidence"
)

var (
	// ErrTaken means that this or another process has the lock.
	ErrTaken = errors.New("a process is working on it at this moment")
	// ErrLost is the cause that ends the context of a lock's holder when the lock is lost. Another process may have it from then
	// on.
	ErrLost = errors.New("the lock on it was lost, and another process may be working on it")
)

// Locks are locks by name. They are safe for concurrent use.
type Locks interface {
	// Lock takes the lock with this name, until release is called or this process ends. The work is done in the
	// returned context. It ends with ctx, when the lock is released, or, with ErrLost as its cause, when the lock is
	// lost. If another holder has the lock, the error wraps ErrTaken.
	Lock(ctx context.Context, name string) (held context.Context, release func(), err error)
	// Locked reports whether a process has the lock with this name. It does not take the lock and does not delay
	// others that do.
	Locked(ctx context.Context, name string) (bool, error)
	// Close releases all locks.
	Close() error
}

// Alone is for a process that shares its work with no other: every lock is free.
type Alone struct{}

var _ Locks = Alone{}

// Lock implements Locks. It always succeeds, and the returned context is ctx.
func (Alone) Lock(ctx context.Context, _ string) (context.Context, func(), error) {
	return ctx, func() {}, nil
}

// Locked implements Locks. The answer is always false, and the error nil.
func (Alone) Locked(context.Context, string) (bool, error) { return false, nil }

// Close implements Locks. Its error is nil.
func (Alone) Close() error { return nil }

// CheckName returns an error for a name that could not be a file name in a folder. All implementations refuse it.
func CheckName(name string) error {
	if err := evidence.CheckName(name); err != nil || filepath.Base(name) != name || name[0] == '.' {
		return fmt.Errorf("locking %q: this is not the id of a trial", name)
	}
	return nil
}
