package subject

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/internal/must"
)

// An exchangeStep is what the agent calls at once, or what it gets back at once, or words of the user.
type exchangeStep struct {
	calls   []pairedCall
	results []pairedCall
	user    string
}

// A pairedCall is a call with this number, or the result of the call with this number. The id is as JSON: "": no member.
type pairedCall struct {
	id, name string
	n        int
}

func (c *pairedCall) member(name string) string {
	if c.id == "" {
		return ""
	}
	return fmt.Sprintf("%q:%s,", name, c.id)
}

func each(list []pairedCall, format func(c *pairedCall) string) string {
	var all []string
	for i := range list {
		all = append(all, format(&list[i]))
	}
	return strings.Join(all, ",")
}

// A vendorForm writes steps as one vendor's messages, a whole conversation, and a request and an answer of a call. Formats of calls and results have the
// member with the id, the name and the number.
type vendorForm struct {
	callID, call, calls       string
	resultID, result, results string
	words                     string // of the user; "": as a chat has them
	conversation              string
	recorded                  func(messages, answer string) seenCall
	form                      Form // "": the conversation shows it
}

func (f *vendorForm) step(s *exchangeStep) string {
	switch {
	case s.calls != nil:
		return fmt.Sprintf(f.calls, each(s.calls, func(c *pairedCall) string { return fmt.Sprintf(f.call, c.member(f.callID), c.name, c.n) }))
	case s.results != nil:
		return fmt.Sprintf(f.results, each(s.results, func(c *pairedCall) string { return fmt.Sprintf(f.result, c.member(f.resultID), c.name, c.n) }))
	case f.words != "":
		return content("user", fmt.Sprintf(f.words, s.user))
	}
	return said("user", s.user)
}

var vendorForms = map[string]vendorForm{
	"chat": {
		callID: "id", call: `{%s"type":"function","function":{"name":%q,"arguments":"{\"n\":%d}"}}`, calls: `{"role":"assistant","content":null,"tool_calls":[%s]}`,
		resultID: "tool_call_id", result: `{%s"role":"tool","content":"result %[3]d."}`, results: "%s", conversation: "[%s]",
		recorded: func(messages, answer string) seenCall {
			return seenCall{request: chatRequest(messages), response: chatAnswer(answer)}
		},
	},
	"anthropic": {
		callID: "id", call: `{%s"type":"tool_use","name":%q,"input":{"n":%d}}`, calls: `{"role":"assistant","content":[%s]}`,
		resultID: "tool_use_id", result: `{%s"type":"tool_result","content":"result %[3]d."}`, results: `{"role":"user","content":[%s]}`,
		conversation: `{"system":"S","messages":[%s]}`,
		recorded: func(messages, answer string) seenCall {
			return seenCall{protocol: "anthropic.messages", request: `{"model":"m","messages":[` + messages + `]}`, response: `{"type":"message","model":"m-1","stop_reason":"tool_use",` + answer[1:]}
		},
	},
	"responses": {
		callID: "call_id", call: `{%s"type":"function_call","name":%q,"arguments":"{\"n\":%d}"}`, calls: "%s",
		resultID: "call_id", result: `{%s"type":"function_call_output","output":"result %[3]d."}`, results: "%s", conversation: `{"input":[%s]}`,
		recorded: func(messages, answer string) seenCall {
			return seenCall{protocol: "openai.responses", request: `{"model":"m","input":[` + messages + `]}`, response: `{"object":"response","status":"completed","model":"m-1","output":[` + answer + `]}`}
		},
	},
	"gemini": {
		callID: "id", call: `{"functionCall":{%s"name":%q,"args":{"n":%d}}}`, calls: `{"role":"model","parts":[%s]}`,
		resultID: "id", result: `{"functionResponse":{%s"name":%q,"response":{"output":"result %d."}}}`, results: `{"role":"user","parts":[%s]}`,
		words: `{"text":%q}`, conversation: `{"contents":[%s]}`,
		recorded: func(messages, answer string) seenCall {
			return seenCall{gemini: true, request: `{"contents":[` + messages + `]}`, response: `{"candidates":[{"index":0,"content":` + answer + `}],"modelVersion":"m-1"}`}
		},
	},
	"a2a": {
		callID: "id", call: `{"kind":"data","data":{%s"name":%q,"args":{"n":%d}}}`, calls: `{"role":"agent","parts":[%s]}`,
		resultID: "id", result: `{"kind":"data","data":{%s"name":%q,"response":{"output":"result %d."}}}`, results: `{"role":"agent","parts":[%s]}`,
		words: `{"kind":"text","text":%q}`, conversation: `{"task":{"history":[%s]}}`,
	},
	"inspect": {
		callID: "id", call: `{%s"type":"function","function":%q,"arguments":{"n":%d}}`, calls: `{"role":"assistant","source":"generate","content":"","tool_calls":[%s]}`,
		resultID: "tool_call_id", result: `{%s"role":"tool","content":"result %[3]d."}`, results: "%s", conversation: "[%s]", form: InspectForm,
	},
}

// calls makes a step of calls of one tool, numbered, with ids in JSON.
func calls(n int, ids ...string) exchangeStep {
	var s exchangeStep
	for i, id := range ids {
		s.calls = append(s.calls, pairedCall{id, "get", n + i})
	}
	return s
}

// results makes a step of results of the calls with these numbers: pairs of an id and a number.
func results(pairs ...any) exchangeStep {
	var s exchangeStep
	for i := 0; i < len(pairs); i += 2 {
		s.results = append(s.results, pairedCall{pairs[i].(string), "get", pairs[i+1].(int)})
	}
	return s
}

var formsOfIDs = map[string][]exchangeStep{
	"distinct":                                {calls(1, `"a"`, `"b"`), results(`"a"`, 1, `"b"`, 2)},
	"distinct, answered backwards":            {calls(1, `"a"`, `"b"`, `"c"`), results(`"c"`, 3, `"b"`, 2, `"a"`, 1)},
	"equal":                                   {calls(1, `"a"`, `"a"`), results(`"a"`, 1, `"a"`, 2)},
	"three equal, answered in two steps":      {calls(1, `"a"`, `"a"`, `"a"`), results(`"a"`, 1), results(`"a"`, 2, `"a"`, 3)},
	"empty":                                   {calls(1, `""`, `""`), results(`""`, 1, `""`, 2)},
	"none":                                    {calls(1, "", ""), results("", 1, "", 2)},
	"null":                                    {calls(1, "null", "null"), results("null", 1, "null", 2)},
	"of calls alone":                          {calls(1, `"a"`, `"b"`), results("", 1, "", 2)},
	"of results alone":                        {calls(1, "", ""), results(`"x"`, 1, `"y"`, 2)},
	"of results alone, and one twice":         {calls(1, "", ""), results(`"x"`, 1, `"y"`, 2), results(`"x"`, 1)},
	"of results alone, equal":                 {calls(1, "", ""), results(`"x"`, 1, `"x"`, 2)},
	"of results alone, two equal":             {calls(1, "", "", ""), results(`"x"`, 1, `"x"`, 2, `"y"`, 3)},
	"of results alone, one twice at first":    {calls(1, "", ""), results(`"x"`, 1, `"x"`, 1, `"y"`, 2)},
	"of results alone, equal in two turns":    {calls(1, "", ""), results(`"x"`, 1, `"x"`, 2), calls(3, "", ""), results(`"x"`, 3, `"x"`, 4)},
	"of one call":                             {calls(1, `"a"`, ""), results("", 2, `"a"`, 1)},
	"two equal and one of its own":            {calls(1, `"a"`, `"b"`, `"a"`), results(`"b"`, 2, `"a"`, 1, `"a"`, 3)},
	"again in a later turn":                   {calls(1, `"a"`), results(`"a"`, 1), calls(2, `"a"`), results(`"a"`, 2)},
	"again in a later turn, the first open":   {calls(1, `"a"`), {user: "And?"}, calls(2, `"a"`), results(`"a"`, 2)},
	"again, both turns with two":              {calls(1, `"a"`, `"b"`), results(`"a"`, 1, `"b"`, 2), calls(3, `"a"`, `"b"`), results(`"b"`, 4, `"a"`, 3)},
	"none, and an open call before":           {calls(1, ""), {user: "And?"}, calls(2, "", ""), results("", 2, "", 3)},
	"none, in two turns":                      {calls(1, "", ""), results("", 1, "", 2), calls(3, "", ""), results("", 3, "", 4)},
	"a further result":                        {calls(1, `"a"`, `"b"`), results(`"a"`, 1, `"b"`, 2, `"a"`, 1)},
	"a further result, after the other calls": {calls(1, `"a"`), results(`"a"`, 1), calls(2, `"b"`), results(`"b"`, 2), {user: "And?"}, results(`"a"`, 1)},
	"a further result without an id":          {calls(1, ""), results("", 1, "", 1)},
	"a late result":                           {calls(1, `"a"`, `"b"`), results(`"b"`, 2), calls(3, `"c"`), results(`"c"`, 3, `"a"`, 1)},
}

// TestPairs: each result belongs to the call that it answers, whatever ids there are, in each form.
func TestPairs(t *testing.T) {
	for vendor, form := range vendorForms {
		for name, steps := range formsOfIDs {
			t.Run(vendor+"/"+name, func(t *testing.T) {
				messages := []string{form.step(&exchangeStep{user: "Do it."})}
				for i := range steps {
					messages = append(messages, form.step(&steps[i]))
				}
				c := must.Get(NewAs(form.form, nil, []byte(fmt.Sprintf(form.conversation, strings.Join(messages, ",")))))(t)
				rightPairs(t, c, steps)
				sameAgain(t, c)
			})
		}
	}
}

// TestPairsInRecordedCalls: likewise in calls that a recorder saw, in each of which the program sent the conversation up to there; also if another conversation
// of the same agent with the same ids runs beside.
func TestPairsInRecordedCalls(t *testing.T) {
	for vendor, form := range vendorForms {
		if form.recorded == nil {
			continue
		}
		for name, steps := range formsOfIDs {
			t.Run(vendor+"/"+name, func(t *testing.T) {
				one, other := recordedSteps(t, form, "Do it.", 0, steps, false), recordedSteps(t, form, "Do the other.", 100, steps, false)
				rightPairs(t, fromRecords(t, one...), steps)
				rightPairs(t, fromRecords(t, recordedSteps(t, form, "Do it.", 0, steps, true)...), steps)
				var both []Exhibit
				for i := range one {
					both = append(both, one[i], other[i])
				}
				rightPairs(t, fromRecords(t, both...), append(shifted(steps, 0), shifted(steps, 100)...))
			})
		}
	}
}

// shifted are the steps with other numbers.
func shifted(steps []exchangeStep, by int) (list []exchangeStep) {
	for _, s := range steps {
		one := exchangeStep{user: s.user}
		for _, c := range s.calls {
			one.calls = append(one.calls, pairedCall{c.id, c.name, c.n + by})
		}
		for _, c := range s.results {
			one.results = append(one.results, pairedCall{c.id, c.name, c.n + by})
		}
		list = append(list, one)
	}
	return list
}

// recordedSteps are the calls in which a program sends these steps to a model; named: the model gives its calls no ids, and the program gives them these.
func recordedSteps(t *testing.T, form vendorForm, asked string, by int, steps []exchangeStep, named bool) (list []Exhibit) {
	answers := append(shifted(steps, by), exchangeStep{calls: []pairedCall{{`"last"`, "end", 99 + by}}})
	for i := range answers {
		for j := range answers[i].calls {
			if named {
				answers[i].calls[j].id = ""
			}
		}
	}
	steps = append(shifted(steps, by), exchangeStep{calls: []pairedCall{{`"last"`, "end", 99 + by}}})
	messages := []string{form.step(&exchangeStep{user: asked})}
	for i := range steps {
		if steps[i].calls != nil {
			list = append(list, seen(t, by+len(list)+1, form.recorded(strings.Join(messages, ","), form.step(&answers[i]))))
		}
		messages = append(messages, form.step(&steps[i]))
	}
	return list
}

// rightPairs holds that results and calls with one number belong together.
func rightPairs(t *testing.T, c *Case, steps []exchangeStep) {
	t.Helper()
	want, got := map[int]int{}, map[int]int{}
	for _, s := range steps {
		for _, one := range s.results {
			want[one.n]++
		}
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role != Tool {
			continue
		}
		n := 0
		if _, after, _ := strings.Cut(m.Text, "result "); after != "" {
			fmt.Sscanf(after, "%d", &n)
		}
		from := c.Message(m.CallNumber)
		if from == nil || m.CallPlace < 1 || m.CallPlace > len(from.ToolCalls) {
			t.Errorf("message %d, result %d: its call is not known", m.Number, n)
			continue
		}
		call := from.ToolCalls[m.CallPlace-1]
		if !strings.Contains(call.Arguments, fmt.Sprintf(`"n":%d}`, n)) || c.Message(call.Result) == nil || !strings.Contains(c.Message(call.Result).Text, fmt.Sprintf("result %d.", n)) {
			t.Errorf("message %d, result %d: paired with %+v in message %d", m.Number, n, call, m.CallNumber)
		}
		got[n]++
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("results %v, want %v\n%s", got, want, script(c))
	}
}

// dual is a conversation in which both sides call tools. The calls of both have the same id.
const dual = `[{"role":"user","content":"No signal."},
 {"role":"assistant","content":"Please look at your settings.","tool_calls":[{"id":"c","name":"get_line","arguments":{"n":1},"requestor":"assistant"}]},
 {"role":"user","content":null,"tool_calls":[{"id":"c","name":"read_settings","arguments":{},"requestor":"user"}]},
 {"id":"c","role":"tool","content":"line","requestor":"assistant","error":false},
 {"id":"c","role":"tool","content":"airplane mode","requestor":"user","error":true}]`

// TestDualControl: each call and each result has its caller, also if two calls have the same id.
func TestDualControl(t *testing.T) {
	c := must.Get(New([]byte(cardV1), []byte(dual)))(t)
	want := []Message{
		{Number: 1, Role: User, Text: "No signal."},
		{Number: 2, Role: Assistant, Text: "Please look at your settings.", ToolCalls: []ToolCall{{ID: "c", Name: "get_line", Arguments: `{"n":1}`, Result: 4}}},
		{Number: 3, Role: User, ToolCalls: []ToolCall{{ID: "c", Name: "read_settings", Arguments: `{}`, Result: 5}}},
		{Number: 4, Role: Tool, Text: "line", ToolCallID: "c", ToolName: "get_line", CallNumber: 2, CallPlace: 1, AnswersTo: Assistant},
		{Number: 5, Role: Tool, Text: "airplane mode", ToolCallID: "c", ToolName: "read_settings", CallNumber: 3, CallPlace: 1, AnswersTo: User, Failed: true},
	}
	if diff := cmp.Diff(want, c.Messages, cmpopts.IgnoreFields(ToolCall{}, "Args")); diff != "" {
		t.Error(diff)
	}
	var callers []Role
	for i := range c.Messages {
		callers = append(callers, c.Messages[i].Caller())
	}
	if diff := cmp.Diff([]Role{"", Assistant, User, Assistant, User}, callers); diff != "" {
		t.Error(diff)
	}
	if len(c.Messages[1].AgentCalls()) != 1 || c.Messages[2].AgentCalls() != nil {
		t.Error("the user's call counts as the agent's")
	}
}

// TestPlainDualControl: chat messages without requestors are read, too.
func TestPlainDualControl(t *testing.T) {
	c := must.Get(New([]byte(cardV1), []byte(`[{"role":"assistant","content":"Look."},{"role":"user","tool_calls":[{"id":"u1","type":"function","function":{"name":"look","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"u1","content":"seen"}]`)))(t)
	if m := c.Message(3); m.Caller() != User || m.CallNumber != 2 {
		t.Errorf("%+v", m)
	}
}

func TestSetting(t *testing.T) {
	const agent, call, result = `{"role":"assistant","content":"Done."}`, `{"role":"assistant","tool_calls":[{"id":"1","name":"a"}]}`, `{"role":"tool","tool_call_id":"1","content":"x"}`
	const system, user = `{"role":"system","content":"Rules."}`, `{"role":"user","content":"Do it."}`
	for text, want := range map[string]Setting{
		system + "," + call + "," + result:                              Ticket,
		system + "," + user + "," + call + "," + result:                 Delegated,
		user + "," + user + "," + agent:                                 Delegated,
		user + "," + agent + "," + user:                                 Dialogue,
		agent + `,{"role":"user","tool_calls":[{"id":"1","name":"a"}]}`: Dialogue,
	} {
		c := must.Get(New([]byte(cardV1), []byte("["+text+"]")))(t)
		if got := c.Setting(); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestCallsOfTheUserInRecords: in a record, a prompt with calls of the user is still shown unchanged, so that findings of
// earlier trials name the same messages.
func TestCallsOfTheUserInRecords(t *testing.T) {
	if list := chatIn([]byte(`[{"role":"user","tool_calls":[{"id":"1","name":"a"}]}]`), User); list != nil {
		t.Errorf("%+v", list)
	}
	if list := chatIn([]byte(`[{"role":"assistant","tool_calls":[{"id":"1","name":"a"}]}]`), User); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}
