package sealer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/relay"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
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
	one, two := c.place(hello, "one"), c.place(hello, "two")
	must.Need(t, one == "one" && two == "two", "%s, %s", one, two)
	next := said{agent: "a", prompt: prompt(user("hello"), agent("hi"), user("go on")), response: prompt(agent("so"))}
	must.Equal(t, c.place(next, "three"), "three")
	last := said{agent: "a", prompt: prompt(user("hello"), agent("hi"), user("go on"), agent("so"), user("end")), response: prompt(agent("."))}
	must.Equal(t, c.place(last, "four"), "three")
}

// TestLastMessageAlone: of an answer with tools that the provider ran, a program sends back what the model said last.
func TestLastMessageAlone(t *testing.T) {
	c := newConversations(100)
	c.place(said{agent: "a", prompt: prompt(user("hello")), response: prompt(agent(""), `{"content":"found","role":"tool"}`, agent("hi"))}, "one")
	for _, sent := range [][]convo.Message{
		prompt(user("hello"), agent("hi"), user("more")),
		prompt(user("hello"), agent(""), `{"content":"found","role":"tool"}`, agent("hi"), user("more")),
	} {
		must.Equal(t, c.place(said{agent: "a", prompt: sent}, "two"), "one", sent)
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
	must.Equal(t, c.place(said{agent: "a", prompt: prompt(user("hello"), called(`"{\"at\":1,\"by\":3}"`))}, "two"), "two")
	must.Equal(t, c.place(said{agent: "a", prompt: prompt(user("hello"), called(`"what"`))}, "three"), "three")
}

// TestConversationByReference: the provider keeps messages, or a conversation, and the call names them.
func TestConversationByReference(t *testing.T) {
	c := newConversations(100)
	c.place(said{agent: "a", prompt: prompt(user("hello")), response: prompt(agent("hi")), made: []string{"item:msg_1"}}, "one")
	c.place(said{agent: "a", prompt: prompt(user("hello")), response: prompt(agent("hi")), made: []string{"item:msg_2", "conversation:c"}, refers: "conversation:c"}, "two")
	for refers, want := range map[string]string{"item:msg_1": "one", "item:msg_2": "two", "conversation:c": "two", "item:msg_3": "new"} {
		must.Equal(t, c.place(said{agent: "a", prompt: prompt(user("more")), refers: refers}, "new"), want, refers)
	}
	must.Equal(t, c.place(said{agent: "b", prompt: prompt(user("more")), refers: "item:msg_1"}, "new"), "new")
}

// TestChainsOfPrograms: the calls of one conversation, as programs send them, are of one chain.
func TestChainsOfPrograms(t *testing.T) {
	type exchanged struct{ request, response string }
	for name, p := range map[string]struct {
		protocol string
		calls    []exchanged
	}{
		"items that the provider keeps": {traffic.OpenAIResponses, []exchanged{
			{`{"input":[{"role":"user","content":"a"}]}`, `{"id":"r1","status":"completed","output":[{"id":"rs_1","type":"reasoning","summary":[]},{"id":"fc_1","type":"function_call","call_id":"c","name":"look","arguments":"{}"}]}`},
			{`{"input":[{"role":"user","content":"a"},{"type":"item_reference","id":"rs_1"},{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"c","output":"tree"}]}`,
				`{"id":"r2","status":"completed","output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"So."}]}]}`},
			{`{"input":[{"role":"user","content":"a"},{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"c","output":"tree"},{"type":"item_reference","id":"msg_1"},{"role":"user","content":"b"}]}`, `{"id":"r3","status":"completed","output":[]}`}}},
		"a conversation that the provider keeps": {traffic.OpenAIResponses, []exchanged{
			{`{"conversation":"conv_1","input":"a"}`, `{"id":"r1","status":"completed","output":[]}`}, {`{"conversation":{"id":"conv_1"},"input":"b"}`, `{"id":"r2","status":"completed","output":[]}`}}},
		"a line that is another each time": {traffic.AnthropicMessages, []exchanged{
			{`{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"Be kind."}],"messages":[{"role":"user","content":"a"}]}`, `{"type":"message","content":[{"type":"text","text":"So."}],"stop_reason":"end_turn"}`},
			{`{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=2;"},{"type":"text","text":"Be kind."}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"So.","cache_control":{}}]},{"role":"user","content":"b"}]}`, `{}`}}},
		"white space around an answer": {traffic.OpenAIChat, []exchanged{
			{`{"messages":[{"role":"user","content":"a"}]}`, `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"\n\nSo. \n"}}]}`},
			{`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"So."},{"role":"user","content":"b"}]}`, `{}`}}},
		"arguments that are written anew": {traffic.OpenAIChat, []exchanged{
			{`{"messages":[{"role":"user","content":"a"}]}`, `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}}]}`},
			{`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"type":"function","id":"c","function":{"name":"look","arguments":"{\"at\": 1}"}}]},{"role":"tool","tool_call_id":"c","content":"tree"}]}`, `{}`}}},
	} {
		c := newConversations(100)
		for n, call := range p.calls {
			e := &exchange{call: &relay.Call{Header: http.Header{}}, intent: &intent{Agent: "a"}}
			act := &observed.Act{Observed: evidence.Observed{Protocol: p.protocol, Path: "/v1/x", Status: 200},
				Request: &observed.Body{Kept: []byte(call.request)}, Response: &observed.Body{Kept: []byte(call.response)}}
			must.Equal(t, c.place(e.said(act), fmt.Sprint(n)), "0", name, "call", n)
		}
	}
}

// TestConversationByAnswer: the provider keeps the conversation, and the call names its last answer.
func TestConversationByAnswer(t *testing.T) {
	c := newConversations(100)
	c.place(said{agent: "a", prompt: prompt(user("hello")), response: prompt(agent("hi")), id: "resp_1"}, "one")
	must.Equal(t, c.place(said{agent: "a", prompt: prompt(user("more")), previous: "resp_1", id: "resp_2"}, "two"), "one")
	must.Equal(t, c.place(said{agent: "b", prompt: prompt(user("more")), previous: "resp_2"}, "three"), "three")
}

// TestConversationByTrace: calls of one trace are in one chain, and calls without one are not.
func TestConversationByTrace(t *testing.T) {
	c := newConversations(100)
	trace := traceOf("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	must.Need(t, trace != "" && traceOf("00-00000000000000000000000000000000-00f067aa0ba902b7-01") == "" && traceOf("x") == "", "%v", trace)
	for i, want := range []string{"new0", "new0", "new2"} {
		s := said{agent: "a", trace: trace, prompt: prompt(user(fmt.Sprint(i)))}
		if i == 2 {
			s.trace = ""
		}
		must.Equal(t, c.place(s, fmt.Sprint("new", i)), want, "call", i)
	}
}

// TestOldConversationsAreForgotten: what is remembered is bounded, and what was used last stays.
func TestOldConversationsAreForgotten(t *testing.T) {
	c := newConversations(10)
	for n := range 100 {
		c.place(said{agent: "a", prompt: prompt(user(fmt.Sprint(n))), response: prompt(agent("ok"))}, fmt.Sprint(n))
	}
	n := len(c.chains.values)
	must.Hold(t, n == 10 && c.chains.order.Len() == 10, "%d states", n)
	again := func(n int) string {
		return c.place(said{agent: "a", prompt: prompt(user(fmt.Sprint(n)), agent("ok"), user("more"))}, "new")
	}
	must.Equal(t, again(99), "99")
	must.Equal(t, again(3), "new")
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
		got := c.place(said{agent: "a", prompt: prompt(user("which?"), test.sent, result(test.id)), response: prompt(calls("#2", ""))}, "second")
		must.Hold(t, got == test.want, "%s: it is in %s, want %s", name, got, test.want)
		got = c.place(said{agent: "a", prompt: prompt(user("which?"), test.sent, result(test.id), calls("another", ""), result("another"))}, "third")
		must.Hold(t, got == test.want, "%s: the next call is in %s, want %s", name, got, test.want)
	}
	c := newConversations(100)
	for _, chain := range []string{"one", "two"} {
		c.place(said{agent: "a", prompt: prompt(user("which?")), response: prompt(calls("#1", ""))}, chain)
	}
	must.Equal(t, c.place(said{agent: "a", prompt: prompt(user("which?"), calls("its own", ""), result("its own"))}, "three"), "three")
}

// TestBrokenTextHasASum: no text that an upstream sends keeps its call from being recorded.
func TestBrokenTextHasASum(t *testing.T) {
	m := convo.Message{Role: convo.Assistant, ToolCalls: []convo.ChatToolCall{convo.Function("1", "search", "\xff")}}
	a, b := digest([32]byte{}, m, true), digest([32]byte{}, m, false)
	must.Hold(t, a != b && a != [32]byte{}, "%x, %x", a, b)
}

// TestListsWhileTheLogStalls: while the answer of one server about its tools is being sealed, that of another is noted, and who waits with another of the same server waits no
// longer than its context.
func TestListsWhileTheLogStalls(t *testing.T) {
	d := newDesk(t, t.TempDir(), &shelf{}, nil)
	defer d.end()
	answer := func(server string) (*exchange, *observed.Act) {
		said := listOf(adds)
		return &exchange{recorder: d.recorder, call: &relay.Call{Upstream: server}}, &observed.Act{Payload: evidence.Payload{ActionType: evidence.ObservedTool},
			Observed: evidence.Observed{Ended: evidence.Complete, Protocol: "mcp/2025-06-18", Path: "/client", Upstream: &evidence.Upstream{Origin: server}},
			Request:  &observed.Body{Kept: []byte(said[0])}, Response: &observed.Body{Kept: []byte(said[1])}}
	}
	note := func(ctx context.Context, server string) (func(), error) {
		e, act := answer(server)
		done, err := e.watched(ctx, act)
		must.Need(t, err != nil || done != nil, "it is not taken for a list of tools")
		return done, err
	}
	sealing := must.Get(note(t.Context(), "stdio:one"))(t)
	other := must.Get(note(t.Context(), "stdio:two"))(t)
	other()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			must.Fail(t, context.Canceled)(note(ended, "stdio:one"))
		})
	}
	all.Wait()
	sealing()
	last := must.Get(note(t.Context(), "stdio:one"))(t)
	last()
}

// TestUpgradeOfAStranger: a call that asks to change the protocol passes in open mode without a record, but not for callers who do not say who they are, and
// its chain does not stop the counts of other calls from being sealed.
func TestUpgradeOfAStranger(t *testing.T) {
	log := &shelf{}
	d := newDesk(t, t.TempDir(), log, func(c *Config) { c.Mode, c.Agent = relay.Open, "" })
	status, _, _ := d.call(question(false, user("hello")), "Connection", "Upgrade", "Upgrade", "websocket")
	must.Hold(t, status == http.StatusUnauthorized && d.asked == 0, "without a token: status %d, the provider was asked %d times", status, d.asked)
	d.end()

	log = &shelf{}
	d = newDesk(t, t.TempDir(), log, func(c *Config) { c.Mode = relay.Open })
	if status, _, _ := d.call(question(false, user("hello")), "Connection", "Upgrade", "Upgrade", "websocket", "Jurat-Chain", strings.Repeat("long", 100)); status != http.StatusBadRequest || d.asked != 0 {
		t.Errorf("with a chain that no record can have: status %d, the provider was asked %d times", status, d.asked)
	}
	status, _, err := d.call(question(false, user("hello")), "Connection", "Upgrade", "Upgrade", "websocket")
	must.Hold(t, status == http.StatusOK, "status %d, %v", status, err)
	d.end()
	gaps := log.events(t, observed.Gap)
	must.Hold(t, len(gaps) == 1 && gaps[0].Missed[0].Calls == 1, "%d gaps", len(gaps))
}

// TestLongPathInACrash: a path or method that no record has is not in the journal either, whose lines are bounded: the next recorder must be able to read it.
func TestLongPathInACrash(t *testing.T) {
	folder, log := t.TempDir(), &shelf{}
	d := newDesk(t, folder, log, nil)
	for _, req := range []struct{ method, path string }{{"GET", "/openai/v1/" + strings.Repeat("x", 100_000)}, {strings.Repeat("X", 100_000), "/openai/v1/models"}} {
		r := must.Get(http.NewRequestWithContext(t.Context(), req.method, d.server.URL+req.path, nil))(t)
		answer := must.Get(http.DefaultClient.Do(r))(t)
		must.Fail(t, nil)(io.Copy(io.Discard, answer.Body)) // the end of it comes when the call is in the log
		answer.Body.Close()
	}
	_, damaged, err := readJournal(filepath.Join(d.recorder.own, journalFile))
	must.Hold(t, err == nil && len(damaged) == 0, "%v", err)
	d.crash()
	newDesk(t, folder, log, nil).end()
	calls := log.acts(evidence.ObservedCall)
	must.Need(t, len(calls) == 2, "%d records", len(calls))
	missing := strings.Join(append(calls[0].Observed.Missing, calls[1].Observed.Missing...), "; ")
	must.Hold(t, strings.Contains(missing, "path: longer than") && strings.Contains(missing, "method: it is none of HTTP"), "%s", missing)
}

// report is what telemetry may tell of an act.
func report(body string) (act observed.Act, otherID string) {
	at := time.Date(2026, 11, 27, 15, 0, 0, 0, time.UTC)
	return observed.Act{Payload: evidence.Payload{RecordID: evidence.RecordIDFor("", "span-1"), RequestID: "span-1", ActionType: evidence.ObservedSpan, Timestamp: evidence.FormatTime(at), ChainID: ChainOf("shop-bot", "dialogue")},
		Observed: evidence.Observed{Began: evidence.FormatTime(at), Agent: "shop-bot", Vantage: evidence.Telemetry, Fidelity: evidence.ByAttributes, Protocol: "otlp", Ended: evidence.Complete},
		Request:  observed.Whole([]byte(body), "application/json")}, evidence.RecordIDFor("", "span-1", body)
}

// TestReport: what is told twice is sealed once; another account of the same act is sealed, too, and names the first.
func TestReport(t *testing.T) {
	log := new(shelf)
	r := must.Get(Open(t.Context(), Config{Log: log, Name: "listener", Folder: t.TempDir(), Mode: relay.Closed, Vantage: evidence.Telemetry, Version: "test", Configuration: evidence.DigestOf(nil)}))(t)
	const first, other = `{"a":1}`, `{"a":2}`
	for i, step := range []struct {
		told string
		want Account
	}{{first, New}, {first, Known}, {other, Another}, {other, Known}, {first, Known}} {
		act, id := report(step.told)
		must.Give(r.Report(t.Context(), act, id))(t, step.want, "report", i)
	}
	acts := log.acts(evidence.ObservedSpan)
	must.Need(t, len(acts) == 2 && log.tried == 2, "%d records, %d tried: want 2", len(acts), log.tried)
	if p := acts[1]; !strings.Contains(strings.Join(p.Observed.Missing, "\n"), evidence.RecordIDFor("", "span-1")) || p.ChainID != "recorded/shop-bot/dialogue" || p.AgentID != "listener" || p.Observed.Agent != "shop-bot" || len(p.Saw) != 1 {
		t.Errorf("the other account: %+v", p.Payload)
	}
	log.expired = true
	act, id := report(`{"a":4}`)
	got, err := r.Report(t.Context(), act, id)
	must.Hold(t, got == Known && err == nil && len(log.acts(evidence.ObservedSpan)) == 2, "an act whose record has expired: %s, %v", got, err)
	log.fail(errors.New("the disk is full"))
	act, id = report(`{"a":3}`)
	must.Refuse(t, "disk is full", "a log that is out of order")(r.Report(t.Context(), act, id))
	log.fail(nil)
	must.Do(t, r.Close(context.Background(), "the test ended"))
	must.Equal(t, len(log.acts(evidence.ObservedSpan)), 2)
}

// TestUnknownMode: neither the recorder nor what passes its calls on takes a mode that is none for the open one.
func TestUnknownMode(t *testing.T) {
	_, err := Open(t.Context(), Config{Log: new(shelf), Name: "listener", Folder: t.TempDir(), Mode: "Closed", Vantage: evidence.Telemetry, Version: "test", Configuration: evidence.DigestOf(nil)})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "unknown mode"), "%v", err)
	_, err = relay.New(new(Recorder), relay.Options{Mode: "Closed", Upstreams: map[string]relay.Upstream{"api": {Base: &url.URL{Scheme: "http", Host: "127.0.0.1"}}}, Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32)})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "unknown mode"), "%v", err)
}
