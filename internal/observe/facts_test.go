package observe_test

import (
	"testing"

	"jurat/internal/observe"
)

// factCases are calls, and the facts in their bytes.
var factCases = []struct {
	name string
	call observe.Call
	want string
}{
	{"a function of the first kind", observe.Call{Protocol: observe.OpenAIChat, Status: 200, Request: []byte(`{"functions":[{"name":"look"}]}`),
		Response: []byte(`{"choices":[{"message":{"function_call":{"name":"look","arguments":"{}"}},"finish_reason":"function_call"}]}`)},
		`{"calls":[{"name":"look"}],"finish":"function_call","parameters":{"functions":["look"]}}`},
	{"a call in pieces, each with its id, and one without a plain name", observe.Call{Protocol: observe.OpenAIChat, Status: 200, Request: []byte(`{"messages":[]}`), Response: []byte(events(
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"look for Anna"}}]}}]}`, `[DONE]`, `{"model":"after the end"}`))},
		`{"calls":[{"id":"c1","name":"look"},{"id":"c2"}],"parameters":{}}`},
	{"tools that the provider ran, and one of the agent", observe.Call{Protocol: observe.OpenAIResponses, Status: 200, Request: []byte(`{"model":"m","tools":[{"type":"web_search"},{"type":"mcp","server_label":"crm","server_url":"https://u:p@example.org"}]}`),
		Response: []byte(typed(`{"type":"response.output_item.added","item":{"type":"web_search_call","id":"ws1"}}`, `{"type":"response.output_item.done","item":{"type":"mcp_call","id":"mc1","name":"find","server_label":"crm"}}`,
			`{"type":"response.output_item.added","item":{"type":"function_call","id":"fc1","call_id":"c1","name":"look"}}`,
			`{"type":"response.incomplete","response":{"model":"m-1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call","id":"fc1","call_id":"c1","name":"look"},{"type":"local_shell_call","call_id":"c2"}]}}`))},
		`{"calls":[{"id":"c1","name":"look"},{"id":"c2","name":"local_shell"}],"context_by_reference":["mcp:crm","tool:web_search","tool:find"],"finish":"max_output_tokens","model":"m","model_version":"m-1","parameters":{"tools":["web_search","crm"]}}`},
	{"what stands in arguments is no fact", observe.Call{Protocol: observe.AnthropicMessages, Status: 200,
		Request:  []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t0","content":[{"type":"image","source":{"type":"file","file_id":"f1"}}]}]},{"role":"assistant","content":[{"type":"tool_use","input":{"file_id":"private","source":{"file_id":"private"}}}]}]}`),
		Response: []byte(`{"type":"message","model":"m-1","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"look","input":{"content":[{"type":"tool_use","name":"inner","id":"t2"}]}},{"type":"mcp_tool_use","id":"t3","name":"find"}],"usage":{"input_tokens":1,"output_tokens":null}}`)},
		`{"calls":[{"id":"t1","name":"look"}],"context_by_reference":["file:f1","tool:find"],"finish":"tool_use","model":"m","model_version":"m-1","parameters":{},"usage":{"input_tokens":1}}`},
	{"counts that come one after the other", observe.Call{Protocol: observe.AnthropicMessages, Status: 200, Path: "/model/anthropic.claude-v2%3A1/invoke", Request: []byte(`{"messages":[]}`), Response: []byte(typed(
		`{"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":3,"output_tokens":1}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9,"input_tokens":null}}`))},
		`{"finish":"end_turn","model":"anthropic.claude-v2:1","model_version":"m-1","parameters":{},"usage":{"input_tokens":3,"output_tokens":9}}`},
	{"a failure says nothing", observe.Call{Protocol: observe.OpenAIChat, Path: "/openai/deployments/d-1/chat/completions", Status: 429, Request: []byte(`{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,aGVsbG8="}}]}]}`),
		Response: []byte(`{"model":"m-1","usage":{"total_tokens":1}}`)}, `{"model":"d-1","parameters":{}}`},
	{"calls of Gemini", observe.Call{Protocol: observe.GeminiGenerate, Path: "/v1beta/models/g-1:streamGenerateContent", Status: 200, Request: []byte(`{"tools":[{"functionDeclarations":[{"name":"look"}]},{"googleSearch":{}}]}`),
		Response: []byte(`[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{"functionCall":{"name":"inner"}}}},{"functionCall":{"name":"look"}}]},"finishReason":"STOP"}]}]`)},
		`{"calls":[{"name":"look"},{"name":"look"}],"finish":"STOP","model":"g-1","parameters":{"tools":["look","googleSearch"]}}`},
}

// TestFacts: facts are found where they stand, and nowhere else.
func TestFacts(t *testing.T) {
	for _, c := range factCases {
		if got := stated(t, factsOf(c.call)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}
