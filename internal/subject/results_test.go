package subject

import (
	"fmt"
	"strings"
	"testing"
)

// answers says of each message who speaks, what they call and say, and which call a result answers: "result OF.PLACE NAME TEXT".
func answers(c *Case) string {
	var lines []string
	for i := range c.Messages {
		m := &c.Messages[i]
		line := string(m.Role)
		if m.Role == Tool {
			line = fmt.Sprintf("result %d.%d %s", m.CallNumber, m.CallPlace, m.ToolName)
		}
		if m.Failed {
			line += " failed"
		}
		for _, call := range m.ToolCalls {
			line += " " + call.Name + call.Arguments
		}
		if m.Text != "" {
			line += " " + m.Text
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestResultsAsOthersWriteThem: each result reaches its call, or the conversation is refused. None is lost in silence.
func TestResultsAsOthersWriteThem(t *testing.T) {
	const (
		items = `{"type":"local_shell_call","id":"lsc_1","call_id":"call_1","action":{"command":["ls"]}},{"type":"local_shell_call","id":"lsc_2","call_id":"call_2","action":{"command":["rm"]}}`
		twice = "user hi\nassistant local_shell{\"command\":[\"ls\"]}\nassistant local_shell{\"command\":[\"rm\"]}\nresult 3.1 local_shell b\nresult 2.1 local_shell a"
		calls = `{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"c1","name":"get","arguments":{}},{"id":"c2","name":"put","arguments":{}}]}`
		both  = "user hi\nassistant get{} put{}\nresult 2.2 put failed b\nresult 2.1 get a"
		model = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],`
	)
	shell := func(first, second string) string {
		return `{"input":"hi","output":[` + items + `,{"type":"local_shell_call_output",` + first + `,"output":"b"},{"type":"local_shell_call_output",` + second + `,"output":"a"}]}`
	}
	for name, one := range map[string]struct{ text, want string }{
		"the item's id":                        {shell(`"id":"lsc_2"`, `"id":"lsc_1"`), twice},
		"the call's id as the item's":          {shell(`"id":"call_2"`, `"id":"call_1"`), twice},
		"an item's id as the call's":           {shell(`"call_id":"lsc_2"`, `"call_id":"lsc_1"`), twice},
		"one by each":                          {shell(`"id":"own","call_id":"call_2"`, `"id":"lsc_1"`), twice},
		"the item's id of another tool":        {`[{"type":"shell_call","id":"sh_1","call_id":"x","action":{"n":1}},{"type":"function_call","id":"fc_1","call_id":"y","name":"f","arguments":"{}"},{"type":"function_call_output","id":"fc_1","output":"a"},{"type":"shell_call_output","id":"sh_1","output":"b"}]`, "assistant shell{\"n\":1}\nassistant f{}\nresult 2.1 f a\nresult 1.1 shell b"},
		"an id that is an item's and a call's": {`[{"type":"function_call","id":"a","call_id":"b","name":"f","arguments":"{}"},{"type":"function_call","id":"c","call_id":"a","name":"g","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"of g"}]`, "assistant f{}\nassistant g{}\nresult 2.1 g of g"},
		"an id that nothing has":               {`[{"type":"local_shell_call","id":"lsc_1","call_id":"call_1","action":{}},{"type":"local_shell_call_output","id":"lsc_9","output":"a"}]`, `no earlier message makes the call "lsc_9"`},

		"tau2's message of several":      {`[` + calls + `,{"role":"tool","tool_messages":[{"id":"c2","role":"tool","content":"b","requestor":"assistant","error":true},{"id":"c1","role":"tool","content":"a","requestor":"assistant","error":false}]}]`, both},
		"tau2's, with an empty content":  {`{"simulations_":1,"messages":[` + calls + `,{"role":"tool","content":null,"tool_messages":[{"id":"c2","content":"b","error":true},{"id":"c1","content":"a"}]}]}`, both},
		"ag2's message of several":       {`[` + calls + `,{"role":"tool","tool_responses":[{"tool_call_id":"c2","role":"tool","content":"b","error":true},{"tool_call_id":"c1","role":"tool","content":"a"}],"content":"b\n\na"}]`, both},
		"an empty list beside a content": {`[` + calls + `,{"role":"tool","tool_call_id":"c1","content":"a","tool_messages":[]}]`, "user hi\nassistant get{} put{}\nresult 2.1 get a"},
		"a result without a text":        {`[` + calls + `,{"role":"tool","tool_call_id":"c1"}]`, "user hi\nassistant get{} put{}\nresult 2.1 get"},
		"another text beside several":    {`[` + calls + `,{"role":"tool","tool_responses":[{"tool_call_id":"c1","content":"a"}],"content":"z"}]`, "a content beside tool_responses"},
		"somebody else among results":    {`[` + calls + `,{"role":"tool","tool_messages":[{"id":"c1","role":"user","content":"a"}]}]`, "among the results of tools"},
		"an unknown list of results":     {`[` + calls + `,{"role":"tool","answers":[{"id":"c1","content":"a"}]}]`, "without a content"},
		"a result by another name":       {`[` + calls + `,{"role":"tool","tool_call_id":"c1","output":"a"}]`, "without a content"},
		"several within several":         {`[` + calls + `,{"role":"tool","tool_messages":[{"role":"tool","tool_messages":[{"id":"c1","content":"a"}]}]}]`, "without a content"},

		"a candidate without parts":       {model + `"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS"}]}`, "user hi\nassistant"},
		"a candidate with empty parts":    {model + `"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"MAX_TOKENS"}]}`, "user hi\nassistant"},
		"a candidate with null":           {model + `"candidates":[{"content":{"parts":null},"finishReason":"MAX_TOKENS"}]}`, "user hi\nassistant"},
		"a candidate without a content":   {model + `"candidates":[{"finishReason":"SAFETY"}]}`, "user hi\nassistant"},
		"a candidate with a thought only": {model + `"candidates":[{"content":{"parts":[{"text":"x","thought":true}]}}]}`, "user hi\nassistant"},
		"the second has a content":        {model + `"candidates":[{"finishReason":"SAFETY"},{"content":{"parts":[{"text":"b"}]}}]}`, "user hi\nassistant b"},
		"a turn without parts":            {`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model"},{"role":"user","parts":[{"text":"still?"}]}]}`, "user hi\nassistant\nuser still?"},
		"a turn with another member":      {`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","content":"hello"}]}`, "a content without parts"},
		"a user without parts":            {`{"contents":[{"role":"user"}]}`, "a content without parts"},
		"tools that Google runs":          {model + `"candidates":[{"content":{"role":"model","parts":[{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]},"id":"a"}},{"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","id":"a","response":{"r":1}}},{"text":"yo"}]}}]}`, "user hi\nassistant GOOGLE_SEARCH_WEB{\"queries\":[\"x\"]}\nresult 2.1 GOOGLE_SEARCH_WEB {\"r\":1}\nassistant yo"},
		"the same, in the other spelling": {`[{"role":"model","parts":[{"tool_call":{"tool_type":"URL_CONTEXT","args":{"n":1}}},{"tool_call":{"tool_type":"URL_CONTEXT","args":{"n":2}}},{"tool_response":{"tool_type":"URL_CONTEXT","response":{"r":1}}},{"tool_response":{"tool_type":"URL_CONTEXT","response":{"r":2}}}]}]`, "assistant URL_CONTEXT{\"n\":1} URL_CONTEXT{\"n\":2}\nresult 1.1 URL_CONTEXT {\"r\":1}\nresult 1.2 URL_CONTEXT {\"r\":2}"},
		"such a call of the user":         {`{"contents":[{"role":"user","parts":[{"toolCall":{"toolType":"URL_CONTEXT"}}]}]}`, "in a content of the user"},
		"such a call without a type":      {model + `"candidates":[{"content":{"parts":[{"toolCall":{"args":{}}}]}}]}`, "a tool call without a name"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := NewAs("", nil, []byte(one.text))
			if err != nil {
				if !strings.Contains(err.Error(), one.want) {
					t.Error(err)
				}
				return
			}
			if got := answers(c); got != one.want {
				t.Errorf("got\n%s\nwant\n%s", got, one.want)
			}
			sameAgain(t, c)
		})
	}
	if c := taken(t, GeminiForm, model+`"candidates":[{"finishReason":"SAFETY"}]}`); len(c.LeftOut) != 0 {
		t.Errorf("%+v", c.LeftOut)
	}
}
