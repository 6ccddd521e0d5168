package relay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/must"
)

// exchange is what a client and a provider see of one call.
type exchange struct {
	Status           int
	Header, Trailer  http.Header
	Body             []byte
	Broken           bool // the answer ended in an error
	Early            []http.Header
	Length           int64
	RequestLine      string
	RequestHeader    http.Header
	RequestBody      []byte
	RequestTrailer   http.Header
	RequestLength    int64
	RequestEncodings []string
}

// script says what a provider answers.
type script struct {
	status   int
	header   http.Header
	parts    [][]byte
	length   bool // the answer says how long it is
	trailer  http.Header
	announce bool // it also says which trailers come
	early    bool
	abort    int // after how many parts the provider breaks off; -1: never
}

// provider answers by the script that the header Script names, and keeps what it sees.
type provider struct {
	mu      sync.Mutex
	scripts map[string]script
	saw     map[string]exchange
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p.mu.Lock()
	s := p.scripts[r.Header.Get("Script")]
	p.saw[r.Header.Get("Run")] = exchange{
		RequestLine: r.Method + " " + r.RequestURI, RequestHeader: seenHeader(r.Header), RequestBody: body,
		RequestTrailer: r.Trailer, RequestLength: r.ContentLength, RequestEncodings: r.TransferEncoding,
	}
	p.mu.Unlock()
	s.answer(w)
}

func seenHeader(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Run")
	return h
}

func (s script) answer(w http.ResponseWriter) {
	if s.early {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
	}
	maps.Copy(w.Header(), s.header)
	if s.length {
		w.Header().Set("Content-Length", fmt.Sprint(len(bytes.Join(s.parts, nil))))
	}
	if s.announce {
		for _, name := range slices.Sorted(maps.Keys(s.trailer)) {
			w.Header().Add("Trailer", name)
		}
	}
	w.WriteHeader(s.status)
	for i, part := range s.parts {
		if i == s.abort {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(part)
		w.(http.Flusher).Flush()
	}
	if s.abort >= len(s.parts) {
		panic(http.ErrAbortHandler)
	}
	for name, values := range s.trailer {
		if !s.announce {
			name = http.TrailerPrefix + name
		}
		w.Header()[name] = values
	}
}

// ask makes a call and returns what both ends see of it.
func (p *provider) ask(t *testing.T, client *http.Client, run string, build func() *http.Request) exchange {
	t.Helper()
	var early []http.Header
	req := build()
	req.Header.Set("Run", run)
	req = req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		early = append(early, http.Header(h).Clone())
		return nil
	}}))
	answer, err := client.Do(req)
	p.mu.Lock()
	e := p.saw[run]
	p.mu.Unlock()
	if err != nil {
		e.Broken = true
		return e
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	e.Status, e.Header, e.Body, e.Broken, e.Early, e.Length = answer.StatusCode, answer.Header, body, err != nil, early, answer.ContentLength
	if err == nil {
		e.Trailer = answer.Trailer
	}
	return e
}

// TestSameAsDirect: for random requests and answers, client and provider see the same through the relay as without it.
func TestSameAsDirect(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		t.Run(string(mode), func(t *testing.T) {
			judge := &provider{scripts: map[string]script{}, saw: map[string]exchange{}}
			p := start(t, judge, func(o *Options) { o.Mode = mode; o.MemoryPerBody = 2 << 10 })
			random := rand.New(rand.NewPCG(1, uint64(len(mode))))
			calls := 150
			if os.Getenv("JURAT_TEST_LONG") != "" {
				calls = 3000
			}
			for n := range calls {
				name := fmt.Sprint(n)
				s := randomScript(t, random)
				method, build := randomRequest(random, name)
				if method == http.MethodHead {
					s.abort = -1 // there is nothing to break off
				}
				judge.mu.Lock()
				judge.scripts[name] = s
				judge.mu.Unlock()
				direct := judge.ask(t, p.client, name+"d", func() *http.Request { return build(p.provider.URL) })
				relayed := judge.ask(t, p.client, name+"r", func() *http.Request { return build(p.url()) })
				// A client that is cut off in a body has got some of it: how much, is chance.
				if direct.Broken && relayed.Broken && bytes.HasPrefix(bytes.Join(s.parts, nil), relayed.Body) {
					relayed.Body, direct.Body = nil, nil
				}
				if s.abort == 0 && direct.Broken { // the head may be lost as well, which the relay can only tell in an answer of its own
					relayed.Broken = relayed.Broken || relayed.Status == http.StatusBadGateway
					relayed.Body, direct.Body = nil, nil
					direct.Status, direct.Header, direct.Early, direct.Length = relayed.Status, relayed.Header, relayed.Early, relayed.Length
				}
				if diff := cmp.Diff(direct, relayed); diff != "" {
					t.Fatalf("call %d, status %d, header %v, trailer %v %v, length %v, breaks off after %d of %d: direct and relayed differ:\n%s",
						n, s.status, s.header, s.trailer, s.announce, s.length, s.abort, len(s.parts), diff)
				}
				seen := p.last(t, n+1)
				if s.abort < 0 && direct.Status != 0 && (seen.outcome.Ended != Complete || !bytes.Equal(seen.response, direct.Body) || !bytes.Equal(seen.request, direct.RequestBody)) {
					t.Fatalf("call %d: the witness saw %s, %q, where the client saw %q", n, seen.outcome.Ended, seen.response, direct.Body)
				}
			}
		})
	}
}

// randomScript returns a random answer.
func randomScript(t *testing.T, random *rand.Rand) script {
	s := script{status: pick(random, 200, 200, 200, 200, 201, 204, 304, 301, 400, 429, 500, 529), abort: -1, header: http.Header{
		"Date":         {"Thu, 26 Nov 2026 10:00:00 GMT"},
		"X-Request-Id": {fmt.Sprint(random.Int())},
		"X-Twice":      {"one", "two"},
		"Set-Cookie":   {"a=1", "b=2"},
	}}
	kind := pick(random, "text/event-stream", "text/event-stream; charset=utf-8", "application/json", "application/octet-stream", "")
	if kind != "" {
		s.header.Set("Content-Type", kind)
	} else {
		s.header["Content-Type"] = nil
	}
	if random.IntN(8) == 0 {
		s.header["Date"] = nil
	}
	encoding := encodings[random.IntN(len(encodings))]
	if encoding != "" {
		s.header.Set("Content-Encoding", encoding)
	}
	s.early = random.IntN(6) == 0
	if s.status == 204 || s.status == 304 {
		return s
	}
	s.parts = encode(t, encoding, randomParts(random, kind)...)
	if random.IntN(10) == 0 { // a broken encoding
		part := s.parts[random.IntN(len(s.parts))]
		if len(part) > 0 {
			part[random.IntN(len(part))] ^= 1 << random.IntN(8)
		}
	}
	s.parts = rechunk(random, bytes.Join(s.parts, nil))
	switch random.IntN(4) {
	case 0:
		s.length = true
	case 1:
		s.trailer = http.Header{"X-Sum": {fmt.Sprint(random.Int())}, "X-More": {"a", "b"}}
		s.announce = random.IntN(2) == 0
	}
	if random.IntN(6) == 0 {
		s.abort = random.IntN(len(s.parts) + 1)
		if s.length && s.abort >= len(s.parts)-1 {
			s.abort = -1 // nothing is missing then
		}
	}
	return s
}

func randomParts(random *rand.Rand, kind string) [][]byte {
	var parts [][]byte
	end := pick(random, "\n", "\r\n", "\r")
	for range 1 + random.IntN(8) {
		text := fmt.Sprintf(`{"type":"%s","text":"%s"}`, pick(random, "ping", "message_stop", "response.completed", "x"), strings.Repeat(fmt.Sprint(random.Int()), random.IntN(200)))
		if strings.HasPrefix(kind, "text/event-stream") {
			text = pick(random, ": ping", "event: message_stop", "data: [DONE]", "id: 7", "data: "+text, "retry: 5", "data") + end + pick(random, end, "")
		}
		parts = append(parts, []byte(text))
	}
	return parts
}

// rechunk cuts a body at random places.
func rechunk(random *rand.Rand, body []byte) [][]byte {
	var parts [][]byte
	for len(body) > 0 {
		n := min(len(body), 1+random.IntN(pick(random, 1, 10, 500, 5000)))
		parts = append(parts, body[:n])
		body = body[n:]
	}
	return append(parts, nil)
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// randomRequest returns a function that makes the same request for a base address each time.
func randomRequest(random *rand.Rand, name string) (method string, build func(base string) *http.Request) {
	method = pick(random, "GET", "POST", "POST", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS")
	path := pick(random, "/v1/chat/completions", "/v1/models/a%2Fb:generate?alt=sse", "/v1/x?", "/v1/x?key=abc&b=%20c&b=d", "/v1/%C3%A4/", "/")
	header := http.Header{"Script": {name}, "Authorization": {"Bearer sk-1"}, "X-Stainless-Retry-Count": {"1"}, "Accept": {"a", "b"}, "Cookie": {"c=d"}}
	if random.IntN(2) == 0 {
		header.Set("Accept-Encoding", "gzip, br;q=0.5")
	}
	if random.IntN(3) == 0 {
		header.Set("User-Agent", "sdk/1")
	} else if random.IntN(2) == 0 {
		header["User-Agent"] = []string{""}
	}
	body := make([]byte, random.IntN(pick(random, 1, 100, 20000)))
	for i := range body {
		body[i] = byte(random.Uint32())
	}
	if random.IntN(3) == 0 {
		header.Set("Content-Encoding", pick(random, encodings[1:]...))
	}
	chunked, trailer := random.IntN(3) == 0, random.IntN(2) == 0
	return method, func(base string) *http.Request {
		var content io.Reader
		if method != "GET" && method != "HEAD" && method != "OPTIONS" {
			content = bytes.NewReader(body)
			if chunked {
				content = io.MultiReader(content)
			}
		}
		req, err := http.NewRequest(method, base+path, content)
		if err != nil {
			panic(err)
		}
		req.Header = header.Clone()
		if chunked && content != nil {
			req.TransferEncoding = []string{"chunked"} // also if it is empty
			if trailer {
				req.Trailer = http.Header{"X-Digest": {"7"}}
			}
		}
		return req
	}
}

// TestSameHeadOnTheWire: the provider gets the same bytes in the request's head, which parsed requests hide.
func TestSameHeadOnTheWire(t *testing.T) {
	heads := make(chan []string, 2)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			reader := bufio.NewReader(conn)
			var lines []string
			for {
				line, err := reader.ReadString('\n')
				if err != nil || line == "\r\n" {
					break
				}
				lines = append(lines, line)
			}
			heads <- lines
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
			conn.Close()
		}
	}()
	defer listener.Close()
	p := start(t, http.NotFoundHandler(), func(o *Options) {
		o.Upstreams["wire"] = Upstream{Base: mustParse(t, "http://"+listener.Addr().String())}
	})
	for _, request := range []string{
		"GET /v1/%7Ex?q=%41&& HTTP/1.1\r\nHost: HOST\r\nUser-Agent: u\r\nAccept-Encoding: br\r\n\r\n",
		"GET /v1/x|y HTTP/1.1\r\nHost: HOST\r\n\r\n",
		"POST /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n",
		"DELETE /v1/x HTTP/1.1\r\nHost: HOST\r\nX-A: 1\r\nX-A: 2\r\n\r\n",
		"DELETE /v1/x HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		direct := <-sent(t, listener.Addr().String(), strings.Replace(request, "HOST", listener.Addr().String(), 1), heads)
		relayed := <-sent(t, p.relay.Listener.Addr().String(), strings.Replace(strings.Replace(request, "/v1", "/wire/v1", 1), "HOST", "localhost", 1), heads)
		slices.Sort(direct[1:])
		slices.Sort(relayed[1:])
		must.Equal(t, cmp.Diff(direct, relayed), "", request)
	}
}

// sent writes a request to an address, reads the whole answer, and returns the channel of the heads that arrived.
func sent(t *testing.T, address, request string, heads chan []string) chan []string {
	t.Helper()
	conn := must.Get(net.Dial("tcp", address))(t)
	defer conn.Close()
	must.Get(conn.Write([]byte(request)))(t)
	_, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must.Need(t, err == nil, "%q: %v", request, err)
	return heads
}

// TestHopByHop: headers for one connection stay on it, and those that the header Connection names.
func TestHopByHop(t *testing.T) {
	var got http.Header
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nX-Theirs: 2\r\nContent-Length: 0\r\n\r\n")
	}), nil)
	req, _ := http.NewRequest(http.MethodGet, p.url()+"/x", nil)
	req.Header = http.Header{"Connection": {"X-Own, X-Other"}, "X-Own": {"1"}, "X-Other": {"2"}, "Keep-Alive": {"3"}, "Proxy-Connection": {"4"}, "Te": {"gzip, trailers"}, "X-Kept": {"5"}}
	answer := must.Get(p.client.Do(req))(t)
	answer.Body.Close()
	for _, name := range []string{"Connection", "X-Own", "X-Other", "Keep-Alive", "Proxy-Connection"} {
		must.Hold(t, got.Get(name) == "", "the provider got %s: %s", name, got.Get(name))
	}
	for _, name := range []string{"Connection", "X-Mine", "Keep-Alive", "Proxy-Authenticate"} {
		must.Hold(t, answer.Header.Get(name) == "", "the client got %s: %s", name, answer.Header.Get(name))
	}
	must.Hold(t, got.Get("X-Kept") == "5" && got.Get("Te") == "trailers" && answer.Header.Get("X-Theirs") == "2", "%v %v", got, answer.Header)
}

// counting counts what is written to a connection at once.
type counting struct {
	net.Conn
	writes *atomic.Int64
}

func (c counting) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestReplacedTransport: a program may have replaced the usual transport by one that traces.
func TestReplacedTransport(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = http.NewFileTransport(http.Dir(t.TempDir()))
	must.Hold(t, newTransport().(*http.Transport).DisableCompression, "bytes do not pass as they are")
}

// TestOnePacket: a short request leaves at once, with its header.
func TestOnePacket(t *testing.T) {
	var writes atomic.Int64
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { _, _ = io.Copy(w, req.Body) }), func(o *Options) {
		transport := newTransport().(*http.Transport)
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			return counting{c, &writes}, err
		}
		o.Next = transport
		t.Cleanup(transport.CloseIdleConnections)
	})
	answer := must.Get(p.client.Post(p.url()+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m"}`)))(t)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must.Need(t, err == nil && string(text) == `{"model":"m"}`, "%s, %v", text, err)
	must.Equal(t, writes.Load(), 1)
}

// TestProviderOverTLS: providers speak HTTP/2. The call passes as over HTTP/1, and the witness learns by which certificate the provider was known.
func TestProviderOverTLS(t *testing.T) {
	gone := make(chan bool, 1)
	provider := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+r.Proto+" "+r.RequestURI+" "+string(body)+"\n\n")
		w.(http.Flusher).Flush()
		if r.URL.Query().Has("wait") {
			<-r.Context().Done()
			gone <- true
			return
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
		w.Header().Set("X-Sum", "7")
	}))
	provider.EnableHTTP2 = true
	provider.StartTLS()
	defer provider.Close()
	next := newTransport().(*http.Transport)
	next.TLSClientConfig = provider.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	next.TLSClientConfig.NextProtos = nil
	defer next.CloseIdleConnections()
	p := start(t, http.NotFoundHandler(), func(o *Options) {
		o.Next = next
		o.Upstreams["api"] = Upstream{Base: mustParse(t, provider.URL+"/base")}
	})

	answer := must.Get(p.client.Post(p.url()+"/v1/a%2Fb?x=%41", "text/plain", strings.NewReader("hello")))(t)
	body, err := io.ReadAll(answer.Body)
	want := "data: HTTP/2.0 /base/v1/a%2Fb?x=%41 hello\n\ndata: [DONE]\n\n"
	must.Hold(t, err == nil && string(body) == want && answer.Trailer.Get("X-Sum") == "7", "%q %v, trailer %v", body, err, answer.Trailer)
	o := p.last(t, 1).outcome
	leaf := provider.Certificate()
	if o.TLS == nil || o.TLS.SPKISHA256 != sha256.Sum256(leaf.RawSubjectPublicKeyInfo) || o.TLS.NotAfter != evidence.FormatTime(leaf.NotAfter) || o.Terminal != "[DONE]" {
		t.Errorf("%+v %+v", o, o.TLS)
	}

	answer, err = p.client.Get(p.url() + "/v1?wait")
	must.Do(t, err)
	must.Get(io.ReadFull(answer.Body, make([]byte, 10)))(t)
	answer.Body.Close()
	<-gone
	o = p.last(t, 2).outcome
	must.Hold(t, o.Ended == ClientGone, "%+v", o)
}
