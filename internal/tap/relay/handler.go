package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/kit/fault"
)

// newTransport returns a transport that passes bytes as they are.
func newTransport() http.RoundTripper {
	usual, is := http.DefaultTransport.(*http.Transport)
	if !is { // the program has put another one there, such as one that traces
		usual = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second}
	}
	t := usual.Clone()
	t.DisableCompression = true
	t.MaxIdleConnsPerHost = 64
	t.IdleConnTimeout = 30 * time.Second
	t.ExpectContinueTimeout = 0 // the request is there already
	return t
}

// ServeHTTP passes one request on. It panics with http.ErrAbortHandler, which breaks the connection off, where an answer must not end well.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p, out, err := r.admit(w, req)
	if err != nil {
		r.refuse(w, err)
		return
	}
	defer p.Close()
	if err := r.pass(w, p, out); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (r *Relay) refuse(w http.ResponseWriter, err error) {
	refusal, is := errors.AsType[*Refusal](err)
	if !is {
		panic(http.ErrAbortHandler) // the client broke off its request
	}
	if refusal.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	r.say(w, refusal.Status, "recorder_refused", refusal.Reason)
}

const retryAfter = 5 // seconds

// say answers in the form that providers use, so that SDKs show the message.
func (r *Relay) say(w http.ResponseWriter, status int, code, message string) {
	type body struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	text, err := json.Marshal(map[string]body{"error": {code, code, "recorder: " + message}})
	if err != nil {
		panic(err) // strings can be marshalled
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may have left
}

// admit reads a request, shows it to the witness, and returns it as the provider gets it.
func (r *Relay) admit(w http.ResponseWriter, req *http.Request) (*passage, *http.Request, error) {
	header, err := endToEnd(req.Header)
	if err != nil {
		return nil, nil, refuse(http.StatusBadRequest, "%v", err)
	}
	t, err := r.routeOf(req)
	if err != nil {
		return nil, nil, err
	}
	call, err := r.call(req, header, &t)
	if err != nil {
		return nil, nil, err
	}
	body, err := r.request(w, req, call)
	if err != nil {
		return nil, nil, errors.Join(err, call.Request.release())
	}
	p, err := r.begin(req.Context(), call)
	if err != nil {
		return nil, nil, errors.Join(err, call.Request.release())
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(req.Context()))
	p.cancel = cancel
	p.from = askedAt(req)
	p.http10 = !req.ProtoAtLeast(1, 1)
	p.watch(r.Drain)
	return p, r.outgoing(ctx, req, header, t, call, body), nil
}

// pass asks the provider and passes its answer on. After an error, the connection must be broken off.
func (r *Relay) pass(w http.ResponseWriter, p *passage, out *http.Request) error {
	early := &informational{w: w}
	answer, err := p.ask(r.Next, out.WithContext(httptrace.WithClientTrace(out.Context(), &httptrace.ClientTrace{Got1xxResponse: early.got})))
	early.end()
	switch {
	case err == nil && answer.StatusCode == http.StatusSwitchingProtocols:
		return r.upgraded(w, answer)
	case err == nil && answer.StatusCode == http.StatusUnauthorized && p.call.Speaks == MCP:
		r.wantsToken.Do(func() {
			what := "a client's call without a valid token (401). Clients cannot sign in through a recorder, since tokens are for the server's own address: " + doSignIn
			if p.call.Custody {
				what = "the recorder's token (401): get another one, and start the recorder again"
			}
			r.Log.Warn("relay: the server refuses "+what, "server", p.call.Origin)
		})
		return r.answer(w, p, answer)
	case err == nil:
		return r.answer(w, p, answer)
	case p.recorded != nil || p.caller.Err() != nil:
		return err
	}
	if astray, is := errors.AsType[*astrayError](err); is {
		r.say(w, http.StatusBadGateway, "recorder_refused", astray.Error()+", so it is not handed out: "+notAstray)
		return nil
	}
	r.say(w, http.StatusBadGateway, "upstream_unreachable", fmt.Sprintf("%s gave no answer: %v", p.call.Upstream, err))
	return nil
}

// call describes the request, and takes from its header what the provider must not get.
func (r *Relay) call(req *http.Request, header http.Header, t *route) (*Call, error) {
	token, chain, err := identity(header, t.token)
	if err != nil {
		return nil, err
	}
	caller, err := r.caller(req, token)
	if err != nil {
		return nil, err
	}
	if t.upstream.custody() {
		t.query = t.upstream.keep(header, t.query)
		t.force = false
	}
	call, err := r.described(Call{Vantage: evidence.Proxy, Upstream: t.name, Origin: t.upstream.Origin(), Speaks: cmp.Or(t.upstream.Speaks, Models),
		Method: req.Method, Path: t.path, Token: token, Chain: chain, Custody: t.upstream.custody(), Upgrade: upgradeOf(req.Header)}, header, t.query)
	if err != nil {
		return nil, err
	}
	call.Request.caller = caller
	return call, nil
}

// caller returns who calls, for the room that its copies may take: an agent by its token, or else the address that asks. It refuses a token that is nobody's.
func (r *Relay) caller(req *http.Request, token string) (string, error) {
	agent := ""
	if r.AgentOf != nil {
		limited, cancel := context.WithTimeout(req.Context(), r.EndTimeout)
		defer cancel()
		err := fault.Guard(func() (err error) { agent, err = r.AgentOf(limited, token); return err })
		if refusal, is := errors.AsType[*Refusal](err); is {
			return "", refusal
		}
		if err != nil {
			agent = "" // Begin says whether it may call
		}
	}
	if token != "" && agent != "" {
		return "agent " + agent, nil
	}
	return "address " + networkOf(req.RemoteAddr), nil
}

// networkOf returns the address in a host and port; of IPv6 the network, since each caller has many addresses in it.
func networkOf(hostPort string) string {
	at, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return hostPort
	}
	bits := 128
	if a := at.Addr().Unmap(); a.Is4() {
		bits = 32
	} else if !a.IsLoopback() {
		bits = 64
	}
	network, err := at.Addr().Unmap().Prefix(bits)
	if err != nil {
		return at.Addr().String()
	}
	return network.String()
}

func (r *Relay) request(w http.ResponseWriter, req *http.Request, call *Call) (io.Reader, error) {
	control := http.NewResponseController(w)
	from := &hurried{from: req.Body, control: control, began: time.Now(), patience: r.BodyTimeout}
	body, err := r.read(from, call)
	from.over = true
	_ = control.SetReadDeadline(time.Time{}) // of the body alone; some writers have none
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, refuse(http.StatusRequestTimeout, "the body of the request did not come in time, so the call was not forwarded")
	}
	if err == nil && call.Request.Partial {
		// The server must let the rest of the request come in while the answer goes out.
		if err := control.EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return nil, err
		}
	}
	return body, err
}

// hurried reads a body that must come at some pace: what does not come in time holds a place for nothing.
type hurried struct {
	from     io.Reader
	control  *http.ResponseController
	began    time.Time
	patience time.Duration
	n        int64
	over     bool // what follows takes no room
}

// slowest is how many bytes of a body must come in a second, once the patience is used up.
const slowest = 16 << 10

func (h *hurried) Read(p []byte) (int, error) {
	if !h.over {
		_ = h.control.SetReadDeadline(h.began.Add(h.patience + time.Duration(h.n/slowest)*time.Second)) // some writers have none
	}
	n, err := h.from.Read(p)
	h.n += int64(n)
	return n, err
}

func (r *Relay) outgoing(ctx context.Context, req *http.Request, header http.Header, t route, call *Call, body io.Reader) *http.Request {
	onward(header, req.Header, call.Upgrade)
	if _, sent := header["User-Agent"]; !sent {
		header["User-Agent"] = []string{""} // or Go would send its own
	}
	out := &http.Request{
		Method: req.Method, URL: t.target(), Host: t.upstream.Base.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: req.ContentLength, Trailer: req.Trailer, Body: io.NopCloser(body),
	}
	switch length := req.ContentLength; {
	case length < 0:
		out.TransferEncoding = []string{"chunked"} // also if it is empty, and whatever the method
	case length == 0 && slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, req.Method):
		out.Body = http.NoBody // or Go would send it in chunks
	case length == 0:
		out.TransferEncoding = []string{"identity"} // Go would wait 200 ms for a body. With http.NoBody, it would repeat a failed GET
	}
	return out.WithContext(ctx)
}

func names(lines []string, wanted string) bool {
	is := func(token string) bool { return strings.EqualFold(textproto.TrimString(token), wanted) }
	return slices.ContainsFunc(lines, func(line string) bool { return slices.ContainsFunc(strings.Split(line, ","), is) })
}

func (r *Relay) answer(w http.ResponseWriter, p *passage, answer *http.Response) error {
	announced := len(answer.Trailer)
	header := w.Header()
	for name, values := range answer.Header {
		header[name] = values
	}
	for _, name := range []string{"Date", "Content-Type"} {
		if _, sent := answer.Header[name]; !sent {
			header[name] = nil // or Go would add one
		}
	}
	for name := range answer.Trailer {
		header.Add("Trailer", name)
	}
	w.WriteHeader(answer.StatusCode)
	control := http.NewResponseController(w)
	begun := flushSoon(control)
	defer begun()
	if err := copyTo(w, control, p, begun); err != nil {
		return err
	}
	for name, values := range answer.Trailer {
		if len(answer.Trailer) != announced { // some were not announced
			name = http.TrailerPrefix + name
		}
		header[name] = values
	}
	return nil
}

// headerWaits is how long the header of an answer waits for the beginning of the body, with which it leaves in one packet: a client that reads no more than
// the header has got a short answer whole then.
const headerWaits = time.Millisecond

// flushSoon flushes a header, unless begun is called before: the body begins, or the answer is over.
func flushSoon(control *http.ResponseController) (begun func()) {
	waits := new(stretch)
	timer := time.AfterFunc(headerWaits, func() { waits.during(func() { _ = control.Flush() }) }) // if the client has left, the next write says so
	return func() {
		timer.Stop()
		waits.end()
	}
}

// A stretch is a time in which another goroutine may use an answer.
type stretch struct {
	mu   sync.Mutex // held while the answer is used
	over bool
}

func (s *stretch) during(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		do()
	}
}

// end returns when nobody uses the answer any more.
func (s *stretch) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// copyTo hands on what a passage gives, as soon as it gives it. It calls begun before.
func copyTo(w io.Writer, control *http.ResponseController, p *passage, begun func()) error {
	buf := make([]byte, 4<<10) // enough for events; most streams wait for the next one
	for {
		n, err := p.Read(buf)
		if err == io.EOF {
			return nil
		}
		begun()
		if err != nil {
			if p.endpoint {
				_ = control.Flush() // of the header, so that a client whose stream is ended does not ask again at once
			}
			return err
		}
		if err := deliver(w, control, p, buf[:n]); err != nil {
			_, drained := io.Copy(io.Discard, p) // ends at once, unless there is time to drain
			return errors.Join(err, drained)
		}
		if n == 4<<10 && len(buf) == n {
			buf = make([]byte, 32<<10)
		}
	}
}

// deliver writes b to the client. If that fails, the passage knows that the client has left.
func deliver(w io.Writer, control *http.ResponseController, p *passage, b []byte) error {
	written, err := 0, p.caller.Err()
	if err == nil {
		written, err = w.Write(b)
	}
	if err == nil {
		err = control.Flush()
	}
	if err != nil {
		p.left(len(b) - written)
	}
	return err
}

// informational passes on what a provider says before its answer, as 103 Early Hints.
type informational struct {
	stretch
	w http.ResponseWriter
}

func (i *informational) got(code int, header textproto.MIMEHeader) error {
	if code == http.StatusContinue { // the server has said it already if the client waited for it
		return nil
	}
	i.during(func() {
		out := i.w.Header()
		for name, values := range header {
			out[name] = values
		}
		i.w.WriteHeader(code)
		clear(out)
	})
	return nil
}

// Transport returns a transport for a program that makes the calls itself: each goes where the program sends it, is one of [Models], and next makes it, or a
// transport that passes bytes as they are if next is nil. Its errors are a *Refusal if the call was not made, and one that wraps ErrNotRecorded if it was made
// and could not be recorded. The answer's body fails with such an error in place of its end.
func (r *Relay) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = newTransport()
	}
	return &transport{r, next}
}

type transport struct {
	*Relay
	next http.RoundTripper
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := t.roundTrip(req)
	if err != nil && req.Body != nil {
		err = errors.Join(err, req.Body.Close())
	}
	return answer, err
}

func (t *transport) roundTrip(req *http.Request) (*http.Response, error) {
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

func (t *transport) call(req *http.Request, header http.Header) (*Call, error) {
	token, chain, err := identity(header, "")
	if err != nil {
		return nil, err
	}
	return t.described(Call{Vantage: evidence.InProcess, Upstream: req.URL.Host, Origin: req.URL.Scheme + "://" + req.URL.Host, Speaks: Models,
		Method: req.Method, Path: req.URL.EscapedPath(), Token: token, Chain: chain, Upgrade: upgradeOf(canonical(req.Header))}, header, req.URL.RawQuery)
}

// described adds to a call what its header and its query say, as the provider gets them. It refuses what cannot be recorded.
func (r *Relay) described(c Call, header http.Header, query string) (*Call, error) {
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

func (t *transport) request(req *http.Request, call *Call) (io.ReadCloser, error) {
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

// upgradeOf returns the protocols that a request asks to change to, or "". Offers to speak HTTP in another way are ignored, as RFC 9110, section 7.8, lets a
// server do: their clients go on with HTTP/1.1, which is recorded. Java's client makes such an offer in every call.
func upgradeOf(header http.Header) string {
	if !names(header["Connection"], "upgrade") {
		return ""
	}
	var list []string
	for token := range strings.SplitSeq(strings.Join(header["Upgrade"], ","), ",") {
		token = textproto.TrimString(token)
		name, _, _ := strings.Cut(strings.ToLower(token), "/")
		if forms := []string{"h2c", "h2", "http", "tls"}; token != "" && !slices.Contains(forms, name) { // of HTTP, by RFC 7540 and RFC 2817
			list = append(list, token)
		}
	}
	return strings.Join(list, ", ")
}

// upgraded passes bytes both ways after the provider has changed the protocol. Nothing of them is kept.
func (r *Relay) upgraded(w http.ResponseWriter, answer *http.Response) error {
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
