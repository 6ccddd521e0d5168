package observe_test

import (
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/observe"
)

// many are calls with more values than are read, and some that only look so.
func many() []observe.Call {
	list := func(of string, n int) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]" }
	const most = evidence.MaxValues
	chat := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	return []observe.Call{
		{Protocol: observe.OpenAIChat, Request: []byte(`{"model":"m","messages":` + list("{}", most/2) + `}`)},
		{Protocol: observe.OpenAIChat, Request: []byte(chat), Status: 200, ResponseType: "application/json", Response: []byte(`{"model":"m","choices":` + list("{}", most/2) + `}`)},
		{Protocol: observe.OpenAIChat, Request: []byte(chat), Status: 200, ResponseType: "text/event-stream", Response: []byte("data: \"\n\n" + strings.Repeat("data: "+list("{}", 1000)+"\n\n", 4*most/1000+1))},
		{Protocol: observe.AnthropicMessages, Request: []byte(`{"model":"m","messages":[{"role":"user","content":` + list("[]", most/2) + `}]}`)},
		{Protocol: observe.GeminiGenerate, Path: "/v1beta/models/g:generateContent", Request: []byte(`{"contents":[{"parts":` + list("{}", most/2) + `}]}`)},
		{Protocol: observe.OpenAIResponses, Request: []byte(`{"model":"m","input":` + list("1", most+1) + `}`)},
		{Protocol: observe.A2A10, Request: []byte(`{"message":{"parts":` + list("{}", most/2) + `}}`)},
		{Protocol: "mcp/2025-06-18", Request: []byte(list("{}", most/2+1))},
		{Protocol: observe.OTLP, Request: []byte(`{"resourceSpans":` + list("{}", most/2) + `}`)},
	}
}

// TestManyValues: a body with more values than are read says nothing, and the projection says why. Commas and brackets in texts are no values.
func TestManyValues(t *testing.T) {
	for _, c := range many() {
		p := project(t, c)
		if p.State != observe.Failed || !strings.Contains(p.Problem, "more than 262144 values") && !strings.Contains(p.Problem, "answer: more than 2097152 values") || p.Prompt != nil || p.Output != nil {
			t.Errorf("%s: %s: %s", c.Protocol, p.State, p.Problem)
		}
	}
	words := strings.Repeat(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}`+"\n\n", evidence.MaxValues/8) + "data: [DONE]\n\n"
	if p := project(t, observe.Call{Protocol: observe.OpenAIChat, Request: []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`), Status: 200, ResponseType: "text/event-stream", Response: []byte(words)}); len(p.Output) < evidence.MaxValues/8 {
		t.Errorf("a long stream: %s %s", p.State, p.Problem)
	}
	text := strings.Repeat(`,[{\"`, evidence.MaxValues)
	c := observe.Call{Protocol: observe.OpenAIChat, Request: []byte(`{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`)}
	if p := project(t, c); p.State != "" || p.Prompt == nil {
		t.Errorf("a text: %s %s", p.State, p.Problem)
	}
}
