package relay

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/internal/must"
)

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
				if len(c.response) > 0 || !c.outcome.Response.Apart {
					t.Errorf("the record has the endpoint: %q", c.response)
				}
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
	if c := p.last(t, 1); err != nil || string(got) != text || string(c.response) != text || c.outcome.Ended != Complete {
		t.Errorf("%q %v %+v", got, err, c.outcome)
	}
}
