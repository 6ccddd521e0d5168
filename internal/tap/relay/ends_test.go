package relay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/internal/test/must"
)

// steps answers with events, one for each value that a test sends, until the channel is closed.
type steps struct {
	event chan string
	gone  chan struct{} // closed when the client of this provider has left
	once  sync.Once
}

func newSteps() *steps { return &steps{event: make(chan string), gone: make(chan struct{})} }

func (s *steps) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case event, more := <-s.event:
			if !more {
				return
			}
			_, _ = io.WriteString(w, event)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			s.once.Do(func() { close(s.gone) })
			return
		}
	}
}

// TestEventsArriveOneByOne: each event is with the client before the provider sends the next one.
func TestEventsArriveOneByOne(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		s := newSteps()
		p := start(t, s, func(o *Options) { o.Mode = mode })
		answer := must.Get(p.client.Get(p.url() + "/x"))(t)
		for n := range 20 {
			event := fmt.Sprintf("data: %d\n\n", n)
			s.event <- event
			got := make([]byte, len(event))
			_, err := io.ReadFull(answer.Body, got)
			must.Need(t, err == nil && string(got) == event, "%q %v", got, err)
		}
		close(s.event)
		rest, err := io.ReadAll(answer.Body)
		must.Hold(t, err == nil && len(rest) == 0, "%q %v", rest, err)
		o := p.last(t, 1).outcome
		must.Hold(t, o.Ended == Complete && o.Delivered == o.Response.Bytes, "%+v", o)
	}
}

// TestClientLeavesWhileTheProviderThinks: there is no answer yet.
func TestClientLeavesWhileTheProviderThinks(t *testing.T) {
	asked, gone := make(chan bool), make(chan bool)
	p := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(gone)
	}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/x", nil)
	go func() { <-asked; cancel() }()
	answer, err := p.client.Do(req)
	must.Hold(t, err != nil, "%+v", answer)
	<-gone
	o := p.last(t, 1).outcome
	must.Hold(t, o.Ended == ClientGone && o.Response == nil, "%+v", o)
}

// TestDrain: if there is time to drain, the rest of the answer is read and recorded.
func TestDrain(t *testing.T) {
	s := newSteps()
	p := start(t, s, func(o *Options) { o.Drain = time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/x", nil)
	answer := must.Get(p.client.Do(req))(t)
	s.event <- "data: a\n\n"
	must.Get(io.ReadFull(answer.Body, make([]byte, 9)))(t)
	cancel()
	answer.Body.Close()
	for range 200 {
		s.event <- "data: b\n\n"
	}
	s.event <- "data: [DONE]\n\n"
	close(s.event)
	seen := p.last(t, 1)
	if o := seen.outcome; o.Ended != ClientGone || o.Terminal != "[DONE]" || o.Delivered < 9 || o.Delivered >= o.Response.Bytes || !bytes.HasSuffix(seen.response, []byte("[DONE]\n\n")) || len(seen.response) != 201*9+14 {
		t.Errorf("%+v, %d bytes", o, len(seen.response))
	}
}

// TestDrainEnds: the time to drain is limited.
func TestDrainEnds(t *testing.T) {
	s := newSteps()
	p := start(t, s, func(o *Options) { o.Drain = 10 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/x", nil)
	answer := must.Get(p.client.Do(req))(t)
	cancel()
	answer.Body.Close()
	<-s.gone
	o := p.last(t, 1).outcome
	must.Hold(t, o.Ended == ClientGone, "%+v", o)
}

// TestUpstreamCut: an answer that breaks off is broken off for the client, after the call was recorded.
func TestUpstreamCut(t *testing.T) {
	for _, length := range []string{"", "100"} {
		p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: a\n\ndata: b")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), nil)
		answer := must.Get(p.client.Get(p.url() + "/x"))(t)
		body, err := io.ReadAll(answer.Body)
		must.Hold(t, err != nil && string(body) == "data: a\n\ndata: b", "%q %v", body, err)
		o := p.last(t, 1).outcome
		must.Hold(t, o.Ended == UpstreamCut && o.Reason != nil && o.Held == 7 && o.Delivered == 9, "%+v", o)
	}
}

// TestNoAnswer: the client is told that the provider cannot be reached, after that was recorded.
func TestNoAnswer(t *testing.T) {
	for _, fails := range []bool{false, true} {
		p := start(t, http.NotFoundHandler(), nil)
		p.provider.Close()
		if fails {
			p.onEnd(func(*Call, *Outcome) error { return errors.New("no") })
		}
		answer, err := p.client.Get(p.url() + "/x?key=sk-secret")
		if fails {
			must.Hold(t, err != nil, "%+v", answer)
		} else if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusBadGateway || !bytes.Contains(body, []byte("api gave no answer")) || bytes.Contains(body, []byte("sk-secret")) {
			t.Errorf("%s %s", answer.Status, body)
		}
		o := p.last(t, 1).outcome
		must.Hold(t, o.Ended == UpstreamError && o.Response == nil && o.Status == 0, "%+v", o)
	}
}

// TestClosedModeRefuses: what cannot be begun is not forwarded.
func TestClosedModeRefuses(t *testing.T) {
	var asked atomic.Int64
	p := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }), nil)
	for status, err := range map[int]error{
		503: errors.New("the disk is full"),
		401: &Refusal{Status: 401, Reason: "no agent has this token"},
		403: fmt.Errorf("who: %w", &Refusal{Status: 403, Reason: "not for this agent"}),
	} {
		p.onBegin(func(*Call) error { return err })
		answer := must.Get(p.client.Post(p.url()+"/x", "text/plain", strings.NewReader("x")))(t)
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != status || (status == 503) != (answer.Header.Get("Retry-After") != "") || !bytes.Contains(body, []byte(`"error"`)) || bytes.Contains(body, []byte("disk")) {
			t.Errorf("%s %v %s", answer.Status, answer.Header, body)
		}
	}
	must.Equal(t, asked.Load(), 0)
}

// TestWitnessPanics: a witness that panics cannot record, and the copies are given back.
func TestWitnessPanics(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "abc") }), nil)
	p.onEnd(func(*Call, *Outcome) error { panic("end") })
	answer, err := p.client.Get(p.url() + "/x")
	if err == nil {
		body, err := io.ReadAll(answer.Body)
		must.Hold(t, err != nil && len(body) <= 2, "%q %v", body, err)
	}
	p.onBegin(func(*Call) error { panic("begin") })
	answer, err = p.client.Get(p.url() + "/x")
	must.Need(t, err == nil && answer.StatusCode == 503, "%v %v", answer, err)
	answer.Body.Close()
}

// TestOpenModePasses: whatever the witness does, the client gets its answer, and the witness is told of each call that it missed.
func TestOpenModePasses(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}), func(o *Options) { o.Mode = Open; o.EndTimeout = 50 * time.Millisecond })
	get := func() {
		t.Helper()
		answer := must.Get(p.client.Get(p.url() + "/x"))(t)
		body, err := io.ReadAll(answer.Body)
		must.Hold(t, err == nil && string(body) == "data: [DONE]\n\n", "%q %v", body, err)
	}
	missed := func(n int) {
		t.Helper()
		p.wait(t, func() bool { return len(p.missed) == n })
	}
	get()
	missed(0)
	p.onBegin(func(*Call) error { return errors.New("no") })
	get()
	missed(1)
	p.onBegin(func(*Call) error { panic("no") })
	get()
	missed(2)
	p.onBegin(nil)
	p.onEnd(func(*Call, *Outcome) error { return errors.New("no") })
	get()
	missed(3)
	never := make(chan bool)
	p.onEnd(func(*Call, *Outcome) error { <-never; return nil })
	get() // though End hangs
	close(never)
	p.last(t, 3)
	p.onBegin(func(*Call) error { return &Refusal{Status: 401, Reason: "no"} })
	answer, err := p.client.Get(p.url() + "/x")
	must.Need(t, err == nil && answer.StatusCode == 401, "%v %v", answer, err)
	answer.Body.Close()
	missed(3)
}

// TestEndHangs: in closed mode, a witness that does not answer gets no client its terminal event.
func TestEndHangs(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {}\n\ndata: [DONE]\n\n")
	}), func(o *Options) { o.EndTimeout = 20 * time.Millisecond })
	hangs := hanging{p.recorder}
	p.handler.witness = hangs
	answer := must.Get(p.client.Get(p.url() + "/x"))(t)
	body, err := io.ReadAll(answer.Body)
	must.Hold(t, err != nil && string(body) == "data: {}\n\n", "%q %v", body, err)
}

// hanging never records.
type hanging struct{ *recorder }

func (h hanging) Begin(context.Context, *Call) (Exchange, error) { return h, nil }
func (hanging) End(ctx context.Context, _ *Outcome) error        { <-ctx.Done(); return ctx.Err() }

// TestProviderDoesNotEnd: a client that waits for the end of its answer gets it, though the provider does not end the body.
func TestProviderDoesNotEnd(t *testing.T) {
	s := newSteps()
	p := start(t, s, func(o *Options) { o.Linger = time.Millisecond })
	answer := must.Get(p.client.Get(p.url() + "/x"))(t)
	s.event <- "data: {}\n\ndata: [DONE]\n\n"
	body, err := io.ReadAll(answer.Body)
	must.Hold(t, err == nil && string(body) == "data: {}\n\ndata: [DONE]\n\n", "%q %v", body, err)
	<-s.gone
	o := p.last(t, 1).outcome
	must.Hold(t, o.Ended == Complete && o.Unfinished, "%+v", o)
}

// TestWhatFollowsTheTerminalEventIsRecorded: the record has the whole body.
func TestWhatFollowsTheTerminalEventIsRecorded(t *testing.T) {
	s := newSteps()
	p := start(t, s, func(o *Options) { o.Linger = time.Minute })
	answer := must.Get(p.client.Get(p.url() + "/x"))(t)
	want := "event: response.completed\n\n"
	s.event <- want
	for range 3 {
		s.event <- "data: [DONE]\n\n" + strings.Repeat(": x\n", 1000)
		want += "data: [DONE]\n\n" + strings.Repeat(": x\n", 1000)
	}
	close(s.event)
	body, err := io.ReadAll(answer.Body)
	must.Hold(t, err == nil && string(body) == want, "%q %v", body, err)
	seen := p.last(t, 1)
	must.Hold(t, string(seen.response) == want && !seen.outcome.Unfinished && seen.outcome.Terminal == "response.completed", "%+v", seen.outcome)
}

// TestNotRepeated: a call that fails on a kept connection is not made again by the relay.
func TestNotRepeated(t *testing.T) {
	var asked atomic.Int64
	p := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
	}), nil)
	for n := range 2 {
		req, _ := http.NewRequest(http.MethodGet, p.url()+"/x", nil)
		req.Header.Set("Idempotency-Key", "1")
		answer, err := p.client.Do(req)
		must.Need(t, err == nil && answer.StatusCode == []int{200, 502}[n], "%v %v", answer, err)
		answer.Body.Close()
	}
	must.Equal(t, asked.Load(), 2)
}

// TestEndpointsOfTheOldTransport: a stream of MCP 2024-11-05 names an endpoint, where clients post. However it comes, closed mode ends the stream before the client has it, open mode passes it
// on, and no record has its bytes. Both say what it is, and what to use instead.
func TestEndpointsOfTheOldTransport(t *testing.T) {
	named := "event: endpoint\ndata: /messages?session=secret\n\n"
	for _, tt := range []struct {
		name     string
		encoding string
		parts    []string
		before   string // what closed mode may pass
	}{
		{"at once", "", []string{named + event(got1)}, ""},
		{"bit by bit", "", strings.SplitAfter(named+event(got1), ""), ""},
		{"after a comment", "", []string{": hello\r\n\r\n", named}, ": hello\r\n\r\n"},
		{"with its type last", "", []string{"data: /messages?session=secret\nevent: endpoint\n\n"}, ""},
		{"at the end of the stream", "", []string{"event: endpoint\ndata: /messages?session=secret"}, ""},
		{"after an answer", "", []string{event(got1), named}, ""},
		{"twice", "", []string{named, named}, ""},
		{"compressed", "gzip", []string{named + event(got1)}, ""},
	} {
		for _, mode := range []Mode{Closed, Open} {
			t.Run(fmt.Sprint(tt.name, " ", mode), func(t *testing.T) {
				var parts [][]byte
				for _, part := range tt.parts {
					parts = append(parts, []byte(part))
				}
				if tt.encoding != "" {
					parts = encode(t, tt.encoding, append(parts, nil)...)
				}
				var said strings.Builder
				p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					if tt.encoding != "" {
						w.Header().Set("Content-Encoding", tt.encoding)
					}
					for _, part := range parts {
						_, _ = w.Write(part) // who has left has left
						w.(http.Flusher).Flush()
					}
				}), func(o *Options) {
					mcpOptions(o)
					o.Mode, o.Linger, o.Log = mode, time.Minute, slog.New(slog.NewTextHandler(&said, nil))
				})
				answer := must.Get(p.client.Get(p.relay.URL + "/mcp"))(t)
				got, err := io.ReadAll(answer.Body)
				c := p.last(t, 1)
				switch whole := slices.Concat(parts...); {
				case mode == Open && (err != nil || string(got) != string(whole) || c.outcome.Response.SHA256 != sha256.Sum256(whole) || c.outcome.Ended != Complete):
					t.Errorf("%q %v %+v", got, err, c.outcome)
				case mode == Closed && (err == nil || !strings.HasPrefix(tt.before, string(got)) || c.outcome.Ended != RecorderCut || !strings.Contains(fmt.Sprint(c.outcome.Reason), "streamable HTTP")):
					t.Errorf("%q %v %+v", got, err, c.outcome)
				}
				must.Hold(t, len(c.response) == 0 && c.outcome.Response.Apart, "the record has the endpoint: %q", c.response)
				if strings.Count(said.String(), "2024-11-05") != 1 || !strings.Contains(said.String(), "standard streams") || strings.Contains(said.String(), "secret") {
					t.Errorf("the log says %q", said.String())
				}
			})
		}
	}
}

// TestEndpointElsewhere: the type of an event has no meaning where clients look for no endpoint.
func TestEndpointElsewhere(t *testing.T) {
	text := "event: endpoint\ndata: /messages\n\n" + event(got1)
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}), mcpOptions)
	answer := must.Get(p.client.Post(p.relay.URL+"/mcp", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)))(t)
	got, err := io.ReadAll(answer.Body)
	c := p.last(t, 1)
	must.Hold(t, err == nil && string(got) == text && string(c.response) == text && c.outcome.Ended == Complete, "%q %v %+v", got, err, c.outcome)
}

// nobody is a witness that looks at nothing.
type nobody struct{}

func (nobody) Begin(context.Context, *Call) (Exchange, error) { return nobody{}, nil }
func (nobody) End(context.Context, *Outcome) error            { return nil }
func (nobody) Missed(*Call, error)                            {}

// FuzzUpstream: whatever bytes a client sends to a relay's listener, no other origin is reached than the upstream's, by no other name, and no path outside of its base.
func FuzzUpstream(f *testing.F) {
	other := must.Get(net.Listen("tcp", "127.0.0.1:0"))(f)
	defer other.Close()
	var strayed atomic.Int64
	go func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			strayed.Add(1)
			conn.Close()
		}
	}()
	var wrong atomic.Pointer[string]
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		clean := r.URL.Path
		if r.Host != r.Context().Value(http.LocalAddrContextKey).(net.Addr).String() || !strings.HasPrefix(path, "/base/") || strings.Contains(clean, "/../") || strings.HasSuffix(clean, "/..") {
			wrong.Store(new(r.Host + " " + r.RequestURI))
		}
	}))
	defer provider.Close()
	base := mustParse(f, provider.URL+"/base")
	h := must.Get(New(nobody{}, Options{Upstreams: map[string]Upstream{"api": {Base: base}}, Folder: filepath.Join(f.TempDir(), "spool"), FingerprintKey: make([]byte, 32), Log: slog.New(slog.DiscardHandler)}))(f)
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	defer server.Close()

	for _, head := range []string{
		"GET http://OTHER/api/x HTTP/1.1\r\nHost: OTHER\r\n\r\n", "CONNECT OTHER HTTP/1.1\r\nHost: OTHER\r\n\r\n", "GET /api/../../x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /api/x HTTP/1.1\r\nHost: OTHER\r\nX-Forwarded-Host: OTHER\r\nForwarded: host=OTHER\r\n\r\n", "GET //OTHER/api HTTP/1.1\r\nHost: a\r\n\r\n", "POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://OTHER/ HTTP/1.1\r\n\r\n",
		"GET /api/@OTHER/ HTTP/1.1\r\nHost: user@OTHER\r\n\r\n", "GET /api/x HTTP/1.1\r\nHost: a\r\nHost: OTHER\r\n\r\n", "GET /api/%2e%2e/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /r/t/api/x?u=http://OTHER HTTP/1.0\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /api/\\OTHER HTTP/1.1\r\nHost: a\r\nConnection: Host\r\n\r\n",
	} {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		wrong.Store(nil)
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Skip(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = conn.Write(bytes.ReplaceAll(head, []byte("OTHER"), []byte(other.Addr().String()))) // the relay may have refused it already
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		n := strayed.Load()
		must.Hold(t, n == 0, "another origin was asked %d times", n)
		if w := wrong.Load(); w != nil {
			t.Errorf("the provider was asked %q", *w)
		}
	})
}
