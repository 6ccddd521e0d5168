package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/llm"
	"jurat/internal/trial"
	"jurat/jury"
)

// Config says what is measured.
type Config struct {
	Panels   []Panel
	Cases    []Case
	Repeat   int   // trials of each case by each panel; 0: 1
	Parallel int   // cases at a time; 0: 1
	Ceiling  int64 // on the cost of all calls that were ever made in this laboratory, in millionths of a US dollar; 0: none
	Reuse    bool  // give first answers to further panels that ask the same

	Progress func(done, total int64) // called after each trial, by one goroutine at a time; nil: not told
}

// A Run is what a laboratory has of the trials that were asked for.
type Run struct {
	Trials  []Trial
	Left    []Left
	Earlier int    // of Trials, those that had been finished before this run
	Spent   int64  // on all calls that were ever made in this laboratory
	Stopped string // why the run ended early; "": it did not
}

// Left is a trial without a verdict.
type Left struct {
	Panel  string `json:"panel"`
	Case   string `json:"case"`
	Repeat int    `json:"repeat"`
	Begun  bool   `json:"begun"` // some of its answers are sealed
	Why    string `json:"why"`
}

// runner holds the trials of one run.
type runner struct {
	*Laboratory
	config  Config
	fund    *fund // nil: no ceiling
	known   *answers
	adjourn chan struct{} // closed when no further juror is to be asked

	mu      sync.Mutex // held while the fields below are read or written
	run     Run
	done    int64
	total   int64
	stopped bool
}

// Hold holds the trials that are missing, and reads all. If ctx ends or the ceiling is reached, it returns what there is, and what is left;
// ctx's end is not an error. It returns an error if the laboratory's own records cannot be read.
func (l *Laboratory) Hold(ctx context.Context, c Config) (*Run, error) {
	c.Repeat, c.Parallel = max(1, c.Repeat), max(1, c.Parallel)
	units, err := l.plan(c.Panels, c.Cases, c.Repeat)
	if err != nil {
		return nil, err
	}
	r := &runner{Laboratory: l, config: c, adjourn: make(chan struct{})}
	sealed, err := r.recall(ctx)
	if err != nil {
		return nil, err
	}
	if c.Ceiling > 0 {
		if r.fund, err = openFund(filepath.Join(l.dir, spendingFile), c.Ceiling, sealed); err != nil {
			return nil, err
		}
		defer r.fund.close() // each line is in the file already
	}
	r.total = int64(len(units) * len(c.Panels))
	r.holdAll(ctx, units)
	return r.conclude(ctx, units)
}

// recall reads what all sealed answers cost, and the answers that can be reused.
func (r *runner) recall(ctx context.Context) (sealed int64, err error) {
	if r.config.Reuse {
		r.known = &answers{all: map[evidence.Digest]jury.Answer{}}
	}
	for record, err := range r.log.Ledger.Records(ctx, 0) {
		if err != nil {
			return 0, err
		}
		effort, err := jury.ReadEffort(record.Payload.Metadata)
		if err != nil {
			return 0, fmt.Errorf("record %s: %w", record.Payload.RecordID, err)
		}
		for _, attempt := range effort.Attempts {
			sealed += attempt.Cost
		}
		if r.known == nil {
			continue
		}
		if err := r.known.add(record.Record); err != nil {
			return 0, fmt.Errorf("record %s: %w", record.Payload.RecordID, err)
		}
	}
	return sealed, nil
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

// one holds or reads one trial, and keeps what became of it.
func (r *runner) one(ctx context.Context, c *cell) {
	found, earlier, begun, err := r.hold(ctx, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if err != nil {
		r.run.Left = append(r.run.Left, Left{Panel: c.panel.Name, Case: c.on.Name, Repeat: c.repeat, Begun: begun, Why: why(ctx, err)})
	} else {
		r.run.Trials = append(r.run.Trials, *found)
		if earlier {
			r.run.Earlier++
		}
	}
	if errors.Is(err, ErrCeiling) && !r.stopped {
		r.stopped = true
		close(r.adjourn)
	}
	if r.config.Progress != nil && ctx.Err() == nil && !r.stopped {
		r.config.Progress(r.done, r.total)
	}
}

const (
	leftInterrupted = "the run was interrupted"
	leftCeiling     = "the next call could have passed the ceiling on cost"
)

func why(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, ErrCeiling), errors.Is(err, trial.ErrAdjourned):
		return leftCeiling
	case ctx.Err() != nil:
		return leftInterrupted
	}
	return evidence.Steady(err).Error()
}

// hold returns what became of a trial, whether it was over before, and whether it has begun.
func (r *runner) hold(ctx context.Context, c *cell) (found *Trial, earlier, begun bool, err error) {
	reopened, err := trial.Reopen(context.WithoutCancel(ctx), r.log.Ledger, c.trial())
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		reopened = nil
	case err != nil:
		return nil, false, false, err
	case reopened.State.Finished:
		found, err = observe(c, reopened.Records)
		return found, true, true, err
	}
	begun = reopened != nil
	if r.full() {
		return nil, false, begun, ErrCeiling
	}
	if ctx.Err() != nil {
		return nil, false, begun, ctx.Err()
	}
	held, err := r.try(ctx, c, reopened)
	begun = begun || held != nil && len(held.Records) > 0
	if err != nil {
		return nil, false, begun, err
	}
	if err := r.known.addAll(held.Records); err != nil {
		return nil, false, begun, err
	}
	found, err = observe(c, held.Records)
	return found, false, true, err
}

func (r *runner) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// try begins or resumes a trial.
func (r *runner) try(ctx context.Context, c *cell, from *trial.Reopened) (*trial.Trial, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	h := &halt{end: end}
	config, err := r.sit(c, from, h)
	if err != nil {
		return nil, err
	}
	var held *trial.Trial
	if from == nil {
		held, err = trial.Run(ctx, config, c.on.On)
	} else {
		if err := r.log.Vouch(ctx, from.Records...); err != nil {
			return nil, err
		}
		held, err = trial.Resume(ctx, config, from)
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrCeiling) {
		err = cause
	}
	return held, err
}

func (r *runner) sit(c *cell, from *trial.Reopened, h *halt) (trial.Config, error) {
	spent := int64(0)
	if from != nil {
		spent = from.Spent
	}
	var budget llm.Budget
	if r.fund != nil {
		budget = r.fund
	}
	jurors, judge, err := c.panel.Sit(spent, budget)
	if err != nil {
		return trial.Config{}, err
	}
	guarded := make([]jury.Juror, len(jurors))
	for i, j := range jurors {
		guarded[i] = &guard{juror: j, halt: h, known: r.known, repeat: c.repeat}
	}
	config := trial.Config{Ledger: r.log.Ledger, Keys: r.log.Keys, Locks: r.log.Locks(), ID: c.id, Settings: c.panel.Settings, Jurors: guarded,
		Adjourn: r.adjourn, OnEvent: h.heard}
	if judge != nil {
		config.Judge = &guard{juror: judge, halt: h, repeat: c.repeat}
	}
	return config, nil
}

// conclude puts what there is in order.
func (r *runner) conclude(ctx context.Context, units [][]*cell) (*Run, error) {
	order := map[string]int{}
	for i, unit := range units {
		for j, c := range unit {
			order[c.trial()] = j*len(units) + i
		}
	}
	r.run.sort(order)
	if r.fund != nil {
		r.run.Spent, _ = r.fund.state()
	} else {
		sealed, err := r.recall(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		r.run.Spent = sealed
	}
	switch {
	case r.stopped:
		r.run.Stopped = leftCeiling
	case ctx.Err() != nil:
		r.run.Stopped = leftInterrupted
	}
	return &r.run, nil
}
