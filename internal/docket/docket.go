// Package docket conducts trials: some at a time, the others wait their turn, in the order in which they were submitted.
//
// A submission is sealed before its turn comes, so the log is the queue: whoever opens a docket on a log goes on with every trial
// in it that has no closing. Nothing else is kept of trials. What a docket says of one is read from the log (see Entry), or is
// about this process: that the trial waits here, is under way here, or why it is not.
//
// Whoever watches a trial is given frames, which are events encoded once. A frame is there for watchers once its act is durable,
// and watchers never hold up the trial: it adds a frame to a list and goes on.
package docket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/subject"
	"jurat/internal/trial"
)

var (
	// ErrFull says that as many trials wait as may.
	ErrFull = errors.New("as many trials wait for their turn as may wait")
	// ErrClosing says that trials are being stopped, and none is begun.
	ErrClosing = errors.New("trials are being stopped: the program is about to end")
	// ErrUnknown says that there is no such trial.
	ErrUnknown = errors.New("there is no such trial in the log")
	// ErrNotBrokenOff says that a trial cannot be tried again, since it is over, waits or is under way.
	ErrNotBrokenOff = errors.New("only a trial that was broken off is gone on with")
	// ErrAhead says that somebody wants to hear what comes after an event that has not come.
	ErrAhead = errors.New("no such event yet")
)

// Config is what a docket needs.
type Config struct {
	Ledger *ledger.Ledger
	Keys   trial.Keys

	// Sit seats the jury for a trial in which so much was spent before, in millionths of a US dollar.
	Sit func(spent int64) (trial.Config, error)
	// Claim keeps everybody else from acting in a trial, and Claimed says whether anybody does. nil: only this docket knows the log.
	Claim   func(id string) (release func(), err error)
	Claimed func(id string) (bool, error)
	// Vouch refuses records that this installation's keys have not signed. nil: all are believed.
	Vouch func(...*evidence.Record) error

	Parallel int           // how many trials are under way at a time; 0: 4
	Waiting  int           // how many may wait for their turn; 0: 1000
	Grace    time.Duration // how long those who were asked have for their answers when trials are being stopped; 0: 20 s
	Poll     time.Duration // how often the log is asked about a trial that another process conducts; 0: half a second
	Gather   time.Duration // how long frames are gathered before watchers are woken; 0: 20 ms

	Now    func() time.Time         // nil: time.Now
	Log    *slog.Logger             // nil: nobody reads it
	Listen func() func(trial.Event) // makes somebody for each trial who hears its events, the recorded ones first; nil: only watchers do
}

// A Docket conducts the trials of one log. It is safe for concurrent use.
type Docket struct {
	cfg      Config
	calendar *calendar
	closed   chan struct{} // closed when no trial is under way any more and none will be

	mu      sync.Mutex // held while what follows is read or written, and for nothing that takes long
	queue   []string
	here    map[string]*work // trials that wait here, are under way here, or were broken off here
	streams map[string]*stream
	closing bool
	turn    chan struct{} // has room for one: there may be somebody whose turn it is
}

// work is what this process knows of a trial and the log does not.
type work struct {
	state  State
	reason error // why it was broken off
}

// Open reads the log, and puts every trial that has no closing into the queue, in the order in which they were submitted. Run
// conducts them.
func Open(ctx context.Context, cfg Config) (*Docket, error) {
	d := &Docket{cfg: cfg.complete(), calendar: newCalendar(), closed: make(chan struct{}), here: map[string]*work{},
		streams: map[string]*stream{}, turn: make(chan struct{}, 1)}
	if err := d.calendar.follow(ctx, cfg.Ledger); err != nil {
		return nil, fmt.Errorf("opening docket: %w", err)
	}
	for _, e := range d.calendar.all() {
		if !e.Over {
			d.enqueue(e.ID)
		}
	}
	return d, nil
}

func (c Config) complete() Config {
	if c.Claim == nil {
		c.Claim = func(string) (func(), error) { return func() {}, nil }
	}
	if c.Claimed == nil {
		c.Claimed = func(string) (bool, error) { return false, nil }
	}
	if c.Vouch == nil {
		c.Vouch = func(...*evidence.Record) error { return nil }
	}
	if c.Listen == nil {
		c.Listen = func() func(trial.Event) { return func(trial.Event) {} }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	set(&c.Parallel, 4)
	set(&c.Waiting, 1000)
	set(&c.Grace, 20*time.Second)
	set(&c.Poll, 500*time.Millisecond)
	set(&c.Gather, 20*time.Millisecond)
	return c
}

func set[T comparable](value *T, byDefault T) {
	if *value == *new(T) {
		*value = byDefault
	}
}

// An Order is what somebody wants tried.
type Order struct {
	Case      *subject.Case
	Submitter string // in whose name it is sealed; "": "submitter"
	ID        string // see trial.Config; "": a new one
}

// Submit seals a case and has it wait for its turn. When it returns, the submission is in the log; whatever happens then, the trial is
// held, here or after the next start. The id is that of the trial; it comes also with ledger.ErrDuplicate, which says that the order
// has the id of an earlier one.
func (d *Docket) Submit(ctx context.Context, o Order) (id string, err error) {
	if err := d.room(); err != nil {
		return "", err
	}
	config, err := d.cfg.Sit(0)
	if err != nil {
		return "", fmt.Errorf("seating the jury: %w", err)
	}
	config.Submitter, config.ID = o.Submitter, o.ID
	if id, err = trial.Submit(ctx, d.furnish(config), o.Case); err != nil {
		return id, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closing { // otherwise it is held after the next start
		d.enqueue(id)
	}
	return id, nil
}

// room refuses what nothing has been sealed of yet. Those who pass at the same time can make the queue a little longer than it may be.
func (d *Docket) room() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closing:
		return ErrClosing
	case len(d.queue) >= d.cfg.Waiting:
		return ErrFull
	}
	return nil
}

// furnish gives a trial what all trials of this docket have.
func (d *Docket) furnish(config trial.Config) trial.Config {
	config.Ledger, config.Keys, config.Claim, config.Now = d.cfg.Ledger, d.cfg.Keys, d.cfg.Claim, d.cfg.Now
	return config
}

// enqueue has a trial wait, once: a submission is in the log a moment before it waits, and somebody may have tried it again by
// then. d.mu is held, but by Open.
func (d *Docket) enqueue(id string) {
	if w := d.here[id]; w != nil && w.state != BrokenOff {
		return
	}
	d.queue = append(d.queue, id)
	d.here[id] = &work{state: Queued}
	d.signal()
}

func (d *Docket) signal() {
	select {
	case d.turn <- struct{}{}:
	default:
	}
}

// Retry has a trial that was broken off wait for its turn again.
func (d *Docket) Retry(ctx context.Context, id string) error {
	e, err := d.Entry(ctx, id)
	if err != nil {
		return err
	}
	if e.State != BrokenOff {
		return fmt.Errorf("%w: this one is %s", ErrNotBrokenOff, e.State)
	}
	if err := d.room(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.here[id]; w != nil && w.state != BrokenOff {
		return fmt.Errorf("%w: this one is %s", ErrNotBrokenOff, w.state)
	}
	d.enqueue(id)
	return nil
}

// next takes the trial whose turn it is out of the queue, and waits until there is one or ctx ends.
func (d *Docket) next(ctx context.Context) (id string, ok bool) {
	for {
		d.mu.Lock()
		if ctx.Err() == nil && len(d.queue) > 0 {
			id = d.queue[0]
			d.queue = slices.Delete(d.queue, 0, 1)
			d.here[id].state = UnderWay
			d.mu.Unlock()
			return id, true
		}
		d.mu.Unlock()
		select {
		case <-ctx.Done():
			return "", false
		case <-d.turn:
		}
	}
}
