package traffic_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
)

const (
	toolCall   = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"refund","arguments":{"order":"A-17","cents":9007199254740993},"_meta":{"progressToken":1,"claudecode/toolUseId":"toolu_9"}}}`
	toolAnswer = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"Refunded."}],"isError":false}}`
)

func mcp(request, response string) traffic.Call {
	return traffic.Call{Protocol: "mcp/2025-06-18", Path: "/client", Request: []byte(request), Response: []byte(response)}
}

// mcpCases are messages of the protocol, and what they say: parameters, prompt, response, problem.
var mcpCases = []struct {
	name string
	call traffic.Call
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
	{"the server asks", traffic.Call{Protocol: "mcp/2025-06-18", Path: traffic.FromServer, Request: []byte(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":5}}`),
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
			must.Hold(t, got[i] == c.want[i], "%s: %s\n got %s\nwant %s", c.name, member, got[i], c.want[i])
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
	p = project(t, c)
	must.Hold(t, !p.Complete && !strings.Contains(string(p.Output), "Refunded"), "a stream that breaks off: %+v", p)
	c.Status, c.ResponseType, c.Response = 404, "application/json", []byte(`{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Session not found"}}`)
	p = project(t, c)
	must.Hold(t, p.Error == "-32001: Session not found", "%+v", p)
}

// TestMCPDeep: what is nested deeper than canonical JSON allows is kept as a text.
func TestMCPDeep(t *testing.T) {
	deep := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	p := project(t, mcp(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":%s}}`, deep), fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"x":%s}}`, deep)))
	must.Hold(t, strings.Contains(string(p.Prompt), deep) && strings.Contains(string(p.Output), deep), "%+v", p)
	many := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 1500) + "1]"
	p = project(t, mcp(many[:len(many)-3]+"]", ""))
	must.Hold(t, strings.Contains(p.Problem, "more than 1000 messages"), "a batch of 1500: %s", p.Problem)
}

func TestDefinitions(t *testing.T) {
	list := mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","x":1.0},{"x":1,"name":"a"},{"name":"b","n":1e400}]}}`)
	got, unread := traffic.Definitions(list)
	if len(got) != 3 || got[0] != got[1] || got[0].Name != "a" || got[2].Digest != evidence.DigestOf([]byte(`{"name":"b","n":1e400}`)) || unread != "" {
		t.Errorf("%+v %s", got, unread)
	}
	list.Request = []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	got, unread = traffic.Definitions(list)
	must.Hold(t, got == nil && unread == "", "the result of a tool is taken for definitions")
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
		got, unread := traffic.Definitions(call)
		must.Hold(t, len(got) == c.found && strings.Contains(unread, c.unread) && (unread == "") == (c.unread == ""),
			"%s: %d definitions, %q", name, len(got), unread)
	}
}

// TestToolsThatAreNone: elements of a list that are no definitions hide none of the others. By the same rules a record could state nothing of such bytes.
func TestToolsThatAreNone(t *testing.T) {
	p := project(t, mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[1,{"name":"b"}]}}`))
	const want = `{"content":"{\"digest\":\"sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b\",\"name\":\"\"}\n` +
		`{\"digest\":\"sha256:4990ff99be213c83fdc8397bfca008af54807ffa699ce10bb132bada6347fbf3\",\"name\":\"b\"}","role":"tool","tool_call_id":"mcp:1"}`
	must.Hold(t, string(p.Output) == want && p.Problem == "", "%s, %q", p.Output, p.Problem)
}

const a2aSent = `{"jsonrpc":"2.0","id":7,"method":"message/send","params":{"message":{"kind":"message","messageId":"m1","role":"user","contextId":"c1","referenceTaskIds":["t0"],"parts":[
	{"kind":"text","text":"Where is my parcel?"},{"kind":"data","data":{"order":12}},
	{"kind":"file","file":{"name":"a.png","mimeType":"image/png","bytes":"aGVsbG8="}},{"kind":"file","file":{"uri":"https://u:p@example.org/a.png?sig=s"}}]},
	"configuration":{"blocking":true,"acceptedOutputModes":["text"],"pushNotificationConfig":{"url":"https://example.org/hook","token":"push-secret","authentication":{"credentials":"push-secret"}}}}}`

// a2aSamples are calls of both versions and both bindings, as the specification and the SDKs write them.
var a2aSamples = []sample{
	{
		name: "a2a 0.3, JSON-RPC",
		call: traffic.Call{Protocol: traffic.A2A03, Path: "/", Status: 200, Request: []byte(a2aSent)},
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
		call:  traffic.Call{Protocol: traffic.A2A10, Path: "/agent", Status: 200, Request: []byte(`{"jsonrpc":"2.0","id":"x","method":"SendStreamingMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","taskId":"t1","parts":[{"text":"Go on."},{"raw":"aGVsbG8=","filename":"a.txt","mediaType":"text/plain"}]}}}`)},
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
		call:   traffic.Call{Protocol: traffic.A2A10, Path: "/v1/message:stream", Status: 200, Request: []byte(`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"Hi"}]},"configuration":{"returnImmediately":true}}`)},
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
	send := func(status int, response string, want traffic.Projection) reply {
		return reply{protocol: traffic.A2A10, status: status, response: response, want: want}
	}
	return []reply{
		send(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}`, traffic.Projection{Complete: true, Error: "-32001: Task not found"}),
		send(200, `{"jsonrpc":"2.0","id":1,"error":{}}`, traffic.Projection{Complete: true, Error: "an error without words"}),
		send(404, `{"error":{"code":404,"status":"NOT_FOUND","message":"no"}}`, traffic.Projection{Complete: true, Error: "NOT_FOUND: no"}),
		send(502, `<html>`, traffic.Projection{Error: "status 502"}),
		send(200, `<html>`, traffic.Projection{State: traffic.Failed, Problem: "answer: it is neither JSON nor a stream of events"}),
		send(200, `{"jsonrpc":"2.0","id":1,"result":{"x":1}}`, traffic.Projection{Complete: true, State: traffic.Failed, Problem: "answer: it has no message, task or update of one"}),
		send(200, `{"jsonrpc":"2.0","id":2,"result":{"message":{"role":"ROLE_USER","parts":[{"text":"a"}]}}}`,
			traffic.Projection{Complete: true, Output: []byte(`"a"`), Problem: `answer: its id is that of another request; answer: its message has the role "ROLE_USER": read as the agent's`}),
		send(200, `{"id":1,"result":{"message":{"role":"ROLE_AGENT","parts":[{"nothing":1e400},7]}}}`,
			traffic.Projection{Complete: true, Output: []byte(`{"content":[{"text":"[part] {\"nothing\":1e400}","type":"text"},{"text":"[part] 7","type":"text"}],"role":"assistant"}`),
				Problem: "answer: part 0: it has no text, data or file; answer: part 1: it has no text, data or file"}),
		send(200, `{"id":1,"result":{"task":{"id":"t","id":"t2","status":{"state":"TASK_STATE_WORKING"}}}}`,
			traffic.Projection{Complete: true, ProviderID: "t2", Finish: "TASK_STATE_WORKING", Conversation: []string{"task:t2"}, Problem: `answer: at /result/task/id: the object has this member twice: read as most libraries do`}),
		send(200, events(`{"id":1,"result":{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_WORKING"}}}}`, `what`, `{"id":1,"error":{"code":-32603,"message":"broke"}}`),
			traffic.Projection{ProviderID: "t", Finish: "TASK_STATE_WORKING", Conversation: []string{"task:t"}, State: traffic.Failed, Error: "-32603: broke", Problem: "answer: event 2: invalid character 'w': want a value; names and texts must be in double quotes, not single ones"}),
		send(200, events(`{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"x"}]}}}}`, `{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"data":1},{"text":"y"}]}}}}`, `{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"z"}]}}}}`),
			traffic.Projection{Output: []byte(`{"content":[{"text":"x","type":"text"},{"text":"1","type":"text"},{"text":"yz","type":"text"}],"name":"artifact","role":"assistant"}`)}),
	}
}

func (r *reply) a2aCall() traffic.Call {
	return traffic.Call{Protocol: r.protocol, Path: "/", Status: r.status, Request: []byte(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"role":"ROLE_USER","parts":[]}}}`), Response: []byte(r.response)}
}

// TestA2AReplies: what is no answer is said to be none, and why.
func TestA2AReplies(t *testing.T) {
	for n, r := range a2aReplies() {
		got := project(t, r.a2aCall())
		got.Prompt = nil
		must.Equal(t, cmp.Diff(r.want, got.Projection), "", "reply", n, r.response)
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
		got := marshal(t, project(t, traffic.Call{Protocol: traffic.A2A03, Path: r.path, Status: 200, Request: []byte(r.request), Response: []byte(r.response)}))
		must.Equal(t, cmp.Diff(form(t, []byte(r.want)), form(t, got)), "", r.path, r.request)
		must.Hold(t, !strings.Contains(string(got), "push-secret"), "the secret is in %s", got)
	}
}

func TestA2AProtocol(t *testing.T) {
	for call, want := range map[string]string{
		"POST /": traffic.A2A03, "POST / 1.0": traffic.A2A10, "POST /any/agent 0.3": traffic.A2A03, "POST /message:send 1.0": traffic.A2A10, "POST / 2.7": "a2a/2.7",
		"GET /tasks/t 1.0": traffic.A2A10, "GET /v1/tasks": traffic.A2A03, "DELETE /tasks/t/pushNotificationConfigs/c 1.0": traffic.A2A10, "GET /v1/card": traffic.A2A03, "GET /extendedAgentCard 1.0": traffic.A2A10,
		"GET /.well-known/agent-card.json": "", "GET /": "", "GET /card": "", "POST / one\n": "", "POST / 1": "",
	} {
		method, rest, _ := strings.Cut(call, " ")
		path, version, _ := strings.Cut(rest, " ")
		must.Equal(t, traffic.A2AProtocol(method, path, version), want, call)
	}
}

// TestA2AGrows: an artifact of many pieces takes time in proportion to them.
func TestA2AGrows(t *testing.T) {
	const pieces = 60_000
	piece := strings.Repeat(events(`{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"`+strings.Repeat("x", 60)+`"}]}}}}`), pieces)
	r := reply{protocol: traffic.A2A10, status: 200, response: piece}
	done := make(chan int)
	go func() { done <- len(project(t, r.a2aCall()).Output) }()
	select {
	case n := <-done:
		must.Hold(t, n >= 60*pieces, "%d bytes of %d", n, 60*pieces)
	case <-time.After(time.Minute):
		t.Fatal(fmt.Sprint("not read after a minute: ", len(piece), " bytes"))
	}
}

// attrs writes attributes: strings, whole numbers, or JSON of a value of OTLP.
func attrs(t *testing.T, list ...any) string {
	t.Helper()
	var texts []string
	for i := 0; i < len(list); i += 2 {
		var value string
		switch v := list[i+1].(type) {
		case string:
			doc := must.Get(json.Marshal(v))(t)
			value = `{"stringValue":` + string(doc) + `}`
		case int:
			value = fmt.Sprintf(`{"intValue":"%d"}`, v)
		case raw:
			value = string(v)
		}
		texts = append(texts, fmt.Sprintf(`{"key":%q,"value":%s}`, list[i], value))
	}
	return "[" + strings.Join(texts, ",") + "]"
}

type raw string

// span is a span with members and attributes.
func span(t *testing.T, members string, list ...any) []byte {
	t.Helper()
	return []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331"` + members + `,"attributes":` + attrs(t, list...) + `}]}]}]}`)
}

func told(t *testing.T, body []byte) said {
	t.Helper()
	return project(t, traffic.Call{Protocol: traffic.OTLP, Request: body})
}

// TestConventions: whichever convention a sender keeps to, the projection has the same messages.
func TestConventions(t *testing.T) {
	const (
		system = `{"content":"Be short.","role":"system"}`
		user   = `{"content":"Where is parcel 17?","role":"user"}`
		calls  = `{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":17}","name":"find"},"id":"c1","type":"function"}]}`
		result = `{"content":"Kassel","role":"tool","tool_call_id":"c1"}`
		prompt = "[" + system + "," + user + "," + calls + "," + result + "]"
		input  = `[{"role":"user","parts":[{"type":"text","content":"Where is parcel 17?"}]},{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"tool_call","id":"c1","name":"find","arguments":{"n":17}}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"Kassel"}]}]`
		answer = `[{"role":"assistant","parts":[{"type":"text","content":"In Kassel."}],"finish_reason":"stop"}]`
	)
	chat := []any{"gen_ai.operation.name", "chat", "gen_ai.request.model", "m", "gen_ai.response.model", "m-1"}
	for name, body := range map[string][]byte{
		"OpenTelemetry": span(t, "", append(chat, "gen_ai.system_instructions", `[{"type":"text","content":"Be short."}]`, "gen_ai.input.messages", input, "gen_ai.output.messages", answer)...),
		"OpenTelemetry, as values": span(t, "", append(chat, "gen_ai.system_instructions", "Be short.", "gen_ai.input.messages", input, "gen_ai.output.messages",
			raw(`{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"assistant"}},{"key":"finish_reason","value":{"stringValue":"stop"}},{"key":"parts","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"type","value":{"stringValue":"text"}},{"key":"content","value":{"stringValue":"In Kassel."}}]}}]}}}]}}]}}`))...),
		"events of a span": span(t, `,"events":[{"name":"gen_ai.system.message","attributes":`+attrs(t, "content", "Be short.")+`},{"name":"gen_ai.user.message","attributes":`+attrs(t, "gen_ai.event.content", `{"content":"Where is parcel 17?"}`)+
			`},{"name":"gen_ai.assistant.message","attributes":`+attrs(t, "tool_calls", `[{"id":"c1","type":"function","function":{"name":"find","arguments":"{\"n\":17}"}}]`)+`},{"name":"gen_ai.tool.message","attributes":`+attrs(t, "id", "c1", "content", "Kassel")+
			`},{"name":"gen_ai.choice","attributes":`+attrs(t, "index", 0, "finish_reason", "stop", "message", `{"content":"In Kassel."}`)+`}]`, chat...),
		"OpenInference": span(t, "", "openinference.span.kind", "LLM", "gen_ai.response.model", "m-1", "llm.model_name", "m", "llm.finish_reason", "stop", "llm.input_messages.0.message.role", "system", "llm.input_messages.0.message.content", "Be short.",
			"llm.input_messages.1.message.role", "user", "llm.input_messages.1.message.contents.0.message_content.type", "text", "llm.input_messages.1.message.contents.0.message_content.text", "Where is parcel 17?",
			"llm.input_messages.2.message.role", "assistant", "llm.input_messages.2.message.tool_calls.0.tool_call.id", "c1", "llm.input_messages.2.message.tool_calls.0.tool_call.function.name", "find", "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments", `{"n":17}`,
			"llm.input_messages.3.message.role", "tool", "llm.input_messages.3.message.tool_call_id", "c1", "llm.input_messages.3.message.content", "Kassel", "llm.output_messages.0.message.role", "assistant", "llm.output_messages.0.message.content", "In Kassel.",
			"input.value", "whatever", "output.value", "whatever"),
		"an event with the details": []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","eventName":"gen_ai.client.inference.operation.details","attributes":` +
			attrs(t, append(chat, "gen_ai.system_instructions", `[{"type":"text","content":"Be short."}]`, "gen_ai.input.messages", input, "gen_ai.output.messages", answer)...) + `}]}]}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			p := told(t, body)
			if string(p.Prompt) != prompt || string(p.Output) != `"In Kassel."` || p.Model != "m" || p.ModelVersion != "m-1" || p.Finish != "stop" || p.Problem != "" || !p.Complete {
				t.Errorf("prompt\n%s\nwant\n%s\nanswer %s, model %q, %q, finish %q, problem %q", p.Prompt, prompt, p.Output, p.Model, p.ModelVersion, p.Finish, p.Problem)
			}
		})
	}
}

// TestToolsTold reads the use of a tool by each convention.
func TestToolsTold(t *testing.T) {
	for name, list := range map[string][]any{
		"OpenTelemetry": {"gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "find", "gen_ai.tool.call.id", "c1", "gen_ai.tool.call.arguments", `{"n":17}`, "gen_ai.tool.call.result", "Kassel"},
		"OpenInference": {"openinference.span.kind", "TOOL", "tool.name", "find", "tool_call.id", "c1", "tool.parameters", `{"n":"number"}`, "input.value", `{"n":17}`, "output.value", "Kassel"},
	} {
		p := told(t, span(t, "", list...))
		if string(p.Prompt) != `[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":17}","name":"find"},"id":"c1","type":"function"}]}]` || string(p.Output) != `{"content":"Kassel","role":"tool","tool_call_id":"c1"}` || p.Problem != "" {
			t.Errorf("%s: %s, %s, %q", name, p.Prompt, p.Output, p.Problem)
		}
	}
	p := told(t, span(t, `,"status":{"code":2,"message":"no such parcel"}`, "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "find", "gen_ai.tool.call.result", "none"))
	if !strings.Contains(string(p.Output), `"is_error":true`) || p.Error != "no such parcel" || !strings.Contains(p.Problem, "arguments of the tool: not told") || p.Complete {
		t.Errorf("a tool that failed: %+v", p)
	}
}

// TestUntold: what a sender left out, cut off, hid, or told in a way that is not read is named, and never taken for the whole.
func TestUntold(t *testing.T) {
	chat := []any{"gen_ai.operation.name", "chat", "gen_ai.request.model", "m"}
	whole := `[{"role":"user","parts":[{"type":"text","content":"` + strings.Repeat("long ", 200) + `"}]}]`
	answer := []any{"gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"Yes."}]}]`}
	for name, test := range map[string]struct {
		body    []byte
		missing string // what is named
		prompt  bool   // there is one all the same
	}{
		"a truncated attribute":    {span(t, "", append(append(chat, answer...), "gen_ai.input.messages", whole[:700])...), "gen_ai.input.messages: what is told has 700 characters and is not whole JSON", false},
		"truncated instructions":   {span(t, "", append(append(chat, answer...), "gen_ai.system_instructions", `[{"type":"te`, "gen_ai.input.messages", whole)...), "gen_ai.system_instructions: what is told has 12 characters", false},
		"instructions alone":       {span(t, "", append(append(chat, answer...), "gen_ai.system_instructions", "Be short.")...), "gen_ai.input.messages: not told", true},
		"a usual limit":            {span(t, "", "openinference.span.kind", "LLM", "llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.content", strings.Repeat("x", 1024), "llm.output_messages.0.message.content", "y"), "llm.input_messages.0.message.content: it has 1024 characters", true},
		"two of the same length":   {span(t, "", "openinference.span.kind", "LLM", "llm.input_messages.0.message.content", strings.Repeat("é", 777), "llm.output_messages.0.message.content", strings.Repeat("z", 777)), "llm.output_messages.0.message.content: it has 777 characters", true},
		"arguments that break off": {span(t, "", "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "f", "gen_ai.tool.call.arguments", `{"n":1`, "gen_ai.tool.call.result", "r"), "gen_ai.tool.call.arguments: it begins as JSON", true},
		"no content":               {span(t, "", append(chat, answer...)...), "prompt: not told here", false},
		"no answer":                {span(t, "", append(chat, "gen_ai.input.messages", whole)...), "response: not told here", true},
		"hidden":                   {span(t, "", append(append(chat, answer...), "gen_ai.input.messages", "__REDACTED__")...), "gen_ai.input.messages: the sender has hidden it", false},
		"dropped attributes":       {span(t, `,"droppedAttributesCount":7`, append(append(chat, answer...), "gen_ai.input.messages", whole)...), "7 attributes of the span", true},
		"dropped events":           {span(t, `,"droppedEventsCount":2`, append(append(chat, answer...), "gen_ai.input.messages", whole)...), "2 events of the span", true},
		"a message that is gone":   {span(t, "", "openinference.span.kind", "LLM", "llm.input_messages.0.message.content", "a", "llm.input_messages.3.message.content", "b", "llm.output_messages.0.message.content", "y"), "numbers 1 to 2 of a list: their attributes were dropped", true},
		"the first is gone":        {span(t, "", "openinference.span.kind", "LLM", "llm.input_messages.1.message.content", "b", "llm.output_messages.0.message.content", "y"), "numbers 0 to 0 of a list: their attributes were dropped", true},
		"a sampled trace":          {span(t, `,"traceState":"a=b,ot=rv:1;th:c"`, append(append(chat, answer...), "gen_ai.input.messages", whole)...), "a sample of them alone (tracestate th:c)", true},
		"another convention":       {span(t, "", append(append(chat, answer...), "gen_ai.odd.messages", whole)...), "attributes that are not read here: gen_ai.odd.messages", false},
		"messages of OpenLLMetry":  {span(t, "", "llm.request.type", "chat", "gen_ai.request.model", "m", "gen_ai.prompt.0.role", "user", "gen_ai.prompt.0.content", "Where?", "gen_ai.completion.0.content", "Here."), "attributes that are not read here: gen_ai.completion.0.content, gen_ai.prompt.0.content", false},
		"messages of the AI SDK":   {span(t, "", "ai.operationId", "ai.generateText.doGenerate", "gen_ai.request.model", "m", "ai.prompt.messages", `[{"role":"user","content":"Where?"}]`, "ai.response.text", "Here."), "attributes that are not read here: ai.operationId, ai.prompt.messages, ai.response.text", false},
		"messages of a draft":      {span(t, `,"events":[{"name":"gen_ai.content.prompt","attributes":`+attrs(t, "gen_ai.prompt", `[{"role":"user","content":"Where?"}]`)+`}]`, append(chat, answer...)...), "an event that is not read here: gen_ai.content.prompt", false},
		"the sender's own form":    {span(t, "", "openinference.span.kind", "LLM", "llm.model_name", "m", "input.value", `{"messages":[]}`, "llm.output_messages.0.message.content", "y"), "prompt: told only in a form of the sender's own (input.value)", false},
		"an attribute twice":       {span(t, "", append(append(chat, answer...), "gen_ai.input.messages", whole, "gen_ai.request.model", "n")...), "gen_ai.request.model: it stands there more than once", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := told(t, test.body)
			must.Hold(t, strings.Contains(p.Problem, test.missing), "%q does not say %q", p.Problem, test.missing)
			must.Hold(t, (p.Prompt != nil) == test.prompt, "prompt %s", p.Prompt)
		})
	}
	// A value that is whole JSON is not doubted, whatever its length.
	text := `[{"role":"user","parts":[{"type":"text","content":"` + strings.Repeat("x", 1024-56) + `"}]}]`
	p := told(t, span(t, "", append(append(chat, answer...), "gen_ai.input.messages", text)...))
	must.Hold(t, len(text) == 1024 && p.Problem == "", "%d characters, problem %q", len(text), p.Problem)
}

// TestManyMessagesTold: messages stand in the order of their numbers, not of their names.
func TestManyMessagesTold(t *testing.T) {
	list, want := []any{"openinference.span.kind", "LLM", "llm.output_messages.0.message.content", "Yes."}, []string{}
	for n := 11; n >= 0; n-- {
		list = append(list, fmt.Sprintf("llm.input_messages.%d.message.content", n), fmt.Sprintf("message %d", n))
	}
	for n := range 12 {
		want = append(want, fmt.Sprintf(`{"content":"message %d","role":"user"}`, n))
	}
	p := told(t, span(t, "", list...))
	must.Hold(t, string(p.Prompt) == "["+strings.Join(want, ",")+"]" && p.Problem == "", "%s, %q", p.Prompt, p.Problem)
}

// TestPartsTold: pictures and files are described; other parts are shown whole.
func TestPartsTold(t *testing.T) {
	p := told(t, span(t, "", "gen_ai.operation.name", "chat", "gen_ai.input.messages", `[{"role":"human","name":"Ann","parts":[{"type":"blob","modality":"image","mime_type":"image/png","content":"AAAA"},{"type":"uri","modality":"image","uri":"https://u:p@x.example/a.png?key=1"},{"type":"file","modality":"video","file_id":"f1"},{"type":"odd","x":1}]}]`,
		"gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"A"}],"finish_reason":"stop"},{"role":"assistant","parts":[{"type":"text","content":"B"}]}]`))
	for _, want := range []string{`"name":"Ann","role":"user"`, `"bytes":3`, `"url":"https://x.example/a.png"`, `"file_id":"f1"`, `[odd] {\"type\":\"odd\",\"x\":1}`} {
		must.Hold(t, strings.Contains(string(p.Prompt), want), "%s has no %s", p.Prompt, want)
	}
	must.Hold(t, string(p.Output) == `"A"` && p.Alternatives == 1, "%s, %d", p.Output, p.Alternatives)
}

// TestManyLongTexts: to look for values that a limit may have cut takes time by their number. By its square it took minutes for as many as a record holds.
func TestManyLongTexts(t *testing.T) {
	var list []any
	for i := range 40_000 {
		list = append(list, fmt.Sprint(i), fmt.Sprintf("%065d", i))
	}
	told, began := span(t, "", list...), time.Now()
	p := project(t, traffic.Call{Protocol: traffic.OTLP, Request: told})
	took := time.Since(began)
	must.Hold(t, took <= time.Minute && strings.Contains(p.Problem, "0: it has 65 characters, as long as a limit may be"), "%v, %.200s", took, p.Problem)
}

// openInference are spans as OpenInference's libraries for OpenAI (4.2) and Anthropic (0.2) write them.
func openInference(t *testing.T) (responses, messages, several []byte) {
	out := func(n int, rest string) string { return fmt.Sprintf("llm.output_messages.%d.message.%s", n, rest) }
	in := func(n int, rest string) string { return fmt.Sprintf("llm.input_messages.%d.message.%s", n, rest) }
	responses = span(t, "", "openinference.span.kind", "LLM", "llm.model_name", "m-1", "llm.invocation_parameters", `{"model":"m"}`, in(0, "role"), "user", in(0, "content"), "Where?",
		"output.value", `{"id":"resp_1","model":"m-1","output":[]}`, out(0, "role"), "assistant", out(0, "contents.0.message_content.type"), "reasoning", out(0, "contents.0.message_content.text"), "hm",
		out(1, "role"), "assistant", out(1, "tool_calls.0.tool_call.id"), "c1", out(1, "tool_calls.0.tool_call.function.name"), "find", out(1, "tool_calls.0.tool_call.function.arguments"), `{"n":17}`)
	call := func(at string) []any {
		return []any{at + "tool_call.id", "c1", at + "tool_call.function.name", "find", at + "tool_call.function.arguments", `{"n":17}`}
	}
	list := []any{"openinference.span.kind", "LLM", "llm.model_name", "m-1", "llm.request.model_name", "m", "llm.response.model_name", "m-1", "llm.invocation_parameters", `{"model":"m","system":[{"type":"text","text":"Be short."}]}`,
		in(0, "role"), "user", in(0, "content"), "Where?", in(1, "role"), "assistant", in(1, "contents.0.message_content.type"), "text", in(1, "contents.0.message_content.text"), "I look.", in(1, "contents.1.message_content.type"), "tool_use",
		in(2, "role"), "user", in(2, "tool_call_id"), "c1", in(2, "content"), "Kassel", in(2, "contents.1.message_content.type"), "text", in(2, "contents.1.message_content.text"), "Well?", out(0, "content"), "In Kassel."}
	list = append(append(list, call(in(1, "tool_calls.0."))...), call(in(1, "contents.1."))...)
	messages = span(t, "", list...)
	several = span(t, "", "openinference.span.kind", "LLM", "llm.invocation_parameters", `{"n":2}`, in(0, "content"), "Where?", out(0, "content"), "Here.", out(1, "content"), "There.")
	return responses, messages, several
}

// TestOpenInferenceAsWritten: the parts of one answer are no answers of their own; what a tool returned is not the user's; a call stands once; the system
// prompt is in the prompt; and the model that was asked for is not the one that answered.
func TestOpenInferenceAsWritten(t *testing.T) {
	const calls = `"tool_calls":[{"function":{"arguments":"{\"n\":17}","name":"find"},"id":"c1","type":"function"}]}`
	responses, messages, several := openInference(t)
	if p := told(t, responses); string(p.Output) != `{"content":"","role":"assistant",`+calls || p.Alternatives != 0 || p.Model != "m" || p.ModelVersion != "m-1" || p.Problem != "" {
		t.Errorf("%+v\n%s", p, p.Output)
	}
	want := `[{"content":"Be short.","role":"system"},{"content":"Where?","role":"user"},{"content":"I look.","role":"assistant",` + calls + `,{"content":"Kassel","role":"tool","tool_call_id":"c1"},{"content":"Well?","role":"user"}]`
	p := told(t, messages)
	must.Hold(t, string(p.Prompt) == want && p.Model == "m" && p.ModelVersion == "m-1" && p.Problem == "", "%s\n%+v", p.Prompt, p)
	p = told(t, several)
	must.Hold(t, string(p.Output) == `"Here."` && p.Alternatives == 1, "%s, %d", p.Output, p.Alternatives)
}

var (
	mutants    = flag.Int("mutants", 2_000, "how many changed calls the second verifier reads")
	mutantSeed = flag.Uint64("mutant-seed", 1, "the seed of the changes")
)

// TestSecondFacts: a verifier that was written from docs/facts.md, in another language, finds the same facts in calls of all protocols, whole, in streams, cut, and
// with one or a few values changed, taken away or written twice.
func TestSecondFacts(t *testing.T) {
	random := rand.New(rand.NewPCG(*mutantSeed, 0))
	calls := secondCalls(t)
	known := vocabularyOf(calls)
	for from := len(calls); len(calls) < from+*mutants; {
		calls = append(calls, changed(random, calls[random.IntN(from)], known))
	}
	calls = append(calls, many()...)
	var input bytes.Buffer
	for _, c := range calls {
		doc, err := json.Marshal(map[string]any{"protocol": c.Protocol, "path": c.Path, "status": c.Status,
			"request": base64.StdEncoding.EncodeToString(c.Request), "response": base64.StdEncoding.EncodeToString(c.Response)})
		must.Do(t, err)
		input.Write(append(doc, '\n'))
	}
	var complaints bytes.Buffer
	run := exec.Command(python(t), filepath.Join("..", "..", "..", "testdata", "second-verifier", "facts.py"))
	run.Stdin, run.Stderr = &input, &complaints
	output, err := run.Output()
	must.Need(t, err == nil, "%v\n%s", err, complaints.String())
	second := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	must.Need(t, len(second) == len(calls), "%d calls, and the second verifier has read %d", len(calls), len(second))
	differences := 0
	for i, c := range calls {
		if want := stated(t, factsOf(c)); want != second[i] {
			if differences++; differences <= 5 {
				t.Errorf("%s %s, status %d, %s\n%s\n%s\nthis program: %s\nthe second:   %s", c.Protocol, c.Path, c.Status, c.ResponseType, c.Request, c.Response, want, second[i])
			}
		}
	}
	must.Hold(t, differences == 0, "%d of %d calls have other facts", differences, len(calls))
}

func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("the second verifier cannot run: %v", err)
	}
	must.Do(t, err)
	must.Get(os.ReadDir(filepath.Join("..", "..", "..", "testdata", "second-verifier")))(t) // so that results of tests are kept only while its files stay the same
	return path
}

// factsOf finds the facts in a call.
func factsOf(c traffic.Call) observed.Facts {
	f, _ := observed.FactsOf(&evidence.Observed{Protocol: c.Protocol, Path: c.Path, Status: int64(c.Status), Request: new(evidence.ObservedBody), Response: new(evidence.ObservedBody)}, c.Request, c.Response)
	return f
}

// stated is what a record states of facts, in canonical form.
func stated(t *testing.T, f observed.Facts) string {
	t.Helper()
	return string(canonical(t, marshal(t, struct {
		Model              string                 `json:"model,omitzero"`
		ModelVersion       string                 `json:"model_version,omitzero"`
		Parameters         jsontext.Value         `json:"parameters,omitzero"`
		Usage              jsontext.Value         `json:"usage,omitzero"`
		Finish             string                 `json:"finish,omitzero"`
		Calls              []evidence.ObservedUse `json:"calls,omitzero"`
		ContextByReference []string               `json:"context_by_reference,omitzero"`
	}{f.Model, f.ModelVersion, f.Parameters, f.Usage, f.Finish, f.Calls, f.ContextByReference})))
}

func canonical(t testing.TB, doc []byte) []byte {
	t.Helper()
	form := must.Get(evidence.Canonical(doc))(t)
	return form
}

// secondCalls are the calls of the other tests.
func secondCalls(t *testing.T) (calls []traffic.Call) {
	add := func(c traffic.Call, response, kind string) {
		c.Response, c.ResponseType = []byte(response), kind
		calls = append(calls, c)
	}
	for _, s := range slices.Concat(samples, a2aSamples) {
		add(s.call, s.whole, "application/json")
		add(s.call, s.stream, "text/event-stream")
		add(s.call, s.stream[:len(s.stream)/2], "text/event-stream")
	}
	for _, r := range slices.Concat(replies(), a2aReplies()) {
		add(traffic.Call{Protocol: r.protocol, Path: "/v1beta/models/m:generateContent", Status: r.status, Request: []byte(`{"method":"message/send","id":1,"params":{}}`)}, r.response, "")
	}
	for _, p := range passages {
		calls = append(calls, p.call())
	}
	for _, c := range mcpCases {
		calls = append(calls, c.call)
	}
	for _, told := range tellings(t) {
		calls = append(calls, traffic.Call{Protocol: traffic.OTLP, Request: told})
	}
	for _, c := range factCases {
		calls = append(calls, c.call)
	}
	return append(calls, finePoints()...)
}

// finePoints are calls on which verifiers part that are a little different.
func finePoints() (calls []traffic.Call) {
	answer := func(protocol, response string) {
		calls = append(calls, traffic.Call{Protocol: protocol, Path: "/v1beta/models/m:generateContent", Status: 200, Request: []byte(`{"messages":[],"contents":[],"input":[]}`), Response: []byte(response)})
	}
	answer(traffic.AnthropicMessages, events(`{"type":"message_start","message":{"usage":{"a":1,"b":2}}}`, `{"type":"message_delta","usage":{"b":3,"a":null}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":{}}}`, `{"type":"content_block_delta","index":0,"delta":{"partial_json":"{\"a\""}}`))
	nines := strings.Repeat("9", 5000)
	answer(traffic.OpenAIChat, `{"choices":[{"index":`+nines+`,"message":{"content":"a"}}],"usage":{"prompt_tokens":`+nines+`}}`)
	deep := strings.Repeat(`{"arrayValue":{"values":[`, 3000) + strings.Repeat("]}}", 3000)
	for _, v := range []string{`{"intValue":"` + nines + `"}`, `{"intValue":"` + strings.Repeat("0", 5000) + `7"}`, deep} {
		calls = append(calls, traffic.Call{Protocol: traffic.OTLP, Request: []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.usage.input_tokens","value":` + v + `}]}]}]}]}`)})
	}
	for _, depth := range []int{9_998, 9_999, 10_000, 10_001, 20_000} {
		answer(traffic.OpenAIChat, `{"model":"m","x":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}{"model":"n"}`)
	}
	for _, body := range []string{`{"model":"a"}{"model":"b"} 7 {"model":"c"}`, `[{"model":"a"},7,{"model":"b"}]`, "\ufeff {\"model\":\"a\"}", `7 {"model":"a"}`, "data:{\"model\":\ndata: \"a\"}", "data: {\"model\":\"a\"}\r\rdata: [DONE]\r\rdata: {\"model\":\"b\"}\r\r",
		`{"model":"a","model":7}`, `{"usage":{"a":[1,{"b":"standard"}],"c d":1,"e":-0,"f":1e400,"g":"AUTO"}}`, `{"model":"a` + "\x01" + `"}`, `{"model":01}`, `{"model":NaN}`} {
		answer(traffic.OpenAIChat, body)
	}
	return calls
}

// tellings are spans of the conventions that are read, and events.
func tellings(t *testing.T) [][]byte {
	first, second, third := openInference(t)
	const messages = `[{"role":"user","parts":[{"type":"text","content":"Where?"},{"type":"uri","modality":"image","uri":"https://u@example.org/a?b"},{"type":"tool_call_response","id":"c1","response":{"at":1}},{"type":"odd","x":1}]}]`
	const said = `[{"role":"assistant","finish_reason":"stop","parts":[{"type":"reasoning","content":"hm"},{"type":"tool_call","id":"c1","name":"look","arguments":{"n":1}},{"type":"text","content":"Here."}]}]`
	logs := func(name, more string, list ...any) []byte {
		return []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"` + name + `"` + more + `,"attributes":` + attrs(t, list...) + `}]}]}]}`)
	}
	return [][]byte{
		first, second, third,
		span(t, `,"kind":3,"startTimeUnixNano":"5","status":{"code":2,"message":"no"}`, "gen_ai.operation.name", "chat", "gen_ai.provider.name", "p", "gen_ai.request.model", "m", "gen_ai.response.model", "m-1", "gen_ai.request.top_k", 40,
			"gen_ai.request.stop_sequences", raw(`{"arrayValue":{"values":[{"stringValue":"x"},{"doubleValue":0.5},{"boolValue":true},{"bytesValue":"aGk="},{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"9007199254740993"}}]}}]}}`),
			"gen_ai.usage.input_tokens", 3, "gen_ai.usage.output_tokens", 4, "gen_ai.system_instructions", "Be kind.", "gen_ai.input.messages", messages, "gen_ai.output.messages", said, "gen_ai.tool.definitions", `[{"type":"function","name":"look"}]`, "server.address", "h"),
		span(t, "", "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "look", "gen_ai.tool.call.id", "c1", "gen_ai.tool.call.arguments", `{"n":1}`, "gen_ai.tool.call.result", "a tree"),
		span(t, "", "gen_ai.request.model", "m", "gen_ai.prompt.0.role", "user", "gen_ai.prompt.0.content", "Where?", "gen_ai.completion.0.content", "Here.", "llm.usage.total_tokens", 9, "gen_ai.usage.prompt_tokens", 3, "gen_ai.usage.completion_tokens", 4),
		span(t, "", "ai.operationId", "ai.generateText.doGenerate", "gen_ai.request.model", "m", "ai.prompt.messages", `[{"role":"user","content":"Where?"}]`, "ai.response.text", "Here."),
		span(t, "", "traceloop.span.kind", "agent", "traceloop.entity.input", "Where?", "traceloop.entity.output", "Here."),
		span(t, "", "openinference.span.kind", "AGENT", "input.value", "Where?", "output.value", "Here.", "llm.tools.0.tool.json_schema", `{"function":{"name":"look"}}`),
		[]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"events":[{"name":"gen_ai.user.message","attributes":` + attrs(t, "content", "Where?") + `},{"name":"gen_ai.content.prompt","attributes":` + attrs(t, "gen_ai.prompt", `[{"role":"user","content":"Well?"}]`) +
			`},{"name":"gen_ai.choice","attributes":` + attrs(t, "message", `{"content":"Here.","tool_calls":[{"id":"c","function":{"name":"look","arguments":"{}"}}]}`, "index", 0) + `},{"name":"gen_ai.content.completion","attributes":` + attrs(t, "gen_ai.completion", "There.") + `}]}]}]}]}`),
		logs("gen_ai.tool.message", `,"body":{"kvlistValue":{"values":[{"key":"id","value":{"stringValue":"c1"}},{"key":"content","value":{"stringValue":"a tree"}}]}}`),
		logs("gen_ai.choice", `,"body":{"stringValue":"{\"index\":1,\"message\":{\"content\":\"Here.\"}}"}`),
		logs("gen_ai.client.inference.operation.details", "", "gen_ai.input.messages", messages, "gen_ai.output.messages", said),
		logs("", `,"body":{"stringValue":"x"}`, "event.name", "gen_ai.assistant.message", "gen_ai.event.content", `{"content":"Here."}`),
	}
}

// tokens are what a change replaces: values, and what stands between them.
var tokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null|[{}\[\],:]|\n`)

// odd are values that hostile bodies have.
var odd = []string{`null`, `0`, `-1`, `1`, `1.0`, `1e400`, `9007199254740993`, `""`, `true`, `false`, `{}`, `[]`, `{"a":1,"a":2}`, `[null]`, `"\ud83d"`, `"\ud83d\ude00"`, "\"\xff\"", `"a\u0000b"`, `"x y"`, `"data:image/png;base64,aGk="`,
	`"https://u:p@example.org/a b?c#d"`, `"//h/é"`, `":"`, `"a:b"`, `"http://[::1%25z]:80/%zz"`, `"X://h:1:2/[x]"`, `{"text":"a","type":"text"}`, `"2"`, `"aGk"`, "\ufeff", " ", `"\n"`}

// names finds where members begin.
var names = regexp.MustCompile(`"[^"\\\\\n]*"\s*:`)

// A vocabulary has what stands in the calls, with which a change replaces something else: so that it meets members that are read.
type vocabulary struct {
	tokens  []string
	members []string            // names and values
	values  map[string][]string // by name with its colon
}

func vocabularyOf(calls []traffic.Call) *vocabulary {
	v, known := &vocabulary{values: map[string][]string{}}, map[string]bool{}
	note := func(list *[]string, text string) {
		if len(text) < 400 && !known[text] {
			known[text], *list = true, append(*list, text)
		}
	}
	for _, c := range calls {
		for _, body := range [][]byte{c.Request, c.Response} {
			for _, one := range tokens.FindAll(body, -1) {
				note(&v.tokens, string(one))
			}
			for _, at := range names.FindAllIndex(body, -1) {
				value, is := valueAt(body, at[1])
				if name := string(body[at[0]:at[1]]); is && len(value) < 400 && !known[name+value] {
					v.values[name] = append(v.values[name], value)
					note(&v.members, name+value)
				}
			}
		}
	}
	return v
}

// valueAt returns the value that begins at an offset.
func valueAt(body []byte, at int) (string, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(body[at:]), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	value, err := d.ReadValue()
	return string(body[at : at+int(d.InputOffset())]), err == nil && len(value) > 0
}

func pick(random *rand.Rand, list []string) string { return list[random.IntN(len(list))] }

// changed changes one direction of a call, in one to three places.
func changed(random *rand.Rand, c traffic.Call, known *vocabulary) traffic.Call {
	c.Request, c.Response = bytes.Clone(c.Request), bytes.Clone(c.Response)
	body := &c.Request
	if len(c.Response) > 0 && random.IntN(2) == 0 {
		body = &c.Response
	}
	for range 1 + random.IntN(3) {
		*body = changedBody(random, *body, known)
	}
	if random.IntN(20) == 0 {
		c.Path = []string{"", "/server", "/v1/messages", "/a/deployments/d%20e/chat/completions", "/v1/responses/resp_1?x", "/v1beta/tunedModels/t:generateContent", "/v1internal:generateContent", "/tasks/t1:cancel", "/message:send",
			"/v1/publishers/anthropic/models/c%20d:rawPredict", "/model/a%2Fb/invoke", "/v1/card", "/tasks/t/pushNotificationConfigs"}[random.IntN(13)]
	}
	if random.IntN(20) == 0 {
		c.ResponseType = []string{"", "application/json", "Text/Event-Stream ; x"}[random.IntN(3)]
	}
	return c
}

func changedBody(random *rand.Rand, body []byte, known *vocabulary) []byte {
	places := tokens.FindAllIndex(body, -1)
	if len(places) == 0 {
		return body
	}
	at := places[random.IntN(len(places))]
	other := places[random.IntN(len(places))]
	put := func(from, to int, with []byte) []byte { return slices.Concat(body[:from], with, body[to:]) }
	switch random.IntN(14) {
	case 0:
		return put(at[0], at[1], []byte(pick(random, odd)))
	case 1:
		return put(at[0], at[1], []byte(pick(random, known.tokens)))
	case 2:
		return put(at[0], at[1], body[other[0]:other[1]])
	case 3:
		return put(at[0], at[1], nil)
	case 4: // what stands between two tokens is written again
		if other[0] < at[1] {
			at, other = other, at
		}
		return put(other[1], other[1], slices.Concat([]byte(","), body[at[0]:other[1]]))
	case 5, 6: // another member
		if brace := bytes.IndexByte(body[at[0]:], '{'); brace >= 0 {
			return put(at[0]+brace+1, at[0]+brace+1, []byte(pick(random, known.members)+","))
		}
		return body
	case 7:
		return body[:random.IntN(len(body)+1)]
	}
	return changedMember(random, body, known)
}

// changedMember gives a member another value, or writes it twice.
func changedMember(random *rand.Rand, body []byte, known *vocabulary) []byte {
	members := names.FindAllIndex(body, -1)
	if len(members) == 0 {
		return body
	}
	at := members[random.IntN(len(members))]
	name := string(body[at[0]:at[1]])
	value, is := valueAt(body, at[1])
	if !is || len(known.values[name]) == 0 {
		return body
	}
	another := pick(random, known.values[name])
	if random.IntN(6) == 0 {
		another = pick(random, odd)
	}
	end := at[1] + len(value)
	switch random.IntN(4) {
	case 0: // an element twice
		if strings.HasPrefix(another, "[") && strings.HasPrefix(value, "[") {
			another = strings.TrimSuffix(value, "]") + "," + strings.TrimPrefix(another, "[")
		}
	case 1:
		another = value + "," + name + another
	case 2:
		another += "," + name + value
	}
	return slices.Concat(body[:at[1]], []byte(another), body[end:])
}
