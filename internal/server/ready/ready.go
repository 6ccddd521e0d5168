// Package ready finds out whether a log takes records, for monitoring, without letting callers make it work much.
package ready

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	probeTime  = 3 * time.Second // time limit for a check; a slower log counts as not ready
	probePause = time.Second     // between two checks
)

// A Prober checks whether the log takes records. It runs at most one check at a time and one a second, because a
// check writes to the disk and anyone may ask for it.
type Prober struct {
	Probe func(context.Context) error // may write
	Log   *slog.Logger
	Now   func() time.Time

	mu    sync.Mutex // held while the fields below are read or written
	asked time.Time  // when the last check began
	last  *outcome   // nil: no check yet
}

// outcome is the result of one check.
type outcome struct {
	known chan struct{} // closed when err is set
	err   error
}

// Ask returns why the log takes no records; nil if it does. It returns within probeTime.
func (r *Prober) Ask(ctx context.Context) error {
	look := r.look(ctx)
	select {
	case <-look.known:
		return look.err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(probeTime):
		return errors.New("the log did not answer in time")
	}
}

// look returns the running or a recent check, or begins another.
func (r *Prober) look(ctx context.Context) *outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	if r.last != nil && (!closed(r.last.known) || now.Sub(r.asked).Abs() < probePause) {
		return r.last
	}
	look := &outcome{known: make(chan struct{})}
	r.last, r.asked = look, now
	go func() {
		// The first caller may disconnect while others wait for the same check.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
		defer cancel()
		if look.err = r.Probe(ctx); look.err != nil {
			r.Log.Error("the log takes no records", "error", look.err) // the error may contain file names, and the caller is unknown
		}
		close(look.known)
	}()
	return look
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
