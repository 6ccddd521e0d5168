package relay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"jurat/internal/must"
)

// TestBombs: bodies that grow a thousandfold when they are decoded pass as they are, both ways, and are not decoded to their end.
func TestBombs(t *testing.T) {
	for _, encoding := range encodings[1:] {
		bomb := bytes.Join(encode(t, encoding, make([]byte, 8<<20)), nil)
		c := newCompressed(encoding, 1<<20, &opaque{})
		c.Write(bomb)
		if !errors.Is(c.err, ErrRefused) || c.decoded > 1<<20 {
			t.Errorf("%s: %d bytes are decoded along the way, %v", encoding, c.decoded, c.err)
		}
		c.Close()
		p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if !bytes.Equal(body, bomb) {
				t.Error("the provider got other bytes")
			}
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
				if n, err := io.Copy(io.Discard, d); !errors.Is(err, ErrRefused) || n > 1<<20 {
					t.Errorf("%s, %s: %d bytes were decoded, %v", encoding, name, n, err)
				}
			}
			return nil
		})
		req, _ := http.NewRequest(http.MethodPost, p.url()+"/x", bytes.NewReader(bomb))
		req.Header.Set("Content-Encoding", encoding)
		answer := must.Get(p.client.Do(req))(t)
		if body, err := io.ReadAll(answer.Body); err != nil || !bytes.Equal(body, bomb) {
			t.Errorf("%s: the client got %d bytes, %v", encoding, len(body), err)
		}
		if o := p.last(t, 1).outcome; o.Ended != Complete {
			t.Errorf("%+v", o)
		}
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
		if got, err := io.ReadAll(answer.Body); err == nil || string(got) != body[:len(body)-tail] {
			t.Errorf("%s: the client got %d of %d bytes, %v", encoding, len(got), len(body), err)
		}
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
		if got, err := io.ReadAll(answer.Body); err != nil || string(got) != body {
			t.Errorf("%.40q: the client got %d of %d bytes, %v", body, len(got), len(body), err)
		}
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
			if err == nil || answer == nil || answer.StatusCode != http.StatusUpgradeRequired {
				t.Fatalf("%v %v", answer, err)
			}
			if body, _ := io.ReadAll(answer.Body); !bytes.Contains(body, []byte("cannot be recorded")) {
				t.Errorf("%s", body)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		must.Do(t, conn.Write(t.Context(), websocket.MessageText, []byte("hello")))
		if _, text, err := conn.Read(t.Context()); err != nil || string(text) != "hello!" {
			t.Errorf("%q %v", text, err)
		}
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
				if r.Header.Get("Upgrade") != c.left || r.Header.Get("Http2-Settings") != "" || c.left == "" && r.Header.Get("Connection") != "" {
					t.Errorf("%s: the provider got %v", c.upgrade, r.Header)
				}
				io.Copy(w, r.Body)
			}), func(o *Options) { o.Mode = mode })
			conn := must.Get(net.Dial("tcp", p.relay.Listener.Addr().String()))(t)
			defer conn.Close()
			fmt.Fprintf(conn, "POST /api/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: %s\r\nUpgrade: %s\r\nHTTP2-Settings: AAEAAEAA\r\nContent-Length: 5\r\n\r\nhello", c.connection, c.upgrade)
			answer := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
			text, err := io.ReadAll(answer.Body)
			if c.left != "" {
				if mode == Closed && answer.StatusCode != http.StatusUpgradeRequired {
					t.Errorf("%s: %d %s", c.upgrade, answer.StatusCode, text)
				}
				continue
			}
			if err != nil || answer.StatusCode != http.StatusOK || string(text) != "hello" {
				t.Errorf("%s, %v: %d %s %v", c.upgrade, mode, answer.StatusCode, text, err)
			}
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
	if err != nil || answer.StatusCode != http.StatusBadGateway {
		t.Fatalf("%v %v", answer, err)
	}
	answer.Body.Close()
	if o := p.last(t, 1).outcome; o.Ended != UpstreamError {
		t.Errorf("%+v", o)
	}
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
	if last > size/2 {
		t.Errorf("a client that has read 1 MiB let %d MiB be read", last>>20)
	}
	answer.Body.Close()
	if n := <-sent; n >= size {
		t.Error("the provider has sent everything")
	}
	if o := p.last(t, 1).outcome; o.Ended != ClientGone || o.Delivered > o.Response.Bytes {
		t.Errorf("%+v", o)
	}
}
