package relay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"jurat/internal/must"
)

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
				if came != want {
					t.Errorf("%q, want %q", came, want)
				}
				s := p.last(t, 1)
				if s.call.MCPVersion() != "2025-11-25" || len(s.call.Session) != 64 || s.call.Session != s.outcome.Session || strings.Contains(fmt.Sprint(s.call, s.outcome.Header), "marked") || len(s.call.Credentials) != 1 {
					t.Errorf("%+v", s.call)
				}
				if s.outcome.Terminal != response {
					t.Errorf("terminal event %q", s.outcome.Terminal)
				}
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
		if answer.StatusCode != 404 && answer.StatusCode != 421 {
			t.Errorf("%s: status %d", path, answer.StatusCode)
		}
	}
	if asked != 0 || len(p.seen) != 0 {
		t.Errorf("the server was asked %d times", asked)
	}
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
		if got := <-said; got != test.want {
			t.Errorf("%s: %q, want %q", test.body, got, test.want)
		}
	}
}
