// Package lock lets one of several processes work on something, such as a trial. A lock ends with its process,
// however that ends, and needs no cleaning up.
//
// On one machine the operating system holds the locks, on files in a folder. Among machines a PostgreSQL database
// holds them, for a session.
//
// # A claim is a lock of a session
//
// The lock on a trial must end with the process that conducts it, however that ends. On one machine the operating
// system guarantees this. Among machines a database session does, on a connection of its own. A lease in a table
// would need synchronised clocks, or writes that renew it all the time. The session has the advantage of a lease: the
// server ends it after twenty seconds without a message (`idle_session_timeout`). The process treats it as lost after
// thirteen, so that it stops first. Work under a lock runs in a context that ends with the lock. That only avoids
// useless work: the log makes sure that no act gets a second place.
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
	// ErrLost is the cause that ends a claim's context when the lock is lost. Another process may have it from then
	// on.
	ErrLost = errors.New("the lock on it was lost, and another process may be working on it")
)

// Claims are locks by name. They are safe for concurrent use.
type Claims interface {
	// Claim takes the lock with this name, until release is called or this process ends. The work is done in the
	// returned context. It ends with ctx, when the lock is released, or, with ErrLost as its cause, when the lock is
	// lost. If another holder has the lock, the error wraps ErrTaken.
	Claim(ctx context.Context, name string) (held context.Context, release func(), err error)
	// Claimed reports whether a process has the lock with this name. It does not take the lock and does not delay
	// others that do.
	Claimed(ctx context.Context, name string) (bool, error)
	// Close releases all locks.
	Close() error
}

// check refuses a name that could not be a file name in a folder. The rule is the same for both implementations.
func check(name string) error {
	if err := evidence.CheckName(name); err != nil || filepath.Base(name) != name || name[0] == '.' {
		return fmt.Errorf("claiming %q: this is not the id of a trial", name)
	}
	return nil
}
