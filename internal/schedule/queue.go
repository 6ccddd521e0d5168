package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"jurat/internal/lock"
)

const (
	lookEvery  = time.Second // how often a process looks for trials that others queued
	startLease = time.Second // the lease at the start: the process that died may be this one's predecessor
	mostDeaths = 100         // of processes during a trial, before the trial itself may be the cause
	allDied    = "every process that conducted it has stopped"
)

// later is an outcome of work: it is taken up again after this pause, perhaps by another process. That is no attempt.
type later time.Duration

func (l later) Error() string { return "put off for " + time.Duration(l).String() }

// A final error is an outcome of work: only a person can help.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// A queue works on the trials of a table, several at a time. Each is held by one process, and only by one goroutine of it.
type queue struct {
	*Table
	cfg Config
	// work conducts a trial until adjourn is closed. nil: the trial is over. later and final say what they mean; any other error is an attempt.
	work func(ctx context.Context, trial string, adjourn <-chan struct{}) error

	wake     chan struct{} // receives when there may be work, or room for it
	stopping chan struct{} // closed when no trial is to be taken any more
	looking  sync.WaitGroup
	working  sync.WaitGroup

	mu   sync.Mutex          // guards here
	here map[string]*sitting // the trials that this process conducts
}

// A sitting is a trial that this process conducts.
type sitting struct {
	adjourned bool
	adjourn   chan struct{} // closed when no further juror is to be asked
}

func newQueue(cfg Config, work func(context.Context, string, <-chan struct{}) error) *queue {
	return &queue{Table: cfg.Table, cfg: cfg, work: work, wake: make(chan struct{}, 1), stopping: make(chan struct{}), here: map[string]*sitting{}}
}

// start takes over the trials of processes that have died, without waiting for the whole lease, and works until stop is called. The work is done in
// the context working.
func (q *queue) start(ctx, working context.Context) error {
	if err := q.takeOver(ctx, min(q.cfg.Lease, startLease)); err != nil {
		return err
	}
	q.looking.Go(func() { q.look(working) })
	return nil
}

// stop takes no further trial, adjourns those that are held here, and waits until the work on them has ended.
func (q *queue) stop() {
	close(q.stopping)
	q.adjourn(func(string) bool { return true })
	q.looking.Wait()
	q.working.Wait()
}

// adjourn ends further questions to the jurors of the trials for which is holds.
func (q *queue) adjourn(is func(trial string) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for trial, s := range q.here {
		if !s.adjourned && is(trial) {
			s.adjourned = true
			close(s.adjourn)
		}
	}
}

// look takes trials while there is room for them.
func (q *queue) look(working context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failing := false
	for {
		err := q.fill(working)
		if err != nil && !failing {
			q.cfg.Log.Error("no trial is taken from the queue", "error", err)
		}
		failing = err != nil
		select {
		case <-q.stopping:
			return
		case <-tick.C:
		case <-q.wake:
		}
	}
}

func (q *queue) fill(working context.Context) error {
	ctx := context.WithoutCancel(working)
	for q.hasRoom() {
		h, err := q.take(ctx, rand.Text())
		if err != nil || h == nil {
			return err
		}
		s := q.enter(h.trial)
		if s == nil { // an earlier hold was taken from this process, which still ends its work
			if err := q.release(ctx, h, &q.cfg.Lease); err != nil {
				return err
			}
			continue
		}
		q.working.Go(func() { q.hold(working, h, s) })
	}
	return nil
}

func (q *queue) isStopping() bool {
	select {
	case <-q.stopping:
		return true
	default:
		return false
	}
}

func (q *queue) hasRoom() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.isStopping() && len(q.here) < q.cfg.Parallel
}

// enter registers a trial as conducted here; nil: it is already.
func (q *queue) enter(trial string) *sitting {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.here[trial] != nil {
		return nil
	}
	q.here[trial] = &sitting{adjourn: make(chan struct{})}
	return q.here[trial]
}

func (q *queue) leave(trial string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.here, trial)
	q.wakeUp()
}

func (q *queue) isHere(trial string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.here[trial] != nil
}

func (q *queue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// hold works on a trial. The work ends with the hold: another process may have the trial from then on.
func (q *queue) hold(working context.Context, h *hold, s *sitting) {
	defer q.leave(h.trial)
	ctx, lose := context.WithCancelCause(working)
	defer lose(nil)
	beating, end := context.WithCancel(context.WithoutCancel(working))
	defer end() // when it is stored how the work ended
	go q.keepBeating(beating, h, func() { lose(lock.ErrLost) })
	q.store(beating, h, q.work(ctx, h.trial, s.adjourn))
}

// keepBeating tells the other processes that this one lives, until ctx ends. While the database is away, nobody else can take the trial.
func (q *queue) keepBeating(ctx context.Context, h *hold, lose func()) {
	for sleep(ctx, max(q.cfg.Lease/10, time.Millisecond)) {
		if counts, err := q.beat(ctx, h); err == nil && !counts {
			lose()
			return
		}
	}
}

// store stores how the work ended, as soon as the database answers. A program that stops does not wait for that: the next process takes the trial over.
func (q *queue) store(ctx context.Context, h *hold, outcome error) {
	for {
		err := q.storeOnce(ctx, h, outcome)
		if err == nil {
			return
		}
		if q.isStopping() {
			q.cfg.Log.Error("it is not stored how the work on a trial ended", "trial", h.trial, "error", err)
			return
		}
		sleep(ctx, q.cfg.Poll)
	}
}

func (q *queue) storeOnce(ctx context.Context, h *hold, outcome error) error {
	var pause later
	var never final
	switch {
	case outcome == nil:
		return q.done(ctx, h)
	case errors.As(outcome, &pause):
		return q.release(ctx, h, (*time.Duration)(&pause))
	}
	after := *h
	after.attempts, after.reason = h.attempts+1, outcome.Error()
	if errors.As(outcome, &never) || after.attempts >= q.cfg.Attempts {
		return q.release(ctx, &after, nil)
	}
	wait := q.cfg.Backoff * time.Duration(math.Pow(4, float64(min(h.attempts, 9))))
	return q.release(ctx, &after, &wait)
}

// takeOver ends the holds of processes that were not heard of for the lease and have no lock on the trial. Without the lock, a process that was only
// slow would be asked to stop.
func (q *queue) takeOver(ctx context.Context, lease time.Duration) error {
	list, err := q.silent(ctx, lease)
	if err != nil {
		return fmt.Errorf("looking for trials whose process has died: %w", err)
	}
	for _, h := range list {
		locked, err := q.cfg.Locks.Locked(ctx, h.trial)
		if err != nil { // of this trial: others are taken over all the same
			q.cfg.Log.Error("a trial is not taken over", "trial", h.trial, "error", err)
		}
		if err != nil || locked || q.isHere(h.trial) {
			continue
		}
		ended, err := q.end(ctx, &h, lease)
		if err != nil {
			return fmt.Errorf("taking over %s: %w", h.trial, err)
		}
		if ended {
			q.cfg.Log.Warn("the process that conducted a trial has stopped; the trial continues elsewhere", "trial", h.trial)
			q.wakeUp()
		}
	}
	return nil
}

// Which trials begin anew when they are put into the queue although they are in it.
const (
	none   = "false"
	failed = "old.next IS NULL"
	free   = "old.holder = ''"
)

// put puts trials at the end of the queue.
func (q *queue) put(ctx context.Context, again string, trials ...string) error {
	defer q.wakeUp()
	return q.add(ctx, again, trials...)
}
