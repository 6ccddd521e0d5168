package traffic_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/court/llm"
	"jurat/internal/court/llm/llmtest"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
)

var messagesSample = sample{
	name: "messages",
	call: traffic.Call{Protocol: traffic.AnthropicMessages, Path: "/v1/messages", Status: 200, Request: []byte(`{"model":"claude-x","max_tokens":99,"stream":true,
		"system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"look","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"}],
		"mcp_servers":[{"type":"url","url":"https://mcp.example.org/sse?token=secret","name":"m","authorization_token":"secret"}],
		"container":"container_1","context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},
		"messages":[
		{"role":"user","content":"Look."},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I "},{"type":"text","text":"look."},{"type":"tool_use","id":"t0","name":"look","input":{"b":1,"a":9007199254740993}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t0","is_error":true,"content":[{"type":"text","text":"dark"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}}]},{"type":"text","text":"Again."},
			{"type":"document","title":"d.pdf","source":{"type":"file","file_id":"file_1"}},{"type":"new_kind","x":1}]}]}`)},
	whole: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x-20260101","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"It is so."},
		{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://example.org"}]},
		{"type":"text","text":"Found."},{"type":"tool_use","id":"t1","name":"look","input":{"at":1}},{"type":"tool_use","id":"t2","name":"go","input":{}}],
		"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":9}}`,
	stream: typed(
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x-20260101","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":1}}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"It is"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" so."}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"query\": \"q\"}"}}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://example.org"}]}}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"Found."}}`,
		`{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"t1","name":"look","input":{}}}`,
		`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"at\""}}`,
		`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":": 1}"}}`,
		`{"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"t2","name":"go","input":{}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`),
	stops: `"usage":{"output_tokens":9}}`,
	want: `{
		"model": "claude-x", "model_version": "claude-x-20260101", "provider_id": "msg_1",
		"parameters": {"max_tokens": 99, "stream": true, "tools": ["look", "web_search", "bash"]},
		"prompt": [
			{"role": "system", "content": "Be kind."},
			{"role": "user", "content": "Look."},
			{"role": "assistant", "content": "I look.", "tool_calls": [{"id": "t0", "type": "function", "function": {"name": "look", "arguments": "{\"b\":1,\"a\":9007199254740993}"}}]},
			{"role": "tool", "tool_call_id": "t0", "is_error": true, "content": [{"type": "text", "text": "dark"},
				{"type": "image_url", "bytes": 5, "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "media_type": "image/png"}]},
			{"role": "user", "content": [{"type": "text", "text": "Again."}, {"type": "file", "name": "d.pdf", "file_id": "file_1"}, {"type": "text", "text": "[new_kind] {\"type\":\"new_kind\",\"x\":1}"}]}],
		"response": [
			{"role": "assistant", "content": "It is so.", "tool_calls": [{"id": "s1", "type": "function", "function": {"name": "web_search", "arguments": "{\"query\":\"q\"}"}}]},
			{"role": "tool", "tool_call_id": "s1", "content": "[{\"type\":\"web_search_result\",\"url\":\"https://example.org\"}]"},
			{"role": "assistant", "content": "Found.", "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}, {"id": "t2", "type": "function", "function": {"name": "go", "arguments": "{}"}}]}],
		"finish": "tool_use", "usage": {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 9},
		"context_by_reference": ["file:file_1", "container:container_1", "mcp:m", "context_management:clear_tool_uses_20250919", "tool:web_search"],
		"complete": true}`,
}

const responsesWhole = `{"id":"resp_1","object":"response","status":"completed","model":"gpt-5.2-2026-01-01","error":null,"incomplete_details":null,"output":[
	{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
	{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}},
	{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"It is so.","annotations":[]}]},
	{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"look","arguments":"{\"at\":1}"},
	{"id":"ct_1","type":"custom_tool_call","status":"completed","call_id":"c2","name":"say","input":"hi"}],
	"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,"total_tokens":7}}`

var responsesSample = sample{
	name: "responses",
	call: traffic.Call{Protocol: traffic.OpenAIResponses, Path: "/v1/responses", Status: 200, Request: []byte(`{"model":"gpt-5.2","instructions":"Be kind.","stream":true,"store":true,
		"previous_response_id":"resp_0","conversation":{"id":"conv_1"},"prompt":{"id":"pmpt_1","version":"2"},"background":true,
		"tools":[{"type":"function","name":"look","parameters":{}},{"type":"web_search"},{"type":"file_search","vector_store_ids":["vs_1"]},{"type":"mcp","server_label":"m","server_url":"https://u:p@mcp.example.org/x?k=secret","authorization":"secret"},{"type":"code_interpreter","container":"cntr_1"}],
		"input":[
		{"role":"user","content":[{"type":"input_text","text":"What?"},{"type":"input_image","image_url":"data:image/png;base64,aGVsbG8="},{"type":"input_file","file_id":"file-7"}]},
		{"type":"item_reference","id":"msg_0"},
		{"type":"reasoning","summary":[],"encrypted_content":"…"},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I "},{"type":"output_text","text":"look."}]},
		{"type":"function_call","call_id":"c0","name":"look","arguments":"{}"},
		{"type":"function_call_output","call_id":"c0","output":"a tree"},
		{"type":"mcp_list_tools","server_label":"m","tools":[]}]}`)},
	whole: responsesWhole,
	stream: typed(
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","model":"gpt-5.2-2026-01-01","output":[]}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"hm"}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}}`,
		`{"type":"response.output_item.added","output_index":2,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","output_index":2,"content_index":0,"part":{"type":"output_text","text":""}}`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":2,"content_index":0,"delta":"It is"}`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":2,"content_index":0,"delta":" so."}`,
		`{"type":"response.output_text.done","output_index":2,"content_index":0,"text":"It is so."}`,
		`{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"look","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{\"at\""}`,
		`{"type":"response.function_call_arguments.delta","output_index":3,"delta":":1}"}`,
		`{"type":"response.output_item.added","output_index":4,"item":{"id":"ct_1","type":"custom_tool_call","call_id":"c2","name":"say","input":""}}`,
		`{"type":"response.custom_tool_call_input.delta","output_index":4,"delta":"hi"}`,
		`{"type":"response.completed","response":`+oneLine(responsesWhole)+`}`),
	want: `{
		"model": "gpt-5.2", "model_version": "gpt-5.2-2026-01-01", "provider_id": "resp_1", "items": ["rs_1", "ws_1", "msg_1", "fc_1", "ct_1"],
		"parameters": {"stream": true, "store": true, "background": true,
			"tools": ["look", "web_search", "file_search", "m", "code_interpreter"]},
		"prompt": [
			{"role": "system", "content": "Be kind."},
			{"role": "user", "content": [{"type": "text", "text": "What?"},
				{"type": "input_image", "bytes": 5, "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "media_type": "image/png"}, {"type": "input_file", "file_id": "file-7"}]},
			{"role": "assistant", "content": "I look."},
			{"role": "assistant", "content": "", "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
			{"role": "tool", "tool_call_id": "c0", "content": "a tree"}],
		"response": [
			{"role": "assistant", "content": "", "tool_calls": [{"id": "ws_1", "type": "function", "function": {"name": "web_search", "arguments": "{\"query\":\"q\",\"type\":\"search\"}"}}]},
			{"role": "assistant", "content": "It is so."},
			{"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}]},
			{"role": "assistant", "content": "", "tool_calls": [{"id": "c2", "type": "custom", "custom": {"name": "say", "input": "hi"}}]}],
		"finish": "completed", "usage": {"input_tokens": 3, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 4, "total_tokens": 7},
		"context_by_reference": ["previous_response_id:resp_0", "conversation:conv_1", "prompt:pmpt_1", "background:true", "item:msg_0", "file:file-7", "container:cntr_1", "vector_store:vs_1", "mcp:m", "tool:web_search"],
		"complete": true}`,
}

var generateSample = sample{
	name: "generate",
	call: traffic.Call{Protocol: traffic.GeminiGenerate, Path: "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", Status: 200, Request: []byte(`{
		"system_instruction":{"parts":[{"text":"Be kind."}]},"cachedContent":"cachedContents/c1","generationConfig":{"temperature":0.5},
		"tools":[{"functionDeclarations":[{"name":"look"},{"name":"go"}]},{"googleSearch":{}}],
		"contents":[
		{"role":"user","parts":[{"text":"What?"},{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}},{"fileData":{"mimeType":"video/mp4","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/f1?key=secret"},"videoMetadata":{"fps":1}}]},
		{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"look","args":{"at":1}},"thoughtSignature":"s"},{"functionCall":{"name":"look","args":{"at":2}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"result":"a tree"}}},{"function_response":{"name":"look","response":{"error":"dark"}}}]}]}`)},
	whole: `{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"It is so.","thoughtSignature":"sig"},{"executableCode":{"language":"PYTHON","code":"1+1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}},
		{"functionCall":{"name":"look","args":{"at":1}}},{"newKind":{"x":1}}]},"finishReason":"STOP","index":0,"safetyRatings":[]}],"modelVersion":"gemini-x-001","responseId":"r1","usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"thoughtsTokenCount":1}}`,
	stream: events(generateChunks...),
	want:   generateWant,
}

var generateChunks = []string{
	`{"candidates":[{"content":{"role":"model","parts":[{"text":"h","thought":true}]}}],"modelVersion":"gemini-x-001","responseId":"r1","usageMetadata":{"promptTokenCount":3}}`,
	`{"candidates":[{"content":{"role":"model","parts":[{"text":"m","thought":true},{"text":"It is"}]},"index":0}],"modelVersion":"gemini-x-001"}`,
	`{"candidates":[{"content":{"role":"model","parts":[{"text":" so."},{"text":"","thoughtSignature":"sig"}]},"index":0}]}`,
	`{"candidates":[{"content":{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1+1"}}]},"index":0}]}`,
	`{"candidates":[{"content":{"role":"model","parts":[{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}},{"functionCall":{"name":"look","args":{"at":1}}},{"newKind":{"x":1}}]},"index":0}]}`,
	`{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"thoughtsTokenCount":1}}`,
}

const generateWant = `{
	"model": "gemini-x", "model_version": "gemini-x-001", "provider_id": "r1",
	"parameters": {"generationConfig": {"temperature": 0.5}, "tools": ["look", "go", "googleSearch"]},
	"prompt": [
		{"role": "system", "content": "Be kind."},
		{"role": "user", "content": [{"type": "text", "text": "What?"},
			{"type": "image_url", "bytes": 5, "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "media_type": "image/png"},
			{"type": "video_url", "media_type": "video/mp4", "url": "https://generativelanguage.googleapis.com/v1beta/files/f1"}]},
		{"role": "assistant", "content": "", "tool_calls": [
			{"id": "#1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}, {"id": "#2", "type": "function", "function": {"name": "look", "arguments": "{\"at\":2}"}}]},
		{"role": "tool", "name": "look", "content": "{\"result\":\"a tree\"}"},
		{"role": "tool", "name": "look", "content": "{\"error\":\"dark\"}", "is_error": true}],
	"response": [
		{"role": "assistant", "content": "It is so.", "tool_calls": [{"id": "#3", "type": "function", "function": {"name": "code_execution", "arguments": "1+1"}}]},
		{"role": "tool", "name": "code_execution", "content": "2"},
		{"role": "assistant", "content": "[newKind] {\"x\":1}", "tool_calls": [{"id": "#4", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}]}],
	"finish": "STOP", "usage": {"promptTokenCount": 3, "candidatesTokenCount": 4, "thoughtsTokenCount": 1},
	"context_by_reference": ["file", "cachedContent:cachedContents/c1"],
	"complete": true}`

var generateArraySample = sample{name: "generate, as an array", call: generateSample.call, whole: generateSample.whole, stream: array(generateChunks), array: true, want: generateWant}

// A tap keeps the last exchange that passes it.
type tap struct{ call traffic.Call }

func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(request))
	t.call = traffic.Call{Protocol: traffic.Protocol(r.Method, r.URL.Path), Path: r.URL.Path, Request: request}
	w, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer w.Body.Close()
	response, err := io.ReadAll(w.Body)
	t.call.Status, t.call.Response, t.call.ResponseType = w.StatusCode, response, w.Header.Get("Content-Type")
	w.Body = io.NopCloser(io.MultiReader(bytes.NewReader(response), failing{err}))
	return w, nil
}

// failing is a body that ends with an error, or with nil as others do.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// TestServers: what the jury's own calls ask and get, through servers that speak the vendors' protocols, is what the bytes say.
func TestServers(t *testing.T) {
	question := llm.Question{System: "Be <kind>.", Messages: []llm.Message{{Text: "証拠 \u2028?"}, {ByModel: true, Text: "{}"}, {Text: "Again."}}}
	prompt := []map[string]string{{"role": "system", "content": "Be <kind>."}, {"role": "user", "content": "証拠 \u2028?"}, {"role": "assistant", "content": "{}"}, {"role": "user", "content": "Again."}}
	for _, vendor := range llmtest.Vendors {
		for f := llmtest.Nothing; f <= llmtest.NoSchemas; f++ {
			if f == llmtest.Closed || f == llmtest.Redirected || f == llmtest.EchoedKey {
				continue // no response; one that is followed; one whose key an adapter hides
			}
			passed := new(tap)
			server := llmtest.New(t, vendor, llmtest.Always(llmtest.Reply{Text: "It <is> so. 証", Model: "m-1.5-2026-01-01", Failure: f}))
			config := server.Config(llm.Settings{Model: "m-1.5", MaxTokens: 900})
			config.HTTP = &http.Client{Transport: passed}
			model := must.Get(llm.New(strings.ToLower(vendor.Name), config))(t)
			answer, err := model.Ask(t.Context(), question)
			p := project(t, passed.call)
			must.Hold(t, form(t, p.Prompt) == form(t, marshal(t, prompt)) && p.Model == "m-1.5",
				"%s, failure %d: model %q, prompt %s", vendor, f, p.Model, p.Prompt)
			var failure *llm.Error
			switch errors.As(err, &failure); {
			case err == nil:
				var said string
				if e := json.Unmarshal(p.Output, &said); e != nil || said != answer.Text || p.ModelVersion != answer.Model || p.Finish != answer.FinishReason || p.Usage == nil || !p.Complete || p.Error != "" || p.Problem != "" {
					t.Errorf("%s, failure %d: %+v\nwant %+v", vendor, f, p, answer)
				}
			case failure == nil:
				t.Fatal(err)
			case passed.call.Status >= 300:
				if p.Error == "" || p.Output != nil || failure.Detail != "" && !strings.Contains(failure.Detail, strings.TrimSpace(p.Error[strings.Index(p.Error, ":")+1:])) {
					t.Errorf("%s, failure %d: %+v\nwant %v", vendor, f, p, failure)
				}
			case p.State != traffic.Failed: // a refusal, or an answer that was cut off
				must.Hold(t, p.Finish == failure.Answer.FinishReason && p.ModelVersion == failure.Answer.Model,
					"%s, failure %d: %+v\nwant %+v", vendor, f, p, failure.Answer)
			case p.Problem == "" || p.Output != nil:
				t.Errorf("%s, failure %d: %+v", vendor, f, p)
			}
		}
	}
}

// A sample is a call in a vendor's published form: its request, its answer in one piece and as a stream, and what both
// say.
type sample struct {
	name   string
	call   traffic.Call
	whole  string
	stream string
	array  bool   // the stream is a JSON array
	stops  string // in the stream, where all answers have stopped; "": at its end
	want   string // the projection
}

var chatSample = sample{
	name: "chat",
	call: traffic.Call{Protocol: traffic.OpenAIChat, Path: "/v1/chat/completions", Status: 200, Request: []byte(`{"model":"gpt-5.2","temperature":0.5,"stream":true,"n":2,
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
	traffic.Projection `json:",inline"`
	Model              string         `json:"model,omitzero"`
	ModelVersion       string         `json:"model_version,omitzero"`
	Parameters         jsontext.Value `json:"parameters,omitzero"`
	Usage              jsontext.Value `json:"usage,omitzero"`
	ContextByReference []string       `json:"context_by_reference,omitzero"`

	Calls []convo.ChatToolCall `json:"-"` // of the answer
}

// project reads a call.
func project(t testing.TB, c traffic.Call) said {
	t.Helper()
	p := must.Get(traffic.Project(c))(t)
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
		must.Equal(t, cmp.Diff(form(t, []byte(s.want)), form(t, marshal(t, got))), "", s.name)
		for _, ends := range []string{"\n", "\r\n", "\r"} {
			if s.array {
				c.Response, c.ResponseType = []byte(s.stream), "application/json"
			} else {
				c.Response, c.ResponseType = []byte("\ufeff"+strings.ReplaceAll(strings.Replace(s.stream, "\n\n", "\n\n: keep-alive\n\n", 1), "\n", ends)), "text/event-stream; charset=utf-8"
			}
			must.Equal(t, cmp.Diff(got, project(t, c)), "", s.name)
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
			if p.Complete || p.State != "" || p.Problem != "" || p.Model == "" && s.call.Protocol != traffic.GeminiGenerate && !strings.HasPrefix(s.call.Protocol, "a2a") {
				t.Fatalf("%s, the first %d bytes: %+v", s.name, n, p)
			}
			if text := string(p.Output); n > len(s.stream)*9/10 && text == "" && s.call.Protocol != traffic.A2A10 || len(text) > len(last) {
				t.Fatalf("%s, the first %d bytes: %s", s.name, n, text)
			}
		}
	}
}
