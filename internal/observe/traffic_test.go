package observe_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/observe"
)

// A passage is a call as servers and programs make it that are not those of the vendors' documents, and what it says. Of model, parameters
// and prompt only what is wanted is compared.
type passage struct {
	name     string
	protocol string
	path     string // "": any
	request  string // "": one without a conversation
	response string
	want     string
}

func (p *passage) call() observe.Call {
	c := observe.Call{Protocol: p.protocol, Path: p.path, Status: 200, Request: []byte(p.request), Response: []byte(p.response)}
	if p.path == "" {
		c.Path = "/v1/x"
	}
	if p.request == "" {
		c.Request = []byte(`{"messages":[],"contents":[],"input":""}`)
	}
	return c
}

// fragment is a chunk of Chat Completions with one answer.
func fragment(delta string) string { return `{"choices":[{"index":0,"delta":` + delta + `}]}` }

const stopped = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// asked2 are two calls, of look and of go.
const asked2 = `"response":{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]}`

// unnamed2 are the same without ids.
const unnamed2 = `"response":{"role":"assistant","content":"","tool_calls":[{"id":"","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"","type":"function","function":{"name":"look","arguments":"{\"at\":2}"}}]}`

var chatPassages = []passage{
	{name: "parallel calls that all have the number 0", protocol: observe.OpenAIChat, response: events(
		fragment(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}`),
		fragment(`{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop",` + asked2 + `}`},
	{name: "calls without numbers, in pieces", protocol: observe.OpenAIChat, response: events(
		fragment(`{"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\""}}]}`), fragment(`{"tool_calls":[{"function":{"arguments":":1}"}}]}`),
		fragment(`{"tool_calls":[{"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop",` + asked2 + `}`},
	{name: "calls without numbers in one piece", protocol: observe.OpenAIChat, response: events(
		fragment(`{"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop",` + asked2 + `}`},
	{name: "calls with the number 0 and without ids", protocol: observe.OpenAIChat, response: events(
		fragment(`{"tool_calls":[{"index":0,"id":"","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}`),
		fragment(`{"tool_calls":[{"index":0,"id":"","type":"function","function":{"name":"look","arguments":"{\"at\":2}"}}]}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop",` + unnamed2 + `}`},
	{name: "another id in each fragment", protocol: observe.OpenAIChat, response: events(
		fragment(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look"}}]}`), fragment(`{"tool_calls":[{"index":0,"id":"x1","function":{"arguments":"{\"at\""}}]}`),
		fragment(`{"tool_calls":[{"index":0,"id":"x2","function":{"name":"","arguments":":1}"}}]}`), fragment(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"go","arguments":"{}"}}]}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop",` + asked2 + `}`},
	{name: "id and name in each fragment", protocol: observe.OpenAIChat, response: events(
		fragment(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\""}}]}`), fragment(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":":1}"}}]}`),
		fragment(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop",` + asked2 + `}`},
	{name: "arguments that are sent again when they are whole", protocol: observe.OpenAIChat, response: events(
		fragment(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}]}`), fragment(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\":1}"}}]}`),
		fragment(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\":1}"}}]}`), fragment(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop",` + asked2 + `}`},
	{name: "a null among the calls", protocol: observe.OpenAIChat, response: `{"choices":[{"finish_reason":"stop","message":{"content":"So.","tool_calls":[null]}}]}`, want: `{"complete":true,"finish":"stop","response":"So."}`},
	{name: "calls that are no array", protocol: observe.OpenAIChat, response: events(
		fragment(`{"role":"assistant","tool_calls":{"index":0,"id":"","type":"function","function":{"name":"look","arguments":"{\"at\""}}}`), fragment(`{"role":"assistant","tool_calls":{"index":0,"id":"","type":"function","function":{"name":null,"arguments":":1}"}}}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop","response":{"role":"assistant","content":"","tool_calls":[{"id":"","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}}`},
	{name: "one answer in two parts", protocol: observe.OpenAIChat, response: `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"I look."}},
			{"index":1,"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]}}]}`,
		want: `{"complete":true,"finish":"tool_calls","problem":"answer: 2 answers to a request for one: read as its parts",` + strings.Replace(asked2, `"content":""`, `"content":"I look."`, 1) + `}`},
	{name: "tools that the server ran, and its counts", protocol: observe.OpenAIChat, response: events(
		fragment(`{"executed_tools":[{"index":0,"type":"search","arguments":"{\"query\":\"q\"}"}]}`),
		fragment(`{"executed_tools":[{"index":0,"type":"search","arguments":"{\"query\":\"q\"}","search_results":{"results":[{"url":"https://example.org"}]}},{"index":1,"type":"python","arguments":"{\"code\":\"1\"}","output":"1"}]}`),
		fragment(`{"content":"It is so."}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"total_tokens":7}}}`, `[DONE]`),
		want: `{"complete":true,"finish":"stop","usage":{"total_tokens":7},"response":[
			{"role":"assistant","content":"","tool_calls":[{"id":"#1","type":"function","function":{"name":"search","arguments":"{\"query\":\"q\"}"}}]},
			{"role":"tool","name":"search","tool_call_id":"#1","content":"{\"search_results\":{\"results\":[{\"url\":\"https://example.org\"}]}}"},
			{"role":"assistant","content":"","tool_calls":[{"id":"#2","type":"function","function":{"name":"python","arguments":"{\"code\":\"1\"}"}}]},
			{"role":"tool","name":"python","tool_call_id":"#2","content":"1"},
			{"role":"assistant","content":"It is so."}]}`},
	{name: "tools that the server ran, in one piece", protocol: observe.OpenAIChat,
		response: `{"choices":[{"finish_reason":"stop","message":{"content":"So.","reasoning":"hm","executed_tools":[{"index":0,"type":"search","arguments":"{}","output":"found"}]}}]}`,
		want: `{"complete":true,"finish":"stop","response":[{"role":"assistant","content":"","tool_calls":[{"id":"#1","type":"function","function":{"name":"search","arguments":"{}"}}]},
			{"role":"tool","name":"search","tool_call_id":"#1","content":"found"},{"role":"assistant","content":"So."}]}`},
	{name: "thinking by another name", protocol: observe.OpenAIChat, response: events(fragment(`{"reasoning":"h","reasoning_content":"h","content":""}`), fragment(`{"reasoning":"m"}`), fragment(`{"content":"So."}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop","response":"So."}`},
	{name: "thinking among the parts", protocol: observe.OpenAIChat, response: events(fragment(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"}]}]}`), fragment(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m"}]}]}`),
		fragment(`{"content":[{"type":"reference","reference_ids":[1]},{"type":"text","text":"So."}]}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop","response":"So."}`},
	{name: "thinking among the parts, in one piece", protocol: observe.OpenAIChat,
		response: `{"choices":[{"finish_reason":"stop","message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"So."},{"type":"reference","reference_ids":[1]}]}}]}`,
		want:     `{"complete":true,"finish":"stop","response":"So."}`},
	{name: "speech", protocol: observe.OpenAIChat, response: events(fragment(`{"role":"assistant","audio":{"id":"au1","transcript":"It is"}}`), fragment(`{"audio":{"data":"aGU=","transcript":" so."}}`), fragment(`{"audio":{"data":"bGxv","expires_at":1}}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop","response":{"role":"assistant","content":[{"type":"text","text":"It is so."},{"type":"input_audio","bytes":5,"digest":"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}]}}`},
	{name: "speech in one piece, of an earlier answer too", protocol: observe.OpenAIChat, request: `{"messages":[{"role":"assistant","content":null,"audio":{"id":"au0"}}]}`,
		response: `{"choices":[{"finish_reason":"stop","message":{"content":null,"audio":{"id":"au1","data":"aGVsbG8=","transcript":"It is so.","expires_at":1}}}]}`,
		want: `{"complete":true,"finish":"stop","context_by_reference":["audio:au0"],"prompt":[{"role":"assistant","content":""}],
			"response":{"role":"assistant","content":[{"type":"text","text":"It is so."},{"type":"input_audio","bytes":5,"digest":"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}]}}`},
	{name: "a picture that the model made", protocol: observe.OpenAIChat, response: events(fragment(`{"content":"Here."}`), fragment(`{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}}]}`), stopped, `[DONE]`),
		want: `{"complete":true,"finish":"stop","response":{"role":"assistant","content":[{"type":"text","text":"Here."},{"type":"image_url","media_type":"image/png","bytes":5,"digest":"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}]}}`},
	{name: "a stream without its last event", protocol: observe.OpenAIChat, response: events(fragment(`{"content":"So."}`), `{"object":"chat.completion.done","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"citations":["https://example.org/a?b=c"]}`),
		want: `{"complete":true,"finish":"stop","response":"So.","context_by_reference":["url"]}`},
	{name: "a stream without its last event, of two answers one", protocol: observe.OpenAIChat, request: `{"n":2,"messages":[]}`, response: events(fragment(`{"content":"So."}`), stopped),
		want: `{"complete":false,"finish":"stop","response":"So."}`},
	{name: "no empty line at the end", protocol: observe.OpenAIChat, response: "data: " + fragment(`{"content":"So."}`) + "\n\ndata: [DONE]", want: `{"complete":true,"response":"So."}`},
	{name: "events without data", protocol: observe.OpenAIChat, response: "data: \n\n" + events(fragment(`{"content":"So."}`)) + "data:\n\n" + events(stopped, `[DONE]`), want: `{"complete":true,"finish":"stop","response":"So."}`},
	{name: "a filter's chunk before the answer", protocol: observe.OpenAIChat, path: "/openai/deployments/gpt-x/chat/completions", response: events(`{"id":"","model":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, fragment(`{"content":"So."}`), stopped, `{"choices":[],"usage":{"total_tokens":7}}`, `[DONE]`),
		want: `{"model":"gpt-x","complete":true,"finish":"stop","response":"So.","usage":{"total_tokens":7}}`},
	{name: "counts beside the answer", protocol: observe.OpenAIChat, response: events(`{"choices":[{"index":0,"delta":{"content":"So."},"finish_reason":"stop","usage":{"total_tokens":7}}]}`, `[DONE]`),
		want: `{"complete":true,"finish":"stop","response":"So.","usage":{"total_tokens":7}}`},
	{name: "an error with its counts in the stream", protocol: observe.OpenAIChat, response: events(fragment(`{"content":"It"}`), `{"error":{"code":400,"message":"Token limit"},"choices":[{"index":0,"delta":{"content":" is"}}],"usage":{"total_tokens":7}}`, `[DONE]`),
		want: `{"complete":false,"error":"Token limit","response":"It is","usage":{"total_tokens":7}}`},
	{name: "an error by the event's name", protocol: observe.OpenAIChat, response: events(fragment(`{"content":"It"}`)) + "event: error\ndata: {\"message\":\"broke\",\"code\":\"c\"}\n\n", want: `{"complete":false,"error":"c: broke","response":"It"}`},
	{name: "an error as an object", protocol: observe.OpenAIChat, response: events(`{"object":"error","message":"too long","type":"BadRequestError","code":400}`, `[DONE]`), want: `{"complete":false,"error":"BadRequestError: too long"}`},
	{name: "an error beside the answer", protocol: observe.OpenAIChat, response: `{"choices":[{"finish_reason":"error","message":{"content":"It"},"error":{"code":502,"message":"upstream"}}]}`,
		want: `{"complete":true,"finish":"error","error":"upstream","response":"It"}`},
	{name: "an error in the answer", protocol: observe.OpenAIChat, response: `{"error":"upstream","choices":[{"finish_reason":null,"message":{"content":"It"}}]}`, want: `{"complete":true,"error":"upstream","response":"It"}`},
	{name: "numbers where texts are", protocol: observe.OpenAIChat, response: `{"id":7,"choices":[{"finish_reason":"stop","message":{"content":"So.","refusal":null}}]}`,
		want: `{"complete":true,"finish":"stop","provider_id":"7","problem":"answer: /id has the wrong type: read as most libraries do","response":"So."}`},
	{name: "nulls, and who asked for a result", protocol: observe.OpenAIChat,
		request:  `{"messages":[null,{"role":"user","content":[null,{"type":"text","text":"a"}]},{"role":"tool","requestor":7,"content":"b"}]}`,
		response: `{"choices":[{"finish_reason":"stop","message":{"content":"So."}}]}`,
		want:     `{"complete":true,"finish":"stop","response":"So.","prompt":[{"role":"user","content":"a"},{"role":"tool","content":"b"}]}`},
	{name: "a part of an answer without a message", protocol: observe.OpenAIChat, response: `{"choices":[{"index":0},null,{"index":2,"message":{"content":"So."}}]}`,
		want: `{"complete":true,"problem":"answer: 3 answers to a request for one: read as its parts","response":"So."}`},
	{name: "sources of an answer", protocol: observe.OpenAIChat, request: `{"messages":[],"plugins":[{"id":"web"}],"search_parameters":{"mode":"auto"},"enable_search":true,"data_sources":[{"type":"azure_search"}]}`,
		response: events(fragment(`{"content":"So.","annotations":[{"type":"url_citation","url_citation":{"url":"https://example.org/a?b=c"}}]}`), stopped, `[DONE]`),
		want:     `{"complete":true,"finish":"stop","response":"So.","context_by_reference":["plugin:web","data_source:azure_search","url"]}`},
}

// done2 are two items of a stream of Responses, and itemsOf an answer that has none.
var done2 = []string{
	`{"type":"response.created","response":{"id":"resp_1","status":"in_progress","model":"m","output":[]}}`,
	`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}`,
	`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"So."}`,
	`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"So."}]}}`,
	`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"a","name":"look","arguments":"{}"}}`,
}

const said2 = `"response":[{"role":"assistant","content":"So."},{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}]}]`

var otherPassages = []passage{
	{name: "a last event without the items", protocol: observe.OpenAIResponses, response: typed(append(done2[:5:5], `{"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"m","output":[],"usage":{"total_tokens":7}}}`)...),
		want: `{"complete":true,"finish":"completed","provider_id":"resp_1","model_version":"m","usage":{"total_tokens":7},` + said2 + `}`},
	{name: "a last event by another name", protocol: observe.OpenAIResponses, response: typed(append(done2[:5:5], `{"type":"response.done","response":{"id":"resp_1","status":"completed","model":"m"}}`)...),
		want: `{"complete":true,"finish":"completed","provider_id":"resp_1","model_version":"m",` + said2 + `}`},
	{name: "a last event that lacks a call", protocol: observe.OpenAIResponses, response: typed(append(done2[:5:5], `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"So."}]}]}}`)...),
		want: `{"model_version":"m","complete":true,"finish":"completed","response":"So.","problem":"answer: the pieces of the stream differ from the complete answer at its end"}`},
	{name: "parts that are counted otherwise", protocol: observe.OpenAIResponses, response: typed(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}`,
		`{"type":"response.output_text.delta","output_index":0,"content_index":1,"delta":"So."}`, `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"So."}]}]}}`),
		want: `{"complete":true,"finish":"completed","response":"So."}`},
	{name: "a template without input", protocol: observe.OpenAIResponses, request: `{"prompt":{"id":"pmpt_1"}}`, response: `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"So.","annotations":[{"type":"url_citation","url":"https://example.org/a"},{"type":"file_citation","file_id":"file-1"}]}]}]}`,
		want: `{"complete":true,"finish":"completed","response":"So.","context_by_reference":["prompt:pmpt_1","url","file:file-1"]}`},
	{name: "a program, and what it returned", protocol: observe.OpenAIResponses, request: `{"input":[{"type":"tool_search_output","call_id":"s","tools":[{"name":"look"}]}],"tools":[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"look"}]},{"type":"code_interpreter","container":{"type":"auto","file_ids":["file-1"]}}]}`,
		response: `{"status":"completed","output":[{"type":"program","call_id":"p","code":"look()"},{"type":"program_output","call_id":"p","result":"7"},{"type":"computer_call","call_id":"c","actions":[{"type":"click"}]}]}`,
		want: `{"complete":true,"finish":"completed","parameters":{"tools":["crm.look","code_interpreter"]},"context_by_reference":["file:file-1"],"prompt":[{"role":"tool","tool_call_id":"s","content":"[{\"name\":\"look\"}]"}],
			"response":[{"role":"assistant","content":"","tool_calls":[{"id":"p","type":"function","function":{"name":"program","arguments":"look()"}}]},{"role":"tool","tool_call_id":"p","content":"7"},
				{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"computer","arguments":"[{\"type\":\"click\"}]"}}]}]}`},
	{name: "results by the ids of items and of calls", protocol: observe.OpenAIResponses, request: `{"input":[{"type":"local_shell_call","id":"lsc_1","call_id":"call_1","action":{}},{"type":"local_shell_call","id":"lsc_2","call_id":"call_2","action":{}},
			{"type":"local_shell_call_output","id":"lsc_2","output":"b"},{"type":"local_shell_call_output","id":"call_1","output":"a"},{"type":"local_shell_call_output","id":"own","call_id":"lsc_1","output":"c"},
			{"type":"function_call","id":"call_2","call_id":"call_3","name":"f"},{"type":"function_call_output","call_id":"call_2","output":"d"},{"type":"function_call_output","id":"nobody's","output":"e"}]}`,
		response: `{"status":"completed","output":[]}`,
		want: `{"complete":true,"finish":"completed","prompt":[
			{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"local_shell","arguments":"{}"}}]},{"role":"assistant","content":"","tool_calls":[{"id":"call_2","type":"function","function":{"name":"local_shell","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"call_2","content":"b"},{"role":"tool","tool_call_id":"call_1","content":"a"},{"role":"tool","tool_call_id":"call_1","content":"c"},
			{"role":"assistant","content":"","tool_calls":[{"id":"call_3","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"call_2","content":"d"},{"role":"tool","tool_call_id":"nobody's","content":"e"}]}`},
	{name: "tools in the input", protocol: observe.OpenAIResponses, request: `{"input":[{"type":"additional_tools","id":"at_1","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]},{"type":"web_search"}]},{"type":"message","role":"user","content":"Hi"}],"tools":[{"type":"function","name":"look"}]}`,
		response: `{"status":"completed","output":[]}`,
		want:     `{"complete":true,"finish":"completed","parameters":{"tools":["look","functions.exec","web_search"]},"prompt":[{"role":"user","content":"Hi"}]}`},
	{name: "tools in the input alone", protocol: observe.OpenAIResponses, request: `{"input":[{"type":"additional_tools","tools":[{"name":"look"},null]},{"type":"additional_tools","tools":7},{"type":"additional_tools"}]}`,
		response: `{"status":"completed","output":[]}`,
		want:     `{"complete":true,"finish":"completed","parameters":{"tools":["look"]},"prompt":[]}`},
	{name: "an error with a status of success", protocol: observe.OpenAIResponses, response: `{"error":{"code":"c","message":"m"}}`, want: `{"complete":true,"error":"c: m"}`},
	{name: "a call of Vertex AI", protocol: observe.AnthropicMessages, path: "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@20260101:streamRawPredict", request: `{"anthropic_version":"vertex-2023-10-16","messages":[]}`,
		response: `{"type":"message","model":"claude-x","content":[{"type":"text","text":"So."}],"stop_reason":"end_turn"}`, want: `{"model":"claude-x@20260101","model_version":"claude-x","complete":true,"finish":"end_turn","response":"So."}`},
	{name: "a call of Bedrock", protocol: observe.AnthropicMessages, path: "/model/us.anthropic.claude-x-v1%3A0/invoke", request: `{"anthropic_version":"bedrock-2023-05-31","messages":[]}`,
		response: `{"type":"message","content":[{"type":"text","text":"So."}],"stop_reason":"end_turn"}`, want: `{"model":"us.anthropic.claude-x-v1:0","complete":true,"finish":"end_turn","response":"So."}`},
	{name: "a line for bookkeeping before the instructions", protocol: observe.AnthropicMessages, request: `{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cch=1a2b3;"},{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"What?"}]}`,
		response: `{"type":"message","content":[{"type":"text","text":"So."}],"stop_reason":"end_turn"}`,
		want:     `{"parameters":{},"prompt":[{"role":"system","content":"Be kind."},{"role":"user","content":"What?"}],"complete":true,"finish":"end_turn","response":"So."}`},
	{name: "a line for bookkeeping in the instructions", protocol: observe.AnthropicMessages, request: `{"system":"x-anthropic-billing-header: cch=1a2b3;\nBe kind.\nAlways.","messages":[]}`,
		response: `{"type":"message","content":[{"type":"text","text":"So."}],"stop_reason":"end_turn"}`,
		want:     `{"parameters":{},"prompt":[{"role":"system","content":"Be kind.\nAlways."}],"complete":true,"finish":"end_turn","response":"So."}`},
	{name: "a stream without its last event", protocol: observe.AnthropicMessages, response: typed(`{"type":"message_start","message":{"type":"message","content":[],"usage":{"input_tokens":3}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"So."}}`, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}`, `{"type":"ping"}`),
		want: `{"complete":true,"finish":"end_turn","response":"So.","usage":{"input_tokens":3,"output_tokens":4}}`},
	{name: "an answer in its first event, cut", protocol: observe.AnthropicMessages, response: typed(`{"type":"message_start","message":{"type":"message","content":[{"type":"tool_use","id":"a","name":"look","input":{"at":1}}],"stop_reason":"tool_use"}}`),
		want: `{"complete":false,"finish":"tool_use","response":{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}}`},
	{name: "a search that failed", protocol: observe.AnthropicMessages, response: `{"type":"message","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error","error_code":"unavailable"}}],"stop_reason":"pause_turn"}`,
		want: `{"context_by_reference":["tool:web_search"],"complete":true,"finish":"pause_turn","response":[{"role":"assistant","content":"","tool_calls":[{"id":"s","type":"function","function":{"name":"web_search","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"s","is_error":true,"content":"{\"error_code\":\"unavailable\",\"type\":\"web_search_tool_result_error\"}"}]}`},
	{name: "one element in place of an array", protocol: observe.GeminiGenerate, request: `{"systemInstruction":{"parts":{"text":"Be kind."}},"contents":{"role":"user","parts":{"text":"What?"}}}`,
		response: `{"candidates":[{"content":{"parts":[{"text":"So."}]},"finishReason":"STOP"}]}`,
		want:     `{"complete":true,"finish":"STOP","response":"So.","prompt":[{"role":"system","content":"Be kind."},{"role":"user","content":"What?"}]}`},
	{name: "a call of Code Assist", protocol: observe.GeminiGenerate, path: "/v1internal:streamGenerateContent", request: `{"model":"gemini-x","project":"p","request":{"contents":[{"role":"user","parts":[{"text":"What?"}]}],"generationConfig":{"temperature":1}}}`,
		response: events(`{"response":{"candidates":[{"content":{"parts":[{"text":"S"}]}}]},"traceId":"t"}`, `{"response":{"candidates":[{"content":{"parts":[{"text":"o."}]},"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":7}}}`),
		want:     `{"model":"gemini-x","parameters":{"generationConfig":{"temperature":1}},"prompt":[{"role":"user","content":"What?"}],"complete":true,"finish":"STOP","response":"So.","usage":{"totalTokenCount":7}}`},
	{name: "a call of Code Assist in one piece", protocol: observe.GeminiGenerate, path: "/v1internal:generateContent", request: `{"model":"gemini-x","request":{"contents":[]}}`,
		response: `{"response":{"candidates":[{"content":{"parts":[{"text":"So."}]},"finishReason":"STOP"}]}}`, want: `{"model":"gemini-x","prompt":[],"complete":true,"finish":"STOP","response":"So."}`},
	{name: "a call of Code Assist without its envelope", protocol: observe.GeminiGenerate, path: "/v1internal:generateContent", request: `{"model":"gemini-x"}`,
		response: `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"m"}}`, want: `{"model":"gemini-x","complete":true,"error":"INVALID_ARGUMENT: m","projection":"failed","problem":"request: it has no contents"}`},
	{name: "a picture that a tool returned", protocol: observe.GeminiGenerate, request: `{"contents":[{"parts":[{"functionResponse":{"id":"c","name":"look","response":{"ok":true},"parts":[{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}},{"x":1}]}}]}]}`, response: `{"candidates":[{"finishReason":"STOP"}]}`,
		want: `{"complete":true,"finish":"STOP","prompt":[{"role":"tool","name":"look","tool_call_id":"c","content":[{"type":"text","text":"{\"ok\":true}"},{"type":"image_url","media_type":"image/png","bytes":5,"digest":"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},{"type":"text","text":"[part] {\"x\":1}"}]}]}`},
	{name: "calls whose arguments come in pieces", protocol: observe.GeminiGenerate, response: events(
		part(`{"functionCall":{"name":"look","willContinue":true},"thoughtSignature":"s"}`), part(`{"functionCall":{"partialArgs":[{"jsonPath":"$.list[0].city","stringValue":"Bos","willContinue":true}],"willContinue":true}}`),
		part(`{"functionCall":{"partialArgs":[{"jsonPath":"$.list[0].city","stringValue":"ton"},{"jsonPath":"$['a.b']","numberValue":0.5}],"willContinue":true}}`), part(`{"functionCall":{"willContinue":true}}`),
		part(`{"functionCall":{"partialArgs":[{"jsonPath":"$.list[1]","boolValue":true},{"jsonPath":"$.none","nullValue":"NULL_VALUE"}],"willContinue":true}}`), part(`{"functionCall":{}}`), part(`{"functionCall":{}}`),
		part(`{"functionCall":{"name":"go","willContinue":true}}`), part(`{"functionCall":{"partialArgs":[{"jsonPath":"$.to","stringValue":"x"}]}}`), part(`{"functionCall":{"name":"stop","args":{}}}`), `{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}`),
		want: `{"complete":true,"finish":"STOP","response":{"role":"assistant","content":"","tool_calls":[
			{"id":"#1","type":"function","function":{"name":"look","arguments":"{\"a.b\":0.5,\"list\":[{\"city\":\"Boston\"},true],\"none\":null}"}},{"id":"#2","type":"function","function":{"name":"go","arguments":"{\"to\":\"x\"}"}},{"id":"#3","type":"function","function":{"name":"stop","arguments":"{}"}}]}}`},
	{name: "a piece that leads nowhere", protocol: observe.GeminiGenerate, response: events(part(`{"text":"So."}`), part(`{"functionCall":{"name":"look","willContinue":true}}`), part(`{"functionCall":{"partialArgs":[{"jsonPath":"$.a[1025]","stringValue":"x"}]}}`)),
		want: `{"complete":false,"projection":"failed","problem":"answer: partialArgs: a path has a step that is neither a name nor a number in range","response":{"role":"assistant","content":"So.","tool_calls":[{"id":"#1","type":"function","function":{"name":"look","arguments":"{\"a\":{}}"}}]}}`},
	{name: "tools that Google ran", protocol: observe.GeminiGenerate, response: `{"candidates":[{"content":{"parts":[{"toolCall":{"id":"c","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["q"]}},"thoughtSignature":"s"},
			{"toolResponse":{"id":"c","toolType":"GOOGLE_SEARCH_WEB","response":{"search_suggestions":"x"}}},{"text":"So."}]},"finishReason":"STOP"}]}`,
		want: `{"complete":true,"finish":"STOP","response":[{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"GOOGLE_SEARCH_WEB","arguments":"{\"queries\":[\"q\"]}"}}]},
			{"role":"tool","name":"GOOGLE_SEARCH_WEB","tool_call_id":"c","content":"{\"search_suggestions\":\"x\"}"},{"role":"assistant","content":"So."}]}`},
	{name: "what Google looked up", protocol: observe.GeminiGenerate, response: events(part(`{"text":"So."}`), `{"candidates":[{"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["what is so"],"groundingChunks":[{"web":{"uri":"https://example.org/a?b=c","title":"A"}}]},`+
		`"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://example.org/d"}]}}]}`),
		want: `{"complete":true,"finish":"STOP","response":"So.","context_by_reference":["search","url"]}`},
	{name: "an error with a status of success", protocol: observe.GeminiGenerate, response: `{"error":{"code":503,"status":"UNAVAILABLE","message":"m"}}`, want: `{"complete":true,"error":"UNAVAILABLE: m"}`},
}

// part is a chunk of Gemini with one part.
func part(p string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + p + `]}}]}`
}

var passages = append(chatPassages[:len(chatPassages):len(chatPassages)], otherPassages...)

// TestPassages: what passes between programs and servers says what it means, also where it is not as the vendor's documents have it.
func TestPassages(t *testing.T) {
	for _, p := range passages {
		got, want := members(t, marshal(t, check(t, p.call()))), members(t, []byte(oneLine(p.want)))
		for _, name := range []string{"model", "parameters", "prompt"} {
			if want[name] == nil {
				delete(got, name)
			}
		}
		if diff := cmp.Diff(form(t, marshal(t, want)), form(t, marshal(t, got))); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", p.protocol, p.name, diff)
		}
	}
}

func members(t *testing.T, doc []byte) map[string]jsontext.Value {
	t.Helper()
	var m map[string]jsontext.Value
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	return m
}

// TestErrorInAnArray: Google's server speaks OpenAI's protocol, and puts errors into arrays as in its own.
func TestErrorInAnArray(t *testing.T) {
	p := project(t, observe.Call{Protocol: observe.OpenAIChat, Status: 400, Request: []byte(`{"messages":[]}`), Response: []byte(`[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]`)})
	if p.Error != "no" || !p.Complete {
		t.Errorf("%q, complete: %t", p.Error, p.Complete)
	}
}

// TestPolled: an answer that is asked for later is read, whatever ids a server gives.
func TestPolled(t *testing.T) {
	c := observe.Call{Protocol: observe.Protocol("GET", "/v1/responses/1b-2c"), Path: "/v1/responses/1b-2c", Status: 200, Response: []byte(`{"id":"1b-2c","status":"completed","output":[]}`)}
	if p := project(t, c); !p.Complete || p.State != "" || !bytes.Equal(marshal(t, p.ContextByReference), []byte(`["response:1b-2c"]`)) {
		t.Errorf("%+v", p)
	}
}

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

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	doc := must.Get(json.Marshal(v))(t)
	return doc
}

// form returns a document in canonical form, indented for people who compare.
func form(t testing.TB, doc []byte) string {
	t.Helper()
	canonical, err := evidence.Canonical(doc)
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	v := jsontext.Value(canonical)
	must.Do(t, v.Indent())
	return string(v)
}

// typed writes data as server-sent events that are named for their type.
func typed(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		_, kind, _ := strings.Cut(d, `"type":"`)
		kind, _, _ = strings.Cut(kind, `"`)
		b.WriteString("event: " + kind + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

// array writes data as one JSON array, as Gemini streams it.
func array(data []string) string { return "[" + strings.Join(data, "\n,\r\n") + "\n]\n" }

func oneLine(doc string) string { return strings.ReplaceAll(doc, "\n", "") }
