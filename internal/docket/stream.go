package docket

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
	"jurat/internal/trial"
)

// A Frame is an event of a trial, encoded. It is shared by everybody who watches: nobody changes it.
type Frame struct {
	Seq  int64
	Type string
	JSON []byte // in one line
	Last bool   // the trial is closed: after it come only people's decisions
}

// A stream is what can be heard of one trial. Frames only ever become more, so that whoever reads them needs no lock once it has
// its part of the list.
type stream struct {
	gather time.Duration

	reading sync.Mutex // held while the log is read for everybody who waits

	mu       sync.Mutex // held while what follows is read or written
	frames   []Frame    // that with Seq n at n-1
	over     bool
	err      error         // why nothing can be heard
	more     chan struct{} // closed when there is more to hear
	waking   bool          // more will be closed soon
	fed      bool          // the trial is conducted here, and tells what happens
	watchers int
	begun    int64 // how many times the log was read for it
	read     int64 // the last of these that has ended well
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

// fail lets everybody know who waits that nothing can be heard.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
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
func (s *stream) state(after int64) (frames []Frame, over bool, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after < int64(len(s.frames)) {
		frames = s.frames[after:len(s.frames):len(s.frames)]
	}
	return frames, s.over, s.more, s.err
}

// readsAtOnce is how many trials are read at a time for those who watch, and to find out how large they are: one that is read is in memory with all its evidence.
const readsAtOnce = 2

// reach reads the log unless the stream is known to be as far as somebody has heard it. One that is fed may not be told yet what was
// recorded before.
func (d *Docket) reach(ctx context.Context, s *stream, id string, after int64) error {
	s.mu.Lock()
	n := int64(len(s.frames))
	reached := s.fed && n > 0 && after <= n
	s.mu.Unlock()
	if reached {
		return nil
	}
	return d.catchUp(ctx, s, id)
}

// last is the number of the last event so far, and whether the trial ends with it.
func (s *stream) last() (seq int64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.frames)), s.over
}

// catchUp reads the trial's records, unless they were read for somebody else meanwhile: however many come at once, they are read twice.
func (d *Docket) catchUp(ctx context.Context, s *stream, id string) error {
	asked := s.readings()
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.readSince(asked) {
		return nil
	}
	select {
	case d.reads <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.reads }()
	this := s.beginReading()
	if err := s.readAll(ctx, d.cfg.Ledger, id); err != nil {
		return err
	}
	s.endReading(this)
	return nil
}

// readings is how many times the log was begun to be read for the stream.
func (s *stream) readings() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// readSince reports whether the log was read to its end after so many readings had begun.
func (s *stream) readSince(asked int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read > asked
}

func (s *stream) beginReading() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun++
	return s.begun
}

func (s *stream) endReading(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = n
}

func (s *stream) readAll(ctx context.Context, l *ledger.Ledger, id string) error {
	chain, err := l.Chain(ctx, id)
	if err != nil {
		return err
	}
	projector := trial.NewProjector()
	for _, r := range chain {
		events, err := projector.Next(r)
		if err != nil {
			return err
		}
		for _, e := range events {
			s.hear(e)
		}
	}
	return nil
}

// Watching is what somebody is going to hear of a trial.
type Watching struct {
	// Frames are the events in their order, to the closing and to what people had decided by then. They end early, with an error, when the context of Watch ends or the
	// docket is closed (ErrClosing): then whoever watches asks again, from the last event on that it has.
	Frames iter.Seq2[Frame, error]
	Over   bool // the trial is closed, and the last event so far was heard before: there are no frames
}

// Watch is for whoever wants to hear what comes after an event of a trial (0: everything).
//
// ErrUnknown says that there is no such trial, ErrAhead that there is no event with this number yet.
func (d *Docket) Watch(ctx context.Context, id string, after int64) (*Watching, error) {
	if !strings.HasPrefix(id, evidence.TrialPrefix) {
		return nil, fmt.Errorf("trial %q: %w", id, ErrUnknown)
	}
	s := d.join(id, nil)
	err := d.reach(ctx, s, id, after)
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
		frames, over, more, err := s.state(after)
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
		err = d.wait(ctx, more)
		if last, _ := s.last(); errors.Is(err, ErrClosing) && last > after {
			continue // what happened before the end is heard
		}
		if err != nil {
			return err
		}
	}
}

// wait returns when there is more to hear.
func (d *Docket) wait(ctx context.Context, more <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.closed:
		return ErrClosing
	case <-more:
	}
	return nil
}

// heard notes that the log has something new of a trial. The one that is conducted here tells by itself.
func (d *Docket) heard(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.streams[id]; s != nil {
		d.fallBehind(id, s)
	}
}

// fallBehind has a stream read the log. d.mu is held.
func (d *Docket) fallBehind(id string, s *stream) {
	if s.isFed() {
		return
	}
	d.behind[id] = s
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// attend has the log followed as long as anybody watches, or trials are conducted here. d.mu is held.
func (d *Docket) attend() {
	if d.ignore != nil {
		return
	}
	ctx, ignore := context.WithCancel(context.Background()) // it serves all who watch: dismiss ends it
	d.ignore = ignore
	go d.follow(ctx)
}

// dismiss has the log followed no longer than it must be. d.mu is held.
func (d *Docket) dismiss() {
	if d.ignore != nil && d.working == nil && len(d.streams) == 0 {
		d.ignore()
		d.ignore = nil
	}
}

// follow reads what the log has more, whoever has appended it: for those who watch, and because a trial that is conducted here may be
// cancelled anywhere.
func (d *Docket) follow(ctx context.Context) {
	grown := d.cfg.Ledger.Grown(ctx)
	for ctx.Err() == nil {
		if err := d.keepUp(ctx); err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("the log cannot be followed", "error", err)
			if errors.Is(err, ledger.ErrClosed) || !sleep(ctx, d.cfg.Poll) {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-grown:
		case <-d.news:
		}
	}
}

func (d *Docket) keepUp(ctx context.Context) error {
	if err := d.calendar.follow(ctx, d.cfg.Ledger); err != nil {
		return err
	}
	d.stopCancelled()
	for {
		id, s := d.oneBehind()
		if s == nil {
			return nil
		}
		err := d.catchUp(ctx, s, id)
		if ctx.Err() != nil { // nobody needed it any more; whoever does next finds it behind, and not broken
			d.mu.Lock()
			d.behind[id] = s
			d.mu.Unlock()
			return ctx.Err()
		}
		if err != nil {
			s.fail(err)
		}
	}
}

func (d *Docket) oneBehind() (string, *stream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, s := range d.behind {
		delete(d.behind, id)
		return id, s
	}
	return "", nil
}

// stopCancelled stops what is conducted here and was cancelled somewhere.
func (d *Docket) stopCancelled() {
	d.mu.Lock()
	sitting := maps.Clone(d.here)
	d.mu.Unlock()
	for id, s := range sitting {
		if t, known := d.calendar.one(id); known && t.Cancelled != nil {
			d.mu.Lock()
			s.stop()
			d.mu.Unlock()
		}
	}
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
		d.attend()
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
		delete(d.behind, id)
		d.dismiss()
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
	d.heard(id) // others may go on with it, and may have done so already
	d.leave(id, s)
}

func (s *stream) isFed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fed
}

func (s *stream) setFed(fed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fed = fed
}
