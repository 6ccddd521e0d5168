package subject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/internal/must"
)

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
		if got := c.Setting(); got != want || c.CouldConsent() != (want == Dialogue) {
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
