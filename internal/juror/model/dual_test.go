package model

import (
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/internal/subject"
)

// TestCallsOfTheUserAreShownAsTheirs: jurors read who made each call, and whose result is shown.
func TestCallsOfTheUserAreShownAsTheirs(t *testing.T) {
	c, err := subject.New([]byte(`{"name":"Desk"}`), []byte(`[{"role":"assistant","tool_calls":[{"id":"1","name":"get_line","arguments":{"n":1}}]},{"role":"tool","tool_call_id":"1","content":"a line"},
		{"role":"user","tool_calls":[{"id":"2","name":"toggle","arguments":{"on":true}}]},{"role":"tool","tool_call_id":"2","content":"toggled","requestor":"user","error":true}]`))
	if err != nil {
		t.Fatal(err)
	}
	shown := must.Get(showEvidence(c, c.Material(), nil))(t)
	for _, want := range []string{
		"\nmessage 1, agent: tool call 1 of 1, name\n| get_line\n\nmessage 1, agent: tool call 1 of 1, arguments\n",
		"\nmessage 2, tool: result of call 1 of 1 in message 1\n| a line\n",
		"\nmessage 3, user: tool call 1 of 1, name\n| toggle\n\nmessage 3, user: tool call 1 of 1, arguments\n",
		"\nmessage 4, tool: result of the user's own call 1 of 1 in message 3, which the log marks as an error\n| toggled\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("not shown: %q\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "message 3, user: what") {
		t.Error("the user is said to speak in a message without a text")
	}
}
