package relay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"jurat/evidence"
	"jurat/internal/test/must"
)

func TestSpool(t *testing.T) {
	folder := t.TempDir()
	s := &spool{folder: folder, perBody: 100, memory: 150, cap: 1000}
	text := func(n int) []byte { return bytes.Repeat([]byte("0123456789"), n/10) }
	bodies := map[string]*Body{}
	for name, n := range map[string]int{"a": 100, "b": 60, "c": 300} {
		b := s.body(name, "", 0)
		must.Get(b.read(iotest.OneByteReader(bytes.NewReader(text(n)))))(t)
		b.seal()
		got, err := io.ReadAll(b.Open())
		if err != nil || !bytes.Equal(got, text(n)) || b.SHA256 != sha256.Sum256(text(n)) || b.Bytes != int64(n) || b.Kept != b.Bytes || b.Partial {
			t.Errorf("%s: %d bytes, %v, %+v", name, len(got), err, b)
		}
		bodies[name] = b
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	must.Hold(t, len(files) == 2, "two bodies are too large for memory, alone or together: %v", files)
	for _, file := range []string{"c"} {
		info, err := os.Stat(filepath.Join(folder, file))
		must.Hold(t, err == nil && info.Mode().Perm() == 0o600, "%v %v", info, err)
	}
	full := s.body("d", "", 0)
	left, err := full.read(bytes.NewReader(text(700)))
	full.seal()
	must.Hold(t, errors.Is(err, ErrSpoolFull) && len(left) == 700 && full.Partial && full.Kept == 0 && full.Bytes == 700,
		"%v, %d left, %+v", err, len(left), full)
	bodies["d"] = full
	for _, b := range bodies {
		must.Want(t, errors.Join(b.release(), b.release()), nil)
		must.Fail(t, os.ErrClosed)(b.ReadAt(make([]byte, 1), 0))
	}
	must.Equal(t, s.held.Load(), 0)
	must.Equal(t, s.inMemory.Load(), 0)
}

func TestFolderMustBePrivate(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.Chmod(folder, 0o755))
	_, err := New(newRecorder(), Options{Upstreams: map[string]Upstream{"a": {Base: mustParse(t, "https://x")}}, FingerprintKey: make([]byte, 32), Folder: folder})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "chmod 700"), "%v", err)
}

// TestSpoolIsFull: closed mode refuses and breaks off; open mode passes everything, and says that its copy is not whole.
func TestSpoolIsFull(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, strings.Repeat("x", int(n)))
			if r.URL.Query().Has("large") {
				fmt.Fprint(w, strings.Repeat("x", 100_000))
			}
		}), func(o *Options) { o.Mode = mode; o.Cap = 50_000 })
		ask := func(query string, size int) (int, int, error) {
			answer, err := p.client.Post(p.url()+"/x"+query, "text/plain", strings.NewReader(strings.Repeat("y", size)))
			if err != nil {
				return 0, 0, err
			}
			defer answer.Body.Close()
			n, err := io.Copy(io.Discard, answer.Body)
			return answer.StatusCode, int(n), err
		}
		status, n, err := ask("", 100_000)
		if mode == Closed {
			must.Hold(t, status == 503 && len(p.seen) == 0, "a request that is too large: %d %v", status, err)
		} else if o := p.last(t, 1); status != 200 || n != 100_000 || err != nil || !o.call.Request.Partial || o.call.Request.Kept > 50_000 || !o.outcome.Response.Partial {
			t.Errorf("a request that is too large: %d %d %v", status, n, err)
		}
		seen := len(p.seen)
		status, n, err = ask("?large", 10)
		o := p.last(t, seen+1).outcome
		must.Hold(t, mode != Closed || err != nil && n <= 50_000 && o.Ended == RecorderCut && errors.Is(o.Reason, ErrSpoolFull),
			"an answer that is too large: %d %d %v, %+v", status, n, err, o)
		if mode == Open && (err != nil || n != 100_010 || o.Ended != Complete || o.Response.Bytes != 100_010 || !o.Response.Partial || o.Response.Kept > 50_000) {
			t.Errorf("an answer that is too large: %d %d %v, %+v", status, n, err, o)
		}
		p.handler.spool.held.Add(50_000) // of others
		status, _, _ = ask("", 0)
		must.Hold(t, (mode != Closed || status == 503) && (mode != Open || status == 200), "when the spool is full, %d", status)
		p.handler.late.Wait()
		p.handler.spool.held.Add(-50_000)
	}
}

// TestSpoolIsFullAfterTheTerminalEvent: what is held when the copy cannot be kept any more, is not handed out.
func TestSpoolIsFullAfterTheTerminalEvent(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {}\n\ndata: [DONE]\n\n")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, strings.Repeat(": x\n", 50_000))
	}), func(o *Options) { o.Cap = 50_000; o.Linger = time.Minute })
	answer := must.Get(p.client.Get(p.url() + "/x"))(t)
	body, err := io.ReadAll(answer.Body)
	must.Hold(t, err != nil && string(body) == "data: {}\n\n", "the client got %.100q, %v", body, err)
	o := p.last(t, 1).outcome
	must.Hold(t, o.Ended == RecorderCut && o.Response.Partial && o.Held == 0, "%+v", o)
}

// TestLargeBodies: what passes both ways is allocated in pieces, and never as a whole. What passes is compared by a running count, and the copy by its digest.
func TestLargeBodies(t *testing.T) {
	const size = 64 << 20
	pattern := bytes.Repeat([]byte("jurat relay "), 1<<12)
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		must.Give(io.Copy(io.Discard, r.Body))(t, size, "the provider got")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = io.Copy(w, io.LimitReader(repeat(pattern), size))
	}), func(o *Options) { o.MaxDecoded = 1 << 20 })
	p.handler.witness = ignoring{p.recorder}
	digest := sha256.New()
	_, _ = io.Copy(digest, io.LimitReader(repeat(pattern), size))
	got := sha256.New()
	n := allocated(func() {
		answer := must.Get(p.client.Post(p.url()+"/x", "application/octet-stream", io.LimitReader(repeat(pattern), size)))(t)
		must.Get(io.Copy(got, answer.Body))(t)
	})
	must.Hold(t, bytes.Equal(got.Sum(nil), digest.Sum(nil)), "the client got other bytes")
	must.Hold(t, n <= 2*size+size/2,
		"%d KiB were allocated for two bodies of %d KiB", n>>10, size>>10) // each body is encrypted or decrypted once, in pieces
	o := p.last(t, 1)
	must.Hold(t, o.call.Request.SHA256 == [32]byte(digest.Sum(nil)) && o.outcome.Response.SHA256 == [32]byte(digest.Sum(nil)),
		"the witness got other digests")
}

// ignoring does not read the bodies.
type ignoring struct{ *recorder }

func (i ignoring) Begin(_ context.Context, call *Call) (Exchange, error) {
	s := &seen{recorder: i.recorder, call: call}
	i.changed(func() { i.seen = append(i.seen, s) })
	return ignoringExchange{s}, nil
}

type ignoringExchange struct{ *seen }

func (s ignoringExchange) End(_ context.Context, o *Outcome) error {
	s.changed(func() { s.ends++; s.outcome = o })
	return nil
}

// repeat reads a pattern forever.
func repeat(pattern []byte) io.Reader { return &repeater{pattern: pattern} }

type repeater struct {
	pattern []byte
	at      int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.pattern[r.at:])
	r.at = (r.at + n) % len(r.pattern)
	return n, nil
}

// allocated returns how many bytes are allocated, also if they are given back.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestRequestsAreNotInClear: the file of a request, which may have secrets, has none of its words, and a reader gets them wherever it begins.
func TestRequestsAreNotInClear(t *testing.T) {
	folder := t.TempDir()
	s := &spool{folder: folder, perBody: 100, memory: 100, cap: 1 << 20}
	text := bytes.Repeat([]byte("a token that is secret, "), 1000)
	b := s.request("one", "", 0)
	must.Get(b.read(iotest.HalfReader(bytes.NewReader(text))))(t)
	b.seal()
	file, err := os.ReadFile(filepath.Join(folder, "one.request"))
	must.Hold(t, err == nil && len(file) == len(text) && !bytes.Contains(file, []byte("secret")), "%d bytes, %v", len(file), err)
	for _, at := range []int{0, 1, 15, 16, 17, 99, 100, 101, len(text) - 7} {
		got := make([]byte, 40)
		n, err := b.ReadAt(got, int64(at))
		if want := text[at:min(at+40, len(text))]; !bytes.Equal(got[:n], want) || n != len(want) || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("at %d: %q %v", at, got[:n], err)
		}
	}
	must.Want(t, b.release(), nil)
}

// TestLeft: the copy of an answer of a process that died is found by its call, and its name says how it is encoded.
func TestLeft(t *testing.T) {
	for encoding, want := range map[string]string{"": "", "gzip": "gzip", "gzip, br": "gzip,br", "x-../../etc": unnamed, strings.Repeat("a", 300): unnamed, "br\x00": unnamed, "gzip.br": unnamed} {
		s := &spool{folder: filepath.Join(t.TempDir(), "[a]"), cap: 1 << 20}
		must.Do(t, os.Mkdir(s.folder, 0o700))
		dead := s.response("c1", encoding, 0)
		other := s.response("c2", encoding, 0)
		must.Get(dead.Write([]byte("half an answer")))(t)
		must.Get(other.Write([]byte("of another call")))(t)
		b, done, err := Left(s.folder, "c1")
		must.Need(t, err == nil, "%q: %v", encoding, err)
		text, err := io.ReadAll(b.Open())
		if err != nil || string(text) != "half an answer" || b.Encoding != want || b.Bytes != 14 || b.Kept != 14 || b.SHA256 != sha256.Sum256(text) {
			t.Errorf("%q: %q, %v, %+v", encoding, text, err, b)
		}
		must.Want(t, errors.Join(done(), dead.release(), other.release()), nil)
		_, _, err = Left(s.folder, "c1")
		must.Hold(t, errors.Is(err, os.ErrNotExist), "%v", err)
	}
}

// inProcess is a client whose calls a recorder sees.
func inProcess(t *testing.T, provider http.Handler, change func(*Options)) (*recorder, *http.Client, string) {
	t.Helper()
	server := httptest.NewServer(provider)
	o := Options{Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	r := newRecorder()
	next := &http.Transport{}
	relay := must.Get(New(r, o))(t)
	t.Cleanup(func() {
		must.Want(t, relay.Wait(context.Background()), nil)
		must.Equal(t, relay.spool.held.Load(), 0, "the spool holds")
		next.CloseIdleConnections()
		server.Close()
	})
	return r, &http.Client{Transport: relay.Transport(next)}, server.URL
}

func TestTransport(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		r, client, address := inProcess(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s%s\n\ndata: [DONE]\n\n", body, r.Header.Get("Jurat-Agent"))
		}), func(o *Options) { o.Mode = mode })
		ask := func() (string, error) {
			req, _ := http.NewRequest(http.MethodPost, address+"/v1/x?key=secret", strings.NewReader("hello"))
			req.Header.Set("Jurat-Agent", "Bearer tok")
			answer, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer answer.Body.Close()
			must.Hold(t, req.Header.Get("Jurat-Agent") != "", "the caller's request was changed")
			body, err := io.ReadAll(answer.Body)
			return string(body), err
		}
		const whole = "data: hello\n\ndata: [DONE]\n\n"
		must.Give(ask())(t, whole)
		s := r.last(t, 1)
		if s.call.Vantage != evidence.InProcess || s.call.Token != "tok" || s.call.Origin != address || s.call.Path != "/v1/x" || string(s.request) != "hello" || string(s.response) != whole || s.outcome.Terminal != "[DONE]" || len(s.call.Credentials) != 1 {
			t.Errorf("%+v %+v", s.call, s.outcome)
		}
		r.onEnd(func(*Call, *Outcome) error { return errors.New("the disk is full") })
		body, err := ask()
		if mode == Closed && (!errors.Is(err, ErrNotRecorded) || errors.Is(err, io.EOF) || body != "data: hello\n\n") || mode == Open && (err != nil || body != whole) {
			t.Errorf("%v: %q %v", mode, body, err)
		}
		r.onBegin(func(*Call) error { return errors.New("the disk is full") })
		_, err = ask()
		refusal, is := errors.AsType[*Refusal](err)
		must.Hold(t, (mode != Closed || is && refusal.Status == 503) && (mode != Open || err == nil), "%v: %v", mode, err)
	}
}

// TestTransportEnds: a body that is closed early, a call without an answer and an answer without a body have an end each.
func TestTransportEnds(t *testing.T) {
	r, client, address := inProcess(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: x\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}), nil)
	answer := must.Get(client.Get(address))(t)
	must.Get(io.ReadFull(answer.Body, make([]byte, 9)))(t)
	answer.Body.Close()
	o := r.last(t, 1).outcome
	must.Hold(t, o.Ended == ClientGone && o.Delivered == 9, "%+v", o)
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	answer = must.Get(client.Do(req))(t)
	cancel()
	must.Fail(t, context.Canceled)(io.Copy(io.Discard, answer.Body))
	answer.Body.Close()
	o = r.last(t, 2).outcome
	must.Hold(t, o.Ended == ClientGone, "%+v", o)
	answer = must.Get(client.Head(address))(t)
	answer.Body.Close()
	o = r.last(t, 3).outcome
	must.Hold(t, o.Ended == Complete, "%+v", o)
	must.Refuse(t, "", "somebody is on port 1")(client.Get("http://127.0.0.1:1/"))
	o = r.last(t, 4).outcome
	must.Hold(t, o.Ended == UpstreamError, "%+v", o)
}

// TestTransportHeadIsRecordedFirst: an answer without a body is handed out after it was recorded.
func TestTransportHeadIsRecordedFirst(t *testing.T) {
	r, client, address := inProcess(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), nil)
	r.onEnd(func(*Call, *Outcome) error { return errors.New("no") })
	answer, err := client.Post(address, "text/plain", bytes.NewReader(nil))
	must.Hold(t, errors.Is(err, ErrNotRecorded), "%v %v", answer, err)
}

const progressed = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`

func event(data string) string { return "event: message\r\ndata: " + data + "\r\n\r\n" }

// mcpServer answers each request with events that the test sends.
func mcpServer(events <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Mcp-Session-Id", "marked-session")
		w.(http.Flusher).Flush()
		for text := range events {
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	}
}

func mcpOptions(o *Options) {
	u := o.Upstreams["api"]
	u.Speaks, u.Only = MCP, []string{"/mcp"}
	o.Upstreams = map[string]Upstream{"api": u}
	o.Root, o.Linger = "api", time.Millisecond
}

// TestMCPEvents: in closed mode the event that answers the request is held until the call is recorded; others pass as they come.
func TestMCPEvents(t *testing.T) {
	for name, test := range map[string]struct {
		method, request string
		before          []string
		answer          []string
	}{
		"a request":            {"POST", ask1, []string{event(progressed), ": ping\n\n", event(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"result":1}}`)}, []string{event(got1)}},
		"a batch":              {"POST", "[" + ask1 + "," + ask2 + "]", []string{event(progressed)}, []string{event(got2), event(got1)}},
		"a batch in one event": {"POST", "[" + ask1 + "," + ask2 + "]", []string{event(progressed), event("[" + progressed + "]")}, []string{event("[" + got2 + "," + got1 + "]")}},
		"an event for each":    {"POST", "[" + ask1 + "," + ask2 + "]", []string{event(progressed)}, []string{event("[" + got2 + "]"), event(got1)}},
		"an answer to another": {"POST", ask1, []string{event(progressed)}, []string{event(got2), event(got1)}},
		"a GET":                {"GET", "", []string{event(progressed), event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)}, []string{event(got1)}},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", unsealed: ", fails), func(t *testing.T) {
				events := make(chan string)
				p := start(t, mcpServer(events), mcpOptions)
				held := make(chan error)
				p.onEnd(func(*Call, *Outcome) error { return <-held })
				req := must.Get(http.NewRequestWithContext(t.Context(), test.method, p.relay.URL+"/mcp", strings.NewReader(test.request)))(t)
				req.Header.Set("Mcp-Session-Id", "marked-session")
				req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
				req.Header.Set("Mcp-Param-Region", "marked-param")
				req.Header.Set("Authorization", "Bearer marked-token")
				answer := must.Get(p.client.Do(req))(t)
				defer answer.Body.Close()
				got := make(chan string)
				go func() {
					defer close(got)
					r := bufio.NewReader(answer.Body)
					for {
						b := make([]byte, 4096)
						n, err := r.Read(b)
						if n > 0 {
							got <- string(b[:n])
						}
						if err != nil {
							return
						}
					}
				}()
				for _, text := range test.before {
					events <- text
					for came := ""; came != text; {
						came += <-got
					}
				}
				for _, text := range test.answer {
					events <- text
					rest()
				}
				select {
				case text := <-got:
					t.Fatalf("%q passed before the record", text)
				default:
				}
				close(events)
				want := strings.Join(test.answer, "")
				if fails {
					held <- errors.New("the disk is full")
					want = ""
				} else {
					held <- nil
				}
				came := ""
				for text := range got {
					came += text
				}
				must.Equal(t, came, want)
				s := p.last(t, 1)
				if s.call.MCPVersion() != "2025-11-25" || len(s.call.Session) != 64 || s.call.Session != s.outcome.Session || strings.Contains(fmt.Sprint(s.call, s.outcome.Header), "marked") || len(s.call.Credentials) != 1 {
					t.Errorf("%+v", s.call)
				}
				must.Equal(t, s.outcome.Terminal, response)
			})
		}
	}
}

// TestMCPPaths: only the server's own path passes, and only for those who name the recorder as this machine does.
func TestMCPPaths(t *testing.T) {
	asked := 0
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++ }), mcpOptions)
	for path, change := range map[string]func(*http.Request){
		"/token": nil, "/mcp/": nil, "/": nil,
		"/mcp": func(r *http.Request) { r.Host = "rebound.example" },
	} {
		req := must.Get(http.NewRequestWithContext(t.Context(), "POST", p.relay.URL+path, strings.NewReader(ask1)))(t)
		if change != nil {
			change(req)
		}
		answer := must.Get(p.client.Do(req))(t)
		answer.Body.Close()
		must.Hold(t, answer.StatusCode == 404 || answer.StatusCode == 421, "%s: status %d", path, answer.StatusCode)
	}
	must.Equal(t, asked, 0)
	must.Equal(t, len(p.seen), 0)
}

// TestMCPVersion: of a call without the header, the body says the version.
func TestMCPVersion(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }), mcpOptions)
	said := make(chan string, 1)
	p.onBegin(func(c *Call) error { said <- c.MCPVersion(); return nil })
	for _, test := range []struct{ body, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}`, "2024-11-05"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "2026-07-28"},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"../../x"}}`, ""},
		{`no JSON`, ""},
	} {
		answer := must.Get(p.client.Post(p.relay.URL+"/mcp", "application/json", strings.NewReader(test.body)))(t)
		answer.Body.Close()
		must.Equal(t, <-said, test.want, test.body)
	}
}
