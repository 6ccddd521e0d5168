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
	"os"
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

// A Folder holds locks among the processes of one machine. A crash leaves at most an empty file without a lock.
type Folder struct{ dir string }

var _ Locks = (*Folder)(nil)

// NewFolder returns the locks in a folder. The first lock makes the folder.
func NewFolder(dir string) *Folder { return &Folder{dir} }

// Lock implements Locks. A lock is never lost: the operating system keeps it as long as the process lives. It returns
// ErrTaken, wrapped, if another holder has the lock, an error for a name that CheckName refuses, and the errors of
// the file system.
func (f *Folder) Lock(ctx context.Context, name string) (held context.Context, release func(), err error) {
	if err := CheckName(name); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("locking %s: %w", name, err)
	}
	letGo, err := take(filepath.Join(f.dir, name))
	if err != nil {
		return nil, nil, fmt.Errorf("locking %s: %w", name, err)
	}
	held, cancel := context.WithCancel(ctx)
	return held, func() { cancel(); letGo() }, nil
}

// Locked implements Locks. It returns an error for a name that CheckName refuses, and the errors of the file system.
func (f *Folder) Locked(_ context.Context, name string) (bool, error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	is, err := taken(filepath.Join(f.dir, name))
	if err != nil {
		return false, fmt.Errorf("reading whether %s is locked: %w", name, err)
	}
	return is, nil
}

// Close implements Locks. Locks stay held until they are released. Its error is nil.
func (f *Folder) Close() error { return nil }
