package relay

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/internal/fault"
)

// A streamer is a server of MCP as 2024-11-05 has it over HTTP. Each stream has the messages that the test sends to it.
type streamer struct {
	t        *testing.T
	endpoint func(session string) string
	accept   func(w http.ResponseWriter, r *http.Request, body string) // answers a POST

	mu      sync.Mutex // held while the following is used
	streams map[string]chan string
	posted  []string
}

func (s *streamer) stream(session string) chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[session] == nil {
		s.streams[session] = make(chan string)
	}
	return s.streams[session]
}

func (s *streamer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method != http.MethodGet {
		s.mu.Lock()
		s.posted = append(s.posted, r.URL.RequestURI()+" "+string(body))
		s.mu.Unlock()
		s.accept(w, r, string(body))
		return
	}
	session := r.Header.Get("Session")
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, ": hello\r\n\r\nevent: endpoint\r\ndata: %s\r\n\r\n", s.endpoint(session))
	w.(http.Flusher).Flush()
	for {
		select {
		case text, more := <-s.stream(session):
			if text == "cut" {
				panic(http.ErrAbortHandler)
			}
			if !more {
				return
			}
			for len(text) > 0 {
				n := min(len(text), 1<<20)
				if _, err := io.WriteString(w, text[:n]); err != nil {
					return
				}
				text = text[n:]
			}
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func accepted(w http.ResponseWriter, _ *http.Request, _ string) {
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
}

// streaming is a relay before a streamer.
type streaming struct {
	*proxied
	*streamer
	t        *testing.T
	patience time.Duration
	token    string // with which its clients ask
}

func newStreaming(t *testing.T, change func(*Options)) *streaming {
	t.Helper()
	s := &streamer{t: t, streams: map[string]chan string{}, accept: accepted, endpoint: func(session string) string { return "/messages?session=" + session }}
	p := start(t, s, func(o *Options) {
		mcpOptions(o)
		if change != nil {
			change(o)
		}
	})
	return &streaming{p, s, t, 20 * time.Second, ""}
}

// A listener is a client's stream.
type listener struct {
	t    *testing.T
	s    *streaming
	name string
	in   *bufio.Reader
	stop context.CancelFunc
}

// listen opens a stream and reads up to the endpoint.
func (s *streaming) listen(session string) *listener {
	s.t.Helper()
	l := s.open(session)
	l.hear(": hello\r\n\r\nevent: endpoint\r\ndata: " + s.endpoint(session) + "\r\n\r\n")
	return l
}

func (s *streaming) open(session string) *listener {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), s.patience) // or a test whose stream goes on never ends
	s.t.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, "GET", s.relay.URL+"/mcp", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Session", session)
	req.Header.Set(agentHeader, s.token)
	answer, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return &listener{s.t, s, session, bufio.NewReader(answer.Body), stop}
}

// hear reads a text.
func (l *listener) hear(want string) {
	l.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(l.in, got)
	if string(got[:n]) != want {
		l.t.Fatalf("%.300q, %v, want %.300q", got[:n], err, want)
	}
}

// over fails if the stream goes on, or ends well where it must not.
func (l *listener) over(broken bool) {
	l.t.Helper()
	if rest, err := io.ReadAll(l.in); len(rest) > 0 || (err != nil) != broken || errors.Is(err, context.DeadlineExceeded) {
		l.t.Fatalf("%.300q, %v", rest, err)
	}
}

// says has the server say something on the stream.
func (l *listener) says(text string) {
	l.t.Helper()
	select {
	case l.s.stream(l.name) <- text:
	case <-time.After(20 * time.Second):
		l.t.Error("nobody listens") // other goroutines call this, too
	}
}

// post posts a message and returns the status.
func (l *listener) post(body string) int {
	l.t.Helper()
	status, _ := l.s.post(l.s.endpoint(l.name), body)
	return status
}

func (s *streaming) post(path, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", s.relay.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(agentHeader, s.token)
	answer, err := s.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// records lists the calls as METHOD path request -> answer [end], in the order in which they began.
func (s *streaming) records() (list []string) {
	s.proxied.mu.Lock()
	defer s.proxied.mu.Unlock()
	for _, c := range s.seen {
		text := strings.TrimSpace(c.call.Method + " " + c.call.Path + " " + string(c.request))
		if c.ends == 0 {
			list = append(list, text+" (no end)")
			continue
		}
		if c.outcome.Response != nil {
			text += " -> " + string(c.response)
		}
		if c.outcome.Ended != Complete {
			text += " (" + string(c.outcome.Ended) + ")"
		}
		list = append(list, text)
	}
	return list
}

// recorded waits until there are the records, in any order.
func (s *streaming) recorded(want ...string) {
	s.t.Helper()
	slices.Sort(want)
	var got []string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if got = s.records(); len(got) < len(want) || slices.ContainsFunc(got, func(r string) bool { return strings.HasSuffix(r, "(no end)") }) {
			continue
		}
		if slices.Sort(got); slices.Equal(got, want) {
			return
		}
	}
	s.t.Fatalf("recorded:\n%q\nwant:\n%q", got, want)
}

const (
	told    = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	samples = `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`
	initial = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`
	began   = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05"}}`
)

// TestSession: a POST is one call with the events that answer it, and each other message of the server is one. What is only counted is counted.
func TestSession(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		t.Run(mode.String(), func(t *testing.T) {
			s := newStreaming(t, func(o *Options) { o.Mode = mode })
			l := s.listen("a")
			for _, step := range []struct{ post, says string }{
				{initial, event(began)}, {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, event(told)},
				{ask1, event(samples)}, {`{"jsonrpc":"2.0","id":1,"result":{"model":"m"}}`, ": ping\n\n"}, {ask2, event(got2)}, {"no JSON", event(progressed)},
				{"[" + ask("3") + "," + ask("4") + "]", event(got("4"))},
			} {
				if status := l.post(step.post); status != http.StatusAccepted {
					t.Fatalf("%s: %d", step.post, status)
				}
				l.says(step.says)
				l.hear(step.says)
			}
			l.says(event(got("3")) + event(got1))
			l.hear(event(got("3")) + event(got1))
			close(s.stream("a"))
			l.over(false)
			at := "POST /messages "
			s.recorded("GET /mcp -> ", at+initial+" -> "+event(began), at+`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "GET /mcp -> "+event(told), "GET /mcp -> "+event(samples),
				at+`{"jsonrpc":"2.0","id":1,"result":{"model":"m"}}`, at+ask2+" -> "+event(got2), at+"no JSON", "GET /mcp -> "+event(got("4")),
				at+"["+ask("3")+","+ask("4")+"] -> "+event(got("4"))+event(got("3")), at+ask1+" -> "+event(got1))
			session := ""
			for _, c := range s.seen {
				if session = c.call.Session; c.call.Path != "/mcp" && (len(session) != 64 || c.call.MCPVersion() == "2025-03-26" && !strings.Contains(string(c.request), "initialize")) {
					t.Errorf("%+v", c.call)
				}
				if strings.Contains(fmt.Sprint(c.call, c.outcome.Header, c.outcome.Counted, string(c.response)), "session=") {
					t.Errorf("the session's secret: %+v", c)
				}
				if string(c.request) == ask1 && (c.outcome.Status != 202 || c.outcome.Header.Get("Content-Type") != "text/event-stream" || !strings.Contains(fmt.Sprint(c.outcome.Counted), "8 bytes with which the POST itself")) {
					t.Errorf("%+v", c.outcome)
				}
			}
			if get := s.seen[0].outcome; get.Session != session || !get.Response.Apart || get.Response.Bytes < 700 || get.Response.Kept != 0 {
				t.Errorf("the stream: %+v %+v", get, get.Response)
			}
		})
	}
}

// TestSessionHoldsAnswers: in closed mode no event passes before its record, and none at all without it.
func TestSessionHoldsAnswers(t *testing.T) {
	for name, test := range map[string]struct{ post, says string }{
		"an answer": {ask1, event(got1)}, "one of two answers": {"[" + ask1 + "," + ask2 + "]", event(got1)}, "a request": {"", event(samples)}, "an answer to nobody": {"", event(got1)}, "no message": {"", event("x")},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", unsealed: ", fails), func(t *testing.T) {
				s := newStreaming(t, nil)
				l := s.listen("a")
				held := make(chan error)
				defer close(held)
				if test.post != "" {
					l.post(test.post)
				}
				s.onEnd(func(*Call, *Outcome) error { return <-held })
				l.says(test.says + event(progressed))
				arrived := make(chan struct{})
				go func() { _, _ = l.in.Peek(1); close(arrived) }()
				rest()
				select {
				case <-arrived:
					t.Fatal("it passed before the record")
				default:
				}
				if fails {
					s.onEnd(nil)
					held <- errors.New("the disk is full")
					<-arrived
					l.over(true)
					if reason := fmt.Sprint(s.last(t, 1).outcome.Reason); s.seen[0].outcome.Ended != RecorderCut || !strings.Contains(reason, "the disk is full") {
						t.Errorf("%s %s", s.seen[0].outcome.Ended, reason)
					}
					return
				}
				s.onEnd(nil)
				held <- nil
				<-arrived
				l.hear(test.says + event(progressed))
			})
		}
	}
}

// TestSessionEnds: what was under way when the stream ends is recorded as that, and the endpoint leads nowhere any more.
func TestSessionEnds(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		for name, test := range map[string]struct {
			end         func(*listener)
			call, whole Ended
		}{
			"the server ends":   {func(l *listener) { close(l.s.stream("a")); l.over(false) }, UpstreamCut, Complete},
			"the server dies":   {func(l *listener) { l.says("cut"); l.over(true) }, UpstreamCut, UpstreamCut},
			"the client leaves": {func(l *listener) { l.stop() }, ClientGone, ClientGone},
		} {
			t.Run(mode.String()+", "+name, func(t *testing.T) {
				s := newStreaming(t, func(o *Options) { o.Mode = mode })
				l := s.listen("a")
				l.post("[" + ask1 + "," + ask2 + "]")
				l.says(event(got2))
				l.hear(event(got2))
				test.end(l)
				whole := "GET /mcp -> "
				if test.whole != Complete {
					whole += " (" + string(test.whole) + ")"
				}
				s.recorded(whole, "GET /mcp -> "+event(got2), "POST /messages ["+ask1+","+ask2+"] -> "+event(got2)+" ("+string(test.call)+")")
				for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
					if status := l.post(ask1); status == http.StatusNotFound {
						break
					}
					if time.Now().After(deadline) {
						t.Fatal("the endpoint still leads to the server")
					}
				}
			})
		}
	}
}

// TestSessionsDoNotMix: the same ids in two sessions are two calls, and only endpoints that the server named pass.
func TestSessionsDoNotMix(t *testing.T) {
	s := newStreaming(t, nil)
	a, b := s.listen("a"), s.listen("b")
	fromB, toB := ask1[:len(ask1)-1]+`,"of":"b"}`, got1[:len(got1)-1]+`,"of":"b"}`
	a.post(ask1)
	b.post(fromB)
	b.says(event(toB))
	b.hear(event(toB))
	a.says(event(got1))
	a.hear(event(got1))
	for path, want := range map[string]int{"/messages?session=c": 404, "/messages": 404, "/messages?session=a&x": 404, "/messages/?session=a": 404, "/other?session=a": 404, "/messages?session=a": 202} {
		if status, _ := s.post(path, told); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	a.stop()
	b.stop()
	s.recorded("GET /mcp ->  (client_gone)", "GET /mcp ->  (client_gone)", "POST /messages "+ask1+" -> "+event(got1), "POST /messages "+fromB+" -> "+event(toB), "POST /messages "+told+"")
	sessions := map[string]string{}
	for _, c := range s.seen {
		if strings.HasPrefix(string(c.request), "{") {
			sessions[string(c.request)] = c.call.Session
		}
	}
	if sessions[ask1] == sessions[fromB] || sessions[ask1] != sessions[told] {
		t.Errorf("%v", sessions)
	}
}

// TestEndpoints: an endpoint is used if every client posts to this relay by it, and under the server's own path. Otherwise closed mode ends the stream before the client knows of it.
func TestEndpoints(t *testing.T) {
	const way, past, used = "more than one way", "past this recorder", ""
	s := newStreaming(t, nil)
	here := strings.TrimPrefix(s.relay.URL, "http://")
	for text, want := range map[string]string{
		"/messages?a=1": used, "messages": used, "?session=1": used, "./x/../messages": used, "/a%2Fb": used, "http://" + here + "/x?y": used, "HTTP://" + here + "/z": used, "//" + here + "/w": used, "http://" + here: used,
		"https://" + here + "/x": past, "http://evil.example/x": past, "//evil.example/x": past, s.provider.URL + "/messages": past, "http://" + here + "0/x": past, "http://127.0.0.1/x": past, "ftp://" + here + "/": past,
		`\\evil.example/x`: way, `/\evil.example/x`: way, `http://evil.example/x?{"method":"ping"}`: way, `{"method":"ping"}`: way, "/\t/evil.example/x": way, "http:messages": way, "http:/messages": way, "http:///x": way, "http://user@" + here + "/x": way, "javascript:alert(1)": way, "/x#y": way, "/x y": way,
		"/ü": way, "": way, "  /x": way, "/%zz": way, "/x\ndata: y": way, "/x'": way,
		"/" + strings.Repeat("x", 3000): "more than 2048 bytes", "/%2e%2e/x": "'.' or '..'", "/x//y": "//", "/.//evil.example": "//", "/x%5cy": "backslash", "/x%00": "control",
	} {
		s.endpoint = func(string) string { return text }
		l := s.open("a")
		said := "event: endpoint\r\ndata: " + text + "\r\n\r\n"
		l.hear(": hello\r\n\r\n")
		if want == used {
			l.hear(said)
			l.stop()
		} else {
			l.over(true)
		}
		n := len(s.records())
		o := s.last(t, n).outcome
		if reason := fmt.Sprint(o.Reason); want != used && (o.Ended != RecorderCut || !strings.Contains(reason, want) || strings.Contains(reason, "/x")) || want == used && o.Ended != ClientGone {
			t.Errorf("%q: %s %s, want %q", text, o.Ended, reason, want)
		}
		for deadline := time.Now().Add(20 * time.Second); len(s.handler.sessions.places()) > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q: the endpoint is still known", text)
			}
		}
	}
	if len(s.posted) > 0 {
		t.Errorf("%q", s.posted)
	}
}

func (s *sessions) places() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for place := range s.all {
		list = append(list, place)
	}
	return list
}

// TestHostileStreams: whatever a server says on its stream, closed mode lets nothing pass without a record, and ends the stream where clients would part ways.
func TestHostileStreams(t *testing.T) {
	second, blanks := "event: endpoint\ndata: /messages?session=b\n\n", strings.Repeat(" ", longestEndpoint+10)
	for name, test := range map[string]struct {
		mode  Mode
		says  string
		cut   string // why the stream ends; "": it does not
		calls []string
	}{
		"a second endpoint":                          {Closed, second, "has an endpoint already", nil},
		"a second endpoint, open":                    {Open, second, "", nil},
		"an answer that calls itself an endpoint":    {Closed, "event: endpoint\ndata: " + got1 + "\n\n", "has an endpoint already", nil},
		"blanks, and an answer with two ids":         {Closed, event(blanks + `{"id":1,"id":2,"result":{}}`), "", []string{"GET /mcp -> " + event(blanks+`{"id":1,"id":2,"result":{}}`)}},
		"an answer to an id that was never asked":    {Closed, event(got("77")), "", []string{"GET /mcp -> " + event(got("77"))}},
		"an id is answered twice":                    {Closed, event(got1) + event(got1), "", []string{"POST /messages " + ask1 + " -> " + event(got1), "GET /mcp -> " + event(got1)}},
		"an answer with two ids":                     {Closed, event(`{"id":1,"id":2,"result":{}}`), "", []string{"GET /mcp -> " + event(`{"id":1,"id":2,"result":{}}`)}},
		"an answer that is a request":                {Closed, event(`{"id":1,"method":"x","result":{}}`), "", []string{"GET /mcp -> " + event(`{"id":1,"method":"x","result":{}}`)}},
		"an answer in two lines of data":             {Closed, "data: {\"id\":1,\rdata: \"result\":{}}\r\r", "", []string{"POST /messages " + ask1 + " -> data: {\"id\":1,\rdata: \"result\":{}}\r\r"}},
		"two messages in one event":                  {Closed, event(got1 + got("77")), "", []string{"GET /mcp -> " + event(got1+got("77"))}},
		"an event that the end of the stream leaves": {Closed, "data: " + got1, "", []string{"POST /messages " + ask1 + " -> data: " + got1}},
		"nothing but fields":                         {Closed, "id: 1\nretry: 1\n\n: x\n\n\n\nevent: ping\ndata:\n\n", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStreaming(t, func(o *Options) { o.Mode = test.mode })
			l := s.listen("a")
			l.post(ask1)
			l.says(test.says)
			whole, asked := "GET /mcp -> ", "POST /messages "+ask1
			if test.cut != "" {
				l.over(true)
				whole += " (recorder_cut)"
				asked += " (recorder_cut)"
			} else {
				close(s.stream("a"))
				l.hear(test.says)
				l.over(false)
				asked += " (upstream_cut)"
			}
			want := append([]string{whole}, test.calls...)
			if !slices.ContainsFunc(test.calls, func(c string) bool { return strings.HasPrefix(c, "POST") }) {
				want = append(want, asked)
			}
			s.recorded(want...)
			if reason := fmt.Sprint(s.seen[0].outcome.Reason); test.cut != "" && !strings.Contains(reason, test.cut) {
				t.Error(reason)
			}
		})
	}
}

// TestTwoStreamsOneEndpoint: nothing says whose answers these are, so closed mode has one stream at a time, and open mode records each message alone, also when one of the streams has ended.
func TestTwoStreamsOneEndpoint(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		s := newStreaming(t, func(o *Options) { o.Mode = mode })
		s.endpoint = func(string) string { return "/messages" }
		a := s.listen("a")
		b := s.open("b")
		if mode == Closed {
			b.hear(": hello\r\n\r\n")
			b.over(true)
		} else {
			b.hear(": hello\r\n\r\nevent: endpoint\r\ndata: /messages\r\n\r\n")
			b.stop()
			s.last(t, 2)
		}
		a.post(ask1)
		a.says(event(got1))
		a.hear(event(got1))
		want := "POST /messages " + ask1
		if mode == Closed {
			want += " -> " + event(got1)
		} else {
			want += " -> Accepted"
			s.last(t, 4)
		}
		s.last(t, 3)
		if got := s.records(); !slices.Contains(got, want) {
			t.Errorf("%q", got)
		}
	}
}

// TestLateEndpoints: an endpoint counts wherever it stands in a stream that a client asked for: what came before has records of its own, and closed mode lets no client past it.
func TestLateEndpoints(t *testing.T) {
	const message = `{"jsonrpc":"2.0","method":"notifications/message"}`
	good, bad := "event: endpoint\ndata: /messages\n\n", "event: endpoint\ndata: http://evil.example/x?session=SECRET\n\n"
	for name, test := range map[string]struct {
		says   string
		passes bool
		calls  []string
	}{
		"after a message":              {event(message) + good, true, nil},
		"after a message, and past":    {event(message) + bad, false, nil},
		"after a request":              {event(samples) + good, true, []string{"GET /mcp -> " + event(samples)}},
		"after an answer":              {event(got1) + good, true, []string{"GET /mcp -> " + event(got1)}},
		"after an answer, and past":    {event(got1) + bad, false, []string{"GET /mcp -> " + event(got1)}},
		"after nothing":                {"event: ping\ndata: \n\n" + good, true, nil},
		"after nothing, and past":      {"event: ping\ndata: \n\n" + bad, false, nil},
		"as the stream breaks":         {strings.TrimSuffix(good, "\n"), true, nil},
		"as the stream breaks, past":   {strings.TrimSuffix(bad, "\n"), false, nil},
		"as its line breaks, and past": {strings.TrimSuffix(bad, "\n\n"), false, nil},
	} {
		for _, mode := range []Mode{Closed, Open} {
			t.Run(mode.String()+", "+name, func(t *testing.T) {
				p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, test.says)
				}), func(o *Options) { mcpOptions(o); o.Mode = mode })
				answer, err := p.client.Get(p.relay.URL + "/mcp")
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(answer.Body)
				if passes := test.passes || mode == Open; passes != (err == nil) || passes != (string(got) == test.says) || !passes && strings.Contains(string(got), "evil") {
					t.Errorf("%q, %v", got, err)
				}
				whole := "GET /mcp -> "
				if err != nil {
					whole += " (recorder_cut)"
				}
				s := &streaming{proxied: p, t: t}
				s.recorded(append(test.calls, whole)...)
				if o := p.seen[0].outcome; !o.Response.Apart || strings.Contains(fmt.Sprint(o.Reason), "SECRET") {
					t.Errorf("%+v", o)
				}
			})
		}
	}
}

// TestEndpointAfterTheEnd: the answer with which a stream ends is held, and an endpoint that follows it goes nowhere.
func TestEndpointAfterTheEnd(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, event(got1))
		w.(http.Flusher).Flush()
		rest()
		_, _ = io.WriteString(w, "event: endpoint\ndata: http://evil.example/x\n\n")
	}), func(o *Options) { mcpOptions(o); o.Linger = time.Minute })
	answer, err := p.client.Get(p.relay.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(answer.Body)
	if c := p.last(t, 1); err == nil || len(got) > 0 || c.outcome.Ended != RecorderCut || !c.outcome.Response.Apart {
		t.Errorf("%q, %v, %+v", got, err, c.outcome)
	}
}

// TestAgentsDoNotMix: what an agent posts to the stream of another has none of that one's answers.
func TestAgentsDoNotMix(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		s := newStreaming(t, func(o *Options) { o.Mode = mode })
		s.token = "A"
		l := s.listen("a")
		for _, token := range []string{"B", "", "A"} {
			s.token = token
			code, text := s.post("/messages?session=a", ask1)
			if refused := mode == Closed && token != "A"; refused != (code == 403) || refused != strings.Contains(text, "another agent") {
				t.Errorf("%s: the agent %q: %d %s", mode, token, code, text)
			}
		}
		l.says(event(got1))
		l.hear(event(got1))
		l.stop()
		want := []string{"GET /mcp ->  (client_gone)", "POST /messages " + ask1 + " -> " + event(got1)}
		if mode == Open {
			want = append(want, "POST /messages "+ask1+" -> Accepted", "POST /messages "+ask1+" -> Accepted")
		}
		s.recorded(want...)
		for _, c := range s.seen {
			if c.call.Token != "A" && strings.Contains(string(c.response), "id") {
				t.Errorf("%q has the answer", c.call.Token)
			}
		}
	}
}

// TestTokensOfOneAgent: a session is for its agent by each of its tokens, also when the one that opened it counts no more, and not for others.
func TestTokensOfOneAgent(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		var revoked atomic.Bool
		agents := map[string]string{"A": "mia", "A2": "mia", "": "mia", "B": "ben"}
		s := newStreaming(t, func(o *Options) {
			o.Mode = mode
			o.AgentOf = func(_ context.Context, token string) (string, error) {
				if agent := agents[token]; agent != "" && (token != "A" || !revoked.Load()) {
					return agent, nil
				}
				return "", errors.New("it is unknown here")
			}
		})
		s.token = "A"
		l := s.listen("a")
		revoked.Store(true)
		for _, token := range []string{"B", "unknown"} {
			s.token = token
			if code, text := s.post("/messages?session=a", ask1); mode == Closed && (code != 403 || !strings.Contains(text, "another agent")) {
				t.Errorf("%s: the token %q: %d %s", mode, token, code, text)
			}
		}
		for n, token := range []string{"A2", ""} {
			s.token = token
			ask, got := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, 10+n), event(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, 10+n))
			if code, text := s.post("/messages?session=a", ask); code != 202 {
				t.Errorf("%s: the token %q: %d %s", mode, token, code, text)
			}
			l.says(got)
			l.hear(got)
		}
		l.stop()
		calls := map[Mode]int{Closed: 3, Open: 5}[mode]
		s.wait(t, func() bool {
			return len(s.seen) >= calls && !slices.ContainsFunc(s.seen, func(c *seen) bool { return c.ends == 0 })
		})
		answered := 0
		for _, c := range s.seen {
			if strings.Contains(string(c.response), `"result":{}`) {
				answered++
				if c.call.Token != "A2" && c.call.Token != "" {
					t.Errorf("%s: %q has the answer", mode, c.call.Token)
				}
			}
		}
		if answered != 2 {
			t.Errorf("%s: %d calls have their answers", mode, answered)
		}
	}
}

// TestOpenSessionWithoutRoom: open mode passes an endpoint and what follows, though there be no room for copies.
func TestOpenSessionWithoutRoom(t *testing.T) {
	for _, room := range []int64{1, 10, 30} {
		s := newStreaming(t, func(o *Options) { o.Mode, o.Cap = Open, room })
		l := s.listen("a")
		l.says(event(got1))
		l.hear(event(got1))
		l.stop()
		s.last(t, 1)
	}
}

// TestOpenPostsAreReadLate: open mode records a POST late, and its request can be read until then.
func TestOpenPostsAreReadLate(t *testing.T) {
	for name, status := range map[string]int{"a notification": 202, "an error": 400} {
		t.Run(name, func(t *testing.T) {
			s := newStreaming(t, func(o *Options) { o.Mode = Open })
			s.accept = func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(status) }
			l := s.listen("a")
			answered, read := make(chan struct{}), make(chan string, 1)
			s.onEnd(func(c *Call, _ *Outcome) error {
				if c.Method == http.MethodPost {
					<-answered
					rest()
					b, err := io.ReadAll(c.Request.Open())
					read <- fmt.Sprint(string(b), err)
				}
				return nil
			})
			l.post(told)
			close(answered)
			if got := <-read; got != told+"<nil>" {
				t.Error(got)
			}
			l.stop()
		})
	}
}

// TestSessionEndsOnce: at its end a stream waits once for all POSTs that have no answer, and not for each.
func TestSessionEndsOnce(t *testing.T) {
	const posts = 60
	s := newStreaming(t, func(o *Options) { o.Linger = 500 * time.Millisecond })
	over, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	s.accept = func(http.ResponseWriter, *http.Request, string) { <-over.Done() }
	l := s.listen("a")
	var all sync.WaitGroup
	for i := range posts {
		all.Go(func() { l.post(ask(fmt.Sprint(i))) })
	}
	s.wait(t, func() bool { return len(s.seen) == posts+1 })
	rest()
	close(s.stream("a"))
	s.last(t, 1) // which waits for 20 s
	end()
	all.Wait()
}

// TestSessionSurvivesFaults: a fault of the reading ends the stream, and not the program.
func TestSessionSurvivesFaults(t *testing.T) {
	var broken atomic.Bool
	s := newStreaming(t, func(o *Options) {
		o.Now = func() time.Time {
			if broken.CompareAndSwap(true, false) {
				panic("a fault")
			}
			return time.Now()
		}
	})
	l := s.listen("a")
	broken.Store(true)
	l.says(event(got1))
	l.over(true)
	if o := s.last(t, 1).outcome; o.Ended != RecorderCut || !errors.Is(o.Reason, fault.ErrFault) {
		t.Errorf("%+v", o)
	}
}

// TestAnswersToPosts: a server that refuses a POST, or answers it by itself, has answered the call. One that first answers on the stream does not keep the client waiting.
func TestAnswersToPosts(t *testing.T) {
	late := make(chan struct{})
	for name, test := range map[string]struct {
		accept func(w http.ResponseWriter, says chan<- string)
		stream string // what it said there
		status int
		calls  []string
	}{
		"it refuses": {func(w http.ResponseWriter, _ chan<- string) { http.Error(w, "no", 400) }, "", 400, []string{"POST /messages " + ask1 + " -> no\n"}},
		"it answers": {func(w http.ResponseWriter, _ chan<- string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, got1)
		}, "", 200, []string{"POST /messages " + ask1 + " -> " + got1}},
		"it answers, with two ids": {func(w http.ResponseWriter, _ chan<- string) {
			_, _ = io.WriteString(w, `{"id":1,"result":{},"id":2}`)
		}, "", 200, []string{"POST /messages " + ask1 + ` -> {"id":1,"result":{},"id":2}`}},
		"it answers with an event": {func(w http.ResponseWriter, _ chan<- string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, event(got1))
		}, "", 200, []string{"POST /messages " + ask1 + " -> " + event(got1)}},
		"it dies":                                {func(http.ResponseWriter, chan<- string) { panic(http.ErrAbortHandler) }, "", 502, []string{"POST /messages " + ask1 + " (upstream_error)"}},
		"it answers on the stream, then accepts": {func(w http.ResponseWriter, says chan<- string) { says <- event(got1); w.WriteHeader(202) }, event(got1), 202, []string{"POST /messages " + ask1 + " -> " + event(got1)}},
		"it answers on the stream, and accepts when the client has that": {func(w http.ResponseWriter, says chan<- string) { says <- event(got1); <-late; w.WriteHeader(202) }, event(got1), 202,
			[]string{"POST /messages " + ask1 + " -> " + event(got1)}},
		"it answers on the stream, and to the POST": {func(w http.ResponseWriter, says chan<- string) {
			says <- event(got1)
			<-late
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, got1)
		}, event(got1), 200, []string{"POST /messages " + ask1 + " -> " + event(got1)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStreaming(t, nil)
			s.accept = func(w http.ResponseWriter, _ *http.Request, _ string) { test.accept(w, s.stream("a")) }
			l := s.listen("a")
			status, text := make(chan int, 1), make(chan string, 1)
			go func() {
				code, body := s.post("/messages?session=a", ask1)
				status <- code
				text <- body
			}()
			l.hear(test.stream)
			if test.stream != "" {
				close(late)
				defer func() { late = make(chan struct{}) }()
			}
			if code, body := <-status, <-text; code != test.status || name == "it answers on the stream, and to the POST" && body == got1 {
				t.Errorf("%d %s", code, body)
			}
			l.stop()
			s.recorded(append(test.calls, "GET /mcp ->  (client_gone)")...)
		})
	}
}

// TestSessionLargeBodies: a message of 64 MiB passes with little memory, both ways, and so does a stream that is long and never ends.
func TestSessionLargeBodies(t *testing.T) {
	const size = 64 << 20
	s := newStreaming(t, func(o *Options) { o.MemoryPerBody = 64 << 10 })
	s.patience = 5 * time.Minute
	l := s.listen("a")
	large := got1[:len(got1)-2] + `,"x":"` + strings.Repeat("y", size) + `"}}`
	asked := ask1[:len(ask1)-1] + `,"x":"` + strings.Repeat("z", size) + `"}`
	l.post(asked)
	go l.says(event(large))
	var highest uint64
	for n, sum := 0, len(event(large)); n < sum; {
		got, err := l.in.Discard(min(1<<20, sum-n))
		if n += got; err != nil {
			t.Fatal(err)
		}
		highest = max(highest, uint64(s.handler.spool.inMemory.Load()))
	}
	if highest > 1<<20 {
		t.Errorf("%d bytes in memory", highest)
	}
	c := s.last(t, 2)
	if o := c.outcome; o.Ended != Complete || o.Response.Bytes != int64(len(event(large))) || len(c.request) != len(asked) {
		t.Errorf("%s %d", o.Ended, o.Response.Bytes)
	}
	for range 20_000 {
		l.says(event(progressed))
		l.hear(event(progressed))
	}
	if held := s.handler.spool.held.Load(); held > 1<<20 || len(s.records()) != 2 {
		t.Errorf("%d bytes are held, of %d calls", held, len(s.records()))
	}
	before := runtime.NumGoroutine()
	l.stop()
	s.last(t, 1)
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before the stream's end, %d after", before, after)
	}
}

// TestSessionWithoutRoom: closed mode ends a stream for whose message there is no room. Open mode passes it, and says that it was missed.
func TestSessionWithoutRoom(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		s := newStreaming(t, func(o *Options) { o.Mode, o.Cap = mode, 100_000 })
		l := s.listen("a")
		text := event(`{"id":9,"result":"` + strings.Repeat("x", 300_000) + `"}`)
		l.says(text)
		if mode == Closed {
			l.over(true)
			s.recorded("GET /mcp ->  (recorder_cut)")
			continue
		}
		l.hear(text)
		l.post(ask1)
		l.says(event(got1))
		l.hear(event(got1))
		l.stop()
		s.recorded("GET /mcp ->  (client_gone)", "POST /messages "+ask1+" -> "+event(got1))
		if len(s.missed) != 1 || !errors.Is(s.missed[0], ErrSpoolFull) {
			t.Errorf("%v", s.missed)
		}
	}
}

// TestCompressedStream: events cannot be taken out of a compressed stream without another encoding. Closed mode ends it, and open mode passes it as bytes.
func TestCompressedStream(t *testing.T) {
	text := "event: endpoint\ndata: /messages\n\n" + event(got1)
	body := encode(t, "gzip", []byte(text), nil)
	for _, mode := range []Mode{Closed, Open} {
		p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			for _, part := range body {
				_, _ = w.Write(part)
				w.(http.Flusher).Flush()
			}
		}), func(o *Options) { mcpOptions(o); o.Mode = mode })
		answer, err := p.client.Get(p.relay.URL + "/mcp")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		c := p.last(t, 1)
		if mode == Open && (err != nil || string(got) != string(slices.Concat(body...)) || len(c.response) > 0 || c.outcome.Response.SHA256 != sha256.Sum256(got) || c.outcome.Ended != Complete) {
			t.Errorf("%q %v %+v", got, err, c.outcome)
		}
		if !c.outcome.Response.Apart {
			t.Error("the record has the endpoint")
		}
		if mode == Closed && (err == nil || c.outcome.Ended != RecorderCut || !strings.Contains(fmt.Sprint(c.outcome.Reason), "compressed")) {
			t.Errorf("%q %v %+v", got, err, c.outcome)
		}
	}
}

// FuzzPieces: however a stream comes in, its pieces have its bytes in their order, each event is whole, and the events are those of a stream that came at once.
func FuzzPieces(f *testing.F) {
	for _, text := range []string{"", ": x\n\nevent: endpoint\ndata: /x\n\n" + event(got1), "data: 1\r\rdata\n\n\xef\xbb\xbfdata:2", "\xef\xbb\xbf:c\r\n\r\nid\ndata: [" + got1 + "]\r\n\r\n:"} {
		f.Add([]byte(text), uint8(1), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, one, other uint8) {
		r := &relay{Options: Options{Now: time.Now, Mode: Closed}, spool: &spool{folder: t.TempDir(), perBody: 1 << 20, memory: 1 << 30, cap: 1 << 30}}
		events := func(steps ...int) (list []string) {
			p := newPieces(r, &inSteps{text: text, steps: steps})
			passed := ""
			for {
				l, err := p.next()
				if l != nil {
					b, _ := io.ReadAll(l.body.Open())
					passed += string(b)
					if l.kind+l.data != "" || l.messages != nil {
						list = append(list, fmt.Sprintf("%s %q %v", l.kind, l.data, l.messages))
					}
					r.free(l)
				}
				if err != nil {
					break
				}
			}
			if passed != string(text) {
				t.Fatalf("%q became %q", text, passed)
			}
			return list
		}
		whole := events(1 << 20)
		if got := events(int(one)%7+1, int(other)%5+1); !slices.Equal(got, whole) {
			t.Fatalf("%q in parts: %q, at once %q", text, got, whole)
		}
	})
}

// inSteps reads so many bytes at a time.
type inSteps struct {
	text  []byte
	steps []int
	n     int
}

func (r *inSteps) Read(b []byte) (int, error) {
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), r.steps[r.n%len(r.steps)])], r.text)
	r.text = r.text[n:]
	r.n++
	return n, nil
}

func ask(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{}}`
}
func got(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }
