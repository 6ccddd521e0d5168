package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"jurat/internal/court/llm/llmtest"
	"jurat/internal/tap/relay"
	"jurat/internal/test/must"
)

// witness remembers outcomes, and can fail.
type witness struct {
	fails error

	mu       sync.Mutex // held while outcomes is used
	outcomes []relay.Outcome
}

func (w *witness) Begin(context.Context, *relay.Call) (relay.Exchange, error) { return w, nil }
func (w *witness) Missed(*relay.Call, error)                                  {}

func (w *witness) End(_ context.Context, o *relay.Outcome) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes = append(w.outcomes, *o)
	return w.fails
}

// sees fails if the witness does not see the end of n calls, and of no others. An SDK may leave an answer before its end, which the relay then finds out.
func (w *witness) sees(t *testing.T, n int) {
	t.Helper()
	var seen int
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		seen = len(w.outcomes)
		w.mu.Unlock()
		if seen >= n {
			break
		}
	}
	must.Hold(t, seen == n, "the witness saw %d calls of %d", seen, n)
}

// through starts a relay before a provider, and returns the address by which it is asked instead.
func through(t *testing.T, provider string, w *witness) string {
	t.Helper()
	base := must.Get(url.Parse(provider))(t)
	h := must.Get(relay.New(w, relay.Options{
		Upstreams: map[string]relay.Upstream{"provider": {Base: base}}, Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32),
		Log: slog.New(slog.DiscardHandler),
	}))(t)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL + "/provider"
}

// An sdk asks a provider at a base address and says in JSON what it got.
type sdk struct {
	name   string
	vendor llmtest.Vendor
	path   string // what the SDK's base address has after the host
	ask    func(ctx context.Context, base, key string, retries int) (any, error)
	stream func(ctx context.Context, base, key string) (any, error)
	events string // what a provider streams
	done   string // the terminal event
	broken string // an error in the stream; "" if the protocol has none
}

var sdks = []sdk{
	{
		name: "openai chat", vendor: llmtest.Compatible, path: "/v1",
		ask: func(ctx context.Context, base, key string, retries int) (any, error) {
			return chatClient(base, key, retries).Chat.Completions.New(ctx, chatParams)
		},
		stream: func(ctx context.Context, base, key string) (any, error) {
			s := chatClient(base, key, 0).Chat.Completions.NewStreaming(ctx, chatParams)
			defer s.Close()
			var all openai.ChatCompletionAccumulator
			var raw []string
			for s.Next() {
				all.AddChunk(s.Current())
				raw = append(raw, s.Current().RawJSON())
			}
			return []any{all.ChatCompletion, raw}, s.Err()
		},
		events: `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}]}

: keep-alive

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":"}}]},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Tōkyō\"}"}}]},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}

`,
		done:   "data: [DONE]\n\n",
		broken: "data: {\"error\":{\"message\":\"The server had an error\",\"type\":\"server_error\"}}\n\n",
	},
	{
		name: "openai responses", vendor: llmtest.OpenAI, path: "/v1",
		ask: func(ctx context.Context, base, key string, retries int) (any, error) {
			return chatClient(base, key, retries).Responses.New(ctx, responseParams)
		},
		stream: func(ctx context.Context, base, key string) (any, error) {
			s := chatClient(base, key, 0).Responses.NewStreaming(ctx, responseParams)
			defer s.Close()
			var raw []string
			for s.Next() {
				raw = append(raw, s.Current().Type+" "+s.Current().RawJSON())
			}
			return raw, s.Err()
		},
		events: `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"r1","object":"response","status":"in_progress","model":"gpt-x","output":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":1,"item_id":"m1","output_index":0,"content_index":0,"delta":"Hello","logprobs":[]}

`,
		done: "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"r1\",\"object\":\"response\",\"status\":\"completed\",\"model\":\"gpt-x\",\"output\":[]}}\n\n",
	},
	{
		name: "anthropic", vendor: llmtest.Anthropic,
		ask: func(ctx context.Context, base, key string, retries int) (any, error) {
			c := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey(key), anthropicoption.WithMaxRetries(retries))
			return c.Messages.New(ctx, messageParams)
		},
		stream: func(ctx context.Context, base, key string) (any, error) {
			c := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey(key), anthropicoption.WithMaxRetries(0))
			s := c.Messages.NewStreaming(ctx, messageParams)
			defer s.Close()
			var all anthropic.Message
			var kinds []string
			for s.Next() {
				kinds = append(kinds, s.Current().Type)
				if err := all.Accumulate(s.Current()); err != nil {
					return nil, err
				}
			}
			return []any{all, kinds}, s.Err()
		},
		events: `event: message_start
data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"weather","input":{}}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\":\"T\u014dky\u014d\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}}

`,
		done:   "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		broken: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
	},
	{
		name: "genai", vendor: llmtest.Gemini,
		ask: func(ctx context.Context, base, key string, _ int) (any, error) {
			c, err := geminiClient(ctx, base, key)
			if err != nil {
				return nil, err
			}
			answer, err := c.Models.GenerateContent(ctx, "gemini-x", genai.Text("hello"), nil)
			if answer != nil && answer.SDKHTTPResponse != nil {
				answer.SDKHTTPResponse.Headers.Del("Date")
			}
			return answer, err
		},
		stream: func(ctx context.Context, base, key string) (any, error) {
			c, err := geminiClient(ctx, base, key)
			if err != nil {
				return nil, err
			}
			var all []any
			for chunk, err := range c.Models.GenerateContentStream(ctx, "gemini-x", genai.Text("hello"), nil) {
				if err != nil {
					return all, err
				}
				chunk.SDKHTTPResponse = nil
				all = append(all, chunk)
			}
			return all, nil
		},
		events: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hel\"}],\"role\":\"model\"},\"index\":0}],\"modelVersion\":\"gemini-x-001\"}\r\n\r\n" +
			"data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"weather\",\"args\":{\"city\":\"Tōkyō\"}}}],\"role\":\"model\"},\"index\":0}]}\r\n\r\n",
		done: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"lo\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":7}}\r\n\r\n",
	},
}

var (
	chatParams     = openai.ChatCompletionNewParams{Model: "gpt-x", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")}}
	responseParams = responses.ResponseNewParams{Model: "gpt-x", Store: openai.Bool(false), Input: responses.ResponseNewParamsInputUnion{
		OfInputItemList: responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("hello", responses.EasyInputMessageRoleUser)},
	}}
	messageParams = anthropic.MessageNewParams{Model: "claude-x", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))}}
)

func chatClient(base, key string, retries int) *openai.Client {
	c := openai.NewClient(openaioption.WithBaseURL(base), openaioption.WithAPIKey(key), openaioption.WithMaxRetries(retries))
	return &c
}

func geminiClient(ctx context.Context, base, key string) (*genai.Client, error) {
	return genai.NewClient(ctx, &genai.ClientConfig{APIKey: key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: base}})
}

// said is what an SDK made of an answer, without what differs from call to call.
func said(t *testing.T, result any, err error) string {
	t.Helper()
	text := must.Get(json.MarshalIndent(result, "", " "))(t)
	// Some errors have the body in further lines, which the servers write with its members in any order.
	reason, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	reason = inBraces.ReplaceAllStringFunc(reason, sorted)
	return differs.ReplaceAllString(fmt.Sprintf("%s\nerror: %s", text, reason), "")
}

// differs matches addresses, of which a relay has its own.
var differs = regexp.MustCompile(`http://127\.0\.0\.1:\d+(/provider)?|127\.0\.0\.1:\d+(->127\.0\.0\.1:\d+)?`)

var inBraces = regexp.MustCompile(`\{.*\}`)

// sorted returns a JSON object with its members in order.
func sorted(object string) string {
	var members any
	if json.Unmarshal([]byte(object), &members) != nil {
		return object
	}
	text, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return string(text)
}

// streaming is a provider that answers every call with the same events, in small pieces.
func streaming(t *testing.T, body string, cut bool) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("X-Request-Id", "req_1")
		for len(body) > 0 {
			n := min(len(body), 37)
			_, _ = io.WriteString(w, body[:n])
			w.(http.Flusher).Flush()
			body = body[n:]
		}
		if cut {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestStreams: SDKs make the same of streams, whole, with an error in them, and cut off.
func TestStreams(t *testing.T) {
	for _, s := range sdks {
		for name, c := range map[string]struct {
			body string
			cut  bool
		}{
			"whole": {s.events + s.done, false}, "without its end": {s.events, false}, "cut off": {s.events, true}, "cut off in an event": {s.events + s.done[:10], true},
			"an error in it": {s.events + s.broken, false}, "empty": {"", false},
		} {
			t.Run(s.name+" "+name, func(t *testing.T) {
				result, err := s.stream(t.Context(), streaming(t, c.body, c.cut)+s.path, "key")
				direct := said(t, result, err)
				w := &witness{}
				result, err = s.stream(t.Context(), through(t, streaming(t, c.body, c.cut), w)+s.path, "key")
				must.Equal(t, said(t, result, err), direct, "through the relay, the SDK says")
				must.Hold(t, name != "whole" || err == nil && (strings.Contains(direct, "Hello") || strings.Contains(direct, "Tōkyō")), "%v\n%s", err, direct)
				w.sees(t, 1)
			})
		}
	}
}

// TestNoEndWithoutARecord: if the witness cannot record a call, no SDK takes the answer for complete: it reports an error, or its terminal event is missing.
func TestNoEndWithoutARecord(t *testing.T) {
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			w := &witness{fails: errors.New("the disk is full")}
			result, err := s.stream(t.Context(), through(t, streaming(t, s.events+s.done, false), w)+s.path, "key")
			if err == nil {
				t.Errorf("the SDK reports no error, and %s", said(t, result, err))
			}
			server := llmtest.New(t, s.vendor, llmtest.Say("hello"))
			if result, err := s.ask(t.Context(), through(t, strings.TrimSuffix(server.URL, s.path), w)+s.path, server.Key, 0); err == nil {
				t.Errorf("the SDK reports no error, and %s", said(t, result, err))
			}
		})
	}
}

// TestAnswers: SDKs make the same of answers and failures, and repeat calls alike. The servers check each request strictly.
func TestAnswers(t *testing.T) {
	for _, s := range sdks {
		for name, script := range map[string]llmtest.Script{
			"an answer":    llmtest.Say("hello, Tōkyō"),
			"a retry":      llmtest.InTurn(llmtest.Reply{Failure: llmtest.ServerError}, llmtest.Reply{Text: "at last"}),
			"rate limited": llmtest.InTurn(llmtest.Reply{Failure: llmtest.RateLimited}, llmtest.Reply{Text: "at last"}),
			"unauthorised": llmtest.Always(llmtest.Reply{Failure: llmtest.Unauthorised}),
			"blocked":      llmtest.Always(llmtest.Reply{Failure: llmtest.Blocked}),
			"malformed":    llmtest.Always(llmtest.Reply{Failure: llmtest.Malformed}),
			"cut off":      llmtest.Always(llmtest.Reply{Failure: llmtest.BodyCut}),
			"a page":       llmtest.Always(llmtest.Reply{Failure: llmtest.NotJSON}),
		} {
			t.Run(s.name+" "+name, func(t *testing.T) {
				retries := 2
				if name == "cut off" {
					retries = 0
				}
				first := llmtest.New(t, s.vendor, script)
				result, err := s.ask(t.Context(), strings.TrimSuffix(first.URL, s.path)+s.path, first.Key, retries)
				direct := said(t, result, err)
				second, w := llmtest.New(t, s.vendor, script), &witness{}
				result, err = s.ask(t.Context(), through(t, strings.TrimSuffix(second.URL, s.path), w)+s.path, second.Key, retries)
				relayed := said(t, result, err)
				if name == "cut off" && strings.Contains(direct, "EOF") && strings.Contains(relayed, "502") {
					relayed = direct // the provider said nothing at all, which the relay can only tell in an answer
				}
				must.Hold(t, relayed == direct, "directly, the SDK says\n%s\nand through the relay\n%s", direct, relayed)
				must.Hold(t, len(first.Requests()) == len(second.Requests()),
					"directly, there were %d calls, and through the relay %d", len(first.Requests()), len(second.Requests()))
				w.sees(t, len(second.Requests()))
			})
		}
	}
}
