package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
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
	header, err := endToEnd(came)
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
	return t.described(Call{Vantage: evidence.InProcess, Upstream: req.URL.Host, Origin: req.URL.Scheme + "://" + req.URL.Host, Speaks: Models,
		Method: req.Method, Path: req.URL.EscapedPath(), Token: token, Chain: chain, Upgrade: upgradeOf(canonical(req.Header))}, header, req.URL.RawQuery)
}

// described adds to a call what its header and its query say, as the provider gets them. It refuses what cannot be recorded.
func (r *relay) described(c Call, header http.Header, query string) (*Call, error) {
	if r.Mode == Closed && c.Upgrade != "" {
		return nil, refuse(http.StatusUpgradeRequired, "the protocol %q cannot be recorded, so nothing is sent; use HTTP without an upgrade", c.Upgrade)
	}
	if r.Mode == Closed && r.spool.full() {
		return nil, refuse(http.StatusServiceUnavailable, "the recorder has no room for copies of more calls; try again later")
	}
	c.ID, c.Began, c.Mode = rand.Text(), time.Now(), r.Mode
	c.Query, c.Header, c.Credentials, c.Session = shownOfQuery(query), shownOf(header), r.credentials(header, query), r.sessionIn(c.Speaks, header)
	c.Request = r.spool.request(c.ID, encodingOf(header["Content-Encoding"]), r.MaxDecoded)
	return &c, nil
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

// upgradeOf returns the protocols that a request asks to change to, or "". Offers to speak HTTP in another way are ignored, as RFC 9110, section 7.8, lets a server do:
// their clients go on with HTTP/1.1, which is recorded. Java's client makes such an offer in every call.
func upgradeOf(header http.Header) string {
	if !names(header["Connection"], "upgrade") {
		return ""
	}
	var list []string
	for token := range strings.SplitSeq(strings.Join(header["Upgrade"], ","), ",") {
		if token = textproto.TrimString(token); token != "" && !carriesHTTP(token) {
			list = append(list, token)
		}
	}
	return strings.Join(list, ", ")
}

// carriesHTTP reports whether a protocol is HTTP in another form: h2c of RFC 7540, HTTP/2.0, or TLS of RFC 2817.
func carriesHTTP(protocol string) bool {
	name, _, _ := strings.Cut(strings.ToLower(protocol), "/")
	return slices.Contains([]string{"h2c", "h2", "http", "tls"}, name)
}

// upgraded passes bytes both ways after the provider has changed the protocol. Nothing of them is kept.
func (h *Handler) upgraded(w http.ResponseWriter, answer *http.Response) error {
	provider, is := answer.Body.(io.ReadWriteCloser)
	if !is {
		return errors.New("the provider changed the protocol, and its connection cannot be written to")
	}
	defer provider.Close()
	conn, client, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("taking over the connection of an upgrade: %w", err)
	}
	defer conn.Close()
	answer.Body = nil
	if err := answer.Write(client); err != nil {
		return fmt.Errorf("passing on an upgrade: %w", err)
	}
	if err := client.Flush(); err != nil {
		return fmt.Errorf("passing on an upgrade: %w", err)
	}
	ended := make(chan error, 2)
	go func() { _, err := io.Copy(provider, client); ended <- err }()
	go func() { _, err := io.Copy(conn, provider); ended <- err }()
	<-ended // the deferred calls end the other one
	return nil
}
