package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/trial"
	"jurat/jury"
)

// Config says what is measured.
type Config struct {
	Panels   []Panel
	Cases    []Case
	Repeat   int   // trials of each case by each panel; 0: 1
	Parallel int   // cases at a time; 0: 1
	Ceiling  int64 // no trial begins once all sealed answers of this laboratory have cost so many millionths of a US dollar; 0: none

	Progress func(done, total int64) // called after each trial, by one goroutine at a time; nil: not told
}

// A Run is what a laboratory has of the trials that were asked for.
type Run struct {
	Trials  []Trial
	Left    []Left
	Earlier int    // of Trials, those that had been finished before this run
	Spent   int64  // on all answers that were ever sealed in this laboratory
	Stopped string // why the run ended early; "": it did not
}

// Left is a trial without a verdict.
type Left struct {
	Panel  string `json:"panel"`
	Case   string `json:"case"`
	Repeat int    `json:"repeat"`
	Why    string `json:"why"`
}

// runner holds the trials of one run.
type runner struct {
	*Laboratory
	config Config

	mu    sync.Mutex // held while the fields below are read or written
	run   Run
	done  int64
	total int64
}

// Hold holds the trials that are missing, and reads all. If ctx ends or the ceiling is reached, it returns what there is, and what is left;
// ctx's end is not an error. It returns an error if the laboratory's own records cannot be read.
func (l *Laboratory) Hold(ctx context.Context, c Config) (*Run, error) {
	c.Repeat, c.Parallel = max(1, c.Repeat), max(1, c.Parallel)
	units, err := l.plan(c.Panels, c.Cases, c.Repeat)
	if err != nil {
		return nil, err
	}
	r := &runner{Laboratory: l, config: c, total: int64(len(units) * len(c.Panels))}
	if r.run.Spent, err = l.spent(ctx); err != nil {
		return nil, err
	}
	r.holdAll(ctx, units)
	order := map[string]int{}
	for i, unit := range units {
		for j, c := range unit {
			order[c.trial()] = j*len(units) + i
		}
	}
	r.run.sort(order)
	if r.run.Spent, err = l.spent(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	switch {
	case ctx.Err() != nil:
		r.run.Stopped = leftInterrupted
	case len(r.run.Left) > 0 && r.full():
		r.run.Stopped = leftCeiling
	}
	return &r.run, nil
}

// spent reads what all sealed answers cost.
func (l *Laboratory) spent(ctx context.Context) (sum int64, err error) {
	for record, err := range l.log.Ledger.Records(ctx, 0) {
		if err != nil {
			return 0, err
		}
		effort, err := jury.ReadEffort(record.Payload.Metadata)
		if err != nil {
			return 0, fmt.Errorf("record %s: %w", record.Payload.RecordID, err)
		}
		for _, attempt := range effort.Attempts {
			sum += attempt.Cost
		}
	}
	return sum, nil
}

func (r *runner) holdAll(ctx context.Context, units [][]*cell) {
	todo := make(chan []*cell)
	var working sync.WaitGroup
	for range min(r.config.Parallel, len(units)) {
		working.Go(func() {
			for unit := range todo {
				for _, c := range unit {
					r.one(ctx, c)
				}
			}
		})
	}
	for _, unit := range units {
		todo <- unit
	}
	close(todo)
	working.Wait()
}

const (
	leftInterrupted = "the run was interrupted"
	leftCeiling     = "the ceiling on cost is reached"
)

var errCeiling = errors.New(leftCeiling)

// one holds or reads one trial, and keeps what became of it.
func (r *runner) one(ctx context.Context, c *cell) {
	found, cost, earlier, err := r.hold(ctx, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.run.Spent += cost
	if err != nil {
		why := evidence.Steady(err).Error()
		if ctx.Err() != nil {
			why = leftInterrupted
		}
		r.run.Left = append(r.run.Left, Left{Panel: c.panel.Name, Case: c.on.Name, Repeat: c.repeat, Why: why})
		return
	}
	r.run.Trials = append(r.run.Trials, *found)
	if earlier {
		r.run.Earlier++
	}
	if r.config.Progress != nil {
		r.config.Progress(r.done, r.total)
	}
}

// full reports whether the ceiling is reached.
func (r *runner) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.Ceiling > 0 && r.run.Spent >= r.config.Ceiling
}

// hold returns what became of a trial, what it cost in this run, and whether it was over before.
func (r *runner) hold(ctx context.Context, c *cell) (found *Trial, cost int64, earlier bool, err error) {
	reopened, err := trial.Reopen(context.WithoutCancel(ctx), r.log.Ledger, c.trial())
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		reopened = nil
	case err != nil:
		return nil, 0, false, err
	case reopened.State.Finished:
		found, err = observe(c, reopened.Records)
		return found, 0, true, err
	}
	if r.full() {
		return nil, 0, false, errCeiling
	}
	if ctx.Err() != nil {
		return nil, 0, false, ctx.Err()
	}
	before := int64(0)
	if reopened != nil {
		before = reopened.Spent
	}
	held, err := r.try(ctx, c, reopened)
	if err != nil { // what was answered until then has its price
		if again, unread := trial.Reopen(context.WithoutCancel(ctx), r.log.Ledger, c.trial()); unread == nil {
			cost = again.Spent - before
		}
		return nil, cost, false, err
	}
	if found, err = observe(c, held.Records); err != nil {
		return nil, 0, false, err
	}
	return found, found.Cost - before, false, nil
}

// try begins or resumes a trial.
func (r *runner) try(ctx context.Context, c *cell, from *trial.Reopened) (*trial.Trial, error) {
	spent := int64(0)
	if from != nil {
		spent = from.Spent
	}
	jurors, judge, err := c.panel.Sit(spent)
	if err != nil {
		return nil, err
	}
	config := trial.Config{Ledger: r.log.Ledger, Keys: r.log.Keys, Locks: r.log.Locks(), ID: c.id, Settings: c.panel.Settings, Jurors: jurors, Judge: judge}
	if from == nil {
		return trial.Run(ctx, config, c.on.On)
	}
	if err := r.log.Vouch(ctx, from.Records...); err != nil {
		return nil, err
	}
	return trial.Resume(ctx, config, from)
}
