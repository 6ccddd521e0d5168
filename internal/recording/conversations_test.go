package recording

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"jurat/evidence/observed"
	"jurat/internal/convo"
	"jurat/internal/observe"
	"jurat/internal/relay"
)

func user(text string) string  { return `{"content":"` + text + `","role":"user"}` }
func agent(text string) string { return `{"content":"` + text + `","role":"assistant"}` }

func prompt(messages ...string) (list []convo.Message) {
	n, err := convo.ReadLenient([]byte("[" + strings.Join(messages, ",") + "]"))
	if err != nil {
		panic(err)
	}
	(&convo.Reader{Lenient: true, Say: func(m convo.Message, _ *convo.Node) { list = append(list, m) }}).Chat(n)
	return list
}

// TestTwinsAreNotGuessed: if two conversations look the same, a call that continues either begins a chain of its own.
func TestTwinsAreNotGuessed(t *testing.T) {
	c := newConversations(100)
	hello := said{agent: "a", prompt: prompt(user("hello")), response: prompt(agent("hi"))}
	if one, two := c.place(hello, "one"), c.place(hello, "two"); one != "one" || two != "two" {
		t.Fatalf("%s, %s", one, two)
	}
	next := said{agent: "a", prompt: prompt(user("hello"), agent("hi"), user("go on")), response: prompt(agent("so"))}
	if got := c.place(next, "three"); got != "three" {
		t.Errorf("it is in %s", got)
	}
	last := said{agent: "a", prompt: prompt(user("hello"), agent("hi"), user("go on"), agent("so"), user("end")), response: prompt(agent("."))}
	if got := c.place(last, "four"); got != "three" {
		t.Errorf("it is in %s, want three", got)
	}
}

// TestLastMessageAlone: of an answer with tools that the provider ran, a program sends back what the model said last.
func TestLastMessageAlone(t *testing.T) {
	c := newConversations(100)
	c.place(said{agent: "a", prompt: prompt(user("hello")), response: prompt(agent(""), `{"content":"found","role":"tool"}`, agent("hi"))}, "one")
	for _, sent := range [][]convo.Message{
		prompt(user("hello"), agent("hi"), user("more")),
		prompt(user("hello"), agent(""), `{"content":"found","role":"tool"}`, agent("hi"), user("more")),
	} {
		if got := c.place(said{agent: "a", prompt: sent}, "two"); got != "one" {
			t.Errorf("%v: it is in %s", sent, got)
		}
	}
}

// TestArgumentsWrittenAnew: a program reads the arguments of a call, and sends them back in other white space and order.
func TestArgumentsWrittenAnew(t *testing.T) {
	called := func(arguments string) string {
		return `{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":` + arguments + `,"name":"look"},"id":"a","type":"function"}]}`
	}
	c := newConversations(100)
	c.place(said{agent: "a", prompt: prompt(user("hello")), response: prompt(called(`"{\"at\":1,\"by\":2}"`))}, "one")
	if got := c.place(said{agent: "a", prompt: prompt(user("hello"), called(`"{\"by\": 2, \"at\": 1}"`), `{"content":"tree","role":"tool","tool_call_id":"a"}`)}, "two"); got != "one" {
		t.Errorf("it is in %s", got)
	}
	if got := c.place(said{agent: "a", prompt: prompt(user("hello"), called(`"{\"at\":1,\"by\":3}"`))}, "two"); got != "two" {
		t.Errorf("other arguments: it is in %s", got)
	}
	if got := c.place(said{agent: "a", prompt: prompt(user("hello"), called(`"what"`))}, "three"); got != "three" {
		t.Errorf("no arguments: it is in %s", got)
	}
}

// TestConversationByReference: the provider keeps messages, or a conversation, and the call names them.
func TestConversationByReference(t *testing.T) {
	c := newConversations(100)
	c.place(said{agent: "a", prompt: prompt(user("hello")), response: prompt(agent("hi")), made: []string{"item:msg_1"}}, "one")
	c.place(said{agent: "a", prompt: prompt(user("hello")), response: prompt(agent("hi")), made: []string{"item:msg_2", "conversation:c"}, refers: "conversation:c"}, "two")
	for refers, want := range map[string]string{"item:msg_1": "one", "item:msg_2": "two", "conversation:c": "two", "item:msg_3": "new"} {
		if got := c.place(said{agent: "a", prompt: prompt(user("more")), refers: refers}, "new"); got != want {
			t.Errorf("%s: it is in %s, want %s", refers, got, want)
		}
	}
	if got := c.place(said{agent: "b", prompt: prompt(user("more")), refers: "item:msg_1"}, "new"); got != "new" {
		t.Errorf("another agent's: it is in %s", got)
	}
}

// TestChainsOfPrograms: the calls of one conversation, as programs send them, are of one chain.
func TestChainsOfPrograms(t *testing.T) {
	type exchanged struct{ request, response string }
	for name, p := range map[string]struct {
		protocol string
		calls    []exchanged
	}{
		"items that the provider keeps": {observe.OpenAIResponses, []exchanged{
			{`{"input":[{"role":"user","content":"a"}]}`, `{"id":"r1","status":"completed","output":[{"id":"rs_1","type":"reasoning","summary":[]},{"id":"fc_1","type":"function_call","call_id":"c","name":"look","arguments":"{}"}]}`},
			{`{"input":[{"role":"user","content":"a"},{"type":"item_reference","id":"rs_1"},{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"c","output":"tree"}]}`,
				`{"id":"r2","status":"completed","output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"So."}]}]}`},
			{`{"input":[{"role":"user","content":"a"},{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"c","output":"tree"},{"type":"item_reference","id":"msg_1"},{"role":"user","content":"b"}]}`, `{"id":"r3","status":"completed","output":[]}`}}},
		"a conversation that the provider keeps": {observe.OpenAIResponses, []exchanged{
			{`{"conversation":"conv_1","input":"a"}`, `{"id":"r1","status":"completed","output":[]}`}, {`{"conversation":{"id":"conv_1"},"input":"b"}`, `{"id":"r2","status":"completed","output":[]}`}}},
		"a line that is another each time": {observe.AnthropicMessages, []exchanged{
			{`{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"Be kind."}],"messages":[{"role":"user","content":"a"}]}`, `{"type":"message","content":[{"type":"text","text":"So."}],"stop_reason":"end_turn"}`},
			{`{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=2;"},{"type":"text","text":"Be kind."}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"So.","cache_control":{}}]},{"role":"user","content":"b"}]}`, `{}`}}},
		"white space around an answer": {observe.OpenAIChat, []exchanged{
			{`{"messages":[{"role":"user","content":"a"}]}`, `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"\n\nSo. \n"}}]}`},
			{`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"So."},{"role":"user","content":"b"}]}`, `{}`}}},
		"arguments that are written anew": {observe.OpenAIChat, []exchanged{
			{`{"messages":[{"role":"user","content":"a"}]}`, `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}}]}`},
			{`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"type":"function","id":"c","function":{"name":"look","arguments":"{\"at\": 1}"}}]},{"role":"tool","tool_call_id":"c","content":"tree"}]}`, `{}`}}},
	} {
		c := newConversations(100)
		for n, call := range p.calls {
			e := &exchange{call: &relay.Call{Header: http.Header{}}, intent: &intent{Agent: "a"}}
			act := &observed.Act{Protocol: p.protocol, Path: "/v1/x", Status: 200, Request: &observed.Body{Kept: []byte(call.request)}, Response: &observed.Body{Kept: []byte(call.response)}}
			if chain := c.place(e.said(act), fmt.Sprint(n)); chain != "0" {
				t.Errorf("%s: call %d is in the chain of call %s", name, n, chain)
			}
		}
	}
}

// TestConversationByAnswer: the provider keeps the conversation, and the call names its last answer.
func TestConversationByAnswer(t *testing.T) {
	c := newConversations(100)
	c.place(said{agent: "a", prompt: prompt(user("hello")), response: prompt(agent("hi")), id: "resp_1"}, "one")
	if got := c.place(said{agent: "a", prompt: prompt(user("more")), previous: "resp_1", id: "resp_2"}, "two"); got != "one" {
		t.Errorf("it is in %s", got)
	}
	if got := c.place(said{agent: "b", prompt: prompt(user("more")), previous: "resp_2"}, "three"); got != "three" {
		t.Errorf("another agent's call is in %s", got)
	}
}

// TestConversationByTrace: calls of one trace are in one chain, and calls without one are not.
func TestConversationByTrace(t *testing.T) {
	c := newConversations(100)
	trace := traceOf("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if trace == "" || traceOf("00-00000000000000000000000000000000-00f067aa0ba902b7-01") != "" || traceOf("x") != "" {
		t.Fatal(trace)
	}
	for i, want := range []string{"new0", "new0", "new2"} {
		s := said{agent: "a", trace: trace, prompt: prompt(user(fmt.Sprint(i)))}
		if i == 2 {
			s.trace = ""
		}
		if got := c.place(s, fmt.Sprint("new", i)); got != want {
			t.Errorf("call %d is in %s, want %s", i, got, want)
		}
	}
}

// TestOldConversationsAreForgotten: what is remembered is bounded, and what was used last stays.
func TestOldConversationsAreForgotten(t *testing.T) {
	c := newConversations(10)
	for n := range 100 {
		c.place(said{agent: "a", prompt: prompt(user(fmt.Sprint(n))), response: prompt(agent("ok"))}, fmt.Sprint(n))
	}
	if n := len(c.chains.values); n != 10 || c.chains.order.Len() != 10 {
		t.Errorf("%d states", n)
	}
	again := func(n int) string {
		return c.place(said{agent: "a", prompt: prompt(user(fmt.Sprint(n)), agent("ok"), user("more"))}, "new")
	}
	if again(99) != "99" || again(3) != "new" {
		t.Error("the wrong ones are forgotten")
	}
}

// calls is a message of a model that calls one tool, to which the program gave a name.
func calls(id, name string) string {
	if name != "" {
		name = `"name":"` + name + `",`
	}
	return `{"content":"",` + name + `"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"find"},"id":"` + id + `","type":"function"}]}`
}

func result(id string) string { return `{"content":"17","role":"tool","tool_call_id":"` + id + `"}` }

// TestProgramsNameCalls: a program may give ids to calls that have none, and a name to its model. It may not change an id that the provider gave.
func TestProgramsNameCalls(t *testing.T) {
	for name, test := range map[string]struct{ answer, sent, id, want string }{
		"no id, as it was":     {calls("#1", ""), calls("#1", ""), "#1", "first"},
		"no id, and one given": {calls("#1", ""), calls("find_1795_0", ""), "find_1795_0", "first"},
		"the provider's id":    {calls("call_1", ""), calls("call_1", ""), "call_1", "first"},
		"another id":           {calls("call_1", ""), calls("call_2", ""), "call_2", "second"},
		"a name for the model": {calls("call_1", ""), calls("call_1", "model"), "call_1", "first"},
		"a name, and an id":    {calls("#1", ""), calls("7QtghbE6clHaoXON", "model"), "7QtghbE6clHaoXON", "first"},
		"a text, and a name":   {agent("17"), `{"content":"17","name":"model","role":"assistant"}`, "", "first"},
	} {
		c := newConversations(100)
		c.place(said{agent: "a", prompt: prompt(user("which?")), response: prompt(test.answer)}, "first")
		if got := c.place(said{agent: "a", prompt: prompt(user("which?"), test.sent, result(test.id)), response: prompt(calls("#2", ""))}, "second"); got != test.want {
			t.Errorf("%s: it is in %s, want %s", name, got, test.want)
		}
		if got := c.place(said{agent: "a", prompt: prompt(user("which?"), test.sent, result(test.id), calls("another", ""), result("another"))}, "third"); got != test.want {
			t.Errorf("%s: the next call is in %s, want %s", name, got, test.want)
		}
	}
	c := newConversations(100)
	for _, chain := range []string{"one", "two"} {
		c.place(said{agent: "a", prompt: prompt(user("which?")), response: prompt(calls("#1", ""))}, chain)
	}
	if got := c.place(said{agent: "a", prompt: prompt(user("which?"), calls("its own", ""), result("its own"))}, "three"); got != "three" {
		t.Errorf("of two conversations that look alike, %s is continued", got)
	}
}

// TestBrokenTextHasASum: no text that an upstream sends keeps its call from being recorded.
func TestBrokenTextHasASum(t *testing.T) {
	m := convo.Message{Role: convo.Assistant, ToolCalls: []convo.ChatToolCall{convo.Function("1", "search", "\xff")}}
	if a, b := digest([32]byte{}, m, true), digest([32]byte{}, m, false); a == b || a == [32]byte{} {
		t.Errorf("%x, %x", a, b)
	}
}
