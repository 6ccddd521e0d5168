package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"testing/iotest"

	"jurat/internal/must"
)

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
var jsonRPC = &Protocol{Name: "json-rpc", Watched: []string{"id", "result"}, Ends: func(request *Body) func(Event) (string, bool) {
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
	if had := plain(t, encoding, got); had != e.before {
		t.Errorf("before the call is recorded, the client has\n%q, and should have\n%q", had, e.before)
	}
	goOn <- true
	rest, err := io.ReadAll(answer.Body)
	if fails && (err == nil || len(rest) > 0) || !fails && (err != nil || !bytes.Equal(append(got, rest...), body)) {
		t.Errorf("after the witness failed (%v), the client gets %q and %v", fails, rest, err)
	}
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
	var out []byte
	l := newLockstep(encoding, 1<<20, func(p []byte) { out = append(out, p...) }, func(int64) {})
	_ = l.Write(body)
	l.Close()
	return string(out)
}

// TestDecodersReadInStep: decoders give out everything that was flushed before they ask for more, however small the pieces are.
func TestDecodersReadInStep(t *testing.T) {
	parts := [][]byte{[]byte("data: one\n\n"), bytes.Repeat([]byte("x"), 5000), []byte("data: two\n\n"), []byte("y")}
	for _, encoding := range encodings[1:] {
		var out []byte
		var at int64
		l := newLockstep(encoding, 1<<20, func(p []byte) { out = append(out, p...) }, func(n int64) { at = n })
		var want []byte
		var n int64
		for i, part := range encode(t, encoding, parts...) {
			want = append(want, parts[i]...)
			for _, b := range part {
				_ = l.Write([]byte{b})
			}
			n += int64(len(part))
			if i < len(parts)-1 && (!bytes.Equal(out, want) || at != n) {
				t.Errorf("%s: after part %d, %d bytes are decoded of %d, and %d of %d settled", encoding, i, len(out), len(want), at, n)
			}
		}
		l.Close()
		if err := l.Write(nil); !bytes.Equal(out, want) || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d bytes of %d, %v", encoding, len(out), len(want), err)
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
			if limit == 6000 && (err != nil || string(got) != text) || limit < 6000 && !errors.Is(err, ErrRefused) {
				t.Errorf("%q, limit %d: %d bytes and %v", encoding, limit, len(got), err)
			}
			if err := errors.Join(d.Close(), b.release()); err != nil {
				t.Error(err)
			}
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
			if _, body, _ := strings.Cut(string(answer), "\r\n\r\n"); body != want {
				t.Errorf("%s, fails %v: the client got %d of %d bytes", contentType, fails, len(body), len(c.body))
			}
		}
	}
}
