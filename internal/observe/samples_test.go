package observe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/convo"
	"jurat/internal/must"
	"jurat/internal/observe"
)

// A sample is a call in a vendor's published form: its request, its answer in one piece and as a stream, and what both
// say.
type sample struct {
	name   string
	call   observe.Call
	whole  string
	stream string
	array  bool   // the stream is a JSON array
	stops  string // in the stream, where all answers have stopped; "": at its end
	want   string // the projection
}

var chatSample = sample{
	name: "chat",
	call: observe.Call{Protocol: observe.OpenAIChat, Path: "/v1/chat/completions", Status: 200, Request: []byte(`{"model":"gpt-5.2","temperature":0.5,"stream":true,"n":2,
		"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}},{"type":"custom","custom":{"name":"say"}}],
		"messages":[
		{"role":"developer","content":"Be kind."},
		{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}},{"type":"image_url","image_url":{"url":"https://u:p@example.org/a.png?sig=s"}},{"type":"file","file":{"file_id":"file-7"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"look","arguments":"{\"at\": 1e400}"}}]},
		{"role":"tool","tool_call_id":"c0","content":"a tree"}]}`)},
	whole: `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-5.2-2026-01-01","system_fingerprint":"fp_1","choices":[
		{"index":1,"finish_reason":"stop","message":{"role":"assistant","content":"No.","reasoning_content":"no"}},
		{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"It is so.","reasoning_content":"hm","refusal":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"c2","type":"custom","custom":{"name":"say","input":"hi"}}]}}],
		"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"cost":0.25}}`,
	stream: events(
		`{"id":"chatcmpl-1","model":"gpt-5.2-2026-01-01","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm","content":"It is","refusal":null},"finish_reason":null}],"usage":null}`,
		`{"id":"chatcmpl-1","model":"gpt-5.2-2026-01-01","choices":[{"index":1,"delta":{"role":"assistant","content":"No."}}]}`,
		`{"choices":[{"index":0,"delta":{"content":" so.","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},{"index":1,"id":"c2","type":"custom","custom":{"name":"say","input":""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"custom":{"input":"hi"}}]}}]}`,
		`{"choices":[{"index":1,"delta":{},"finish_reason":"stop"},{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":null}]}`,
		`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"cost":0.25}}`,
		`[DONE]`),
	stops: `"finish_reason":"tool_calls"}]}`,
	want: `{
		"model": "gpt-5.2", "model_version": "gpt-5.2-2026-01-01", "provider_id": "chatcmpl-1",
		"parameters": {"n": 2, "stream": true, "temperature": 0.5, "tools": ["look", "say"]},
		"prompt": [
			{"role": "developer", "content": "Be kind."},
			{"role": "user", "content": [{"type": "text", "text": "What is this?"},
				{"type": "image_url", "bytes": 5, "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "media_type": "image/png"},
				{"type": "image_url", "url": "https://example.org/a.png"}, {"type": "file", "file_id": "file-7"}]},
			{"role": "assistant", "content": "", "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1e400}"}}]},
			{"role": "tool", "tool_call_id": "c0", "content": "a tree"}],
		"response": {"role": "assistant", "content": "It is so.", "tool_calls": [
			{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}, {"id": "c2", "type": "custom", "custom": {"name": "say", "input": "hi"}}]},
		"alternatives": 1,
		"finish": "tool_calls", "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "cost": 0.25},
		"context_by_reference": ["file:file-7", "url"],
		"complete": true}`,
}

var samples = []sample{chatSample, messagesSample, responsesSample, generateSample, generateArraySample}

// events writes data as server-sent events.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// What a call says: the view of it, and its facts.
type said struct {
	observe.Projection `json:",inline"`
	Model              string         `json:"model,omitzero"`
	ModelVersion       string         `json:"model_version,omitzero"`
	Parameters         jsontext.Value `json:"parameters,omitzero"`
	Usage              jsontext.Value `json:"usage,omitzero"`
	ContextByReference []string       `json:"context_by_reference,omitzero"`

	Calls []convo.ChatToolCall `json:"-"` // of the answer
}

// project reads a call.
func project(t testing.TB, c observe.Call) said {
	t.Helper()
	p := must.Get(observe.Project(c))(t)
	f := factsOf(c)
	s := said{p, f.Model, f.ModelVersion, f.Parameters, f.Usage, f.ContextByReference, nil}
	for _, m := range p.Answered {
		s.Calls = append(s.Calls, m.ToolCalls...)
	}
	s.Asked, s.Answered, s.Problems = nil, nil, nil // Prompt, Output and Problem are the same
	return s
}

// TestSamples: a call says what its vendor's documents mean, and a stream says the same as the answer in one piece.
func TestSamples(t *testing.T) {
	for _, s := range slices.Concat(samples, a2aSamples) {
		c := s.call
		c.Response, c.ResponseType = []byte(s.whole), "application/json"
		got := project(t, c)
		if diff := cmp.Diff(form(t, []byte(s.want)), form(t, marshal(t, got))); diff != "" {
			t.Errorf("%s, in one piece (-want +got):\n%s", s.name, diff)
		}
		for _, ends := range []string{"\n", "\r\n", "\r"} {
			if s.array {
				c.Response, c.ResponseType = []byte(s.stream), "application/json"
			} else {
				c.Response, c.ResponseType = []byte("\ufeff"+strings.ReplaceAll(strings.Replace(s.stream, "\n\n", "\n\n: keep-alive\n\n", 1), "\n", ends)), "text/event-stream; charset=utf-8"
			}
			if diff := cmp.Diff(got, project(t, c)); diff != "" {
				t.Errorf("%s (-in one piece +as a stream):\n%s", s.name, diff)
			}
		}
	}
}

// TestCutAnywhere: whatever part of a stream arrives, what arrived is read, and the answer is not complete before all answers have stopped.
func TestCutAnywhere(t *testing.T) {
	for _, s := range slices.Concat(samples, a2aSamples) {
		c := s.call
		if c.ResponseType = "text/event-stream"; s.array {
			c.ResponseType = "application/json"
		}
		c.Response = []byte(s.stream)
		last := string(project(t, c).Output)
		least := 2 // the last line end may be missing
		if s.array {
			least = 1
		}
		for n := range len(s.stream) - least {
			c.Response = []byte(s.stream[:n])
			p := project(t, c)
			if s.stops != "" && n >= strings.Index(s.stream, s.stops)+len(s.stops) {
				p.Complete = !p.Complete
			}
			if p.Complete || p.State != "" || p.Problem != "" || p.Model == "" && s.call.Protocol != observe.GeminiGenerate && !strings.HasPrefix(s.call.Protocol, "a2a") {
				t.Fatalf("%s, the first %d bytes: %+v", s.name, n, p)
			}
			if text := string(p.Output); n > len(s.stream)*9/10 && text == "" && s.call.Protocol != observe.A2A10 || len(text) > len(last) {
				t.Fatalf("%s, the first %d bytes: %s", s.name, n, text)
			}
		}
	}
}
