package relay

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"jurat/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a witness that remembers everything.
type recorder struct {
	mu     sync.Mutex // held while the following is used
	begin  func(*Call) error
	end    func(*Call, *Outcome) error
	seen   []*seen
	missed []error
	change chan struct{} // closed and made anew when something changes
}

// seen is what a recorder saw of one call.
type seen struct {
	*recorder
	call              *Call
	request, response []byte
	ends              int
	outcome           *Outcome
}

func newRecorder() *recorder { return &recorder{change: make(chan struct{})} }

func (r *recorder) Begin(_ context.Context, call *Call) (Exchange, error) {
	r.mu.Lock()
	begin := r.begin
	r.mu.Unlock()
	if begin != nil {
		if err := begin(call); err != nil {
			return nil, err
		}
	}
	request, err := io.ReadAll(call.Request.Open())
	if err != nil {
		return nil, err
	}
	s := &seen{recorder: r, call: call, request: request}
	r.changed(func() { r.seen = append(r.seen, s) })
	return s, nil
}

func (r *recorder) Missed(_ *Call, why error) {
	r.changed(func() { r.missed = append(r.missed, why) })
}

func (s *seen) End(ctx context.Context, o *Outcome) error {
	var response []byte
	if o.Response != nil {
		var err error
		if response, err = io.ReadAll(o.Response.Open()); err != nil {
			return err
		}
	}
	var end func(*Call, *Outcome) error
	s.changed(func() { s.ends++; s.outcome = o; s.response = response; end = s.end })
	if end != nil {
		return end(s.call, o)
	}
	return nil
}

// onBegin and onEnd say what is done when a call begins and ends.
func (r *recorder) onBegin(do func(*Call) error)         { r.changed(func() { r.begin = do }) }
func (r *recorder) onEnd(do func(*Call, *Outcome) error) { r.changed(func() { r.end = do }) }

func (r *recorder) changed(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	close(r.change)
	r.change = make(chan struct{})
}

// wait waits until is holds of the recorder.
func (r *recorder) wait(t *testing.T, is func() bool) {
	t.Helper()
	for timeout := time.After(time.Minute); ; {
		r.mu.Lock()
		change, done := r.change, is()
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-change:
		case <-timeout:
			t.Fatal("the witness did not see what it should")
		}
	}
}

// last waits for the end of the n-th call, and returns it.
func (r *recorder) last(t *testing.T, n int) *seen {
	t.Helper()
	r.wait(t, func() bool { return len(r.seen) >= n && r.seen[n-1].ends > 0 })
	s := r.seen[n-1]
	must.Hold(t, s.ends == 1, "call %d has %d ends", n, s.ends)
	return s
}

// proxied is a relay before a provider.
type proxied struct {
	*recorder
	provider, relay *httptest.Server
	handler         *Relay
	folder          string
	client          *http.Client
}

// start runs a provider and a relay before it, whose upstream has the name "api".
func start(t *testing.T, provider http.Handler, change func(*Options)) *proxied {
	t.Helper()
	p := &proxied{recorder: newRecorder(), folder: filepath.Join(t.TempDir(), "spool")}
	p.provider = httptest.NewServer(provider)
	base := must.Get(url.Parse(p.provider.URL))(t)
	o := Options{Upstreams: map[string]Upstream{"api": {Base: base}}, Folder: p.folder, FingerprintKey: bytes.Repeat([]byte("k"), 32), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	next := newTransport()
	if o.Next == nil {
		o.Next = next
	}
	p.handler = must.Get(New(p.recorder, o))(t)
	p.relay = httptest.NewServer(p.handler)
	transport := &http.Transport{DisableCompression: true}
	p.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		p.relay.CloseClientConnections()
		p.relay.Close()
		transport.CloseIdleConnections()
		must.Want(t, p.handler.Wait(context.Background()), nil)
		next.(*http.Transport).CloseIdleConnections()
		p.provider.Close()
		p.empty(t)
	})
	return p
}

// empty fails if the spool holds anything.
func (p *proxied) empty(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.folder, "*"))
	must.Hold(t, err == nil && len(files) == 0, "the spool has files at the end: %v %v", files, err)
	held, memory := p.handler.spool.held.Load(), p.handler.spool.inMemory.Load()
	must.Hold(t, held == 0 && memory == 0, "the spool holds %d bytes at the end, %d of them in memory", held, memory)
}

func (p *proxied) url() string { return p.relay.URL + "/api" }

// encode compresses parts of a body, flushed after each, as writers of events do.
func encode(t testing.TB, encoding string, parts ...[]byte) [][]byte {
	t.Helper()
	var out bytes.Buffer
	var w interface {
		io.WriteCloser
		Flush() error
	}
	switch encoding {
	case "":
		return parts
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "br":
		w = brotli.NewWriterLevel(&out, brotli.BestSpeed)
	case "zstd":
		z := must.Get(zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(64<<10)))(t)
		w = z
	default:
		t.Fatalf("no encoder for %s", encoding)
	}
	var encoded [][]byte
	for i, part := range parts {
		_, err := w.Write(part)
		if i < len(parts)-1 {
			err = errors.Join(err, w.Flush())
		} else {
			err = errors.Join(err, w.Close())
		}
		must.Do(t, err)
		encoded = append(encoded, bytes.Clone(out.Bytes()))
		out.Reset()
	}
	return encoded
}

var encodings = []string{"", "gzip", "deflate", "br", "zstd"}

func TestPasses(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, body)
	}), nil)
	answer := must.Get(p.client.Post(p.url()+"/v1/x?a=1&key=secret", "text/plain", bytes.NewReader([]byte("hello"))))(t)
	body, err := io.ReadAll(answer.Body)
	must.Hold(t, err == nil && string(body) == "POST /v1/x?a=1&key=secret hello", "%q %v", body, err)
	s := p.last(t, 1)
	must.Hold(t, string(s.request) == "hello" && string(s.response) == string(body) && s.outcome.Ended == Complete, "%+v", s)
}

func mustParse(t testing.TB, address string) *url.URL {
	t.Helper()
	return must.Get(url.Parse(address))(t)
}

// rest gives what is under way the time to go on. No test depends on how long it is.
func rest() { time.Sleep(50 * time.Millisecond) }

// ending is an answer, and where its terminal event begins.
type ending struct {
	name, contentType string
	before, terminal  string // the body is both
	event             string // what the outcome calls the event
	length            bool
	speaks            *Protocol // nil: Models
}

var endings = []ending{
	{"chat", "text/event-stream", "data: {\"choices\":[]}\n\n: ping\n\ndata: {\"x\":\"[DONE]\"}\n\n", "data: [DONE]\n\n", "[DONE]", false, nil},
	{"chat, no space", "text/event-stream; charset=utf-8", "data:{}\r\n\r\n", "data:[DONE]\r\n\r\n", "[DONE]", false, nil},
	{"chat, CR alone", "text/event-stream", "data: {}\r\rid: 7\rdata: a\r\r", "id: 8\rdata: [DONE]\r\r", "[DONE]", false, nil},
	{"chat, no empty line at the end", "text/event-stream", "data: {}\n\n", "data: [DONE]", "[DONE]", false, nil},
	{"byte order mark", "text/event-stream", "\ufeffdata: {}\n\n", "data: [DONE]\n\n", "[DONE]", false, nil},
	{"comment in the event", "text/event-stream", "data: {}\n\n: c\n", "event: x\n: c\ndata: [DONE]\n\n", "[DONE]", false, nil},
	{"messages", "text/event-stream", "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"type\":\"message_stop\"}}\n\n", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "message_stop", false, nil},
	{"messages, no event line", "text/event-stream", "data: {\"a\":[{\"type\":\"message_stop\"}],\"b\":\"\\\"type\\\":\\\"message_stop\\\"\"}\n\n", "data: {\"index\":1,\"ty\\u0070e\" : \"message_stop\"}\n\n", "message_stop", false, nil},
	{"responses", "text/event-stream", "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"response.completed\"}\n\n", "event: response.completed\ndata: {\"type\":\"response.completed\"}\n\n", "response.completed", false, nil},
	{"responses, failed, and done", "text/event-stream", "data: {}\n\n", "data: {\"type\":\"response.failed\"}\n\ndata: [DONE]\n\n", "response.failed", false, nil},
	{"responses, incomplete", "text/event-stream", "data: {}\n\n", "event: response.incomplete\ndata: {\"type\":\n data: \"response.incomplete\"}\n\n", "response.incomplete", false, nil},
	{"gemini", "text/event-stream", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"args\":{\"finishReason\":\"STOP\"}}}]}}]}\r\n\r\n", "data: {\"candidates\":[{\"index\":0},{\"content\":{},\"finishReason\":\"STOP\"}]}\r\n\r\n", "finishReason", false, nil},
	{"no candidates", "text/event-stream", "data: {\"candidates\":{\"a\":{\"finishReason\":\"STOP\"}}}\n\n", "data: [DONE]\n\n", "[DONE]", false, nil},
	{"gemini, another candidate", "text/event-stream", "data: {\"candidates\":[{\"finishReason\":null}]}\n\n", "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\ndata: {\"candidates\":[{\"index\":1}]}\n\n", "finishReason", false, nil},
	{"gemini as an array", "application/json", "[{\"candidates\":[{\"content\":\"[{]\\\"\"}]},\r\n", "{\"candidates\":[{\"finishReason\":\"MAX_TOKENS\"}]}\n]\n", "finishReason", false, nil},
	{"an array", "application/json; charset=utf-8", "[{\"a\":[]},{\"b\":{}}, 7, \"x\"", "]", "", false, nil},
	{"an object", "application/json", " {\"a\":{\"b\":\"}\"}", "}\n", "", false, nil},
	{"an object, with its length", "application/json", "{\"a\":{\"b\":\"}\"}", "}\n", "", true, nil},
	{"not JSON", "application/json", "{\"a\": 1e400, \"a\": \"\xff\", ]]]", "}", "", true, nil},
	{"bytes", "application/octet-stream", "abcde", "f", "", true, nil},
	{"text without a length", "text/plain", "abcdef", "", "", false, nil},
	{"events that end without one", "text/event-stream", "data: {}\n\n", "data: {\"unfinished\":", "", false, nil},
	{"a2a 0.3, a final update", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"kind\":\"artifact-update\",\"artifact\":{\"parts\":[{\"data\":{\"final\":true,\"kind\":\"message\"}}]},\"final\":false}}\n\n",
		"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"kind\":\"status-update\",\"status\":{\"state\":\"working\"},\"final\" : true }}\n\n", "final", false, A2A},
	{"a2a 0.3, a task and then the final update", "text/event-stream", "data: {\"result\":{\"kind\":\"task\",\"status\":{\"state\":\"submitted\"}}}\n\n",
		"data: {\"result\":{\"kind\":\"task\",\"status\":{\"state\":\"completed\"}}}\n\ndata: {\"result\":{\"kind\":\"status-update\",\"final\":true}}\n\n", "completed", false, A2A},
	{"a2a 0.3, a message", "text/event-stream", "data: {\"result\":{\"kind\":\"task\",\"history\":[{\"kind\":\"message\"}],\"status\":{\"message\":{\"kind\":\"message\"}}}}\n\n",
		"data: {\"result\":{\"kind\":\"message\"}}\n\n", "message", false, A2A},
	{"a2a 1.0, a task that ends", "text/event-stream", "data: {\"result\":{\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_AUTH_REQUIRED\",\"message\":{\"parts\":[{\"text\":\"TASK_STATE_COMPLETED\"}]}}}}}\n\n",
		"data: {\"result\":{\"statusUpdate\":{\"status\":{\"message\":{},\"state\":\"TASK_STATE_COMPLETED\"}}}}\n\n", "TASK_STATE_COMPLETED", false, A2A},
	{"a2a 1.0, a task that waits for its caller", "text/event-stream", "data: {\"task\":{\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"}}}\n\n",
		"data: {\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_INPUT_REQUIRED\"}}}\n\n", "TASK_STATE_INPUT_REQUIRED", false, A2A},
	{"a2a 1.0, a subscription to a task that waits", "text/event-stream", "data: {\"task\":{\"status\":{\"state\":\"TASK_STATE_INPUT_REQUIRED\"}}}\n\n",
		"data: {\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_FAILED\"}}}\n\n", "TASK_STATE_FAILED", false, A2A},
	{"a2a 1.0, a message", "text/event-stream", "data: {\"artifactUpdate\":{\"message\":{}}}\n\n", "data: {\"message\":{\"role\":\"ROLE_AGENT\"}}\n\n", "message", false, A2A},
	{"a2a, an error", "text/event-stream", "data: {\"result\":{\"error\":{}}}\n\ndata: {\"error\":null}\n\n", "data: {\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603},\"id\":null}\n\n", "error", false, A2A},
	{"a2a, a document", "application/a2a+json", "{\"result\":{\"kind\":\"message\"}", "}", "", false, A2A},
	{"the answer to this request", "text/event-stream", "data: {\"id\":\"7\",\"result\":{}}\n\ndata: {\"id\":7,\"method\":\"m\"}\n\ndata: {\"params\":{\"id\":7,\"result\":{}}}\n\n", "data: {\"result\" : [1] ,\"id\":7}\n\n", "result", false, jsonRPC},
	{"the answer to this request in an array", "application/json", "[{\"id\":8,\"result\":null}, ", "{\"id\":7,\"result\":null}]", "result", false, jsonRPC},
}

// jsonRPC is a protocol whose terminal event depends on the request: it is the response with the id of that.
var jsonRPC = &Protocol{Name: "json-rpc", Watch: watching([]string{"id", "result"}), Ends: func(request *Body) func(Event) (string, bool) {
	var asked struct {
		ID int `json:"id"`
	}
	if err := json.UnmarshalRead(request.Open(), &asked); err != nil {
		panic(err)
	}
	return func(e Event) (name string, last bool) {
		is := false
		for _, m := range e.Members {
			is = is || m.Path == "id" && m.Kind == '0' && m.Value == fmt.Sprint(asked.ID)
			if m.Path == "result" {
				name = m.Path
			}
		}
		if !is {
			return "", false
		}
		return name, true
	}
}}

// TestTheEndIsHeld: until the witness has recorded the call, the client has exactly what comes before the terminal event, whatever chunks it came in.
// If the witness fails, the client gets no more.
func TestTheEndIsHeld(t *testing.T) {
	for _, e := range endings {
		for cut, chunks := range map[string]func([]byte) [][]byte{
			"whole":  func(b []byte) [][]byte { return [][]byte{b} },
			"bytes":  func(b []byte) [][]byte { return bytes.SplitAfter(b, nil) },
			"random": func(b []byte) [][]byte { return rechunk(rand.New(rand.NewPCG(7, 7)), b) },
		} {
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprint(e.name, " ", cut, " ", fails), func(t *testing.T) {
					held(t, e, "", chunks([]byte(e.before+e.terminal)), fails)
				})
			}
		}
	}
}

// TestTheEndIsHeldInCompressedBodies: what the client has then decodes to exactly what comes before the terminal event.
func TestTheEndIsHeldInCompressedBodies(t *testing.T) {
	for _, encoding := range encodings[1:] {
		for _, e := range endings {
			if e.event == "" {
				continue
			}
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprint(encoding, " ", e.name, " ", fails), func(t *testing.T) {
					var parts [][]byte
					for part := range strings.SplitAfterSeq(e.before, "\n") {
						parts = append(parts, []byte(part))
					}
					parts = append(parts, []byte(e.terminal), nil)
					held(t, e, encoding, encode(t, encoding, parts...), fails)
				})
			}
		}
	}
}

// held asks for an answer, and looks at what the client has when the witness is asked to record it.
func held(t *testing.T, e ending, encoding string, chunks [][]byte, fails bool) {
	body := bytes.Join(chunks, nil)
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", e.contentType)
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		if e.length {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		}
		for _, chunk := range chunks {
			_, _ = w.Write(chunk)
			w.(http.Flusher).Flush()
		}
	}), func(o *Options) {
		api := o.Upstreams["api"]
		api.Speaks = e.speaks
		o.Upstreams["api"] = api
	})
	ending, goOn := make(chan *Outcome), make(chan bool)
	p.onEnd(func(_ *Call, o *Outcome) error {
		ending <- o
		<-goOn
		if fails {
			return errors.New("the disk is full")
		}
		return nil
	})
	answer := must.Get(p.client.Post(p.url()+"/x", "application/json", strings.NewReader(`{"id":7}`)))(t)
	defer answer.Body.Close()
	outcome := <-ending
	got := make([]byte, outcome.Delivered)
	must.Get(io.ReadFull(answer.Body, got))(t)
	must.Equal(t, plain(t, encoding, got), e.before, "before the call is recorded, the client has\n")
	goOn <- true
	rest, err := io.ReadAll(answer.Body)
	must.Hold(t, (!fails || err != nil && len(rest) == 0) && (fails || err == nil && bytes.Equal(append(got, rest...), body)),
		"after the witness failed (%v), the client gets %q and %v", fails, rest, err)
	if outcome.Terminal != e.event || outcome.Ended != Complete || outcome.Held != int64(len(body))-outcome.Delivered || outcome.Response.Bytes != int64(len(body)) {
		t.Errorf("the outcome is %+v", outcome)
	}
}

// plain decodes as much of a body as it can, as a client does that reads along.
func plain(t testing.TB, encoding string, body []byte) string {
	t.Helper()
	if encoding == "" {
		return string(body)
	}
	var all collector
	c := newCompressed(encoding, 1<<20, &all)
	c.Write(body)
	c.Close()
	return string(all.out)
}

// A collector finds nothing, and keeps what it reads.
type collector struct {
	opaque
	out []byte
}

func (c *collector) Write(p []byte) {
	c.opaque.Write(p)
	c.out = append(c.out, p...)
}

// TestDecodersReadInStep: decoders give out everything that was flushed before they ask for more, however small the pieces are.
func TestDecodersReadInStep(t *testing.T) {
	parts := [][]byte{[]byte("data: one\n\n"), bytes.Repeat([]byte("x"), 5000), []byte("data: two\n\n"), []byte("y")}
	for _, encoding := range encodings[1:] {
		var all collector
		c := newCompressed(encoding, 1<<20, &all)
		var want []byte
		var n int64
		for i, part := range encode(t, encoding, parts...) {
			want = append(want, parts[i]...)
			for _, b := range part {
				c.Write([]byte{b})
			}
			n += int64(len(part))
			must.Hold(t, i >= len(parts)-1 || bytes.Equal(all.out, want) && c.Safe() == n,
				"%s: after part %d, %d bytes are decoded of %d, and %d of %d settled", encoding, i, len(all.out), len(want), c.Safe(), n)
		}
		c.Close()
		if c.Write(nil); !bytes.Equal(all.out, want) || !errors.Is(c.err, io.EOF) {
			t.Errorf("%s: %d bytes of %d, %v", encoding, len(all.out), len(want), c.err)
		}
	}
}

// TestBodyDecodes: a witness reads a body without its encoding, and is refused one that is too large.
func TestBodyDecodes(t *testing.T) {
	s := &spool{folder: t.TempDir(), perBody: 10, memory: 10, cap: 1 << 30}
	text := strings.Repeat("hello ", 1000)
	for _, encoding := range encodings {
		for _, limit := range []int64{6000, 5999} {
			b := s.body("x", encoding, limit)
			must.Get(b.read(iotest.HalfReader(bytes.NewReader(bytes.Join(encode(t, encoding, []byte(text)), nil)))))(t)
			b.seal()
			d := must.Get(b.Decoded())(t)
			got, err := io.ReadAll(d)
			must.Hold(t, (limit != 6000 || err == nil && string(got) == text) && (limit >= 6000 || errors.Is(err, ErrRefused)),
				"%q, limit %d: %d bytes and %v", encoding, limit, len(got), err)
			must.Want(t, errors.Join(d.Close(), b.release()), nil)
		}
	}
}

// TestOldClients: a client of HTTP/1.0 cannot tell a body that was broken off from one that has ended. It does not get the last bytes of one that was not recorded.
func TestOldClients(t *testing.T) {
	for contentType, c := range map[string]struct{ body, gets string }{
		"text/plain":        {strings.Repeat("x", 2*tail), strings.Repeat("x", tail)},
		"text/event-stream": {"data: {}\n\ndata: [DONE]\n\n", "data: {}\n\n"},
		"application/json":  {`{"a":{}}`, `{"a":{}`},
	} {
		for _, fails := range []bool{false, true} {
			p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", contentType)
				w.(http.Flusher).Flush()
				_, _ = io.WriteString(w, c.body)
			}), nil)
			if fails {
				p.onEnd(func(*Call, *Outcome) error { return errors.New("no") })
			}
			conn := must.Get(net.Dial("tcp", p.relay.Listener.Addr().String()))(t)
			fmt.Fprint(conn, "GET /api/x HTTP/1.0\r\n\r\n")
			answer := must.Get(io.ReadAll(conn))(t)
			conn.Close()
			want := c.body
			if fails {
				want = c.gets
			}
			_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
			must.Hold(t, body == want, "%s, fails %v: the client got %d of %d bytes", contentType, fails, len(body), len(c.body))
		}
	}
}
