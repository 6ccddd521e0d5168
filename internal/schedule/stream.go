package schedule

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/subject"
	"jurat/internal/trial"
)

// A Frame is an event of a trial, encoded. It is shared by everybody who watches: nobody changes it.
type Frame struct {
	Seq  int64
	Type string
	JSON []byte // in one line
	Last bool   // the trial is closed: after it come only people's decisions
}

// A stream follows one trial in the log, for all who watch it. It reads each record once. Frames only ever become more, so watchers need
// no lock once they have their part of the list.
type stream struct {
	reading sync.Mutex // while it is held nobody else reads the log for the stream, or uses the next two
	view    *trial.View
	next    int64 // the index from which on the log was not read

	mu       sync.Mutex // held while what follows is read or written
	frames   []Frame    // that with Seq n at n-1
	over     bool
	err      error         // why nothing can be heard
	more     chan struct{} // closed when there is more to hear
	due      bool          // the log will be read soon
	watchers int
	ctx      context.Context // of reading the log for watchers; it ends when the last one leaves
	end      context.CancelFunc
}

func newStream() *stream { return &stream{view: trial.NewView(nil), more: make(chan struct{})} }

// tell wakes the watchers for new events, or for the reason why there are none.
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

// state is what there is to hear after an event, and what to wait for if there is nothing.
func (s *stream) state(after int64) (frames []Frame, over bool, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after < int64(len(s.frames)) {
		frames = s.frames[after:len(s.frames):len(s.frames)]
	}
	return frames, s.over, s.more, s.err
}

// last is the number of the last event so far, and whether the trial is over.
func (s *stream) last() (seq int64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.frames)), s.over
}

// readsAtOnce is how many trials are read at a time for those who watch, and to find out how large they are: a trial that is read from its
// beginning is in memory with all its evidence.
const readsAtOnce = 2

// catchUp reads what the log has more of the trial.
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

// Look calls show with the read model of a trial, which follows the log as long as anybody watches the trial, and is shared by all who do.
// show may keep what the model's pointers lead to, and not the model.
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

// evidence reads what a trial is about; nil: it cannot be read. It is not kept: it can be large.
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
		return nil, nil // the page of the trial says why
	}
	return on, nil
}

// Watching is what somebody is going to hear of a trial.
type Watching struct {
	// Frames are the events in their order, to the closing and to what people had decided by then. They end early, with an error, when the
	// context of Watch ends or the scheduler is closed (ErrClosing): then whoever watches asks again, from the last event on that it has.
	Frames iter.Seq2[Frame, error]
	Over   bool // the trial is closed, and the last event so far was heard before: there are no frames
}

// Watch is for whoever wants to hear what comes after an event of a trial (0: everything).
//
// trial.ErrUnknown says that there is no such trial, ErrAhead that there is no event with this number yet.
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
	d.leave(id, s) // a caller who then never reads is no watcher
	if err != nil {
		return nil, err
	}
	frames := func(yield func(Frame, error) bool) {
		s := d.join(id, s)
		defer d.leave(id, s)
		d.soon(id, s) // the log may have grown while nobody watched
		if err := d.watch(ctx, s, id, after, yield); err != nil {
			yield(Frame{}, err)
		}
	}
	return &Watching{Frames: frames, Over: over && after == last}, nil
}

// watch yields frames until the last one was yielded, or nobody wants more.
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
		case <-d.closed: // what happened before the end is heard
			closing = true
			if err := d.catchUp(ctx, s, id); err != nil {
				return ErrClosing
			}
		case <-more:
		}
	}
}

// heard has a trial that is watched read in the log, which has something new of it.
func (d *Scheduler) heard(id string) {
	d.mu.Lock()
	s := d.streams[id]
	d.mu.Unlock()
	if s != nil {
		d.soon(id, s)
	}
}

// soon reads the log for watchers after a moment in which more may come. A jury's answers come together, and each has acts behind it that
// follow at once: a thousand watchers are woken when those are done, and not in between.
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
		ctx := s.ctx // of those who watch now
		s.mu.Unlock()
		if err := d.catchUp(ctx, s, id); err != nil && ctx.Err() == nil {
			s.tell(nil, err)
		}
	})
}

// attend has the log followed as long as anybody watches, or trials are conducted here. d.mu is held.
func (d *Scheduler) attend() {
	if d.ignore != nil {
		return
	}
	ctx, ignore := context.WithCancel(context.Background()) // it serves all who watch: dismiss ends it
	d.ignore = ignore
	go d.follow(ctx)
}

// dismiss has the log followed no longer than it must be. d.mu is held.
func (d *Scheduler) dismiss() {
	if d.ignore != nil && d.working == nil && len(d.streams) == 0 {
		d.ignore()
		d.ignore = nil
	}
}

// follow reads what the log has more, whichever process has appended it: for those who watch, and because a trial that is conducted here
// may be cancelled anywhere.
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

// stopCancelled stops what is conducted here and was cancelled somewhere.
func (d *Scheduler) stopCancelled() {
	d.mu.Lock()
	here := maps.Clone(d.here) // the Index tells heard of news, which takes the mutex
	d.mu.Unlock()
	for id, s := range here {
		if t, known := d.index.Get(id); known && t.Cancelled != nil {
			d.mu.Lock()
			s.stop()
			d.mu.Unlock()
		}
	}
}

// join is the stream of a trial, which is there as long as anybody needs it. If nobody did, it is the one that was there before, or a new
// one.
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
		s.ctx, s.end = context.WithCancel(context.Background()) // it serves all who watch: leave ends it
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
