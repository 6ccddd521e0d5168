package relay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/test/must"
)

// TestBombs: bodies that grow a thousandfold when they are decoded pass as they are, both ways, and are not decoded to their end.
func TestBombs(t *testing.T) {
	for _, encoding := range encodings[1:] {
		bomb := bytes.Join(encode(t, encoding, make([]byte, 8<<20)), nil)
		c := newCompressed(encoding, 1<<20, &opaque{})
		c.Write(bomb)
		must.Hold(t, errors.Is(c.err, ErrRefused) && c.decoded <= 1<<20, "%s: %d bytes are decoded along the way, %v", encoding, c.decoded, c.err)
		c.Close()
		p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			must.Hold(t, bytes.Equal(body, bomb), "the provider got other bytes")
			w.Header().Set("Content-Encoding", encoding)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(bomb)
		}), func(o *Options) { o.MaxDecoded = 1 << 20 })
		p.onEnd(func(c *Call, o *Outcome) error {
			for name, b := range map[string]*Body{"request": c.Request, "response": o.Response} {
				d, err := b.Decoded()
				if err != nil {
					t.Error(err)
					continue
				}
				n, err := io.Copy(io.Discard, d)
				must.Hold(t, errors.Is(err, ErrRefused) && n <= 1<<20, "%s, %s: %d bytes were decoded, %v", encoding, name, n, err)
			}
			return nil
		})
		req, _ := http.NewRequest(http.MethodPost, p.url()+"/x", bytes.NewReader(bomb))
		req.Header.Set("Content-Encoding", encoding)
		answer := must.Get(p.client.Do(req))(t)
		body, err := io.ReadAll(answer.Body)
		must.Hold(t, err == nil && bytes.Equal(body, bomb), "%s: the client got %d bytes, %v", encoding, len(body), err)
		o := p.last(t, 1).outcome
		must.Hold(t, o.Ended == Complete, "%+v", o)
	}
}

// TestUndecodable: if the copy cannot be decoded, the last bytes are held.
func TestUndecodable(t *testing.T) {
	for encoding, body := range map[string]string{
		"x-unknown": strings.Repeat("data: x\n\n", 100), "gzip": strings.Repeat("no gzip", 100), "gzip, br": strings.Repeat("x", 600), "zstd": strings.Repeat("y", 600),
		"br": strings.Repeat("\xff", 600), "deflate": strings.Repeat("\x78\x9c\xff", 200),
	} {
		p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, body)
		}), nil)
		p.onEnd(func(*Call, *Outcome) error { return errors.New("no") })
		answer := must.Get(p.client.Get(p.url() + "/x"))(t)
		got, err := io.ReadAll(answer.Body)
		must.Hold(t, err != nil && string(got) == body[:len(body)-tail], "%s: the client got %d of %d bytes, %v", encoding, len(got), len(body), err)
	}
}

// TestBodiesThatJuratRefuses: what jurat's own JSON reader refuses passes, and the witness gets it.
func TestBodiesThatJuratRefuses(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}), nil)
	for n, body := range []string{
		`{"a":1,"a":2}`, `{"a":"\ud800"}`, `{"a":1e400}`, `{"a":9007199254740993}`, strings.Repeat("[", 500) + strings.Repeat("]", 500), strings.Repeat(`{"candidates":[`, 500), "\xff\xfe\x00", "", "]", `"`, "{}{}\n{}", "[1,2",
		`{"a":"` + strings.Repeat(`\`, 301) + `"}`,
	} {
		answer := must.Get(p.client.Post(p.url()+"/x", "application/json", strings.NewReader(body)))(t)
		got, err := io.ReadAll(answer.Body)
		must.Hold(t, err == nil && string(got) == body, "%.40q: the client got %d of %d bytes, %v", body, len(got), len(body), err)
		if s := p.last(t, n+1); string(s.request) != body || string(s.response) != body {
			t.Errorf("%.40q: the witness got %d and %d of %d bytes", body, len(s.request), len(s.response), len(body))
		}
	}
}

// TestUpgrade: closed mode refuses a WebSocket and says why; open mode passes it and tells the witness.
func TestUpgrade(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			kind, text, err := conn.Read(r.Context())
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Write(r.Context(), kind, append(text, '!'))
			_, _, _ = conn.Read(r.Context())
		}), func(o *Options) { o.Mode = mode })
		conn, answer, err := websocket.Dial(t.Context(), p.url()+"/x", &websocket.DialOptions{HTTPClient: p.client})
		if mode == Closed {
			must.Need(t, err != nil && answer != nil && answer.StatusCode == http.StatusUpgradeRequired, "%v %v", answer, err)
			body, _ := io.ReadAll(answer.Body)
			must.Hold(t, bytes.Contains(body, []byte("cannot be recorded")), "%s", body)
			continue
		}
		must.Do(t, err)
		must.Do(t, conn.Write(t.Context(), websocket.MessageText, []byte("hello")))
		_, text, err := conn.Read(t.Context())
		must.Hold(t, err == nil && string(text) == "hello!", "%q %v", text, err)
		_ = conn.CloseNow()
		p.wait(t, func() bool { return len(p.missed) == 1 && errors.Is(p.missed[0], ErrUpgrade) })
	}
}

// TestOfferOfHTTP2: an offer to speak HTTP in another way, as Java's client and 'curl --http2' make it, is ignored: the call is recorded over HTTP/1.1 in both modes, and the provider does not see
// the offer. An offer of a WebSocket beside it is not ignored.
func TestOfferOfHTTP2(t *testing.T) {
	for _, c := range []struct{ connection, upgrade, left string }{
		{"Upgrade, HTTP2-Settings", "h2c", ""},
		{"upgrade", "H2C", ""},
		{"HTTP2-Settings,keep-alive ,Upgrade", "h2c, HTTP/2.0", ""},
		{"Upgrade", "TLS/1.2, HTTP/1.1", ""},
		{"Upgrade", "h2c, websocket", "websocket"},
	} {
		for _, mode := range []Mode{Closed, Open} {
			p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				must.Hold(t, r.Header.Get("Upgrade") == c.left && r.Header.Get("Http2-Settings") == "" && (c.left != "" || r.Header.Get("Connection") == ""),
					"%s: the provider got %v", c.upgrade, r.Header)
				io.Copy(w, r.Body)
			}), func(o *Options) { o.Mode = mode })
			conn := must.Get(net.Dial("tcp", p.relay.Listener.Addr().String()))(t)
			defer conn.Close()
			fmt.Fprintf(conn, "POST /api/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: %s\r\nUpgrade: %s\r\nHTTP2-Settings: AAEAAEAA\r\nContent-Length: 5\r\n\r\nhello", c.connection, c.upgrade)
			answer := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
			text, err := io.ReadAll(answer.Body)
			if c.left != "" {
				must.Hold(t, mode != Closed || answer.StatusCode == http.StatusUpgradeRequired, "%s: %d %s", c.upgrade, answer.StatusCode, text)
				continue
			}
			must.Hold(t, err == nil && answer.StatusCode == http.StatusOK && string(text) == "hello",
				"%s, %v: %d %s %v", c.upgrade, mode, answer.StatusCode, text, err)
			if s := p.last(t, 1); s.outcome.Ended != Complete || s.call.Upgrade != "" || len(p.missed) > 0 {
				t.Errorf("%s, %v: %+v, missed %v", c.upgrade, mode, s.outcome, p.missed)
			}
		}
	}
}

// TestProtocolChangedUnasked: a provider cannot take a connection out of the record.
func TestProtocolChangedUnasked(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello")
		conn.Close()
	}), nil)
	answer, err := p.client.Get(p.url() + "/x")
	must.Need(t, err == nil && answer.StatusCode == http.StatusBadGateway, "%v %v", answer, err)
	answer.Body.Close()
	o := p.last(t, 1).outcome
	must.Hold(t, o.Ended == UpstreamError, "%+v", o)
}

// TestSlowClientSlowsTheProvider: what the client does not take is not read from the provider, but for what buffers hold.
func TestSlowClientSlowsTheProvider(t *testing.T) {
	const size = 61 << 20
	sent := make(chan int, 1)
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		part, n := make([]byte, 32<<10), 0
		defer func() { sent <- n }()
		for n < size {
			written, err := w.Write(part)
			if n += written; err != nil {
				return
			}
		}
	}), nil)
	answer := must.Get(p.client.Get(p.url() + "/x"))(t)
	must.Get(io.ReadFull(answer.Body, make([]byte, 1<<20)))(t)
	// The provider stands still when its connection's buffers are full. Then the spool does not grow, either.
	last := int64(-1)
	for held := p.handler.spool.held.Load(); held != last; held = p.handler.spool.held.Load() {
		last = held
		rest()
	}
	must.Hold(t, last <= size/2, "a client that has read 1 MiB let %d MiB be read", last>>20)
	answer.Body.Close()
	n := <-sent
	must.Hold(t, n < size, "the provider has sent everything")
	o := p.last(t, 1).outcome
	must.Hold(t, o.Ended == ClientGone && o.Delivered <= o.Response.Bytes, "%+v", o)
}

// FuzzEvents: however a body is cut into chunks, the finder lets the same bytes pass in the end, never takes back what passed, and lets nothing
// pass from the first terminal event on. Where that begins, is found here in another way: over the whole text at once.
func FuzzEvents(f *testing.F) {
	for _, e := range endings {
		if strings.HasPrefix(e.contentType, "text/event-stream") {
			f.Add([]byte(e.before+e.terminal), uint16(3))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		whole, cut := newEvents(Models.Watch, modelEnd), newEvents(Models.Watch, modelEnd)
		inPieces(t, whole, cut, body, int(size))
		must.Need(t, whole.n == int64(len(body)) && cut.n == whole.n, "%d and %d bytes were read of %d", whole.n, cut.n, len(body))
		if at, name := terminalEvent(body); at >= 0 && (whole.Safe() > int64(at) || whole.Found() == "") {
			t.Errorf("%d bytes may pass, though %s begins at %d; it finds %q", whole.Safe(), name, at, whole.Found())
		}
	})
}

// inPieces gives a body to one finder whole, and to the other in pieces: what may pass only grows, and both find the same.
func inPieces(t *testing.T, whole, cut finder, body []byte, size int) {
	t.Helper()
	whole.Write(body)
	var passed, read int64
	for chunk := range chunksOf(body, size) {
		cut.Write(chunk)
		read += int64(len(chunk))
		must.Need(t, cut.Safe() >= passed && cut.Safe() <= read, "%d of %d bytes may pass after %d", cut.Safe(), read, passed)
		passed = cut.Safe()
	}
	must.Need(t, whole.Safe() == cut.Safe() && whole.Found() == cut.Found(),
		"in one piece, %d bytes may pass, and it finds %q; in pieces of %d, %d and %q", whole.Safe(), whole.Found(), size, cut.Safe(), cut.Found())
}

// chunksOf cuts a body into pieces of a size.
func chunksOf(body []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(body) > 0 {
			n := min(size+1, len(body))
			if !yield(body[:n]) {
				return
			}
			body = body[n:]
		}
	}
}

var lineEnd = regexp.MustCompile(`\r\n|\r|\n`)

// terminalEvent finds the first terminal event that an empty line ends, by the algorithm of the HTML standard over the whole body.
func terminalEvent(body []byte) (int, string) {
	at := 0
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		at = 3
	}
	begin, name, data := -1, "", []string(nil)
	for at < len(body) {
		end := lineEnd.FindIndex(body[at:])
		if end == nil {
			return -1, ""
		}
		line := string(body[at : at+end[0]])
		if line == "" {
			if begin >= 0 && isTerminal(name, strings.Join(data, "\n")) {
				return begin, name
			}
			begin, name, data = -1, "", nil
		} else if line[0] != ':' {
			if begin < 0 {
				begin = at
			}
			field, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimPrefix(value, " "); field {
			case "event":
				name = value
			case "data":
				data = append(data, value)
			}
		}
		at += end[1]
	}
	return -1, ""
}

// isTerminal reads the data with a JSON library. What that refuses may or may not be held.
func isTerminal(name, data string) bool {
	if modelEnds[name] || strings.HasPrefix(data, "[DONE]") {
		return true
	}
	var object struct {
		Type       any `json:"type"`
		Candidates []struct {
			FinishReason any `json:"finishReason"`
		} `json:"candidates"`
	}
	if json.Unmarshal([]byte(data), &object) != nil {
		return false
	}
	kind, _ := object.Type.(string)
	for _, c := range object.Candidates {
		if reason, is := c.FinishReason.(string); is && reason != "FINISH_REASON_UNSPECIFIED" {
			return true
		}
	}
	return modelEnds[kind]
}

// FuzzDocument: the same for JSON documents. Of a document that is valid, the byte that closes it is held, or an element that has a finishReason.
func FuzzDocument(f *testing.F) {
	for _, e := range endings {
		if strings.HasPrefix(e.contentType, "application/json") {
			f.Add([]byte(e.before+e.terminal), uint16(3))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		whole, cut := newDocument(Models.Watch, modelEnd), newDocument(Models.Watch, modelEnd)
		inPieces(t, whole, cut, body, int(size))
		must.Need(t, whole.n == int64(len(body)) && cut.n == whole.n, "%d and %d bytes were read of %d", whole.n, cut.n, len(body))
		if !jsontext.Value(body).IsValid() {
			return
		}
		closes := bytes.LastIndexAny(body, "}]")
		trimmed := bytes.TrimRight(body, " \t\r\n")
		must.Hold(t, closes != len(trimmed)-1 || whole.Safe() <= int64(closes),
			"the byte that closes the document may pass: %d of %d", whole.Safe(), len(body))
		var elements []jsontext.Value
		if json.Unmarshal(body, &elements) != nil {
			return
		}
		for _, element := range elements {
			must.Hold(t, !isTerminal("", string(element)) || strings.Contains(string(element), `"type"`) || whole.Found() != "", "%s is not found", element)
		}
	})
}

// FuzzCompressed: hostile compressed bytes do not make a decoder fail or hang, what passes only grows, and a client can decode no more of it than the
// finder of the decoded body lets pass.
func FuzzCompressed(f *testing.F) {
	for _, encoding := range encodings[1:] {
		f.Add(encoding, bytes.Join(encode(f, encoding, []byte("data: {}\n\n"), []byte("data: [DONE]\n\n")), nil), uint16(3))
	}
	f.Fuzz(func(t *testing.T, encoding string, body []byte, size uint16) {
		inner := newEvents(Models.Watch, modelEnd)
		c := newCompressed(encoding, 1<<16, inner)
		defer c.Close()
		var passed int64
		for chunk := range chunksOf(body, int(size)) {
			c.Write(chunk)
			must.Need(t, c.Safe() >= passed && c.Safe() <= c.n, "%d of %d bytes may pass after %d", c.Safe(), c.n, passed)
			passed = c.Safe()
		}
		if c.err != nil && !errors.Is(c.err, io.EOF) {
			return
		}
		had := int64(len(plain(t, encoding, body[:passed])))
		must.Hold(t, had <= inner.Safe(), "%d of %d bytes pass, of which a client decodes %d bytes, and may have %d", passed, len(body), had, inner.Safe())
	})
}

// half begins a request whose body does not end, and returns its connection.
func half(t *testing.T, p *proxied, token string, sent int) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := must.Get(net.Dial("tcp", p.relay.Listener.Addr().String()))(t)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /api/x HTTP/1.1\r\nHost: 127.0.0.1\r\n%s: Bearer %s\r\nContent-Length: 10000000\r\n\r\n%s", agentHeader, token, strings.Repeat("x", sent))
	return conn, bufio.NewReader(conn)
}

// known takes tokens that begin with "of-".
func known(_ context.Context, token string) (string, error) {
	agent, is := strings.CutPrefix(token, "of-")
	if !is && token != "" {
		return "", &Refusal{Status: http.StatusUnauthorized, Reason: "nobody has this token"}
	}
	return agent, nil
}

// TestStrangersTakeNoRoom: a request without a token that counts is answered before its body is there, and nothing of it is kept.
func TestStrangersTakeNoRoom(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		for _, token := range []string{"a-stranger", "of"} {
			p := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") }), func(o *Options) { o.Mode, o.AgentOf = mode, known })
			_, from := half(t, p, token, 500_000)
			answer, err := http.ReadResponse(from, nil)
			must.Need(t, err == nil && answer.StatusCode == http.StatusUnauthorized, "%v, %s: %v %v", mode, token, answer, err)
			p.empty(t)
			must.Hold(t, len(p.seen)+len(p.missed) == 0, "the witness was asked")
		}
	}
}

// TestBodyDoesNotCome: a body that does not come in time is refused, and what it took is given back. One that comes slowly is taken.
func TestBodyDoesNotCome(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }), func(o *Options) { o.BodyTimeout, o.AgentOf = 50*time.Millisecond, known })
	_, from := half(t, p, "of-mia", 10_000)
	answer, err := http.ReadResponse(from, nil)
	must.Need(t, err == nil && answer.StatusCode == http.StatusRequestTimeout, "%v %v", answer, err)
	p.wait(t, func() bool { return p.handler.spool.held.Load() == 0 })
	answer = must.Get(p.client.Post(p.url()+"/x", "text/plain", strings.NewReader("all of it")))(t)
	rest()
	rest() // the time of a body does not count once it is there
	text, err := io.ReadAll(answer.Body)
	must.Hold(t, err == nil && string(text) == "all of it", "%s %v", text, err)
	answer.Body.Close()
}

// TestRoomByCaller: one caller whose requests fill the spool leaves room for another one.
func TestRoomByCaller(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // of one that leaves, there is a part
		_, _ = w.Write(text)
	}), func(o *Options) { o.Cap, o.MemoryPerBody, o.AgentOf = 1<<20, 1<<20, known })
	refused := make(chan bool, 12)
	for range cap(refused) {
		_, from := half(t, p, "of-eve", 100_000)
		go func() {
			if answer, err := http.ReadResponse(from, nil); err == nil && answer.StatusCode == http.StatusServiceUnavailable {
				refused <- true
			}
		}()
	}
	held := p.handler.spool.held.Load
	for end := time.Now().Add(time.Minute); (len(refused) == 0 || held() < 500_000) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	must.Hold(t, len(refused) != 0 && held() <= 850_000 && held() >= 500_000,
		"one caller holds %d of %d bytes, %d calls were refused", held(), 1<<20, len(refused))
	for _, token := range []string{"of-mia", ""} {
		req := must.Get(http.NewRequest("POST", p.url()+"/x", strings.NewReader(strings.Repeat("y", 50_000))))(t)
		if token != "" {
			req.Header.Set(agentHeader, "Bearer "+token)
		}
		answer := must.Get(p.client.Do(req))(t)
		text, err := io.ReadAll(answer.Body)
		must.Hold(t, err == nil && len(text) == 50_000, "%q: %d, %d bytes, %v", token, answer.StatusCode, len(text), err)
		answer.Body.Close()
	}
}

func TestNetworkOf(t *testing.T) {
	for address, want := range map[string]string{"192.0.2.1:80": "192.0.2.1/32", "[::ffff:192.0.2.1]:80": "192.0.2.1/32", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[::1]:80": "::1/128", "@": "@"} {
		must.Equal(t, networkOf(address), want, address)
	}
}
