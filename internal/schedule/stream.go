package schedule

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/subject"
	"jurat/internal/trial"
)

// A Frame is an encoded event of a trial. All watchers share it, so it must not be changed.
type Frame struct {
	Seq  int64
	Type string
	JSON []byte // in one line
	Last bool   // the trial is closed: only people's decisions can follow
}

// A stream follows one trial in the log for all its watchers. It reads each record once. The list of frames only
// grows, so a watcher needs no lock for the part that it has.
type stream struct {
	reading sync.Mutex // held while the log is read for the stream, and the next two fields are used
	view    *trial.View
	next    int64 // the index of the next record to read

	mu       sync.Mutex // held while the fields below are read or written
	frames   []Frame    // the frame with Seq n is at n-1
	over     bool
	err      error         // why there are no more events
	more     chan struct{} // closed when there are more events
	due      bool          // a read of the log is planned
	watchers int
	ctx      context.Context // for reading the log; it ends when the last watcher leaves
	end      context.CancelFunc
}

func newStream() *stream { return &stream{view: trial.NewView(nil), more: make(chan struct{})} }

// tell wakes the watchers for new events, or for the error that ends the events.
func (s *stream) tell(events []trial.Event, err error) {
	var frames []Frame
	for _, e := range events {
		doc, failed := json.Marshal(e, json.Deterministic(true))
		if failed != nil {
			err = fmt.Errorf("encoding event %d: %w", e.Head().Seq, failed)
			break
		}
		_, last := e.(trial.TrialClosed)
		frames = append(frames, Frame{Seq: e.Head().Seq, Type: e.Head().Type, JSON: doc, Last: last})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range frames {
		s.frames, s.over = append(s.frames, f), s.over || f.Last
	}
	s.err = err
	close(s.more)
	s.more = make(chan struct{})
}

// state returns the frames after an event, and a channel to wait on if there are none.
func (s *stream) state(after int64) (frames []Frame, over bool, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after < int64(len(s.frames)) {
		frames = s.frames[after:len(s.frames):len(s.frames)]
	}
	return frames, s.over, s.more, s.err
}

// last returns the number of the last event so far, and whether the trial is over.
func (s *stream) last() (seq int64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.frames)), s.over
}

// readsAtOnce limits how many trials are read at a time, for watchers or for their size. A trial that is read from
// its beginning is in memory with all its evidence.
const readsAtOnce = 2

// catchUp reads the new records of the trial.
func (d *Scheduler) catchUp(ctx context.Context, s *stream, id string) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	select {
	case d.reads <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.reads }()
	for {
		records, next, err := d.cfg.Ledger.InChain(ctx, id, s.next)
		if err != nil || len(records) == 0 {
			return err
		}
		var events []trial.Event
		for _, r := range records {
			tell, err := s.view.Add(r)
			if err != nil {
				return err
			}
			events = append(events, tell...)
		}
		s.next = next
		s.tell(events, nil)
	}
}

// Look calls show with the read model of a trial. The model follows the log while the trial has watchers, who share
// it. show may keep what the model's pointers lead to, but not the model. Look returns trial.ErrUnknown for an
// unknown trial.
func (d *Scheduler) Look(ctx context.Context, id string, show func(*trial.View)) error {
	if !strings.HasPrefix(id, evidence.TrialPrefix) {
		return fmt.Errorf("trial %q: %w", id, trial.ErrUnknown)
	}
	s := d.join(id, nil)
	defer d.leave(id, s)
	if err := d.catchUp(ctx, s, id); err != nil {
		return err
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.view.Records == 0 {
		return fmt.Errorf("trial %q: %w", id, trial.ErrUnknown)
	}
	if s.view.Unchecked() {
		on, err := d.evidence(ctx, id)
		if err != nil {
			return err
		}
		s.view.Check(on)
	}
	show(s.view)
	return nil
}

// evidence reads the evidence of a trial; nil if it cannot be read. It is not kept, because it can be large.
func (d *Scheduler) evidence(ctx context.Context, id string) (*subject.Case, error) {
	first, err := d.cfg.Ledger.Briefs().FirstOfChain(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := d.cfg.Ledger.Record(ctx, first.RecordID)
	if err != nil {
		return nil, err
	}
	on, err := subject.Parse(r.Payload.Response)
	if err != nil {
		return nil, nil // the trial's page shows the reason
	}
	return on, nil
}

// Watching is a subscription to a trial's events.
type Watching struct {
	// Frames yields the events in order, up to the closing and the decisions that people had made by then. It ends
	// early, with an error, when the context of Watch ends or the scheduler is closed (ErrClosing). The watcher can
	// then watch again from its last event on.
	Frames iter.Seq2[Frame, error]
	Over   bool // the trial is closed, and the watcher already has the last event: there are no frames
}

// Watch subscribes to the events after a given one (0: all).
//
// It returns trial.ErrUnknown for an unknown trial, and ErrAhead if no event has this number yet.
func (d *Scheduler) Watch(ctx context.Context, id string, after int64) (*Watching, error) {
	if !strings.HasPrefix(id, evidence.TrialPrefix) {
		return nil, fmt.Errorf("trial %q: %w", id, trial.ErrUnknown)
	}
	s := d.join(id, nil)
	err := d.catchUp(ctx, s, id)
	last, over := s.last()
	switch {
	case err == nil && last == 0:
		err = fmt.Errorf("trial %q: %w", id, trial.ErrUnknown)
	case err == nil && (after < 0 || after > last):
		err = fmt.Errorf("event %d of trial %s, which has %d: %w", after, id, last, ErrAhead)
	}
	d.leave(id, s) // a caller that never reads is not a watcher
	if err != nil {
		return nil, err
	}
	frames := func(yield func(Frame, error) bool) {
		s := d.join(id, s)
		defer d.leave(id, s)
		d.soon(id, s) // the log may have grown while there was no watcher
		if err := d.watch(ctx, s, id, after, yield); err != nil {
			yield(Frame{}, err)
		}
	}
	return &Watching{Frames: frames, Over: over && after == last}, nil
}

// watch yields frames until the last one, or until the consumer stops.
func (d *Scheduler) watch(ctx context.Context, s *stream, id string, after int64, yield func(Frame, error) bool) error {
	for closing := false; ; {
		frames, over, more, err := s.state(after)
		for _, f := range frames {
			if !yield(f, nil) {
				return nil
			}
			after = f.Seq
		}
		switch {
		case err != nil:
			return err
		case over && len(frames) == 0:
			return nil
		case len(frames) > 0:
			continue
		case closing:
			return ErrClosing
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.closed: // events from before the end are still sent
			closing = true
			if err := d.catchUp(ctx, s, id); err != nil {
				return ErrClosing
			}
		case <-more:
		}
	}
}

// heard plans a read of a watched trial that has new records.
func (d *Scheduler) heard(id string) {
	d.mu.Lock()
	s := d.streams[id]
	d.mu.Unlock()
	if s != nil {
		d.soon(id, s)
	}
}

// soon reads the log for watchers after a short delay. A jury's answers come together, and further acts follow each
// at once. So a thousand watchers are woken after these, and not in between.
func (d *Scheduler) soon(id string, s *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due || s.watchers == 0 {
		return
	}
	s.due = true
	time.AfterFunc(d.cfg.Gather, func() {
		s.mu.Lock()
		s.due = false
		ctx := s.ctx // for the current watchers
		s.mu.Unlock()
		if err := d.catchUp(ctx, s, id); err != nil && ctx.Err() == nil {
			s.tell(nil, err)
		}
	})
}

// attend follows the log while there are watchers, or trials are conducted here. d.mu is held.
func (d *Scheduler) attend() {
	if d.ignore != nil {
		return
	}
	ctx, ignore := context.WithCancel(context.Background()) // shared by all watchers: dismiss ends it
	d.ignore = ignore
	go d.follow(ctx)
}

// dismiss stops following the log if neither watchers nor trials need it. d.mu is held.
func (d *Scheduler) dismiss() {
	if d.ignore != nil && !d.working && len(d.streams) == 0 {
		d.ignore()
		d.ignore = nil
	}
}

// follow reads what any process appends to the log: for watchers, and because another process may cancel a trial that
// is conducted here.
func (d *Scheduler) follow(ctx context.Context) {
	grown := d.cfg.Ledger.Grown(ctx)
	for ctx.Err() == nil {
		if err := d.index.Follow(ctx); err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("the log cannot be followed", "error", err)
			if errors.Is(err, ledger.ErrClosed) || !sleep(ctx, d.cfg.Poll) {
				return
			}
			continue
		}
		d.stopCancelled()
		select {
		case <-ctx.Done():
		case <-grown:
		}
	}
}

// stopCancelled stops the trials that this process conducts and any process has cancelled.
func (d *Scheduler) stopCancelled() {
	d.queue.adjourn(func(id string) bool {
		t, known := d.index.Get(id)
		return known && t.Cancelled != nil
	})
}

// join returns the stream of a trial, which exists while it has users. Without users it reuses the stream given as
// before, or makes a new one.
func (d *Scheduler) join(id string, before *stream) *stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.streams[id]
	if s == nil {
		if s = before; s == nil {
			s = newStream()
		}
		d.streams[id] = s
		d.attend()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers == 0 {
		s.ctx, s.end = context.WithCancel(context.Background()) // shared by all watchers: leave ends it
	}
	s.watchers++
	return s
}

func (d *Scheduler) leave(id string, s *stream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers--; s.watchers == 0 {
		s.end()
		delete(d.streams, id)
		d.dismiss()
	}
}
