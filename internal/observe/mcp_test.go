package observe_test

import (
	"fmt"
	"strings"
	"testing"

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
