package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
)

// A Transport is the form for a program that makes the calls itself. It is safe for concurrent use.
type Transport struct {
	*relay
	next http.RoundTripper
}

// NewTransport returns a transport that shows each call to a witness, and has next make it. Options.Upstreams, Next and Drain do not count: a
// call goes where the program sends it, and is one of [Models].
func NewTransport(next http.RoundTripper, witness Witness, o Options) (*Transport, error) {
	if next == nil {
		return nil, errors.New("relay: a transport that makes the calls is needed")
	}
	r, err := newRelay(witness, o)
	if err != nil {
		return nil, err
	}
	return &Transport{relay: r, next: next}, nil
}

// With returns a transport that has another make the calls, or one that passes bytes as they are if next is nil. Both show calls to the same witness, and
// have the same room for copies.
func (t *Transport) With(next http.RoundTripper) *Transport {
	if next == nil {
		next = newTransport()
	}
	return &Transport{relay: t.relay, next: next}
}

// Wait returns when End has returned for all calls of open mode, or with the context's error.
func (t *Transport) Wait(ctx context.Context) error { return t.late.Wait(ctx) }

// RoundTrip makes one call. It returns a *Refusal if the call was not made, and an error that wraps ErrNotRecorded if it was made and could not be recorded. The answer's body
// fails with such an error in place of its end.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := t.roundTrip(req)
	if err != nil && req.Body != nil {
		err = errors.Join(err, req.Body.Close())
	}
	return answer, err
}

func (t *Transport) roundTrip(req *http.Request) (*http.Response, error) {
	came := canonical(req.Header)
	header, err := t.endToEnd(came)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	call, err := t.call(req, header)
	if err != nil {
		return nil, err
	}
	body, err := t.request(req, call)
	if err != nil {
		return nil, errors.Join(err, call.Request.release())
	}
	p, err := t.begin(req.Context(), call)
	if err != nil {
		return nil, errors.Join(err, call.Request.release())
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	p.cancel = cancel
	onward(header, came, call.Upgrade)
	out := req.Clone(ctx)
	out.Header, out.Body, out.GetBody, out.Close = header, body, nil, out.Close || names(came["Connection"], "close")
	answer, err := p.ask(t.next, out)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		p.release()
		return answer, nil // missed; its body is a connection
	}
	answer.Body = p
	return answer, nil
}

func (t *Transport) call(req *http.Request, header http.Header) (*Call, error) {
	token, chain, err := identity(header, "")
	if err != nil {
		return nil, err
	}
	upgrade := upgradeOf(canonical(req.Header))
	if upgrade != "" && t.Mode == Closed {
		return nil, refuse(http.StatusUpgradeRequired, "the protocol %q cannot be recorded, so the call is not made; use HTTP instead", upgrade)
	}
	if upgrade == "" {
		header.Del("Upgrade") // an offer that is ignored
		header.Del("Http2-Settings")
	}
	if t.spool.full() && t.Mode == Closed {
		return nil, refuse(http.StatusServiceUnavailable, "the recorder has no room for copies of more calls; try again later")
	}
	id := rand.Text()
	return &Call{
		ID: id, Began: t.Now(), Vantage: InProcess, Mode: t.Mode, Upstream: req.URL.Host, Origin: req.URL.Scheme + "://" + req.URL.Host, Speaks: Models,
		Method: req.Method, Path: req.URL.EscapedPath(), Query: shownOfQuery(req.URL.RawQuery), Header: t.shownOf(header),
		Token: token, Chain: chain, Credentials: t.credentials(header, req.URL.RawQuery), Upgrade: upgrade,
		Request: t.spool.request(id, encodingOf(header["Content-Encoding"]), t.MaxDecoded),
	}, nil
}

func (t *Transport) request(req *http.Request, call *Call) (io.ReadCloser, error) {
	if req.Body == nil || req.Body == http.NoBody {
		call.Request.seal()
		return req.Body, nil
	}
	body, err := t.read(req.Body, call)
	if err != nil {
		return nil, err
	}
	if call.Request.Partial {
		return struct {
			io.Reader
			io.Closer
		}{body, req.Body}, nil
	}
	return io.NopCloser(body), req.Body.Close()
}
