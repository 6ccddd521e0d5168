package docket

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"jurat/internal/trial"
)

// Run conducts trials until ctx ends. Then it begins none, asks nobody any more, waits as long as the grace is for those who were
// asked, and returns when every trial has stopped at an act's boundary. It is called once.
func (d *Docket) Run(ctx context.Context) {
	adjourn := make(chan struct{})
	working, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	defer interrupt()
	var trials sync.WaitGroup
	places := make(chan struct{}, d.cfg.Parallel)
	for d.takePlace(ctx, places) {
		id, ok := d.next(ctx)
		if !ok {
			break
		}
		trials.Go(func() {
			d.conduct(working, adjourn, id)
			<-places
		})
	}
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	close(adjourn)
	grace := time.AfterFunc(d.cfg.Grace, interrupt)
	trials.Wait()
	grace.Stop()
	close(d.closed)
}

func (d *Docket) takePlace(ctx context.Context, places chan<- struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case places <- struct{}{}:
		return true
	}
}

// conduct holds one trial, or what is left of it.
func (d *Docket) conduct(ctx context.Context, adjourn <-chan struct{}, id string) {
	began := d.cfg.Now()
	s := d.feed(id)
	err := d.hold(ctx, adjourn, id, s)
	if err == nil {
		// The trial is over whatever comes of this. A checkpoint over its end says so to whoever holds one.
		if _, failed := d.cfg.Ledger.Checkpoint(ctx); failed != nil {
			d.cfg.Log.Error("no checkpoint after a trial", "trial", id, "error", failed)
		}
	}
	d.settle(id, d.ours(id, err))
	d.fed(id, s)
	d.tell(id, d.cfg.Now().Sub(began), err)
}

// hold ends with an error where the program has a mistake, too: one trial that nobody can hold must not end all others, at every
// start again.
func (d *Docket) hold(ctx context.Context, adjourn <-chan struct{}, id string, s *stream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.cfg.Log.Error("holding a trial panicked", "trial", id, "stack", string(debug.Stack()))
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	r, err := trial.Reopen(ctx, d.cfg.Ledger, id)
	if err != nil {
		return err
	}
	if err := d.cfg.Vouch(r.Records...); err != nil {
		return err
	}
	spent, err := r.Spent()
	if err != nil {
		return err
	}
	config, err := d.cfg.Sit(spent)
	if err != nil {
		return err
	}
	config = d.furnish(config)
	listener := d.cfg.Listen()
	config.Adjourn, config.OnEvent = adjourn, func(e trial.Event) { s.hear(e); listener(e) }
	_, err = trial.Resume(ctx, config, r)
	return err
}

// ours leaves out that another process was quicker: how the trial is doing is not known here then.
func (d *Docket) ours(id string, err error) error {
	if err == nil || errors.Is(err, trial.ErrMoved) {
		return nil
	}
	if claimed, failed := d.cfg.Claimed(id); failed == nil && claimed {
		return nil
	}
	return err
}

// settle notes what became of a trial that was under way here.
func (d *Docket) settle(id string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.here, id)
		return
	}
	d.here[id] = &work{state: BrokenOff, reason: err}
}

func (d *Docket) tell(id string, took time.Duration, err error) {
	switch {
	case err == nil:
		d.cfg.Log.Info("trial over", "trial", id, "took", took)
	case errors.Is(err, trial.ErrAdjourned), errors.Is(err, context.Canceled):
		d.cfg.Log.Info("trial stopped; it goes on at the next start", "trial", id, "took", took)
	default:
		d.cfg.Log.Error("trial broken off", "trial", id, "took", took, "error", err)
	}
}
