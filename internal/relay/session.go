package relay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/internal/fault"
)

// A session is one of MCP over HTTP as its version 2024-11-05 has it. The client asks for a stream, whose first event names an endpoint. It posts its messages there, and the
// answers come on the stream.
//
// The call of a POST has the events that answer it for its answer. Each other message of the server is a call of its own: the GET, and the event. In closed mode an event passes once
// its call is recorded. The record of the whole stream has its digest, and no bytes: the endpoint is a secret, since who knows it can speak in the session.
type session struct {
	flow
	get         *passage
	fingerprint string
	agent       string // whose it is; "": nobody knows more than the token
	place       string // among sessions; "": it has no endpoint by which a client posts here
	shared      bool   // another stream has, or had, the same place. sessions.mu is held while it is used
	calls       sync.WaitGroup
	stop        chan struct{} // closed when nothing may pass any more

	mu sync.Mutex // held while the following is used
	questions
	tally   tally
	version string
	over    bool // no more calls begin
	why     error
}

// sessions are those that last, by the path and query of their endpoints. Only open mode has several at a place.
type sessions struct {
	mu  sync.Mutex // held while all is used
	all map[string][]*session
}

// at returns the session that has an endpoint; nil: none has.
func (s *sessions) at(path, query string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.all[path+"?"+query]; len(list) > 0 {
		return list[0]
	}
	return nil
}

// belongs reports whether answers on a session's stream are for who has a token: its agent, if no other stream has the place.
func (h *Handler) belongs(ctx context.Context, one *session, token string) bool {
	if subtle.ConstantTimeCompare([]byte(one.get.call.Token), []byte(token)) != 1 && (one.agent == "" || one.agent != h.agentOf(ctx, token)) {
		return false
	}
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	return !one.shared
}

// agentOf returns whose a token is; "": nobody knows.
func (r *relay) agentOf(ctx context.Context, token string) string {
	if r.AgentOf == nil {
		return ""
	}
	limited, cancel := context.WithTimeout(ctx, r.EndTimeout)
	defer cancel()
	var agent string
	err := fault.Guard(func() (err error) { agent, err = r.AgentOf(limited, token); return err })
	if err != nil {
		return "" // the witness refuses the call, or records it without an agent
	}
	return agent
}

// add takes a session in. It fails if there is one at its place.
func (s *sessions) add(place string, one *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string][]*session{}
	}
	others := s.all[place]
	if len(others) == 0 {
		one.fingerprint = one.relay.fingerprint(place)
	}
	if len(others) == 0 || one.Mode == Open {
		s.all[place], one.place, one.shared = append(others, one), place, len(others) > 0
	}
	if len(others) == 0 {
		return nil
	}
	others[0].shared = one.Mode == Open
	return errors.New("another stream that lasts has the same, so nothing says whose the answers are")
}

func (s *sessions) remove(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := slices.DeleteFunc(s.all[one.place], func(other *session) bool { return other == one }); len(list) > 0 {
		s.all[one.place] = list
	} else {
		delete(s.all, one.place)
	}
}

// errEndpoint says that a stream begins with an endpoint: a session reads on.
var errEndpoint = errors.New("the stream names an endpoint")

// inSession passes on a stream from the event on that names the endpoint.
func (h *Handler) inSession(w io.Writer, control *http.ResponseController, p *passage) error {
	_ = control.Flush() // of the header, so that a client whose stream is refused does not ask again at once
	if e := p.kept.Encoding; e != "" && e != "identity" {
		p.asked = nil // it passes as a stream of bytes
		held := p.kept.n - p.given
		p.kept.apart()
		if h.Mode == Closed {
			h.Log.Error("relay: a stream of MCP with an endpoint is compressed, so its events cannot be held back one by one: turn compression off in the server, or use --mode open")
			p.over = notRecorded(fmt.Errorf("a stream with an endpoint must not be compressed, and it has the encoding %q", e))
			return p.over
		}
		_, _ = (&toClient{w, control, p, 0}).Write(p.since[int64(len(p.since))-held:]) // who has left has left for what follows, too
		return h.copy(w, control, p, func() {})
	}
	s := &session{get: p, agent: h.agentOf(p.caller, p.call.Token), stop: make(chan struct{}), questions: newQuestions(), tally: tally{}}
	s.flow = newFlow(h.relay, "server", s.stop, s.fail, &s.calls)
	s.take = s.taken
	from, again := int64(0), io.Reader(io.NewSectionReader(p.kept, 0, p.kept.n))
	if p.kept.lost != nil {
		from, again = p.kept.n-int64(len(p.since)), bytes.NewReader(p.since)
		h.missed(p.call, fmt.Errorf("what came before the endpoint: %w", p.kept.lost))
	}
	events, read := newPieces(h.relay, io.MultiReader(again, following{p, p.over})), make(chan error, 1)
	go func() {
		defer close(s.queue)
		err := fault.Guard(func() error { return s.pass(events.next, events.pass) })
		if errors.Is(err, fault.ErrFault) {
			s.fail(err)
		}
		read <- err
	}()
	s.write(&toClient{w, control, p, p.given - from}, func() {})
	return s.end(read)
}

// following reads on where a passage has stopped. The copy of it has no more use.
type following struct {
	p    *passage
	over error // the end that it has come to already
}

func (f following) Read(b []byte) (int, error) {
	f.p.kept.apart()
	if f.over != nil {
		return 0, f.over
	}
	n, err := f.p.body.Read(b)
	_ = f.p.kept.add(b[:n]) // which now counts alone
	return n, err
}

// toClient writes to the client what it has not got yet.
type toClient struct {
	w       io.Writer
	control *http.ResponseController
	p       *passage
	has     int64
}

func (t *toClient) Write(b []byte) (int, error) {
	had := int(min(t.has, int64(len(b))))
	t.has -= int64(had)
	t.p.mu.Lock()
	t.p.given += int64(len(b) - had)
	t.p.mu.Unlock()
	return len(b), deliver(t.w, t.control, t.p, b[had:])
}

// fail ends the session: what is not recorded does not pass.
func (s *session) fail(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		s.why = why
		close(s.stop)
		s.get.cancel(why)
	}
}

// end records what has no answer, and the stream.
func (s *session) end(read <-chan error) error {
	p := s.get
	err := <-read
	p.mu.Lock()
	away := p.away || p.caller.Err() != nil
	p.mu.Unlock()
	for l := range s.queue { // what no longer passes
		s.free(l)
	}
	s.sessions.remove(s)
	s.mu.Lock()
	s.over = true
	ended, reason := UpstreamCut, error(Reason("the server ended the stream without an answer"))
	switch {
	case s.why != nil:
		ended, reason, err = RecorderCut, s.why, notRecorded(s.why)
	case away:
		ended, reason = ClientGone, ErrClientGone
	}
	left := s.left()
	for _, q := range left {
		q.answered = true
	}
	s.mu.Unlock()
	s.await(left)
	for _, q := range left {
		if failed := s.finish(q, ended, reason); failed != nil {
			err = failed
		}
	}
	s.calls.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.outcome.Session, p.outcome.Counted = err, s.fingerprint, s.tally.with(&question{})
	p.finish()
	if err = p.result(); err == io.EOF {
		return nil
	}
	return err
}

// taken is the flow's take.
func (s *session) taken(l *line) (record func() error, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why != nil {
		return nil, true
	}
	if record = s.sort(l); record != nil {
		s.calls.Add(1)
	}
	return record, false
}

// sort tells answers and other messages apart.
func (s *session) sort(l *line) func() error {
	if l.rest != nil {
		call := s.call(l)
		return func() error { s.missed(call, ErrSpoolFull); return call.Request.release() }
	}
	if l.kind == endpoint { // also if it looks like a message: clients take all of these for addresses
		err := s.begin(strings.TrimPrefix(l.data, " "))
		return func() error { return err }
	}
	alone := l.messages == nil && l.said
	var ended []*question
	for i := range l.messages {
		m := &l.messages[i]
		if m.result && m.version != "" {
			s.version = m.version
		}
		switch q := (*question)(nil); {
		case m.answers():
			if q = s.questions.answered(m.id, l); q != nil && len(q.waiting) == 0 {
				q.answered = true
				ended = append(ended, q)
				break
			}
			alone = true // or, of a batch, the first answers would pass without a record
		case onlyCounted[m.method]:
			s.count(m, s.tally)
		default:
			alone = true
		}
	}
	if len(ended) == 0 && alone {
		l.refs.Add(1)
		q := &question{call: s.call(l), began: make(chan struct{}), answers: []*line{l}}
		q.line = &line{id: l.id, body: q.call.Request}
		q.line.refs.Store(1)
		return func() error { return errors.Join(s.show(q), s.finish(q, Complete, nil)) }
	}
	if ended == nil {
		return nil
	}
	return func() error {
		s.await(ended)
		for _, q := range ended {
			if err := s.finish(q, Complete, nil); err != nil {
				return err
			}
		}
		return nil
	}
}

// begin takes the endpoint that the server names. In closed mode there is one, and it leads here.
func (s *session) begin(text string) error {
	err := errors.New("the stream has an endpoint already")
	if s.place == "" {
		var path, query string
		if path, query, err = s.endpointOf(s.get.call, s.get.asked, text); err == nil {
			err = s.sessions.add(path+"?"+query, s)
		}
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the endpoint that the server names cannot be used: %w", err)
	if s.Log.Error("relay: a stream of MCP", "call", s.get.call.ID, "error", err); s.Mode == Closed {
		return notRecorded(err)
	}
	s.tally["event: endpoint, which was not used ("+err.Error()+")"]++
	return nil
}

// call describes a message of the server that is a call.
func (s *session) call(l *line) *Call {
	c := *s.get.call
	c.ID, c.Began, c.Session, c.Version = l.id, l.at, s.fingerprint, s.version
	c.Request = s.spool.body(l.id+".request", "", s.MaxDecoded)
	c.Request.seal()
	return &c
}

// says is the version of the protocol that the session has, and the path of its stream; "": it is not known yet.
func (s *session) says() (version, stream string) {
	if s == nil {
		return "", ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, s.get.call.Path
}

// posting notes what a call asks, before the server gets it.
func (s *session) posting(p *passage) {
	list, err := p.call.Request.messages()
	if err != nil {
		list = nil // then nobody can answer it
	}
	q := &question{call: p.call, exchange: p.exchange, waiting: map[string]bool{}, line: &line{id: p.call.ID, body: p.call.Request}, accepted: make(chan struct{})}
	q.line.refs.Store(2) // the passage's, and the session's
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		if m := &list[i]; m.asks() && !s.over {
			s.ask(q, m)
		}
	}
	p.session, p.posted = s, q
}

// accept notes how the server answered a POST itself. It reports whether the session records the call, with the answer that comes or came on the stream.
func (s *session) accept(p *passage) bool {
	q, o := p.posted, &p.outcome
	list, err := p.kept.messages()
	here := err != nil || p.finder != nil && p.finder.Found() != "" || slices.ContainsFunc(list, func(m message) bool { return m.answers() })
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(q.accepted)
	q.status, q.tls = o.Status, o.TLS
	receipt := !here && o.Status/100 == 2 && o.Ended != RecorderCut
	if receipt && o.Response.Bytes > 0 {
		q.said = []string{fmt.Sprintf("%d bytes with which the POST itself was answered, of the digest %x", o.Response.Bytes, o.Response.SHA256)}
	}
	switch {
	case q.answered && here && s.Mode == Closed:
		p.recorded = notRecorded(Reason("the server answered on the stream, and to the POST"))
		return true
	case q.answered, receipt && len(q.waiting) > 0:
		return true
	case receipt:
		o.Response, o.Counted = nil, q.said
	}
	for id := range q.waiting {
		s.drop(id, q)
	}
	s.freeAll(q, nil)
	return false
}

// await waits until POSTs themselves are answered, but not for long: a server may do that when it has answered on the stream.
func (s *session) await(list []*question) {
	late := time.After(s.Linger)
	for _, q := range list {
		select {
		case <-q.accepted:
		case <-late:
			return
		}
	}
}

// finish tells the witness how a call ended. Closed mode waits for it.
func (s *session) finish(q *question, ended Ended, reason error) error {
	get := &s.get.outcome
	s.mu.Lock()
	o := &Outcome{Ended: ended, Reason: reason, Session: s.fingerprint, Status: cmp.Or(q.status, get.Status), Header: get.Header, TLS: cmp.Or(q.tls, get.TLS), At: s.Now(), Counted: append(s.tally.with(q), q.said...)}
	s.mu.Unlock()
	return s.recorded(q, o, "")
}
