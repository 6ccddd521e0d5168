package relay

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"jurat/internal/must"
)

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
			if err != nil || answer.StatusCode != http.StatusUnauthorized {
				t.Fatalf("%v, %s: %v %v", mode, token, answer, err)
			}
			p.empty(t)
			if len(p.seen)+len(p.missed) > 0 {
				t.Errorf("the witness was asked")
			}
		}
	}
}

// TestBodyDoesNotCome: a body that does not come in time is refused, and what it took is given back. One that comes slowly is taken.
func TestBodyDoesNotCome(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }), func(o *Options) { o.BodyTimeout, o.AgentOf = 50*time.Millisecond, known })
	_, from := half(t, p, "of-mia", 10_000)
	answer, err := http.ReadResponse(from, nil)
	if err != nil || answer.StatusCode != http.StatusRequestTimeout {
		t.Fatalf("%v %v", answer, err)
	}
	p.wait(t, func() bool { return p.handler.spool.held.Load() == 0 })
	answer = must.Get(p.client.Post(p.url()+"/x", "text/plain", strings.NewReader("all of it")))(t)
	rest()
	rest() // the time of a body does not count once it is there
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "all of it" {
		t.Errorf("%s %v", text, err)
	}
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
	if len(refused) == 0 || held() > 850_000 || held() < 500_000 {
		t.Errorf("one caller holds %d of %d bytes, %d calls were refused", held(), 1<<20, len(refused))
	}
	for _, token := range []string{"of-mia", ""} {
		req := must.Get(http.NewRequest("POST", p.url()+"/x", strings.NewReader(strings.Repeat("y", 50_000))))(t)
		if token != "" {
			req.Header.Set(agentHeader, "Bearer "+token)
		}
		answer := must.Get(p.client.Do(req))(t)
		if text, err := io.ReadAll(answer.Body); err != nil || len(text) != 50_000 {
			t.Errorf("%q: %d, %d bytes, %v", token, answer.StatusCode, len(text), err)
		}
		answer.Body.Close()
	}
}

func TestNetworkOf(t *testing.T) {
	for address, want := range map[string]string{"192.0.2.1:80": "192.0.2.1/32", "[::ffff:192.0.2.1]:80": "192.0.2.1/32", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[::1]:80": "::1/128", "@": "@"} {
		if got := networkOf(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
