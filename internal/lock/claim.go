// Package lock keeps all but one from what several processes could be at work on: a trial. A claim ends with the process
// that has it, however that ends, and nobody has to clean up after it.
//
// On one machine the operating system holds claims, as locks on files of a folder. Among machines a PostgreSQL database
// does, as locks of a session.
//
// # A claim is a lock of a session
//
// That somebody conducts a trial must end with him, however he ends. On one machine the operating system sees to that; among
// machines a session of the database does, on a connection for that alone. A lease in a table would need clocks that agree, or to be
// renewed by writes all the time. The session has what is good in a lease all the same: the server ends it when nothing was heard
// for twenty seconds (`idle_session_timeout`), and the process takes it for lost after thirteen, so that it stops first. What is
// done under a claim is done in a context that ends with it. That is for not working in vain: that an act has one place is for the
// log to see to.
package lock

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"jurat/evidence"
)

var (
	// ErrTaken says that a process, this one or another, is at work on it.
	ErrTaken = errors.New("somebody is at work on it at this moment")
	// ErrLost is the cause with which the context of a claim ends that was lost: from then on somebody else may have it.
	ErrLost = errors.New("the claim on it was lost, and somebody else may be at work on it")
)

// Claims are claims by name. They are safe for concurrent use.
type Claims interface {
	// Claim keeps everybody else from what has this name, until release is called or this process ends. What the claim is
	// for is done in the context that it returns, which ends with ctx, when the claim is released, and with ErrLost as its
	// cause when it is lost. Where somebody has it, the error has ErrTaken in its chain.
	Claim(ctx context.Context, name string) (held context.Context, release func(), err error)
	// Claimed reports whether somebody has what has this name. To ask claims nothing: whoever is about to begin is not kept
	// from it, and the answer comes soon.
	Claimed(ctx context.Context, name string) (bool, error)
	// Close lets go of everything.
	Close() error
}

// check refuses what could not be the name of a file in a folder, wherever claims are kept.
func check(name string) error {
	if err := evidence.CheckName(name); err != nil || filepath.Base(name) != name || name[0] == '.' {
		return fmt.Errorf("claiming %q: not the id of a trial", name)
	}
	return nil
}
