package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"jurat/internal/kit/fault"
)

// A passage is one call on its way. Its Read reads from the provider, keeps a copy, and returns what the client may have. It returns io.EOF
// only after the witness has recorded the call, and ErrNotRecorded if that failed.
type passage struct {
	r        *Relay
	call     *Call
	exchange Exchange        // nil if Begin failed in open mode
	caller   context.Context // ends when the client leaves
	cancel   context.CancelCauseFunc
	body     io.ReadCloser // the provider's answer
	kept     *Body         // the copy of it
	finder   finder
	closed   chan struct{} // closed by Close
	http10   bool          // the client speaks HTTP/1.0
	from     *url.URL      // where the client asked, as it names it; nil: a program that asks the provider itself
	released sync.Once
	endpoint bool // an event of a stream of MCP names an endpoint

	mu              sync.Mutex // held while the following is used
	outcome         Outcome
	given           int64 // bytes that the reader has got
	away            bool  // the client has left, which the reader found out
	deliveredBefore int64 // bytes that it had got then
	over            error // why reading ended: io.EOF, or what broke
	finished        bool  // the outcome is fixed
	recorded        error // what End said
	tail            <-chan tailRead
	lingers         *time.Timer
}

// begin shows a call to the witness. It fails with a *Refusal if the call must not be forwarded.
func (r *Relay) begin(ctx context.Context, call *Call) (*passage, error) {
	exchange, err := r.beginning(ctx, call)
	if refusal, is := errors.AsType[*Refusal](err); is {
		return nil, refusal
	}
	if err != nil {
		r.Log.Error("relay: a call is refused, since its beginning could not be recorded", "call", call.ID, "error", err)
		return nil, refuse(http.StatusServiceUnavailable, "the recorder cannot record this call now, so it was not forwarded; try again later")
	}
	return &passage{r: r, call: call, exchange: exchange, caller: ctx, closed: make(chan struct{})}, nil
}

// beginning has the witness begin an exchange. In open mode, a call passes without one if the witness fails, but not if it refuses the call.
func (r *Relay) beginning(ctx context.Context, call *Call) (exchange Exchange, err error) {
	limited, cancel := context.WithTimeout(ctx, r.EndTimeout)
	defer cancel()
	err = fault.Guard(func() (err error) {
		exchange, err = r.witness.Begin(limited, call)
		return err
	})
	if _, refused := errors.AsType[*Refusal](err); refused || err != nil && r.Mode == Closed && call.Upgrade == "" {
		return nil, err
	}
	switch {
	case call.Upgrade != "": // whatever the witness says
		r.missed(call, ErrUpgrade)
	case err != nil:
		r.missed(call, fmt.Errorf("recording its beginning: %w", err))
	default:
		return exchange, nil
	}
	return nil, nil
}

// ending has the witness end an exchange. Closed mode waits for it, and returns why it failed; open mode does not, and calls done afterwards. ctx ends nothing
// before the time for that is over.
func (r *Relay) ending(ctx context.Context, call *Call, exchange Exchange, outcome *Outcome, done func()) error {
	end := func() error {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.EndTimeout)
		defer cancel()
		if err := fault.Guard(func() error { return exchange.End(limited, outcome) }); err != nil {
			return notRecorded(err)
		}
		return nil
	}
	if r.Mode == Closed {
		return end()
	}
	r.late.Go(func() {
		if err := end(); err != nil {
			r.missed(call, err)
		}
		done()
	})
	return nil
}

// read reads the body of a request into the spool, and returns the body to send. In open mode, the rest of it may still be to come.
func (r *Relay) read(body io.Reader, call *Call) (io.Reader, error) {
	left, err := call.Request.read(body)
	call.Request.seal()
	switch {
	case errors.Is(err, errReading):
		return nil, err
	case err != nil && r.Mode == Closed:
		r.Log.Error("relay: a call is refused, since its request could not be kept", "call", call.ID, "error", err)
		return nil, refuse(http.StatusServiceUnavailable, "the recorder has no room for a copy of this request, so it was not forwarded; try again later")
	case err != nil:
		return io.MultiReader(call.Request.Open(), bytes.NewReader(left), body), nil
	}
	return call.Request.Open(), nil
}

func (r *Relay) missed(call *Call, why error) {
	r.guarded("telling that a call was missed", call, func() { r.witness.Missed(call, why) })
}

// guarded reports whether something was done without a panic, such as reading hostile bytes: the call goes on in any case.
func (r *Relay) guarded(what string, call *Call, do func()) bool {
	err := fault.Guard(func() error { do(); return nil })
	if err != nil {
		r.Log.Error("relay: "+what, "call", call.ID, "error", err)
	}
	return err == nil
}

// ask sends the request, and takes the answer. If there is none, or it has no body, the call is recorded at once.
func (p *passage) ask(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	answer, err := next.RoundTrip(request)
	if err == nil && answer.StatusCode == http.StatusSwitchingProtocols && p.call.Upgrade == "" {
		err = errors.Join(Reason("it changed the protocol without being asked to"), answer.Body.Close())
	}
	if err == nil && answer.StatusCode != http.StatusSwitchingProtocols {
		var twofold error
		if answer.Header, twofold = endToEnd(answer.Header); twofold != nil {
			err = errors.Join(Reason("the header Connection of the answer names one that is not for one connection"), twofold, answer.Body.Close())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.over = err
		p.finish()
		return nil, errors.Join(err, p.recorded)
	}
	p.answered(answer)
	if astray := p.astray(answer); astray != nil {
		p.r.Log.Warn("relay: an answer leads clients where they are not recorded; closed mode does not hand it out: "+notAstray, "call", p.call.ID, "upstream", p.call.Origin, "mode", p.r.Mode, "why", astray)
		if p.r.Mode == Closed {
			p.over = astray
			p.finish()
			return nil, errors.Join(astray, p.recorded, answer.Body.Close())
		}
		if astray.past {
			p.r.missed(p.call, astray)
		}
	}
	if request.Method == http.MethodHead || answer.StatusCode != http.StatusSwitchingProtocols && (answer.Body == http.NoBody || answer.ContentLength == 0) {
		p.over = io.EOF
		p.finish()
		if p.recorded != nil {
			return nil, errors.Join(p.recorded, answer.Body.Close())
		}
	}
	return answer, nil
}

func (p *passage) answered(answer *http.Response) {
	p.kept = p.r.spool.response(p.call.ID, encodingOf(answer.Header["Content-Encoding"]), p.r.MaxDecoded)
	p.kept.caller = p.call.Request.caller
	p.body = answer.Body
	p.finder = p.finderFor(answer)
	p.outcome.Status = answer.StatusCode
	p.outcome.Header = shownOf(answer.Header)
	p.outcome.Response = p.kept
	p.outcome.Session = p.r.sessionIn(p.call.Speaks, answer.Header)
	p.outcome.TLS = tlsOf(answer.TLS)
}

// finderFor returns a finder for the answer. If the request is so hostile that the protocol fails to read it, the last bytes of the answer are held.
func (p *passage) finderFor(answer *http.Response) (f finder) {
	if !p.r.guarded("reading which answer a request asks for", p.call, func() {
		f = finderFor(answer, p.call.Speaks.Watch, p.ends(), p.r.MaxDecoded, p.http10)
	}) {
		return blind(0)
	}
	return f
}

// ends says how the answer ends, and notes an endpoint where clients of MCP look for one.
func (p *passage) ends() ends {
	ends := p.call.Speaks.Ends(p.call.Request)
	if p.call.Speaks != MCP || p.call.Method != http.MethodGet {
		return ends
	}
	return func(e Event) (string, bool) {
		if e.Type != endpoint {
			return ends(e)
		}
		if !p.endpoint {
			p.r.Log.Warn("relay: "+oldTransport, "call", p.call.ID, "upstream", p.call.Origin, "mode", p.r.Mode)
		}
		p.endpoint = true
		return endpoint, false
	}
}

// watch cancels the request when the client leaves, at once or after the time to drain.
func (p *passage) watch(drain time.Duration) {
	context.AfterFunc(p.caller, func() {
		select {
		case <-p.closed:
		case <-time.After(drain):
			p.cancel(ErrClientGone)
		}
	})
}

// Read returns what the client may have.
func (p *passage) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		switch {
		case p.given < p.limit():
			if n := p.give(b); n > 0 {
				return n, nil
			}
		case p.finished:
			return 0, p.result()
		case p.over != nil:
			p.closeFinder() // SDKs take for an event what the end of a stream leaves
			p.withhold()
			p.finish()
		default:
			if n := p.take(b); n > 0 {
				return n, nil
			}
		}
	}
	return 0, nil
}

// withhold gives the copy of a stream up that names an endpoint: who knows the endpoint can speak in the session. In closed mode the client does not get it.
func (p *passage) withhold() {
	if !p.endpoint {
		return
	}
	if p.kept.apart(); p.r.Mode == Closed && p.recorded == nil {
		p.over = notRecorded(Reason(oldTransport))
		p.recorded = p.over
	}
}

func (p *passage) result() error {
	p.releaseClosed()
	if p.recorded != nil {
		return p.recorded // without io.EOF in it
	}
	return p.over
}

// give returns bytes from the copy that were held, and may pass now.
func (p *passage) give(b []byte) int {
	n, err := p.kept.ReadAt(b[:min(int64(len(b)), p.limit()-p.given)], p.given)
	if n == 0 {
		p.over = notRecorded(fmt.Errorf("reading the copy of an answer: %w", err))
		p.recorded = p.over
	}
	p.given += int64(n)
	return n
}

func (p *passage) limit() int64 {
	switch {
	case p.recorded != nil:
		return p.given
	case p.finished || p.r.Mode == Open:
		return p.kept.n
	}
	return min(p.finder.Safe(), p.kept.n)
}

// take reads from the provider into b, and returns how many bytes of b may pass at once. The others are held.
func (p *passage) take(b []byte) (pass int) {
	if p.r.Mode == Closed && p.finder.Last() {
		p.takeTail()
		return 0
	}
	n, err := p.body.Read(b)
	if n > 0 {
		pass = p.see(b[:n])
	}
	if err != nil && p.over == nil {
		p.over = err
	}
	return pass
}

// see keeps a copy of b, and returns how many bytes of it may pass at once: none if others before it are still held.
func (p *passage) see(b []byte) int {
	if p.outcome.FirstByte.IsZero() {
		p.outcome.FirstByte = time.Now()
	}
	before := p.kept.n
	if _, err := p.kept.Write(b); err != nil && p.r.Mode == Closed {
		p.over = notRecorded(err)
		p.recorded = p.over
		return 0
	}
	p.find(b)
	p.withhold()
	if p.given < before {
		return 0
	}
	n := max(p.limit()-before, 0)
	p.given += n
	return int(n)
}

// find shows b to the finder. If that fails on hostile bytes, the call goes on, and its last bytes are held.
func (p *passage) find(b []byte) {
	if !p.r.guarded("looking for the end of an answer", p.call, func() { p.finder.Write(b) }) {
		p.finder = blind(p.kept.n)
	}
}

type tailRead struct {
	b   []byte
	err error
}

// takeTail reads after the terminal event. It does not wait forever for the end of the body, as the client waits for the event.
func (p *passage) takeTail() {
	if p.tail == nil {
		tail := make(chan tailRead)
		p.tail, p.lingers = tail, time.NewTimer(p.r.Linger)
		go p.readTail(tail)
	}
	select {
	case read := <-p.tail:
		if len(read.b) > 0 {
			p.see(read.b)
		}
		if read.err != nil && p.over == nil {
			p.over = read.err
		}
	case <-p.lingers.C:
		p.outcome.Unfinished, p.over = true, io.EOF
	}
}

func (p *passage) readTail(tail chan<- tailRead) {
	for {
		b := make([]byte, 1<<10)
		n, err := p.body.Read(b)
		select {
		case tail <- tailRead{b[:n], err}:
		case <-p.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

func (p *passage) finish() {
	p.finished = true
	o := &p.outcome
	o.At = time.Now()
	o.Ended, o.Reason = p.ended()
	if p.kept != nil {
		p.closeFinder()
		if p.endpoint {
			p.kept.apart()
		}
		p.kept.seal()
		o.Delivered = p.given
		if p.away {
			o.Delivered = p.deliveredBefore
		}
		if o.Ended == Complete || o.Ended == UpstreamCut {
			o.Held = p.kept.n - p.given
		}
		o.Terminal = p.finder.Found()
	}
	if p.exchange != nil {
		if err := p.r.ending(p.caller, p.call, p.exchange, o, p.release); err != nil {
			p.recorded = err
		}
	}
}

func (p *passage) closeFinder() {
	p.r.guarded("at the end of an answer", p.call, p.finder.Close)
}

func (p *passage) ended() (Ended, error) {
	_, astray := errors.AsType[*astrayError](p.over)
	switch {
	case astray, errors.Is(p.over, ErrNotRecorded):
		return RecorderCut, p.over
	case p.kept != nil && !p.away && p.given == p.kept.n && (p.over == io.EOF || p.finder.Last()):
		p.outcome.Unfinished = p.outcome.Unfinished || p.over != io.EOF
		return Complete, nil // the client has everything, though it may have left since
	case p.away || p.caller.Err() != nil || errors.Is(p.over, ErrClientGone):
		return ClientGone, ErrClientGone
	case p.kept == nil:
		return UpstreamError, p.over
	case p.over == io.EOF:
		return Complete, nil
	}
	return UpstreamCut, p.over
}

// left notes that the client has left before it got the last n bytes that Read returned.
func (p *passage) left(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return
	}
	p.away, p.deliveredBefore = true, p.given-int64(n)
	if p.r.Drain == 0 {
		p.cancel(ErrClientGone)
	}
}

// Close ends the call. If it was not at its end, the client has left.
func (p *passage) Close() error {
	p.cancel(ErrClientGone)
	var err error
	if p.body != nil {
		err = p.body.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return nil
	default:
		close(p.closed)
	}
	if p.lingers != nil {
		p.lingers.Stop()
	}
	if !p.finished {
		if p.over == nil {
			p.over = ErrClientGone
		}
		p.finish()
		err = errors.Join(err, p.recorded)
	}
	p.releaseClosed()
	return err
}

// releaseClosed gives the copies back, unless End may still be reading them.
func (p *passage) releaseClosed() {
	if p.r.Mode == Closed || p.exchange == nil {
		p.release()
	}
}

func (p *passage) release() {
	p.released.Do(func() {
		failed := p.call.Request.release()
		if p.kept != nil {
			failed = errors.Join(failed, p.kept.release())
		}
		if failed != nil {
			p.r.Log.Error("relay: removing copies of bodies", "call", p.call.ID, "error", failed)
		}
	})
}
