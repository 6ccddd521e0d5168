package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	probeTime  = 3 * time.Second // for the log to say whether it takes records: it is not ready where that takes longer
	probePause = time.Second     // between two times that it is asked
)

// readiness finds out whether the log takes records. The log is asked at most once at a time and once a second, however many ask: finding
// out writes to the disk, and anyone may ask.
type readiness struct {
	probe func(context.Context) error // may write
	log   *slog.Logger
	now   func() time.Time

	mu    sync.Mutex    // held while what follows is read or written
	asked time.Time     // when last was begun
	last  *readyOutcome // nil: nobody has asked yet
}

// readyOutcome is what one look has found.
type readyOutcome struct {
	known chan struct{} // closed when err is set
	err   error
}

// ask says why the log takes nothing. It returns within probeTime.
func (r *readiness) ask(ctx context.Context) error {
	look := r.look(ctx)
	select {
	case <-look.known:
		return look.err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(probeTime):
		return errors.New("the log has not said in time whether it takes records")
	}
}

// look returns the look that is under way or has just been, or begins another.
func (r *readiness) look(ctx context.Context) *readyOutcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.last != nil && (!closed(r.last.known) || now.Sub(r.asked).Abs() < probePause) {
		return r.last
	}
	look := &readyOutcome{known: make(chan struct{})}
	r.last, r.asked = look, now
	go func() {
		// Whoever has asked first may go, while others wait for the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
		defer cancel()
		if look.err = r.probe(ctx); look.err != nil {
			r.log.Error("the log takes no records", "error", look.err) // which may speak of files, and everybody may ask
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
