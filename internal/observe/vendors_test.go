package observe_test

import "jurat/internal/observe"

var messagesSample = sample{
	name: "messages",
	call: observe.Call{Protocol: observe.AnthropicMessages, Path: "/v1/messages", Status: 200, Request: []byte(`{"model":"claude-x","max_tokens":99,"stream":true,
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
	call: observe.Call{Protocol: observe.OpenAIResponses, Path: "/v1/responses", Status: 200, Request: []byte(`{"model":"gpt-5.2","instructions":"Be kind.","stream":true,"store":true,
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
	call: observe.Call{Protocol: observe.GeminiGenerate, Path: "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", Status: 200, Request: []byte(`{
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
