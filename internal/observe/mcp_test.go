package observe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/observe"
)

const (
	toolCall   = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"refund","arguments":{"order":"A-17","cents":9007199254740993},"_meta":{"progressToken":1,"claudecode/toolUseId":"toolu_9"}}}`
	toolAnswer = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"Refunded."}],"isError":false}}`
)

func mcp(request, response string) observe.Call {
	return observe.Call{Protocol: "mcp/2025-06-18", Path: "/client", Request: []byte(request), Response: []byte(response)}
}

// mcpCases are messages of the protocol, and what they say: parameters, prompt, response, problem.
var mcpCases = []struct {
	name string
	call observe.Call
	want [4]string
}{
	{"a tool", mcp(toolCall, toolAnswer), [4]string{`{"method":"tools/call","tool":"refund","tool_use_id":"toolu_9"}`,
		`[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"order\":\"A-17\",\"cents\":9007199254740993}","name":"refund"},"id":"toolu_9","type":"function"}]}]`,
		`{"content":"Refunded.","role":"tool","tool_call_id":"toolu_9"}`}},
	{"a tool that fails", mcp(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t"}}`, `{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"no"}],"isError":true}}`+"\r\n"),
		[4]string{`{"method":"tools/call","tool":"t"}`, `[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"t"},"id":"mcp:\"x\"","type":"function"}]}]`,
			`{"content":"no","is_error":true,"role":"tool","tool_call_id":"mcp:\"x\""}`}},
	{"an error", mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool"}}`),
		[4]string{`{"method":"tools/call","tool":"t"}`, `[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"t"},"id":"mcp:1","type":"function"}]}]`,
			`{"content":"error: {\"code\":-32602,\"message\":\"Unknown tool\"}","is_error":true,"role":"tool","tool_call_id":"mcp:1"}`}},
	{"other content", mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"a":1},"content":[{"type":"text","text":"{\"a\": 1}"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource","resource":{"uri":"file://u:p@h/x?k=s","text":"hello"}}]}}`),
		[4]string{`{"method":"tools/call","tool":"t"}`, `[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"t"},"id":"mcp:1","type":"function"}]}]`,
			`{"content":[{"text":"{\"a\": 1}","type":"text"},{"bytes":3,"digest":"` + evidence.DigestOf(make([]byte, 3)).String() + `","media_type":"image/png","type":"image_url"},{"text":"[resource file://h/x]\nhello","type":"text"}],"role":"tool","tool_call_id":"mcp:1"}`}},
	{"structured content alone", mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`, `{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"a":1},"content":[]}}`),
		[4]string{`{"method":"tools/call","tool":"t"}`, `[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"t"},"id":"mcp:1","type":"function"}]}]`,
			`{"content":"[structuredContent] {\"a\":1}","role":"tool","tool_call_id":"mcp:1"}`}},
	{"more input is wanted, of 2026-07-28", mcp(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"q":1},"inputResponses":{"n":{"action":"accept"}},"requestState":"s"}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"n":{"method":"elicitation/create"}}}}`),
		[4]string{`{"method":"tools/call","tool":"t"}`, `[{"content":"{\"inputResponses\":{\"n\":{\"action\":\"accept\"}},\"requestState\":\"s\"}","role":"assistant","tool_calls":[{"function":{"arguments":"{\"q\":1}","name":"t"},"id":"mcp:2","type":"function"}]}]`,
			`{"content":"{\"inputRequests\":{\"n\":{\"method\":\"elicitation/create\"}},\"resultType\":\"input_required\"}","role":"tool","tool_call_id":"mcp:2"}`}},
	{"tools", mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"Adds.","inputSchema":{}},{"name":"b"}],"nextCursor":"2"}}`),
		[4]string{`{"method":"tools/list"}`, `[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"tools/list"},"id":"mcp:1","type":"function"}]}]`,
			`{"content":"{\"description\":\"Adds.\",\"digest\":\"` + evidence.DigestOf([]byte(`{"description":"Adds.","inputSchema":{},"name":"a"}`)).String() + `\",\"name\":\"a\"}\n{\"digest\":\"` +
				evidence.DigestOf([]byte(`{"name":"b"}`)).String() + `\",\"name\":\"b\"}\n[more tools follow]","role":"tool","tool_call_id":"mcp:1"}`}},
	{"the server asks", observe.Call{Protocol: "mcp/2025-06-18", Path: observe.FromServer, Request: []byte(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":5}}`),
		Response: []byte(`{"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}}`)},
		[4]string{`{"method":"sampling/createMessage"}`, `[{"content":"sampling/createMessage {\"maxTokens\":5}","name":"sampling/createMessage","role":"tool"}]`,
			`"{\"content\":{\"text\":\"hi\",\"type\":\"text\"},\"model\":\"m\",\"role\":\"assistant\"}"`}},
	{"a notification that says nothing", mcp(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``),
		[4]string{`{"method":"notifications/initialized"}`, `[{"content":"notifications/initialized","name":"notifications/initialized","role":"assistant"}]`}},
	{"a notification", mcp(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, ``),
		[4]string{`{"method":"notifications/cancelled"}`, `[{"content":"notifications/cancelled {\"requestId\":7}","name":"notifications/cancelled","role":"assistant"}]`}},
	{"an answer of the client, on HTTP", mcp(`{"jsonrpc":"2.0","id":4,"result":{"action":"decline"}}`, ``), [4]string{`{"answers":"4"}`, `[{"content":"{\"action\":\"decline\"}","role":"assistant"}]`}},
	{"a batch", mcp(`[`+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}},{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"b"}}]`,
		`[{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"B"}]}},{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"A"}]}}]`),
		[4]string{`{"batch":[{"method":"tools/call","tool":"a"},{"method":"tools/call","tool":"b"}]}`,
			`[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"a"},"id":"mcp:1","type":"function"}]},{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"b"},"id":"mcp:\"1\"","type":"function"}]}]`,
			`[{"content":"B","role":"tool","tool_call_id":"mcp:\"1\""},{"content":"A","role":"tool","tool_call_id":"mcp:1"}]`}},
	{"the id of another", mcp(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"1","result":{}}`),
		[4]string{`{"method":"ping"}`, `[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"ping"},"id":"mcp:1","type":"function"}]}]`,
			`"{}"`, `answer: it answers the id "1", which was not asked`}},
	{"a member twice", mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b","arguments":{"n":1e400,"s":"\ud800"}}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`),
		[4]string{`{"method":"tools/call","tool":"b"}`, `[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":1e400,\"s\":\"\\ud800\"}","name":"b"},"id":"mcp:1","type":"function"}]}]`,
			`{"content":"{}","role":"tool","tool_call_id":"mcp:1"}`, `request: at /params/name: the object has this member twice: read as most libraries do`}},
	{"no JSON", mcp("listening on 8080", "\x00"), [4]string{"", "[]", "", "request: invalid character 'l': want a value; names and texts must be in double quotes, not single ones; answer: invalid character '\\x00': want a value"}},
	{"no message", mcp("17", "[3]"), [4]string{"", "[]", "", "request: it is no message; answer: /0 has the wrong type"}},
}

func TestMCP(t *testing.T) {
	for _, c := range mcpCases {
		p := project(t, c.call)
		got := [4]string{string(p.Parameters), string(p.Prompt), string(p.Output), p.Problem}
		for i, member := range []string{"parameters", "prompt", "response", "problem"} {
			if got[i] != c.want[i] {
				t.Errorf("%s: %s\n got %s\nwant %s", c.name, member, got[i], c.want[i])
			}
		}
	}
}

// TestMCPStream: on HTTP the answer may be a stream, in which the server says other things first.
func TestMCPStream(t *testing.T) {
	c := mcp(toolCall, "event: message\r\nid: 1\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\r\n\r\n: ping\n\ndata:\n\ndata: "+toolAnswer+"\n\n")
	c.Path, c.Status, c.ResponseType = "/mcp", 200, "text/event-stream"
	p := project(t, c)
	if !p.Complete || p.Problem != "" || !strings.Contains(string(p.Output), `{"content":"Refunded.","role":"tool","tool_call_id":"toolu_9"}`) || !strings.Contains(string(p.Output), "notifications/progress") {
		t.Errorf("%+v", p)
	}
	c.Response = c.Response[:len(c.Response)-1]
	if p := project(t, c); p.Complete || strings.Contains(string(p.Output), "Refunded") {
		t.Errorf("a stream that breaks off: %+v", p)
	}
	c.Status, c.ResponseType, c.Response = 404, "application/json", []byte(`{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Session not found"}}`)
	if p := project(t, c); p.Error != "-32001: Session not found" {
		t.Errorf("%+v", p)
	}
}

// TestMCPDeep: what is nested deeper than canonical JSON allows is kept as a text.
func TestMCPDeep(t *testing.T) {
	deep := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	p := project(t, mcp(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":%s}}`, deep), fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"x":%s}}`, deep)))
	if !strings.Contains(string(p.Prompt), deep) || !strings.Contains(string(p.Output), deep) {
		t.Errorf("%+v", p)
	}
	many := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 1500) + "1]"
	if p := project(t, mcp(many[:len(many)-3]+"]", "")); !strings.Contains(p.Problem, "more than 1000 messages") {
		t.Errorf("a batch of 1500: %s", p.Problem)
	}
}

func TestDefinitions(t *testing.T) {
	list := mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","x":1.0},{"x":1,"name":"a"},{"name":"b","n":1e400}]}}`)
	got, unread := observe.Definitions(list)
	if len(got) != 3 || got[0] != got[1] || got[0].Name != "a" || got[2].Digest != evidence.DigestOf([]byte(`{"name":"b","n":1e400}`)) || unread != "" {
		t.Errorf("%+v %s", got, unread)
	}
	list.Request = []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	if got, unread := observe.Definitions(list); got != nil || unread != "" {
		t.Error("the result of a tool is taken for definitions")
	}
}

// TestDefinitionsInOtherPlaces: a list is compared however it comes, and if it cannot be read, that is said.
func TestDefinitionsInOtherPlaces(t *testing.T) {
	const asks, tools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `"result":{"tools":[{"name":"a"}]}}`
	for name, c := range map[string]struct {
		request, response string
		found             int
		unread            string
	}{
		"the id in another spelling":      {asks, `{"jsonrpc":"2.0","id":1.0,` + tools, 1, ""},
		"a member twice":                  {asks, `{"jsonrpc":"2.0","id":1,"result":{},` + tools, 1, ""},
		"on a connection of its own":      {"", "id: 7\ndata: {\"jsonrpc\":\"2.0\",\"id\":1," + tools + "\n\n", 1, ""},
		"an error":                        {asks, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}`, 0, ""},
		"another result alone":            {"", `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, 0, ""},
		"to another id":                   {asks, `{"jsonrpc":"2.0","id":2,` + tools, 0, "is not here"},
		"nothing":                         {asks, "", 0, "is not here"},
		"the end is missing":              {asks, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}`, 0, "cannot be read: answer: "},
		"one of two in a batch":           {"[" + asks + `,{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`, `[{"jsonrpc":"2.0","id":2,` + tools + "]", 1, "is not here"},
		"a notification that looks alike": {asks, `{"jsonrpc":"2.0","id":1,"method":"x",` + tools, 0, "is not here"},
	} {
		call := mcp(c.request, c.response)
		if strings.HasPrefix(c.response, "id:") {
			call.ResponseType = "text/event-stream"
		}
		got, unread := observe.Definitions(call)
		if len(got) != c.found || !strings.Contains(unread, c.unread) || (unread == "") != (c.unread == "") {
			t.Errorf("%s: %d definitions, %q", name, len(got), unread)
		}
	}
}

// TestToolsThatAreNone: elements of a list that are no definitions hide none of the others. By the same rules a record could state nothing of such bytes.
func TestToolsThatAreNone(t *testing.T) {
	p := project(t, mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[1,{"name":"b"}]}}`))
	const want = `{"content":"{\"digest\":\"sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b\",\"name\":\"\"}\n` +
		`{\"digest\":\"sha256:4990ff99be213c83fdc8397bfca008af54807ffa699ce10bb132bada6347fbf3\",\"name\":\"b\"}","role":"tool","tool_call_id":"mcp:1"}`
	if string(p.Output) != want || p.Problem != "" {
		t.Errorf("%s, %q", p.Output, p.Problem)
	}
}

const a2aSent = `{"jsonrpc":"2.0","id":7,"method":"message/send","params":{"message":{"kind":"message","messageId":"m1","role":"user","contextId":"c1","referenceTaskIds":["t0"],"parts":[
	{"kind":"text","text":"Where is my parcel?"},{"kind":"data","data":{"order":12}},
	{"kind":"file","file":{"name":"a.png","mimeType":"image/png","bytes":"aGVsbG8="}},{"kind":"file","file":{"uri":"https://u:p@example.org/a.png?sig=s"}}]},
	"configuration":{"blocking":true,"acceptedOutputModes":["text"],"pushNotificationConfig":{"url":"https://example.org/hook","token":"push-secret","authentication":{"credentials":"push-secret"}}}}}`

// a2aSamples are calls of both versions and both bindings, as the specification and the SDKs write them.
var a2aSamples = []sample{
	{
		name: "a2a 0.3, JSON-RPC",
		call: observe.Call{Protocol: observe.A2A03, Path: "/", Status: 200, Request: []byte(a2aSent)},
		whole: `{"jsonrpc":"2.0","id":7,"result":{"kind":"task","id":"t1","contextId":"c1","status":{"state":"completed","message":{"kind":"message","messageId":"m4","role":"agent","parts":[{"kind":"text","text":"Done."}]}},
			"history":[{"kind":"message","role":"agent","messageId":"m0","parts":[{"kind":"text","text":"Hello"}]},{"kind":"message","role":"user","messageId":"m1","parts":[{"kind":"text","text":"Where is my parcel?"}]},
				{"kind":"message","role":"agent","messageId":"m2","parts":[{"kind":"text","text":"I look."},{"kind":"data","data":{"name":"track","id":"k1","args":{"order":12}}},{"kind":"data","data":{"name":"track","id":"k1","response":{"at":"Bern"}}}]}],
			"artifacts":[{"artifactId":"a1","name":"report","parts":[{"kind":"text","text":"It is in Bern."},{"kind":"file","file":{"name":"map.png","bytes":"aGVsbG8="}}]}]}}`,
		stream: events(
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"task","id":"t1","contextId":"c1","status":{"state":"submitted"}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"status-update","taskId":"t1","contextId":"c1","final":false,"status":{"state":"working","message":{"kind":"message","messageId":"m2","role":"agent","parts":[{"kind":"text","text":"I look."},{"kind":"data","data":{"name":"track","id":"k1","args":{"order":12}}},{"kind":"data","data":{"name":"track","id":"k1","response":{"at":"Bern"}}}]}}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"artifact-update","taskId":"t1","contextId":"c1","artifact":{"artifactId":"a1","name":"report","parts":[{"kind":"text","text":"It is"}]}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"artifact-update","taskId":"t1","contextId":"c1","append":true,"artifact":{"artifactId":"a1","parts":[{"kind":"text","text":" in "}]}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"artifact-update","taskId":"t1","contextId":"c1","append":true,"lastChunk":true,"artifact":{"artifactId":"a1","parts":[{"kind":"text","text":"Bern."},{"kind":"file","file":{"name":"map.png","bytes":"aGVsbG8="}}]}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"status-update","taskId":"t1","contextId":"c1","final":true,"status":{"state":"completed","message":{"kind":"message","messageId":"m4","role":"agent","parts":[{"kind":"text","text":"Done."}]}}}}`),
		want: `{
			"parameters": {"method": "message/send", "messageId": "m1", "contextId": "c1", "blocking": true, "acceptedOutputModes": ["text"]},
			"prompt": [{"role": "user", "content": [{"type": "text", "text": "Where is my parcel?"}, {"type": "text", "text": "{\"order\":12}"},
				{"type": "file", "name": "a.png", "bytes": 5, "media_type": "image/png", "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
				{"type": "file", "url": "https://example.org/a.png"}]}],
			"response": [
				{"role": "assistant", "content": "I look.", "tool_calls": [{"id": "k1", "type": "function", "function": {"name": "track", "arguments": "{\"order\":12}"}}]},
				{"role": "tool", "name": "track", "tool_call_id": "k1", "content": "{\"at\":\"Bern\"}"},
				{"role": "assistant", "name": "artifact", "content": [{"type": "text", "text": "It is in Bern."},
					{"type": "file", "name": "map.png", "bytes": 5, "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}]},
				{"role": "assistant", "content": "Done."}],
			"finish": "completed", "provider_id": "t1",
			"context_by_reference": ["task:t0", "url"], "conversation": ["context:c1", "task:t1"],
			"complete": true}`,
	},
	{
		name:  "a2a 1.0, JSON-RPC",
		call:  observe.Call{Protocol: observe.A2A10, Path: "/agent", Status: 200, Request: []byte(`{"jsonrpc":"2.0","id":"x","method":"SendStreamingMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","taskId":"t1","parts":[{"text":"Go on."},{"raw":"aGVsbG8=","filename":"a.txt","mediaType":"text/plain"}]}}}`)},
		whole: `{"jsonrpc":"2.0","id":"x","result":{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"Which one?"}]}}}}}`,
		stream: events(`{"jsonrpc":"2.0","id":"x","result":{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}}`,
			`{"jsonrpc":"2.0","id":"x","result":{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"Which one?"}]}}}}}`),
		want: `{
			"parameters": {"method": "SendStreamingMessage", "messageId": "m1", "taskId": "t1"},
			"prompt": [{"role": "user", "content": [{"type": "text", "text": "Go on."}, {"type": "file", "name": "a.txt", "media_type": "text/plain", "bytes": 5, "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}]}],
			"response": "Which one?", "finish": "TASK_STATE_INPUT_REQUIRED", "provider_id": "t1", "conversation": ["context:c1", "task:t1"], "complete": true}`,
	},
	{
		name:   "a2a 1.0, HTTP with JSON",
		call:   observe.Call{Protocol: observe.A2A10, Path: "/v1/message:stream", Status: 200, Request: []byte(`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"Hi"}]},"configuration":{"returnImmediately":true}}`)},
		whole:  `{"message":{"messageId":"m2","contextId":"c9","role":"ROLE_AGENT","parts":[{"text":"Hello."},{"url":"https://example.org/f","filename":"f"},{"data":[1]}]}}`,
		stream: events(`{"message":{"messageId":"m2","contextId":"c9","role":"ROLE_AGENT","parts":[{"text":"Hello."},{"url":"https://example.org/f","filename":"f"},{"data":[1]}]}}`),
		want: `{
			"parameters": {"method": "message:stream", "messageId": "m1", "returnImmediately": true},
			"prompt": [{"role": "user", "content": "Hi"}],
			"response": {"role": "assistant", "content": [{"type": "text", "text": "Hello."}, {"type": "file", "name": "f", "url": "https://example.org/f"}, {"type": "text", "text": "[1]"}]},
			"provider_id": "m2", "conversation": ["context:c9"], "complete": true}`,
	},
}

func a2aReplies() []reply {
	send := func(status int, response string, want observe.Projection) reply {
		return reply{protocol: observe.A2A10, status: status, response: response, want: want}
	}
	return []reply{
		send(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}`, observe.Projection{Complete: true, Error: "-32001: Task not found"}),
		send(200, `{"jsonrpc":"2.0","id":1,"error":{}}`, observe.Projection{Complete: true, Error: "an error without words"}),
		send(404, `{"error":{"code":404,"status":"NOT_FOUND","message":"no"}}`, observe.Projection{Complete: true, Error: "NOT_FOUND: no"}),
		send(502, `<html>`, observe.Projection{Error: "status 502"}),
		send(200, `<html>`, observe.Projection{State: observe.Failed, Problem: "answer: it is neither JSON nor a stream of events"}),
		send(200, `{"jsonrpc":"2.0","id":1,"result":{"x":1}}`, observe.Projection{Complete: true, State: observe.Failed, Problem: "answer: it has no message, task or update of one"}),
		send(200, `{"jsonrpc":"2.0","id":2,"result":{"message":{"role":"ROLE_USER","parts":[{"text":"a"}]}}}`,
			observe.Projection{Complete: true, Output: []byte(`"a"`), Problem: `answer: its id is that of another request; answer: its message has the role "ROLE_USER": read as the agent's`}),
		send(200, `{"id":1,"result":{"message":{"role":"ROLE_AGENT","parts":[{"nothing":1e400},7]}}}`,
			observe.Projection{Complete: true, Output: []byte(`{"content":[{"text":"[part] {\"nothing\":1e400}","type":"text"},{"text":"[part] 7","type":"text"}],"role":"assistant"}`),
				Problem: "answer: part 0: it has no text, data or file; answer: part 1: it has no text, data or file"}),
		send(200, `{"id":1,"result":{"task":{"id":"t","id":"t2","status":{"state":"TASK_STATE_WORKING"}}}}`,
			observe.Projection{Complete: true, ProviderID: "t2", Finish: "TASK_STATE_WORKING", Conversation: []string{"task:t2"}, Problem: `answer: at /result/task/id: the object has this member twice: read as most libraries do`}),
		send(200, events(`{"id":1,"result":{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_WORKING"}}}}`, `what`, `{"id":1,"error":{"code":-32603,"message":"broke"}}`),
			observe.Projection{ProviderID: "t", Finish: "TASK_STATE_WORKING", Conversation: []string{"task:t"}, State: observe.Failed, Error: "-32603: broke", Problem: "answer: event 2: invalid character 'w': want a value; names and texts must be in double quotes, not single ones"}),
		send(200, events(`{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"x"}]}}}}`, `{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"data":1},{"text":"y"}]}}}}`, `{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"z"}]}}}}`),
			observe.Projection{Output: []byte(`{"content":[{"text":"x","type":"text"},{"text":"1","type":"text"},{"text":"yz","type":"text"}],"name":"artifact","role":"assistant"}`)}),
	}
}

func (r *reply) a2aCall() observe.Call {
	return observe.Call{Protocol: r.protocol, Path: "/", Status: r.status, Request: []byte(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"role":"ROLE_USER","parts":[]}}}`), Response: []byte(r.response)}
}

// TestA2AReplies: what is no answer is said to be none, and why.
func TestA2AReplies(t *testing.T) {
	for n, r := range a2aReplies() {
		got := project(t, r.a2aCall())
		got.Prompt = nil
		if diff := cmp.Diff(r.want, got.Projection); diff != "" {
			t.Errorf("reply %d, %s (-want +got):\n%s", n, r.response, diff)
		}
	}
}

// TestA2ARequests: what was asked is said, whatever it is, and no secret of a notification is.
func TestA2ARequests(t *testing.T) {
	for _, r := range []struct{ path, request, response, want string }{
		{"/", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t1","historyLength":3}}`, `{"id":1,"result":{"kind":"task","id":"t1","contextId":"c1","status":{"state":"working"}}}`,
			`{"parameters":{"method":"tasks/get","taskId":"t1","historyLength":3},"finish":"working","provider_id":"t1","conversation":["context:c1","task:t1"],"complete":true}`},
		{"/v1/tasks/t1:cancel", ``, `{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_CANCELED"}}`,
			`{"parameters":{"method":"tasks:cancel","taskId":"t1"},"finish":"TASK_STATE_CANCELED","provider_id":"t1","conversation":["context:c1","task:t1"],"complete":true}`},
		{"/tasks/t1", ``, ``, `{"parameters":{"method":"tasks","taskId":"t1"},"conversation":["task:t1"],"complete":false}`},
		{"/tasks/t1/pushNotificationConfigs", `{"token":"push-secret"}`, `{"token":"push-secret"}`, `{"parameters":{"method":"pushNotificationConfigs"},"complete":true}`},
		{"/", `{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{"taskId":"t1","pushNotificationConfig":{"token":"push-secret"}}}`, `{"id":1,"result":{"pushNotificationConfig":{"token":"push-secret"}}}`,
			`{"parameters":{"method":"tasks/pushNotificationConfig/set"},"complete":true}`},
		{"/", `{"jsonrpc":"2.0","id":1,"method":"agent/own","params":{}}`, `{"id":1,"result":7}`, `{"parameters":{"method":"agent/own"},"complete":true,"problem":"request: \"agent/own\" is no method of A2A"}`},
		{"/", ``, ``, `{"complete":false,"projection":"failed","problem":"request: it is empty"}`},
		{"/", `[{"method":"message/send"}]`, ``, `{"complete":false,"projection":"failed","problem":"request: it has the wrong type"}`},
		{"/", `{"method":"message/send","params":{}}`, ``, `{"parameters":{"method":"message/send"},"complete":false,"projection":"failed","problem":"request: it has no message"}`},
	} {
		got := marshal(t, project(t, observe.Call{Protocol: observe.A2A03, Path: r.path, Status: 200, Request: []byte(r.request), Response: []byte(r.response)}))
		if diff := cmp.Diff(form(t, []byte(r.want)), form(t, got)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", r.path, r.request, diff)
		}
		if strings.Contains(string(got), "push-secret") {
			t.Errorf("the secret is in %s", got)
		}
	}
}

func TestA2AProtocol(t *testing.T) {
	for call, want := range map[string]string{
		"POST /": observe.A2A03, "POST / 1.0": observe.A2A10, "POST /any/agent 0.3": observe.A2A03, "POST /message:send 1.0": observe.A2A10, "POST / 2.7": "a2a/2.7",
		"GET /tasks/t 1.0": observe.A2A10, "GET /v1/tasks": observe.A2A03, "DELETE /tasks/t/pushNotificationConfigs/c 1.0": observe.A2A10, "GET /v1/card": observe.A2A03, "GET /extendedAgentCard 1.0": observe.A2A10,
		"GET /.well-known/agent-card.json": "", "GET /": "", "GET /card": "", "POST / one\n": "", "POST / 1": "",
	} {
		method, rest, _ := strings.Cut(call, " ")
		path, version, _ := strings.Cut(rest, " ")
		if got := observe.A2AProtocol(method, path, version); got != want {
			t.Errorf("%q: %q, want %q", call, got, want)
		}
	}
}

// TestA2AGrows: an artifact of many pieces takes time in proportion to them.
func TestA2AGrows(t *testing.T) {
	const pieces = 60_000
	piece := strings.Repeat(events(`{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"`+strings.Repeat("x", 60)+`"}]}}}}`), pieces)
	r := reply{protocol: observe.A2A10, status: 200, response: piece}
	done := make(chan int)
	go func() { done <- len(project(t, r.a2aCall()).Output) }()
	select {
	case n := <-done:
		if n < 60*pieces {
			t.Errorf("%d bytes of %d", n, 60*pieces)
		}
	case <-time.After(time.Minute):
		t.Fatal(fmt.Sprint("not read after a minute: ", len(piece), " bytes"))
	}
}
