package schedule

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"jurat/internal/court/trial"
	"jurat/internal/log/ledger"
	"jurat/internal/log/lock"
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

	wake     chan struct{}   // receives when there may be work, or room for it
	stopping context.Context // over when no trial is to be taken any more
	quit     context.CancelFunc
	looking  sync.WaitGroup
	working  sync.WaitGroup

	mu   sync.Mutex          // guards here
	here map[string]*sitting // the trials that this process conducts
}

// A sitting is a trial that this process conducts: it is over when no further juror is to be asked.
type sitting struct {
	context.Context
	adjourn context.CancelFunc
}

func newQueue(cfg Config, work func(context.Context, string, <-chan struct{}) error) *queue {
	stopping, quit := context.WithCancel(context.Background()) // stop ends it
	return &queue{Table: cfg.Table, cfg: cfg, work: work, wake: make(chan struct{}, 1), stopping: stopping, quit: quit, here: map[string]*sitting{}}
}

// start takes over the trials of dead processes, without waiting for the whole lease, and works in the context working until stop is called.
func (q *queue) start(ctx, working context.Context) error {
	if err := q.takeOver(ctx, min(q.cfg.Lease, startLease)); err != nil {
		return err
	}
	q.looking.Go(func() { q.look(working) })
	return nil
}

// stop takes no further trial, adjourns those that are held here, and waits until the work on them has ended.
func (q *queue) stop() {
	q.quit()
	q.adjourn(func(string) bool { return true })
	q.looking.Wait()
	q.working.Wait()
}

// adjourn ends further questions to the jurors of the trials for which is holds.
func (q *queue) adjourn(is func(trial string) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for trial, s := range q.here {
		if is(trial) {
			s.adjourn()
		}
	}
}

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
		case <-q.stopping.Done():
			return
		case <-tick.C:
		case <-q.wake:
		}
	}
}

func (q *queue) fill(working context.Context) error {
	ctx := context.WithoutCancel(working)
	hasRoom := func() bool { return !q.isStopping() && q.underWay() < q.cfg.Parallel }
	for hasRoom() {
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

func (q *queue) isStopping() bool { return q.stopping.Err() != nil }

func (q *queue) underWay() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.here)
}

// enter registers a trial as conducted here; nil: it is already.
func (q *queue) enter(trial string) *sitting {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.here[trial] != nil {
		return nil
	}
	ctx, adjourn := context.WithCancel(context.Background()) // adjourn and leave end it
	q.here[trial] = &sitting{ctx, adjourn}
	return q.here[trial]
}

func (q *queue) leave(trial string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.here[trial].adjourn()
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
	// A beat tells the other processes that this one lives. While the database is away, nobody else can take the trial.
	go every(beating, max(q.cfg.Lease/10, time.Millisecond), func() bool {
		counts, err := q.beat(beating, h)
		if err == nil && !counts {
			lose(lock.ErrLost)
		}
		return err != nil || counts
	})
	q.store(beating, h, q.work(ctx, h.trial, s.Done()))
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

// takeOver ends the holds of processes that were not heard of for the lease and have no lock on the trial. One with a lock is only slow.
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

func (q *queue) put(ctx context.Context, again string, trials ...string) error {
	defer q.wakeUp()
	return q.add(ctx, again, trials...)
}

// Run conducts trials until ctx ends. Then it begins no trial, lets the jurors that were asked answer within the
// grace period, and returns when every trial has stopped between two acts. Other processes then continue them. It
// must be called only once.
func (d *Scheduler) Run(ctx context.Context) {
	working, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	defer interrupt()
	d.mu.Lock()
	d.working = true
	d.attend()
	d.mu.Unlock()
	if d.start(ctx, working) {
		d.keep(ctx)
	}
	grace := time.AfterFunc(d.cfg.Grace, interrupt)
	d.queue.stop()
	grace.Stop()
	close(d.closed)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.working = false
	d.dismiss()
}

// start begins to take trials as soon as the database of the queue answers. It reports whether it did.
func (d *Scheduler) start(ctx, working context.Context) bool {
	for {
		err := d.queue.start(ctx, working)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		d.cfg.Log.Error("no trial is held yet", "error", err)
		if !sleep(ctx, d.cfg.Poll) {
			return false
		}
	}
}

// keep looks, until ctx ends, for trials whose process has died, perhaps before it queued a submission.
func (d *Scheduler) keep(ctx context.Context) {
	var orphans map[string]bool
	for sleep(ctx, d.cfg.Lease/2) {
		err := d.queue.takeOver(ctx, d.cfg.Lease)
		if err == nil {
			orphans, err = d.adopt(ctx, orphans)
		}
		if err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("looking for trials that no process holds", "error", err)
		}
		if err := d.index.Renew(ctx); err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("reading the list of trials again", "error", err)
		}
	}
}

// adopt queues unfinished trials that were missing in the queue at this look and the previous one. It returns those that are missing.
func (d *Scheduler) adopt(ctx context.Context, before map[string]bool) (orphans map[string]bool, err error) {
	if err := d.index.Follow(ctx); err != nil {
		return before, err
	}
	ids := d.toHold()
	found, err := d.queue.find(ctx, ids...)
	if err != nil {
		return before, err
	}
	orphans = map[string]bool{}
	for _, id := range ids {
		if _, has := found[id]; has {
			continue
		}
		switch locked, err := d.cfg.Locks.Locked(ctx, id); {
		case err != nil:
			return before, err
		case locked:
		case before[id]:
			if err := d.queue.put(ctx, none, id); err != nil {
				return before, err
			}
		default:
			orphans[id] = true
		}
	}
	return orphans, nil
}

func sleep(ctx context.Context, long time.Duration) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// unusable are errors that say nothing of the trial: the log or the locks cannot be used now.
var unusable = []error{ledger.ErrAway, ledger.ErrMoved, ledger.ErrBusy, ledger.ErrDiskFull, ledger.ErrReadOnly, ledger.ErrUnknown, lock.ErrLost, syscall.ENOSPC}

func isOne(of []error, err error) bool {
	return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
}

// work conducts the rest of a trial that this process holds, in the context of the hold. It returns nil for a trial that is over or cancelled. Only an
// error of the trial's own work counts as an attempt.
func (d *Scheduler) work(ctx context.Context, id string, adjourn <-chan struct{}) error {
	ended, err := d.ended(ctx, id)
	switch {
	case err == nil && ended:
		return nil
	case d.queue.isStopping():
		return later(0)
	case err == nil:
		err = d.conduct(ctx, adjourn, id)
	}
	if isOne(unusable, err) {
		return later(d.cfg.Lease / 2)
	}
	return err
}

// ended reports whether a trial is over or cancelled. The context ends with the program; that is not a failure of the trial.
func (d *Scheduler) ended(ctx context.Context, id string) (bool, error) {
	err := d.index.Follow(context.WithoutCancel(ctx))
	s, known := d.index.Get(id)
	return known && (s.Over || s.Cancelled != nil), err
}

// permanent are the errors that a retry cannot cure before a person has acted.
var permanent = []error{trial.ErrSettings, trial.ErrUnreadable, errMistake, ledger.ErrDamaged, ledger.ErrForked, ledger.ErrBehind, ledger.ErrNotFound}

// conduct conducts a trial, and decides from the error with which it ended what happens with it in the queue.
func (d *Scheduler) conduct(ctx context.Context, adjourn <-chan struct{}, id string) error {
	began := d.cfg.Now()
	err := d.hold(ctx, adjourn, id)
	log := d.cfg.Log.With("trial", id, "took", d.cfg.Now().Sub(began))
	switch {
	case err == nil:
		// The trial is over, even if this fails. A checkpoint after its end proves the end to readers.
		if _, failed := d.cfg.Ledger.Checkpoint(ctx); failed != nil {
			log.Error("no checkpoint after a trial", "error", failed)
		}
		log.Info("trial over")
		return nil
	case errors.Is(err, trial.ErrAdjourned), errors.Is(err, context.Canceled):
		log.Info("trial stopped")
		if ended, failed := d.ended(ctx, id); ended || failed != nil {
			return failed
		}
		return later(0) // the program ends, or the trial was cancelled and resumed
	case isOne(unusable, err):
		log.Warn("trial interrupted; it continues when the log can be used again", "error", err)
	default:
		log.Error("trial broken off", "error", err)
	}
	if errors.Is(err, trial.ErrMoved) {
		return later(time.Second)
	}
	if locked, failed := d.cfg.Locks.Locked(context.WithoutCancel(ctx), id); failed == nil && locked {
		return later(d.cfg.Lease / 2) // another process was faster
	}
	if isOne(permanent, err) {
		return final{err}
	}
	return err
}

// errMistake says that the program has a bug.
var errMistake = errors.New("panicked")

// hold turns a panic into an error. Otherwise one trial would end all others, again at each start.
func (d *Scheduler) hold(ctx context.Context, adjourn <-chan struct{}, id string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.cfg.Log.Error("holding a trial panicked", "trial", id, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errMistake, p)
		}
	}()
	release, err := d.room(ctx, adjourn, id)
	if err != nil {
		return err
	}
	defer release()
	listener := d.cfg.Listen()
	config := trial.Config{Adjourn: adjourn, OnEvent: func(e trial.Event) { d.heard(id); listener(e) }}
	_, err = trial.Resume(ctx, d.furnish(config), id, func(t *trial.Trial, c *trial.Config) error {
		if t.Over { // another process has held it meanwhile, and told its listeners
			c.OnEvent = func(trial.Event) {}
		}
		if err := cmp.Or(d.cfg.Vouch(ctx, t.Records...), d.noJury()); err != nil {
			return err
		}
		seated := d.cfg.Sit(t.Case, t.Bill.Cost)
		c.Settings, c.Jurors, c.Judge = seated.Settings, seated.Jurors, seated.Judge
		return nil
	})
	return err
}

// The memory that a trial takes. With 7 MB of evidence and three rule jurors it was 13 times the evidence's size.
const (
	trialBytes  = 1 << 20 // for a trial with little evidence
	trialFactor = 16      // multiple of the bytes of evidence and answers
)

// room waits until there is enough memory for a trial. A trial that needs more than the whole limit gets all of it.
// room returns trial.ErrAdjourned if the trial is to stop while it waits.
func (d *Scheduler) room(ctx context.Context, adjourn <-chan struct{}, id string) (release func(), err error) {
	if d.memory == nil {
		return func() {}, nil
	}
	takes := int64(trialBytes)
	err = d.oneOfFew(ctx, func() error { // before anything of it is parsed
		chain, err := d.cfg.Ledger.Chain(ctx, id)
		for _, r := range chain {
			takes += trialFactor * int64(len(r.Canonical()))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	takes = min(d.cfg.Memory, takes)
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-adjourn:
			cancel(trial.ErrAdjourned)
		case <-waiting.Done():
		}
	}()
	if d.memory.Acquire(waiting, takes) != nil {
		return nil, context.Cause(waiting)
	}
	return func() { d.memory.Release(takes) }, nil
}

// oneOfFew reads a trial in its turn: see readsAtOnce.
func (d *Scheduler) oneOfFew(ctx context.Context, read func() error) error {
	select {
	case d.reads <- struct{}{}:
		defer func() { <-d.reads }()
		return read()
	case <-ctx.Done():
		return ctx.Err()
	}
}
