package docket

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
	"jurat/internal/trial"
)

// A Frame is an event of a trial, encoded. It is shared by everybody who watches: nobody changes it.
type Frame struct {
	Seq  int64
	Type string
	JSON []byte // in one line
	Last bool   // no event comes after it
}

// A stream is what can be heard of one trial. Frames only ever become more, so that whoever reads them needs no lock once it has
// its part of the list.
type stream struct {
	gather time.Duration

	reading sync.Mutex // held while the log is read for everybody who waits
	read    time.Time  // when it was read last
	size    int64      // how long it was then

	mu       sync.Mutex // held while what follows is read or written
	frames   []Frame    // that with Seq n at n-1
	over     bool
	err      error         // an event that could not be encoded
	more     chan struct{} // closed when there is more to hear, or another way to hear it
	waking   bool          // more will be closed soon
	fed      bool          // the trial is conducted here, and tells what happens
	watchers int
}

func newStream(gather time.Duration) *stream {
	return &stream{gather: gather, more: make(chan struct{})}
}

// hear adds an event of the trial: where it was heard before, it is left out.
func (s *stream) hear(e trial.Event) {
	head := e.Head()
	s.mu.Lock()
	known := head.Seq <= int64(len(s.frames))
	s.mu.Unlock()
	if known {
		return
	}
	doc, err := json.Marshal(e, json.Deterministic(true))
	_, last := e.(trial.TrialClosed)
	s.add(Frame{Seq: head.Seq, Type: head.Type, JSON: doc, Last: last}, err)
}

func (s *stream) add(f Frame, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.err = fmt.Errorf("encoding event %d: %w", f.Seq, err)
	case f.Seq == int64(len(s.frames))+1:
		s.frames, s.over = append(s.frames, f), s.over || f.Last
	default:
		return // two have read the same log
	}
	s.wakeSoon()
}

// wakeSoon wakes everybody who waits, after a moment in which more may come. A jury's answers come together, and each has acts
// behind it that follow at once: a thousand watchers are woken when those are done, and not in between. s.mu is held.
func (s *stream) wakeSoon() {
	if s.waking {
		return
	}
	s.waking = true
	time.AfterFunc(s.gather, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waking = false
		close(s.more)
		s.more = make(chan struct{})
	})
}

// state is what there is to hear after an event, and what to wait for where there is nothing.
func (s *stream) state(after int64) (frames []Frame, over, fed bool, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after < int64(len(s.frames)) {
		frames = s.frames[after:len(s.frames):len(s.frames)]
	}
	return frames, s.over, s.fed, s.more, s.err
}

// reach reads the log unless the stream is known to be as far as somebody has heard it. One that is fed may not be told yet what was
// recorded before.
func (s *stream) reach(ctx context.Context, l *ledger.Ledger, id string, after int64) error {
	s.mu.Lock()
	n := int64(len(s.frames))
	reached := s.fed && n > 0 && after <= n
	s.mu.Unlock()
	if reached {
		return nil
	}
	return s.catchUp(ctx, l, id, 0)
}

// last is the number of the last event so far, and whether the trial ends with it.
func (s *stream) last() (seq int64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.frames)), s.over
}

// catchUp reads the trial's records. Of many who wait at the same time one reads, and nobody does while the log is as long as it was.
func (s *stream) catchUp(ctx context.Context, l *ledger.Ledger, id string, notSince time.Duration) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if notSince > 0 && time.Since(s.read) < notSince {
		return nil
	}
	size, err := l.Size(ctx)
	if err != nil {
		return err
	}
	if size == s.size {
		s.read = time.Now()
		return nil
	}
	chain, err := l.Chain(ctx, id)
	if err != nil {
		return err
	}
	projector := trial.NewProjector()
	for _, r := range trial.Acts(chain) {
		events, err := projector.Next(r)
		if err != nil {
			return err
		}
		for _, e := range events {
			s.hear(e)
		}
	}
	s.read, s.size = time.Now(), size
	return nil
}

// Watching is what somebody is going to hear of a trial.
type Watching struct {
	// Frames are the events in their order, to the last. They end early, with an error, when the context of Watch ends or the
	// docket is closed (ErrClosing): then whoever watches asks again, from the last event on that it has.
	Frames iter.Seq2[Frame, error]
	Over   bool // the last event was heard before: there are no frames
}

// Watch is for whoever wants to hear what comes after an event of a trial (0: everything).
//
// ErrUnknown says that there is no such trial, ErrAhead that there is no event with this number yet.
func (d *Docket) Watch(ctx context.Context, id string, after int64) (*Watching, error) {
	if !strings.HasPrefix(id, evidence.TrialPrefix) {
		return nil, fmt.Errorf("trial %q: %w", id, ErrUnknown)
	}
	s := d.join(id, nil)
	err := s.reach(ctx, d.cfg.Ledger, id, after)
	last, over := s.last()
	switch {
	case errors.Is(err, ledger.ErrNotFound), err == nil && last == 0:
		err = fmt.Errorf("trial %q: %w", id, ErrUnknown)
	case err == nil && (after < 0 || after > last):
		err = fmt.Errorf("event %d of trial %s, which has %d: %w", after, id, last, ErrAhead)
	}
	d.leave(id, s) // whoever then never reads is nobody who watches
	if err != nil {
		return nil, err
	}
	frames := func(yield func(Frame, error) bool) {
		s := d.join(id, s)
		defer d.leave(id, s)
		if err := d.watch(ctx, s, id, after, yield); err != nil {
			yield(Frame{}, err)
		}
	}
	return &Watching{Frames: frames, Over: over && after == last}, nil
}

// watch yields frames until the last one was yielded, or nobody wants more.
func (d *Docket) watch(ctx context.Context, s *stream, id string, after int64, yield func(Frame, error) bool) error {
	for {
		frames, over, fed, more, err := s.state(after)
		for _, f := range frames {
			if !yield(f, nil) {
				return nil
			}
			after = f.Seq
		}
		if err != nil {
			return err
		}
		if over && len(frames) == 0 {
			return nil
		}
		if len(frames) > 0 {
			continue
		}
		err = d.wait(ctx, s, id, fed, more)
		if last, _ := s.last(); errors.Is(err, ErrClosing) && last > after {
			continue // what happened before the end is heard
		}
		if err != nil {
			return err
		}
	}
}

// wait returns when there may be more to hear. Of a trial that is conducted here it is told. SQLite tells no process what another one
// has committed, so of any other trial it has to ask: the size of the log, which is one row.
func (d *Docket) wait(ctx context.Context, s *stream, id string, fed bool, more <-chan struct{}) error {
	var again <-chan time.Time
	if !fed {
		if err := s.catchUp(ctx, d.cfg.Ledger, id, d.cfg.Poll/2); err != nil {
			return err
		}
		timer := time.NewTimer(d.cfg.Poll)
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.closed:
		return ErrClosing
	case <-more:
	case <-again:
	}
	return nil
}

// join is the stream of a trial, which is there as long as anybody needs it. Where nobody did, it is the one that was there before,
// or a new one.
func (d *Docket) join(id string, before *stream) *stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.streams[id]
	if s == nil {
		if s = before; s == nil {
			s = newStream(d.cfg.Gather)
		}
		d.streams[id] = s
	}
	s.mu.Lock()
	s.watchers++
	s.mu.Unlock()
	return s
}

func (d *Docket) leave(id string, s *stream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers--
	if s.watchers == 0 {
		delete(d.streams, id)
	}
}

// feed is the stream of a trial that is about to be conducted here; fed is called when it is not any more.
func (d *Docket) feed(id string) *stream {
	s := d.join(id, nil)
	s.setFed(true)
	return s
}

func (d *Docket) fed(id string, s *stream) {
	s.setFed(false)
	d.leave(id, s)
}

func (s *stream) setFed(fed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fed = fed
	s.wakeSoon() // whoever waits has another way to hear more now
}
