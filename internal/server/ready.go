package server

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

// A prober checks whether the log takes records. It runs at most one check at a time and one a second, because a
// check writes to the disk and anyone may ask for it.
type prober struct {
	probe func(context.Context) error // may write
	log   *slog.Logger
	now   func() time.Time

	mu    sync.Mutex // held while the fields below are read or written
	asked time.Time  // when the last check began
	last  *readiness // nil: no check yet
}

// readiness is the result of one check.
type readiness struct {
	known chan struct{} // closed when err is set
	err   error
}

// ask returns why the log takes no records; nil if it does. It returns within probeTime.
func (r *prober) ask(ctx context.Context) error {
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
func (r *prober) look(ctx context.Context) *readiness {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.last != nil && (!isClosed(r.last.known) || now.Sub(r.asked).Abs() < probePause) {
		return r.last
	}
	look := &readiness{known: make(chan struct{})}
	r.last, r.asked = look, now
	go func() {
		// The first caller may disconnect while others wait for the same check.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
		defer cancel()
		if look.err = r.probe(ctx); look.err != nil {
			r.log.Error("the log takes no records", "error", look.err) // the error may contain file names, and the caller is unknown
		}
		close(look.known)
	}()
	return look
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
