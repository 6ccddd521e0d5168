package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/ledger"
)

// A Frame is an encoded event of a trial. All watchers share it, so it must not be changed.
type Frame struct {
	Seq  int64
	Type string
	JSON []byte // in one line
	Last bool   // the trial is closed: only people's decisions can follow
}

// A stream follows one trial in the log for all its watchers. Its list of frames only grows, so a watcher needs no lock for its part.
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

// readsAtOnce limits how many trials are read at a time: from its beginning, a trial is in memory with all its evidence.
const readsAtOnce = 2

func (d *Scheduler) catchUp(ctx context.Context, s *stream, id string) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	return d.oneOfFew(ctx, func() error {
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
	})
}

// Look calls show with the read model of a trial. The model follows the log while the trial has watchers, who share
// it. show may keep what the model's pointers lead to, but not the model. Look returns trial.ErrUnknown for an
// unknown trial.
func (d *Scheduler) Look(ctx context.Context, id string, show func(*trial.View)) error {
	s, err := d.read(ctx, id)
	if err != nil {
		return err
	}
	defer d.leave(id, s)
	s.reading.Lock()
	defer s.reading.Unlock()
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

// read joins the stream of a trial, which the caller must leave, and catches up with the log. It returns trial.ErrUnknown for an unknown trial.
func (d *Scheduler) read(ctx context.Context, id string) (*stream, error) {
	unknown := fmt.Errorf("trial %q: %w", id, trial.ErrUnknown)
	if !strings.HasPrefix(id, evidence.TrialPrefix) {
		return nil, unknown
	}
	s := d.join(id, nil)
	err := d.catchUp(ctx, s, id)
	if last, _ := s.last(); err == nil && last == 0 {
		err = unknown
	}
	if err != nil {
		d.leave(id, s)
		return nil, err
	}
	return s, nil
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
	s, err := d.read(ctx, id)
	if err != nil {
		return nil, err
	}
	last, over := s.last()
	d.leave(id, s) // a caller that never reads is not a watcher
	if after < 0 || after > last {
		return nil, fmt.Errorf("event %d of trial %s, which has %d: %w", after, id, last, ErrAhead)
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

// soon reads the log for watchers after a short delay: a jury's answers come together, and further acts follow each at once.
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

// follow reads what any process appends to the log: events for watchers, and that a trial is cancelled that is conducted here.
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
		d.queue.adjourn(func(id string) bool { // any process may have cancelled it
			t, known := d.index.Get(id)
			return known && t.Cancelled != nil
		})
		select {
		case <-ctx.Done():
		case <-grown:
		}
	}
}

// join returns the stream of a trial. If it has no users, this is the stream given as before, or a new one.
func (d *Scheduler) join(id string, before *stream) *stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.streams[id]
	if s == nil {
		if s = before; s == nil {
			s = &stream{view: trial.NewView(nil), more: make(chan struct{})}
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

// EventStream is the media type of server-sent events (HTML, section 9.2).
const EventStream = "text/event-stream"

// Delivery says how events are sent to readers.
type Delivery struct {
	Heartbeat time.Duration // interval of heartbeats; over WebSocket these are pings that the reader must answer; 0: 15 s
	Patience  time.Duration // how long a reader may take to receive what it is sent, or to answer a ping; 0: 10 s
	Window    int           // bytes that a WebSocket reader may be behind; 0: 32 KiB
}

// Watch begins to watch a trial. The context ends when the reader disconnects.
type Watch func(context.Context) (*Watching, error)

// ErrBarred, as the cause of a request context's end, says that the watcher has lost the right to watch.
var ErrBarred = errors.New("the watcher may no longer watch")

// While cancels the returned request as soon as may returns an error, with that error as the cause. It calls may at
// each heartbeat. The caller must call end when the watching ends.
func (c Delivery) While(r *http.Request, may func(context.Context) error) (watched *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	go every(ctx, c.complete().Heartbeat, func() bool {
		err := may(ctx)
		if err != nil {
			cancel(err)
		}
		return err == nil
	})
	return r.WithContext(ctx), func() { cancel(nil) }
}

func (c Delivery) complete() Delivery {
	return Delivery{cmp.Or(c.Heartbeat, 15*time.Second), cmp.Or(c.Patience, 10*time.Second), cmp.Or(c.Window, 32<<10)}
}

func every(ctx context.Context, interval time.Duration, do func() bool) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !do() {
				return
			}
		}
	}
}

// Events sends server-sent events, each with its seq as id. It returns after the last event, or when the reader
// disconnects. If there is nothing after the reader's last event, it answers 204, after which browsers do not
// reconnect. If it returns an error before it sent anything, the caller must answer the request; a later error is
// only for the log.
func (c Delivery) Events(w http.ResponseWriter, r *http.Request, watch Watch) error {
	c = c.complete()
	ctx, leave := context.WithCancel(r.Context())
	var beating sync.WaitGroup
	defer beating.Wait() // no goroutine writes after the return
	defer leave()
	events, err := watch(ctx)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	if events.Over {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Content-Type", EventStream)
	w.Header().Set("Connection", "close")     // the deadlines set here would also hold for the next answer
	w.Header().Set("X-Accel-Buffering", "no") // asks proxies not to buffer events
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead { // the answer has no body
		return nil
	}
	out := &lines{w: w, control: http.NewResponseController(w), patience: c.Patience}
	if !out.write("retry: 1000\n\n") {
		return nil
	}
	beating.Go(func() {
		every(ctx, c.Heartbeat, func() bool {
			if out.write(":\n\n") {
				return true
			}
			leave()
			return false
		})
	})
	for f, err := range events.Frames {
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrClosing):
			return nil // the reader reconnects
		case err != nil:
			return err
		}
		if !out.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", f.Seq, f.Type, f.JSON)) {
			return nil
		}
	}
	return nil
}

// lines writes for the two goroutines that send to one reader.
type lines struct {
	mu       sync.Mutex // held while one of them writes
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

// write reports whether the reader took the text in time.
func (l *lines) write(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.control.SetWriteDeadline(time.Now().Add(l.patience)) != nil {
		return false
	}
	if _, err := l.w.Write([]byte(text)); err != nil {
		return false
	}
	return l.control.Flush() == nil
}

// Close codes. RFC 6455 defines: 1000 when the trial is over, 1001 when the server is about to end, 1008 for a reader
// that sends something, 1011 when the server failed. The codes below are jurat's own.
const (
	Barred  websocket.StatusCode = 4003 // the watcher has lost the right to watch
	TooSlow websocket.StatusCode = 4008
)

// Reasons sent with the codes. They say what to do.
const (
	overReason    = "the trial is over"
	closingReason = "the server is about to end: connect again with ?after= and the last seq that you have"
	barredReason  = "you may no longer watch: sign in again"
	slowReason    = "too slow: connect again with ?after= and the last seq that you have"
	failedReason  = "the server failed: connect again with ?after= and the last seq that you have"
)

// ErrHandshake says that a request is not the beginning of a WebSocket connection.
var ErrHandshake = errors.New("this is not a WebSocket handshake")

// WebSocket upgrades the connection, sends each event as a text message, and returns when the connection is closed.
// The caller must have checked the origin. If WebSocket returns an error before the upgrade, the caller must answer
// the request; a later error is only for the log.
func (c Delivery) WebSocket(w http.ResponseWriter, r *http.Request, watch Watch) error {
	c = c.complete()
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	events, err := watch(ctx)
	if err != nil {
		return err
	}
	conn, err := accept(w, r)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	// The reader has nothing to send: CloseRead answers pings and close frames, and ends the connection if the reader
	// sends a message. It must not end with ctx, because that would cut the connection before the close code is sent.
	gone := conn.CloseRead(context.WithoutCancel(ctx))
	context.AfterFunc(gone, leave)
	go every(gone, c.Heartbeat, func() bool { return c.alive(gone, conn) })
	return c.send(gone, conn, events)
}

// accept upgrades the connection. It returns an error if it cannot, and the caller answers the request.
func accept(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	conn, err := websocket.Accept(unanswered{w}, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the caller has checked the origin
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	conn.SetReadLimit(1 << 10) // control frames are smaller, and the reader sends nothing else
	return conn, nil
}

// unanswered suppresses every answer except the upgrade.
type unanswered struct{ http.ResponseWriter }

func (u unanswered) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols {
		u.ResponseWriter.WriteHeader(status)
	}
}

func (u unanswered) Write(p []byte) (int, error) { return len(p), nil }

func (u unanswered) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// send sends events until there are none left, the reader disconnects, or is too slow.
func (c Delivery) send(gone context.Context, conn *websocket.Conn, events *Watching) error {
	unanswered := 0
	for f, err := range events.Frames {
		switch {
		case gone.Err() != nil:
			return nil
		case errors.Is(err, ErrClosing):
			conn.Close(websocket.StatusGoingAway, closingReason)
			return nil
		case errors.Is(err, ErrBarred):
			conn.Close(Barred, barredReason)
			return nil
		case err != nil:
			conn.Close(websocket.StatusInternalError, failedReason)
			return err
		}
		if !c.write(gone, conn, f.JSON) {
			return nil
		}
		if unanswered += len(f.JSON); unanswered >= c.Window {
			if !c.alive(gone, conn) {
				return nil
			}
			unanswered = 0
		}
	}
	conn.Close(websocket.StatusNormalClosure, overReason)
	return nil
}

// write sends one event. It cuts off a reader that does not take it in time: half of it may be sent.
func (c Delivery) write(gone context.Context, conn *websocket.Conn, doc []byte) bool {
	ctx, cancel := context.WithTimeout(gone, c.Patience)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, doc) == nil
}

// alive reports whether the reader answers a ping. It ends the connection if the reader does not in time.
func (c Delivery) alive(gone context.Context, conn *websocket.Conn) bool {
	ctx, cancel := context.WithTimeout(gone, c.Patience)
	defer cancel()
	if conn.Ping(ctx) == nil {
		return true
	}
	if gone.Err() == nil {
		conn.Close(TooSlow, slowReason)
	}
	return false
}
