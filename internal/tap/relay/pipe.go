package relay

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jurat/evidence"
)

// A Pipe passes messages of MCP between a client and a server on their standard streams, a line for each message, and shows each request with its answer
// to a witness. Lines go on as they came, whatever they are. Both sides may ask.
//
// A request goes on once its beginning is recorded. In closed mode an answer goes on once the call is recorded. Every other line is a call of its own without
// an answer: a notification, an answer that nobody waits for, what can be read in no way or in more than one. So in closed mode no line passes
// that is in no record, but for those that are only counted, see onlyCounted. Lines keep their order.
type Pipe struct {
	*Relay
	about          PipeOptions
	client, server *side
	calls          sync.WaitGroup // being recorded

	live context.Context // after its end nothing may pass any more; the cause says why, or is errOver
	stop context.CancelCauseFunc
	gone atomic.Bool // the client has ended its side

	mu      sync.Mutex // held while the following is used
	version string
	tally   tally // what passed uncounted
	over    bool  // no more calls begin
}

var errOver = errors.New("the pipe has ended")

// PipeOptions tell what a Pipe says of the server.
type PipeOptions struct {
	Origin string // as records name it, such as stdio:files
	Server string // what tells it from others, such as its command; the witness gets a fingerprint of it
	Chain  string // the conversation; "": for the witness to say
}

// onlyCounted are methods whose messages pass without a record of their own: that somebody is there, how far a call is, and what a server logs. The record
// of the call, or the next one, counts them.
var onlyCounted = map[string]bool{"ping": true, "notifications/progress": true, "notifications/message": true}

// Pipe returns a pipe before one server.
func (r *Relay) Pipe(about PipeOptions) *Pipe {
	about.Server = r.fingerprint(about.Server)
	p := &Pipe{Relay: &Relay{Options: r.Options, witness: r.witness, spool: r.spool}, about: about, tally: tally{}} // its end waits for its own calls alone
	p.live, p.stop = context.WithCancelCause(context.Background())
	p.client, p.server = newSide(p, "client"), newSide(p, "server")
	p.client.other, p.server.other = p.server, p.client
	return p
}

type side struct {
	pipe  *Pipe
	name  string
	other *side
	from  *bufio.Reader
	queue chan *line // in their order: each goes on once it is recorded

	pings   map[string]int
	asked   map[string][]*question // that have no answer yet, by id
	watched map[string]*question   // of these, by the token of their progress
}

func newSide(p *Pipe, name string) *side {
	return &side{pipe: p, name: name, queue: make(chan *line, 64), pings: map[string]int{}, asked: map[string][]*question{}, watched: map[string]*question{}}
}

// Run passes messages until the server ends its side and all of it has passed, or until something cannot be recorded in closed mode, which it returns. When
// the client ends its side, or the pipe stops, it closes toServer.
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
	case <-p.live.Done():
		_ = toServer.Close()
	}
	p.end()
	if why := context.Cause(p.live); why != errOver {
		return why
	}
	return nil
}

// end records the calls that have no answer.
func (p *Pipe) end() {
	p.mu.Lock()
	p.over = true
	ended, reason := UpstreamCut, error(Reason("the other side ended without an answer"))
	switch why := context.Cause(p.live); {
	case why != nil:
		ended, reason = RecorderCut, why
	case p.gone.Load():
		ended, reason = ClientGone, ErrClientGone
	}
	var left []*question
	for _, s := range []*side{p.client, p.server} {
		left = append(left, s.left()...)
	}
	p.mu.Unlock()
	for _, q := range left {
		if err := p.finish(q, ended, reason); err != nil {
			p.stop(err)
		}
	}
	p.stop(errOver)
	p.calls.Wait()
	p.late.Wait()
}

// read reads the lines of a side, has each recorded and puts it into the queue, until the side ends or nothing may pass any more.
func (s *side) read(from io.Reader) {
	defer close(s.queue)
	s.from = bufio.NewReaderSize(from, 64<<10)
	for {
		l, err := s.next()
		if l != nil {
			if !s.send(l, err) {
				return
			}
			if l.rest != nil {
				err = s.pass(l)
			}
		}
		if err != nil { // the end of a stream, whatever ended it
			if s.name == "client" {
				s.pipe.gone.Store(true)
			}
			return
		}
	}
}

// send has a line recorded and puts it into the queue. It reports whether more may follow.
func (s *side) send(l *line, err error) bool {
	p := s.pipe
	if l.rest == nil && l.body.lost != nil {
		p.free(l)
		p.stop(fmt.Errorf("a message of the %s cannot be recorded: %w", s.name, err))
		return false
	}
	record, over := s.take(l)
	if over {
		p.free(l)
		return false
	}
	if record == nil {
		l.ready <- nil
	} else {
		go func() {
			defer p.calls.Done()
			l.ready <- record()
		}()
	}
	select {
	case s.queue <- l:
		return true
	case <-p.live.Done():
		p.free(l)
		return false
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

// write writes each line once it may go on, until one may not. lost is called when nobody takes them any more; the others are read all the same.
func (s *side) write(to io.Writer, lost func()) {
	lost = sync.OnceFunc(lost)
	out := bufio.NewWriterSize(struct{ io.Writer }{to}, 32<<10) // a short line is written at once
	for l := range s.queue {
		err := errOver
		select {
		case err = <-l.ready:
		case <-s.pipe.live.Done():
		}
		if err == nil {
			if err = l.write(out); err != nil && !errors.Is(err, errUnreadable) {
				lost()
				err = nil
			}
		}
		s.pipe.free(l)
		if err != nil {
			s.pipe.stop(err)
			return
		}
	}
}

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
		p.version = cmp.Or(m.version, p.version)
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
			s.other.count(m, p.tally)
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

func (p *Pipe) call(s *side, l *line) *Call {
	c := &Call{ID: l.id, Began: l.at, Vantage: evidence.Proxy, Mode: p.Mode, Upstream: p.about.Server, Origin: p.about.Origin, Speaks: MCP, Version: p.version,
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
func (p *Pipe) record(asks *question, ended []*question) (err error) {
	if asks.call != nil {
		asks.exchange, err = p.beginning(context.Background(), asks.call)
		close(asks.began)
		if err != nil {
			return notRecorded(err)
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

// finish tells the witness how a call ended. Closed mode waits for it.
func (p *Pipe) finish(q *question, ended Ended, reason error) error {
	<-q.began
	p.mu.Lock()
	counted := p.tally.with(q)
	p.mu.Unlock()
	if q.exchange == nil {
		p.freeAll(q)
		return nil
	}
	o := &Outcome{Ended: ended, Reason: reason, Header: http.Header{}, At: time.Now(), Counted: counted}
	if err := p.response(q, o); err != nil {
		return notRecorded(err)
	}
	if p.Mode == Closed {
		defer p.freeAll(q)
	}
	return p.ending(context.Background(), q.call, q.exchange, o, func() { p.freeAll(q) })
}

// A line is a line on its way: its copy, and what is known of the messages in it.
type line struct {
	id       string
	at       time.Time // when its first byte was read
	body     *Body     // without the line feed at its end
	feed     bool      // it has one
	messages []message // nil: it is nothing that can be read
	rest     chan []byte
	ready    chan error   // whether it may go on
	refs     atomic.Int32 // that need the copy: who writes it, and the calls that it begins or ends
}

// free gives a line's copy back, once nobody else needs it.
func (r *Relay) free(l *line) {
	if l.refs.Add(-1) > 0 {
		return
	}
	if err := l.body.release(); err != nil {
		r.Log.Error("relay: removing the copy of a message", "call", l.id, "error", err)
	}
}

// next reads a line of any length. Of one for whose copy there is no room, it reads what has room, and open mode reads the rest of it with pass. At the end it
// returns what came without a line feed, and io.EOF.
func (s *side) next() (*line, error) {
	part, err := s.from.ReadSlice('\n')
	if len(part) == 0 {
		return nil, err
	}
	l := &line{id: rand.Text(), at: time.Now(), ready: make(chan error, 1)}
	l.body = s.pipe.spool.body(l.id+".line", "", s.pipe.MaxDecoded)
	l.refs.Store(1)
	scan := newMessages()
	for {
		text := part
		if n := len(part); n > 0 && part[n-1] == '\n' {
			text, l.feed = part[:n-1], true
		}
		_, _ = scan.Write(text) // never fails
		if _, lost := l.body.Write(text); lost != nil {
			return l, s.full(l, part, lost)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = s.from.ReadSlice('\n')
	}
	l.body.seal()
	l.messages = scan.end()
	return l, err
}

// full is what becomes of a line for whose copy there is no room.
func (s *side) full(l *line, part []byte, lost error) error {
	if s.pipe.Mode == Closed {
		return lost
	}
	l.body.seal()
	l.rest = make(chan []byte, 1)
	l.rest <- append([]byte(nil), part...)
	return nil
}

func (s *side) pass(l *line) error {
	defer close(l.rest)
	for !l.feed {
		part, err := s.from.ReadSlice('\n')
		l.feed = len(part) > 0 && part[len(part)-1] == '\n'
		select {
		case l.rest <- append([]byte(nil), part...):
		case <-s.pipe.live.Done():
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	return nil
}

// write writes a line as it came. Of one whose rest is not kept, it reads that to its end, also if nobody takes it.
func (l *line) write(to *bufio.Writer) error {
	n, err := io.Copy(to, copyOf{l.body.Open()})
	if err == nil && n < l.body.Kept {
		err = errUnreadable
	}
	if errors.Is(err, errUnreadable) {
		return err // at once: the rest may never end
	}
	if l.rest == nil && l.feed && err == nil {
		err = to.WriteByte('\n')
	}
	if l.rest != nil {
		for part := range l.rest {
			if err == nil {
				_, err = to.Write(part)
			}
		}
	}
	if err == nil {
		err = to.Flush()
	}
	return err
}

// errUnreadable says that the copy of a line, from which it is written, cannot be read.
var errUnreadable = errors.New("the copy of a message cannot be read")

// copyOf reads a copy. Its errors are told from those of who is written to.
type copyOf struct{ from io.Reader }

func (c copyOf) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if err != nil && err != io.EOF {
		err = errors.Join(errUnreadable, err)
	}
	return n, err
}

// A question is a request, or a batch of them, until it is answered.
type question struct {
	call     *Call
	line     *line         // the request
	began    chan struct{} // closed when the witness has been told
	exchange Exchange      // nil: the call is not recorded, which only open mode passes
	waiting  map[string]bool
	answers  []*line
	joined   *Body // a copy of several answers, made at the end
	progress int
	token    string
}

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

// answered gives a line to the question that it answers, and returns that; nil: there is none.
func (s *side) answered(id string, l *line) *question {
	list := s.asked[id]
	if len(list) == 0 {
		return nil
	}
	q := list[0]
	s.drop(id, q)
	if n := len(q.answers); n == 0 || q.answers[n-1] != l {
		l.refs.Add(1)
		q.answers = append(q.answers, l)
	}
	return q
}

func (s *side) drop(id string, q *question) {
	if s.asked[id] = slices.DeleteFunc(s.asked[id], func(other *question) bool { return other == q }); len(s.asked[id]) == 0 {
		delete(s.asked, id)
	}
	delete(q.waiting, id)
	if s.watched[q.token] == q && len(q.waiting) == 0 {
		delete(s.watched, q.token)
	}
}

func (s *side) left() []*question {
	once := map[*question]bool{}
	for _, list := range s.asked {
		for _, q := range list {
			once[q] = true
		}
	}
	clear(s.asked)
	return slices.Collect(maps.Keys(once))
}

// count counts a message that has no record of its own, with the question whose progress it tells of, or else alone.
func (s *side) count(m *message, t tally) {
	if q := s.watched[m.progress]; q != nil && m.progress != "" {
		q.progress++
		return
	}
	t[m.method]++
}

// A tally counts, by their method, messages that have no record of their own.
type tally map[string]int

// with says what passed with a call, or since the one before, and is in no record. It begins to count anew.
func (t tally) with(q *question) (list []string) {
	if q.progress > 0 {
		list = append(list, fmt.Sprintf("%d notifications of its progress, which are only counted", q.progress))
	}
	for _, method := range slices.Sorted(maps.Keys(t)) {
		list = append(list, fmt.Sprintf("%d messages %s since the record before, which are only counted", t[method], method))
	}
	clear(t)
	return list
}

// response fills in the answer: its line or, of a batch, a copy of its lines.
func (r *Relay) response(q *question, o *Outcome) error {
	if len(q.answers) == 0 {
		return nil
	}
	o.FirstByte, o.Response = q.answers[0].at, q.answers[0].body
	if len(q.answers) > 1 {
		q.joined = r.spool.response(q.call.ID, "", r.MaxDecoded)
		for _, l := range q.answers {
			if _, err := io.Copy(q.joined, io.MultiReader(l.body.Open(), strings.NewReader("\n"))); err != nil {
				return errors.Join(err, q.joined.release())
			}
		}
		q.joined.seal()
		o.Response = q.joined
	}
	if o.Held = o.Response.Bytes; r.Mode == Open {
		o.Held = 0
	}
	return nil
}

func (r *Relay) freeAll(q *question) {
	r.free(q.line)
	for _, l := range q.answers {
		r.free(l)
	}
	if q.joined != nil {
		if err := q.joined.release(); err != nil {
			r.Log.Error("relay: removing the copy of an answer", "call", q.call.ID, "error", err)
		}
	}
}
