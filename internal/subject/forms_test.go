package subject

import (
	"jurat/internal/must"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sameAgain holds that the evidence of a case gives the same case.
func sameAgain(t testing.TB, c *Case) {
	t.Helper()
	again, err := Parse(c.Material())
	if err != nil {
		t.Fatalf("the evidence cannot be read again: %v\n%s", err, c.Material())
	}
	if diff := cmp.Diff(c.Messages, again.Messages); diff != "" || again.Digest() != c.Digest() || again.HasCard != c.HasCard || again.Form != c.Form {
		t.Fatalf("the evidence does not read back the same: %s\n%s", diff, c.Material())
	}
	if diff := cmp.Diff(c.LeftOut, again.LeftOut) + cmp.Diff(c.Source, again.Source); diff != "" {
		t.Fatal(diff)
	}
}

// taken is the case of a conversation without mistakes.
func taken(t testing.TB, form Form, text string) *Case {
	t.Helper()
	c, err := NewAs(form, nil, []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

// left are the omissions of a case in which these kinds are left out.
func left(kinds ...Left) []Omission {
	c := new(Case)
	for _, kind := range kinds {
		c.omits(kind)
	}
	return c.LeftOut
}

func TestForms(t *testing.T) {
	for _, one := range []struct {
		name, text string
		form       Form
		want       []Message
		left       []Omission
	}{
		{"anthropic", `{"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","data":"x"}}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"secret"},{"type":"text","text":"b"},{"type":"tool_use","id":"1","name":"f","input":{"k":1}},{"type":"tool_use","id":"2","name":"g","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"2","content":"r2","is_error":true},{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r1"}]},{"type":"text","text":"c"}]}]}`, AnthropicForm,
			[]Message{{Number: 1, Role: System, Text: "S"}, {Number: 2, Role: User, Text: "a\n[image]"},
				{Number: 3, Role: Assistant, Text: "b", ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: `{"k":1}`, Result: 5}, {ID: "2", Name: "g", Arguments: "{}", Result: 4}}},
				{Number: 4, Role: Tool, Text: "r2", ToolCallID: "2", ToolName: "g", CallNumber: 3, CallPlace: 2, AnswersTo: Assistant, Failed: true},
				{Number: 5, Role: Tool, Text: "r1", ToolCallID: "1", ToolName: "f", CallNumber: 3, CallPlace: 1, AnswersTo: Assistant}, {Number: 6, Role: User, Text: "c"}},
			left(Unreadable, Reasoning)},
		{"anthropic, a tool of the vendor", `[{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},
			{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"u"}]},{"type":"text","text":"found"}]}]`, AnthropicForm,
			[]Message{{Number: 1, Role: Assistant, ToolCalls: []ToolCall{{ID: "s", Name: "web_search", Arguments: `{"query":"q"}`, Result: 2}}},
				{Number: 2, Role: Tool, Text: `[{"type":"web_search_result","url":"u"}]`, ToolCallID: "s", ToolName: "web_search", CallNumber: 1, CallPlace: 1, AnswersTo: Assistant},
				{Number: 3, Role: Assistant, Text: "found"}}, nil},
		{"responses", `{"instructions":"S","previous_response_id":"r0","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}],"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"secret"}]},
			{"type":"function_call","call_id":"1","name":"f","arguments":"{\"k\":1}"},{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"r"}]},
			{"type":"custom_tool_call","call_id":"2","name":"run","input":"ls"},{"type":"custom_tool_call_output","call_id":"2","output":"files"},
			{"type":"code_interpreter_call","id":"3","code":"1+1","outputs":[{"type":"logs","logs":"2"}]},
			{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]}`, ResponsesForm,
			[]Message{{Number: 1, Role: System, Text: "S"}, {Number: 2, Role: User, Text: "a"},
				{Number: 3, Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: `{"k":1}`, Result: 4}}},
				{Number: 4, Role: Tool, Text: "r", ToolCallID: "1", ToolName: "f", CallNumber: 3, CallPlace: 1, AnswersTo: Assistant},
				{Number: 5, Role: Assistant, ToolCalls: []ToolCall{{ID: "2", Name: "run", Arguments: "ls", Result: 6}}},
				{Number: 6, Role: Tool, Text: "files", ToolCallID: "2", ToolName: "run", CallNumber: 5, CallPlace: 1, AnswersTo: Assistant},
				{Number: 7, Role: Assistant, ToolCalls: []ToolCall{{ID: "3", Name: "code_interpreter", Arguments: "1+1", Result: 8}}},
				{Number: 8, Role: Tool, Text: `[{"logs":"2","type":"logs"}]`, ToolCallID: "3", ToolName: "code_interpreter", CallNumber: 7, CallPlace: 1, Beside: true, AnswersTo: Assistant},
				{Number: 9, Role: Assistant, Text: "no"}},
			left(Elsewhere, Reasoning)},
		{"gemini, parallel calls without ids", `{"system_instruction":"S","contents":[{"role":"model","parts":[{"text":"secret","thought":true},{"functionCall":{"name":"f","args":{"n":1}}},{"functionCall":{"name":"f","args":{"n":2}}}]},
			{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"output":1}}},{"functionResponse":{"name":"f","response":{"error":"no"}}}]},
			{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"bad"}},{"inline_data":{"mime_type":"image/png","data":"x"}}]}],
			"candidates":[{"content":{"parts":[{"text":"yes"}]}},{"content":{"parts":[{"text":"other"}]}}]}`, GeminiForm,
			[]Message{{Number: 1, Role: System, Text: "S"},
				{Number: 2, Role: Assistant, ToolCalls: []ToolCall{{ID: "#1", Name: "f", Arguments: `{"n":1}`, Result: 3}, {ID: "#2", Name: "f", Arguments: `{"n":2}`, Result: 4}}},
				{Number: 3, Role: Tool, Text: `{"output":1}`, Name: "f", ToolName: "f", CallNumber: 2, CallPlace: 1, AnswersTo: Assistant},
				{Number: 4, Role: Tool, Text: `{"error":"no"}`, Name: "f", ToolName: "f", CallNumber: 2, CallPlace: 2, AnswersTo: Assistant, Failed: true},
				{Number: 5, Role: Assistant, ToolCalls: []ToolCall{{ID: "#3", Name: "code_execution", Arguments: "1", Result: 6}}},
				{Number: 6, Role: Tool, Text: "bad", Name: "code_execution", ToolName: "code_execution", CallNumber: 5, CallPlace: 1, AnswersTo: Assistant, Failed: true},
				{Number: 7, Role: Assistant, Text: "[data image/png]"}, {Number: 8, Role: Assistant, Text: "yes"}},
			left(Reasoning, Unreadable, Alternatives)},
		{"chat with reasoning", `[{"role":"assistant","content":[{"type":"thinking","thinking":"secret"},{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"u"}}]},{"role":"assistant","content":"c","reasoning_content":"secret"}]`, ChatForm,
			[]Message{{Number: 1, Role: Assistant, Text: "b\n[image_url]"}, {Number: 2, Role: Assistant, Text: "c"}}, left(Reasoning, Reasoning, Unreadable)},
		{"promptfoo, messages in a string and calls as the output", `{"prompt":"[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"a\"}]","output":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, PromptfooForm,
			[]Message{{Number: 1, Role: System, Text: "S"}, {Number: 2, Role: User, Text: "a"}, {Number: 3, Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: "{}"}}}}, nil},
	} {
		t.Run(one.name, func(t *testing.T) {
			c := taken(t, "", one.text)
			ignored := cmp.Options{cmpopts.IgnoreFields(ToolCall{}, "Args")}
			if diff := cmp.Diff(one.want, c.Messages, ignored); diff != "" || c.Form != one.form {
				t.Errorf("form %s: %s", c.Form, diff)
			}
			if diff := cmp.Diff(one.left, c.LeftOut); diff != "" {
				t.Error(diff)
			}
			for i := range c.Messages {
				if c.Messages[i].Holds("secret") {
					t.Errorf("message %d has the inner reasoning", i+1)
				}
			}
			sameAgain(t, c)
		})
	}
}

// TestDigestsStay: the evidence of cases that earlier versions read has the digest that it always had.
func TestDigestsStay(t *testing.T) {
	for text, want := range map[string]string{
		hello: "sha256:e2b9f7a02cccd9fb41b70a1b67599f41ce94208d726260c34b230b747f2d5153",
		`{"task":{"history":[{"role":"user","messageId":"1","parts":[{"kind":"text","text":"Hi"}]}]}}`: "sha256:e46d24b13fb8dbfccd3267c576bfb5431d278030eecc85c064c858e56cfe097a",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}],"x":1}],"extra":[]}`:      "sha256:c686ad237b836e34c35a2801300abc0f34b456894635f0b5992880e85a89a7f1",
	} {
		c := must.Get(New([]byte(cardV03), []byte(text)))(t)
		if got := c.Digest().String(); got != want {
			t.Errorf("%s: %s", text, got)
		}
		if strings.Contains(string(c.Material()), `"format"`) {
			t.Errorf("%s", c.Material())
		}
	}
}

// TestChosenForm: a form that was chosen decides, and the evidence says it.
func TestChosenForm(t *testing.T) {
	const mixed = `{"system":"S","messages":[{"role":"assistant","content":"b","tool_calls":[{"id":"1","name":"a"}]}]}`
	if c := taken(t, ChatForm, mixed); len(c.Messages) != 1 || len(c.Messages[0].ToolCalls) != 1 {
		t.Errorf("%+v", c.Messages)
	}
	c := taken(t, AnthropicForm, mixed)
	if len(c.Messages) != 2 || !strings.Contains(string(c.Material()), `"format":"anthropic"`) {
		t.Errorf("%+v", c.Messages)
	}
	sameAgain(t, c)
}
