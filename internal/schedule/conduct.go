package schedule

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/internal/trial"
)

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

// keep looks, until ctx ends, for trials without a working process. Their process has died, perhaps before it queued
// a submission.
func (d *Scheduler) keep(ctx context.Context) {
	var orphans map[string]bool
	for sleep(ctx, d.cfg.Lease/2) {
		err := d.queue.takeOver(ctx, d.cfg.Lease)
		if err == nil {
			orphans, err = d.adopt(ctx, orphans)
		}
		if err == nil {
			err = d.index.Renew(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("looking for trials that no process holds", "error", err)
		}
	}
}

// adopt queues unfinished trials that were not in the queue at this look and the previous one. It returns those that
// are not in the queue.
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

// isUnusable reports whether an error comes from the log or the locks, and says nothing of the trial.
func isUnusable(err error) bool {
	return slices.ContainsFunc(unusable, func(is error) bool { return errors.Is(err, is) })
}

// work conducts the rest of a trial that this process holds, in the context of the hold. It returns nil for a trial that is over or cancelled. Only an
// error of the trial's own work counts as an attempt.
func (d *Scheduler) work(ctx context.Context, id string, adjourn <-chan struct{}) error {
	// The context ends with the program; that is not a failure of the trial.
	err := d.index.Follow(context.WithoutCancel(ctx))
	if s, known := d.index.Get(id); err == nil && known && (s.Over || s.Cancelled != nil) {
		return nil
	}
	if d.queue.isStopping() {
		return later(0)
	}
	if err == nil {
		err = d.after(ctx, id, d.conduct(ctx, adjourn, id))
	}
	if isUnusable(err) {
		return later(d.cfg.Lease / 2)
	}
	return err
}

// conduct holds one trial, or the rest of it.
func (d *Scheduler) conduct(ctx context.Context, adjourn <-chan struct{}, id string) error {
	began := d.cfg.Now()
	err := d.hold(ctx, adjourn, id)
	if err == nil {
		// The trial is over, even if this fails. A checkpoint after its end proves the end to readers.
		if _, failed := d.cfg.Ledger.Checkpoint(ctx); failed != nil {
			d.cfg.Log.Error("no checkpoint after a trial", "trial", id, "error", failed)
		}
	}
	d.tell(id, d.cfg.Now().Sub(began), err)
	return err
}

// errMistake says that the program has a bug.
var errMistake = errors.New("panicked")

// hold turns a panic into an error. Otherwise one trial that makes the program panic would end all other trials,
// again at each start.
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
	r, err := trial.Reopen(ctx, d.cfg.Ledger, id)
	if err != nil {
		return err
	}
	if err := d.cfg.Vouch(ctx, r.Records...); err != nil {
		return err
	}
	config, err := d.cfg.Sit(r.Submitter, r.Spent)
	if err != nil {
		return err
	}
	config = d.furnish(config)
	listener := d.cfg.Listen()
	config.Adjourn, config.OnEvent = adjourn, func(e trial.Event) { d.heard(id); listener(e) }
	_, err = trial.Resume(ctx, config, r)
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
	said, err := d.size(ctx, id)
	if err != nil {
		return nil, err
	}
	n := min(d.cfg.Memory, trialBytes+trialFactor*said)
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-adjourn:
			cancel(trial.ErrAdjourned)
		case <-waiting.Done():
		}
	}()
	if d.memory.Acquire(waiting, n) != nil {
		return nil, context.Cause(waiting)
	}
	return func() { d.memory.Release(n) }, nil
}

// size returns the number of bytes of evidence and answers in a trial. It reads them only for that.
func (d *Scheduler) size(ctx context.Context, id string) (n int64, err error) {
	select {
	case d.reads <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-d.reads }()
	chain, err := d.cfg.Ledger.Chain(ctx, id)
	for _, r := range chain {
		n += int64(len(r.Canonical()))
	}
	return n, err
}

// permanent are the errors that a retry cannot cure before a person has acted.
var permanent = []error{trial.ErrSettings, trial.ErrUnreadable, errMistake, ledger.ErrDamaged, ledger.ErrForked, ledger.ErrBehind, ledger.ErrNotFound}

// after decides, from the error with which a trial ended here, what happens with it in the queue.
func (d *Scheduler) after(ctx context.Context, id string, err error) error {
	ctx = context.WithoutCancel(ctx) // the trial may have ended because its context did
	switch {
	case err == nil:
		return nil
	case errors.Is(err, trial.ErrAdjourned), errors.Is(err, context.Canceled):
		if failed := d.index.Follow(ctx); failed != nil {
			return failed
		}
		if s, known := d.index.Get(id); known && s.Cancelled != nil {
			return nil
		}
		return later(0) // the program ends, or the trial was cancelled and resumed
	case errors.Is(err, trial.ErrMoved):
		return later(time.Second)
	}
	if locked, failed := d.cfg.Locks.Locked(ctx, id); failed == nil && locked {
		return later(d.cfg.Lease / 2) // another process was faster
	}
	for _, reason := range permanent {
		if errors.Is(err, reason) {
			return final{err}
		}
	}
	return err
}

func (d *Scheduler) tell(id string, took time.Duration, err error) {
	switch {
	case err == nil:
		d.cfg.Log.Info("trial over", "trial", id, "took", took)
	case errors.Is(err, trial.ErrAdjourned), errors.Is(err, context.Canceled):
		d.cfg.Log.Info("trial stopped", "trial", id, "took", took)
	case isUnusable(err):
		d.cfg.Log.Warn("trial interrupted; it continues when the log can be used again", "trial", id, "took", took, "error", err)
	default:
		d.cfg.Log.Error("trial broken off", "trial", id, "took", took, "error", err)
	}
}
