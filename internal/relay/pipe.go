package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"jurat/internal/fault"
)

// A Pipe passes messages of MCP between a client and a server on their standard streams, a line for each message, and shows each request with its answer
// to a witness. Lines go on as they came, whatever they are. Both sides may ask.
//
// A request goes on once its beginning is recorded. In closed mode an answer goes on once the call is recorded. Every other line is a call of its own without
// an answer: a notification, an answer that nobody waits for, what can be read in no way or in more than one. So in closed mode no line passes
// that is in no record, but for those that are only counted, see onlyCounted. Lines keep their order.
type Pipe struct {
	*relay
	about          PipeOptions
	client, server *side
	calls          sync.WaitGroup // being recorded

	stop    chan struct{} // closed when nothing may pass any more
	stopped sync.Once
	gone    atomic.Bool // the client has ended its side

	mu      sync.Mutex // held while the following is used
	version string
	tally   map[string]int // what passed uncounted
	over    bool           // no more calls begin
	why     error
}

// PipeOptions tell what a Pipe says of the server.
type PipeOptions struct {
	Origin string // as records name it, such as stdio:files
	Server string // what tells it from others, such as its command; the witness gets a fingerprint of it
	Chain  string // the conversation; "": for the witness to say
}

// onlyCounted are methods whose messages pass without a record of their own: that somebody is there, how far a call is, and what a server logs. The record
// of the call, or the next one, counts them.
var onlyCounted = map[string]bool{"ping": true, "notifications/progress": true, "notifications/message": true}

// NewPipe returns a pipe that shows each call to a witness. Of the options it needs the mode, the folder, the limits and the key.
func NewPipe(witness Witness, o Options, about PipeOptions) (*Pipe, error) {
	r, err := newRelay(witness, o)
	if err != nil {
		return nil, err
	}
	about.Server = r.fingerprint(about.Server)
	p := &Pipe{relay: r, about: about, stop: make(chan struct{}), tally: map[string]int{}}
	p.client, p.server = newSide(p, "client"), newSide(p, "server")
	p.client.other, p.server.other = p.server, p.client
	return p, nil
}

// A side is one of the two that speak.
type side struct {
	pipe    *Pipe
	name    string
	other   *side
	queue   chan *line
	asked   map[string][]*question // without an answer, by id
	pings   map[string]int
	watched map[string]*question // by the token of their progress
}

func newSide(p *Pipe, name string) *side {
	return &side{pipe: p, name: name, queue: make(chan *line, 64), asked: map[string][]*question{}, pings: map[string]int{}, watched: map[string]*question{}}
}

// A question is a request, or a batch of them, until it is answered.
type question struct {
	call     *Call
	line     *line
	began    chan struct{} // closed when the witness has been told
	exchange Exchange      // nil: the call is not recorded, which only open mode passes
	waiting  map[string]bool
	answers  []*line
	progress int
	token    string
}

// Run passes messages until the server ends its side and all of it has passed, or until something cannot be recorded in closed mode, which it returns. When the client
// ends its side, or the pipe stops, it closes toServer.
func (p *Pipe) Run(client io.Reader, toClient io.Writer, server io.Reader, toServer io.WriteCloser) error {
	go p.client.read(client)
	go p.server.read(server)
	done := make(chan struct{})
	go func() {
		p.client.write(toServer, func() {})
		_ = toServer.Close() // the server may have ended
	}()
	go func() {
		defer close(done)
		p.server.write(toClient, func() { p.gone.Store(true); _ = toServer.Close() })
	}()
	select {
	case <-done:
	case <-p.stop:
		_ = toServer.Close()
	}
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// end records the calls that have no answer.
func (p *Pipe) end() {
	p.mu.Lock()
	p.over = true
	ended, reason := UpstreamCut, errors.New("the other side ended without an answer")
	switch {
	case p.why != nil:
		ended, reason = RecorderCut, p.why
	case p.gone.Load():
		ended, reason = ClientGone, ErrClientGone
	}
	var left []*question
	for _, s := range []*side{p.client, p.server} {
		for _, list := range s.asked {
			left = append(left, list...)
		}
		clear(s.asked)
	}
	p.mu.Unlock()
	for _, q := range distinct(left) {
		if err := p.finish(q, ended, reason); err != nil {
			p.fail(err)
		}
	}
	p.stopped.Do(func() { close(p.stop) })
	p.calls.Wait()
	p.late.group.Wait()
}

func distinct(list []*question) (once []*question) {
	seen := map[*question]bool{}
	for _, q := range list {
		if !seen[q] {
			seen[q] = true
			once = append(once, q)
		}
	}
	return once
}

// fail stops the pipe: what is not recorded does not pass.
func (p *Pipe) fail(why error) {
	p.mu.Lock()
	if p.why == nil {
		p.why = why
	}
	p.mu.Unlock()
	p.stopped.Do(func() { close(p.stop) })
}

// read reads the lines of a side, and has them recorded.
func (s *side) read(from io.Reader) {
	defer close(s.queue)
	r := &lines{s.pipe, bufio.NewReaderSize(from, 64<<10)}
	for {
		l, err := r.next()
		if l != nil {
			if !s.send(l, err) {
				return
			}
			if l.rest != nil {
				err = r.pass(l, s.pipe.stop)
			}
		}
		if err != nil {
			if s.name == "client" {
				s.pipe.gone.Store(true)
			}
			return // the end of a stream, whatever ended it
		}
	}
}

// send has a line recorded and puts it into the queue. It reports whether the pipe goes on.
func (s *side) send(l *line, err error) bool {
	p := s.pipe
	if l.rest == nil && l.body.lost != nil {
		p.release(l)
		p.fail(fmt.Errorf("a message of the %s cannot be recorded: %w", s.name, err))
		return false
	}
	l.refs.Add(1) // for who records it
	record, over := s.take(l)
	if over {
		return false
	}
	if record == nil {
		p.release(l)
		l.ready <- nil
	} else {
		go func() {
			defer p.calls.Done()
			defer p.release(l)
			l.ready <- record()
		}()
	}
	select {
	case s.queue <- l:
		return true
	case <-p.stop:
		return false
	}
}

func (p *Pipe) release(l *line) {
	if err := l.release(); err != nil {
		p.Log.Error("relay: removing the copy of a message", "call", l.id, "error", err)
	}
}

// write writes lines as soon as they may go on. lost is called when nobody takes them any more.
func (s *side) write(to io.Writer, lost func()) {
	deaf := false
	for l := range s.queue {
		select {
		case err := <-l.ready:
			if err != nil {
				s.pipe.fail(err)
				return
			}
		case <-s.pipe.stop:
			return
		}
		if !deaf {
			err := l.write(to)
			if errors.Is(err, errUnreadable) {
				s.pipe.fail(err)
				return
			}
			if deaf = err != nil; deaf {
				lost()
			}
		}
		if l.rest != nil {
			for range l.rest { // what nobody takes
			}
		}
		s.pipe.release(l)
	}
}

// take notes what a line is, and returns what must be done before it may go on; nil: nothing. What it returns must be called, and calls.Done then.
func (s *side) take(l *line) (record func() error, over bool) {
	p := s.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil, true
	}
	record = s.sort(l)
	if record != nil {
		p.calls.Add(1)
	}
	return record, false
}

// sort tells questions, answers and other lines apart.
func (s *side) sort(l *line) func() error {
	p := s.pipe
	if l.rest != nil {
		call := p.call(s, l)
		return func() error { p.missed(call, ErrSpoolFull); return nil }
	}
	alone := l.messages == nil && l.body.n > 0
	asks := &question{line: l, began: make(chan struct{}), waiting: map[string]bool{}}
	var ended []*question
	for i := range l.messages {
		m := &l.messages[i]
		if m.version != "" {
			p.version = m.version
		}
		switch {
		case m.asks() && m.method == "ping":
			s.pings[m.id]++
			p.tally[m.method]++
		case m.asks():
			s.ask(asks, m)
		case m.answers() && s.other.pings[m.id] > 0:
			if s.other.pings[m.id]--; s.other.pings[m.id] == 0 {
				delete(s.other.pings, m.id)
			}
		case m.answers():
			q := s.other.answered(m.id, l)
			switch {
			case q == nil:
				alone = true
			case len(q.waiting) == 0:
				ended = append(ended, q)
			}
		case onlyCounted[m.method]:
			if q := s.other.watched[m.progress]; q != nil && m.progress != "" {
				q.progress++
			} else {
				p.tally[m.method]++
			}
		default:
			alone = true
		}
	}
	if len(asks.waiting) > 0 || alone && len(ended) == 0 {
		asks.call = p.call(s, l)
		l.refs.Add(1) // until its call ends
	}
	if asks.call == nil && ended == nil {
		return nil
	}
	return func() error { return p.record(asks, ended) }
}

// ask notes a request that waits for an answer.
func (s *side) ask(q *question, m *message) {
	if !q.waiting[m.id] {
		q.waiting[m.id] = true
		s.asked[m.id] = append(s.asked[m.id], q)
	}
	if m.wants != "" {
		q.token = m.wants
		s.watched[m.wants] = q
	}
}

// answered gives a line to the question of this side that it answers, and returns that; nil: there is none.
func (s *side) answered(id string, l *line) *question {
	list := s.asked[id]
	if len(list) == 0 {
		return nil
	}
	q := list[0]
	if s.asked[id] = list[1:]; len(list) == 1 {
		delete(s.asked, id)
	}
	delete(q.waiting, id)
	if n := len(q.answers); n == 0 || q.answers[n-1] != l {
		l.refs.Add(1)
		q.answers = append(q.answers, l)
	}
	if s.watched[q.token] == q && len(q.waiting) == 0 {
		delete(s.watched, q.token)
	}
	return q
}

// call describes a line that is a call.
func (p *Pipe) call(s *side, l *line) *Call {
	c := &Call{ID: l.id, Began: l.at, Vantage: Proxy, Mode: p.Mode, Upstream: p.about.Server, Origin: p.about.Origin, Speaks: MCP, Version: p.version,
		Path: "/" + s.name, Header: http.Header{}, Chain: p.about.Chain, Request: l.body}
	switch {
	case len(l.messages) == 1:
		c.Method = l.messages[0].method
	case len(l.messages) > 1:
		c.Method = "batch"
	}
	return c
}

// record tells the witness of the call that a line begins, and of those that it ends.
func (p *Pipe) record(asks *question, ended []*question) error {
	if asks.call != nil {
		if err := p.begin(asks); err != nil {
			return err
		}
		if len(asks.waiting) == 0 { // it wants no answer
			ended = append(ended, asks)
		}
	}
	for _, q := range ended {
		if err := p.finish(q, Complete, nil); err != nil {
			return err
		}
	}
	return nil
}

// begin tells the witness of a call.
func (p *Pipe) begin(q *question) error {
	defer close(q.began)
	limited, cancel := context.WithTimeout(context.Background(), p.EndTimeout)
	defer cancel()
	err := fault.Guard(func() (err error) {
		q.exchange, err = p.witness.Begin(limited, q.call)
		return err
	})
	if err == nil {
		return nil
	}
	q.exchange = nil
	if _, refused := errors.AsType[*Refusal](err); refused || p.Mode == Closed {
		return notRecorded(err)
	}
	p.missed(q.call, fmt.Errorf("recording its beginning: %w", err))
	return nil
}

// finish tells the witness how a call ended. Closed mode waits for it.
func (p *Pipe) finish(q *question, ended Ended, reason error) error {
	<-q.began
	o := &Outcome{Ended: ended, Reason: reason, Header: http.Header{}, At: p.Now(), Counted: p.countedFor(q)}
	if q.exchange == nil {
		p.releaseAll(q, nil)
		return nil
	}
	joined, err := p.response(q, o)
	if err != nil {
		return notRecorded(err)
	}
	end := func() error {
		limited, cancel := context.WithTimeout(context.Background(), p.EndTimeout)
		defer cancel()
		return fault.Guard(func() error { return q.exchange.End(limited, o) })
	}
	if p.Mode == Closed {
		defer p.releaseAll(q, joined)
		if err := end(); err != nil {
			return notRecorded(err)
		}
		return nil
	}
	p.late.Go(func() {
		if err := end(); err != nil {
			p.missed(q.call, err)
		}
		p.releaseAll(q, joined)
	})
	return nil
}

// response fills in the answer: its line or, of a batch, its lines. It returns the copy that it made of several.
func (p *Pipe) response(q *question, o *Outcome) (joined *Body, err error) {
	if len(q.answers) == 0 {
		return nil, nil
	}
	o.FirstByte, o.Response = q.answers[0].at, q.answers[0].body
	if len(q.answers) > 1 {
		joined = p.spool.body(q.call.ID+".response", "", p.MaxDecoded)
		for _, l := range q.answers {
			if _, err := io.Copy(adding{joined}, io.MultiReader(l.body.Open(), &newline{})); err != nil {
				return nil, errors.Join(err, joined.release())
			}
		}
		joined.seal()
		o.Response = joined
	}
	if o.Held = o.Response.Bytes; p.Mode == Open {
		o.Held = 0
	}
	return joined, nil
}

// adding writes into the copy of a body.
type adding struct{ to *Body }

func (a adding) Write(b []byte) (int, error) {
	if err := a.to.add(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// newline reads as a line feed.
type newline struct{ read bool }

func (n *newline) Read(b []byte) (int, error) {
	if n.read || len(b) == 0 {
		return 0, io.EOF
	}
	n.read, b[0] = true, '\n'
	return 1, nil
}

// countedFor says what passed with a call, or since the one before, and is in no record.
func (p *Pipe) countedFor(q *question) (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.progress > 0 {
		list = append(list, fmt.Sprintf("%d notifications of its progress, which are only counted", q.progress))
	}
	for _, method := range slices.Sorted(maps.Keys(p.tally)) {
		list = append(list, fmt.Sprintf("%d messages %s since the record before, which are only counted", p.tally[method], method))
	}
	clear(p.tally)
	return list
}

// releaseAll gives the copies of a call back.
func (p *Pipe) releaseAll(q *question, joined *Body) {
	p.release(q.line)
	for _, l := range q.answers {
		p.release(l)
	}
	if joined != nil {
		if err := joined.release(); err != nil {
			p.Log.Error("relay: removing the copy of an answer", "call", q.call.ID, "error", err)
		}
	}
}
