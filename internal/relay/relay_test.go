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
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"jurat/internal/must"
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
	if s.ends != 1 {
		t.Errorf("call %d has %d ends", n, s.ends)
	}
	return s
}

// proxied is a relay before a provider.
type proxied struct {
	*recorder
	provider, relay *httptest.Server
	handler         *Handler
	folder          string
	client          *http.Client
}

// start runs a provider and a relay before it, whose upstream has the name "api".
func start(t *testing.T, provider http.Handler, change func(*Options)) *proxied {
	t.Helper()
	p := &proxied{recorder: newRecorder(), folder: filepath.Join(t.TempDir(), "spool")}
	p.provider = httptest.NewServer(provider)
	base, err := url.Parse(p.provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Upstreams: map[string]Upstream{"api": {Base: base}}, Folder: p.folder, FingerprintKey: bytes.Repeat([]byte("k"), 32), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	next := newTransport()
	if o.Next == nil {
		o.Next = next
	}
	if p.handler, err = New(p.recorder, o); err != nil {
		t.Fatal(err)
	}
	p.relay = httptest.NewServer(p.handler)
	transport := &http.Transport{DisableCompression: true}
	p.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		p.relay.CloseClientConnections()
		p.relay.Close()
		transport.CloseIdleConnections()
		if err := p.handler.Wait(context.Background()); err != nil {
			t.Error(err)
		}
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
	if err != nil || len(files) != 0 {
		t.Errorf("the spool has files at the end: %v %v", files, err)
	}
	if held, memory := p.handler.spool.held.Load(), p.handler.spool.inMemory.Load(); held != 0 || memory != 0 {
		t.Errorf("the spool holds %d bytes at the end, %d of them in memory", held, memory)
	}
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
		z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(64<<10))
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil || string(body) != "POST /v1/x?a=1&key=secret hello" {
		t.Errorf("%q %v", body, err)
	}
	s := p.last(t, 1)
	if string(s.request) != "hello" || string(s.response) != string(body) || s.outcome.Ended != Complete {
		t.Errorf("%+v", s)
	}
}

func mustParse(t testing.TB, address string) *url.URL {
	t.Helper()
	return must.Get(url.Parse(address))(t)
}

// rest gives what is under way the time to go on. No test depends on how long it is.
func rest() { time.Sleep(50 * time.Millisecond) }
