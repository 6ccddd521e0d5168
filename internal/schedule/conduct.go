package schedule

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"jurat/internal/ledger"
	"jurat/internal/trial"
)

// A sitting is a trial that is conducted here.
type sitting struct {
	adjourned bool
	adjourn   chan struct{} // closed when nobody is to be asked any more
}

// stop has nobody asked any more. The mutex of the scheduler is held.
func (s *sitting) stop() {
	if !s.adjourned {
		s.adjourned = true
		close(s.adjourn)
	}
}

// Run conducts trials until ctx ends. Then it begins none, asks nobody any more, waits as long as the grace is for those who were
// asked, and returns when every trial has stopped at an act's boundary: others go on with them then. It is called once.
func (d *Scheduler) Run(ctx context.Context) {
	working, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	defer interrupt()
	d.mu.Lock()
	d.working = working
	d.attend()
	d.mu.Unlock()
	if d.start(ctx) {
		d.keep(ctx)
	}
	d.mu.Lock()
	d.closing = true
	for _, s := range d.here {
		s.stop()
	}
	d.mu.Unlock()
	grace := time.AfterFunc(d.cfg.Grace, interrupt)
	if err := d.jobs.Stop(context.WithoutCancel(ctx)); err != nil {
		d.cfg.Log.Error("stopping trials", "error", err)
	}
	grace.Stop()
	close(d.closed)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.working = nil
	d.dismiss()
}

// start begins to take trials, as soon as the database of the jobs answers.
func (d *Scheduler) start(ctx context.Context) bool {
	for {
		err := d.jobs.Start(ctx)
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

// keep looks, until ctx ends, for trials that nobody holds although somebody should: whoever held them has died, or died before he could
// make a job of a submission.
func (d *Scheduler) keep(ctx context.Context) {
	var orphans map[string]bool
	for sleep(ctx, d.cfg.Lease/2) {
		err := d.jobs.TakeOver(ctx)
		if err == nil {
			orphans, err = d.adopt(ctx, orphans)
		}
		if err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("looking for trials that nobody holds", "error", err)
		}
	}
}

// adopt makes jobs of those unfinished trials that had none the last time, either, and lists those that have none now.
func (d *Scheduler) adopt(ctx context.Context, before map[string]bool) (orphans map[string]bool, err error) {
	if err := d.index.Follow(ctx); err != nil {
		return before, err
	}
	ids := d.toHold()
	found, err := d.jobs.Find(ctx, ids...)
	if err != nil {
		return before, err
	}
	orphans = map[string]bool{}
	for _, id := range ids {
		if job, has := found[id]; has && job.State != Done {
			continue
		}
		switch claimed, err := d.cfg.Claimed(ctx, id); {
		case err != nil:
			return before, err
		case claimed:
		case before[id]:
			if err := d.jobs.Add(ctx, id); err != nil {
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

// work does the job of a trial: it holds what is left of it. It says nil of a trial that is not to be held any more.
func (d *Scheduler) work(_ context.Context, id string) error {
	// The end of the program, with which the job's context ends, is no failure of the trial.
	if err := d.index.Follow(context.Background()); err != nil {
		return err
	}
	if s, known := d.index.Get(id); known && (s.Over || s.Cancelled != nil) {
		return nil
	}
	ctx, s := d.sit(id)
	if s == nil {
		return Later(0)
	}
	err := d.conduct(ctx, s, id)
	d.rise(id)
	return d.after(ctx, id, err)
}

// sit notes that a trial is conducted here; nil: none is begun any more.
func (d *Scheduler) sit(id string) (context.Context, *sitting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing || d.working == nil {
		return nil, nil
	}
	s := &sitting{adjourn: make(chan struct{})}
	d.here[id] = s
	return d.working, s
}

func (d *Scheduler) rise(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.here, id)
}

// conduct holds one trial, or what is left of it.
func (d *Scheduler) conduct(ctx context.Context, sits *sitting, id string) error {
	began := d.cfg.Now()
	err := d.hold(ctx, sits.adjourn, id)
	if err == nil {
		// The trial is over whatever comes of this. A checkpoint over its end says so to whoever holds one.
		if _, failed := d.cfg.Ledger.Checkpoint(ctx); failed != nil {
			d.cfg.Log.Error("no checkpoint after a trial", "trial", id, "error", failed)
		}
	}
	d.tell(id, d.cfg.Now().Sub(began), err)
	return err
}

// errMistake says that the program has a mistake.
var errMistake = errors.New("panicked")

// hold ends with an error where the program has a mistake, too: one trial that nobody can hold must not end all others, at every
// start again.
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
	config, err := d.cfg.Sit(r.Spent)
	if err != nil {
		return err
	}
	config = d.furnish(config)
	listener := d.cfg.Listen()
	config.Adjourn, config.OnEvent = adjourn, func(e trial.Event) { d.heard(id); listener(e) }
	_, err = trial.Resume(ctx, config, r)
	return err
}

// What a trial holds in memory. Of evidence of 7 MB it was 13 times its size, with three rule jurors.
const (
	trialBytes  = 1 << 20 // of a trial with little evidence
	trialFactor = 16      // how many times the size of what was said in it
)

// room waits until a trial can have the memory that it takes. One that takes more than there is has all of it. It returns
// trial.ErrAdjourned when the trial is to stop before that.
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

// size is how many bytes were said in a trial. They are read for that, and let go of again.
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

// permanent are the reasons for which to try a trial again is of no use before somebody has done something about them.
var permanent = []error{trial.ErrSettings, trial.ErrUnreadable, errMistake, ledger.ErrDamaged, ledger.ErrForked, ledger.ErrBehind, ledger.ErrReadOnly, ledger.ErrNotFound}

// after says of a trial that has ended here so or so what is to become of its job.
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
		return Later(0) // the program ends, or the trial was cancelled and resumed
	case errors.Is(err, trial.ErrMoved):
		return Later(time.Second)
	}
	if claimed, failed := d.cfg.Claimed(ctx, id); failed == nil && claimed {
		return Later(d.cfg.Lease / 2) // somebody else was quicker
	}
	for _, reason := range permanent {
		if errors.Is(err, reason) {
			return Permanent(err)
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
	default:
		d.cfg.Log.Error("trial broken off", "trial", id, "took", took, "error", err)
	}
}
