package juror

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"jurat/internal/subject"
)

const plainCard = `{"name":"Test agent","description":"Helps.","skills":[]}`

// script writes a conversation as lines: "system: …", "user: …", "agent: …", "call: name {arguments}", "result: …".
// A result answers the call before it.
func script(t testing.TB, card, text string) *subject.Case {
	t.Helper()
	type object = map[string]any
	var list []object
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		who, what, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("line without a speaker: %q", line)
		}
		what = strings.ReplaceAll(what, `\n`, "\n")
		id := fmt.Sprintf("c%d", len(list))
		switch who {
		case "system", "user":
			list = append(list, object{"role": who, "content": what})
		case "agent":
			list = append(list, object{"role": "assistant", "content": what})
		case "call":
			name, args, _ := strings.Cut(what, " ")
			list = append(list, object{"role": "assistant", "content": nil, "tool_calls": []object{{"id": id, "type": "function", "function": object{"name": name, "arguments": args}}}})
		case "result":
			list = append(list, object{"role": "tool", "tool_call_id": fmt.Sprintf("c%d", len(list)-1), "content": what})
		default:
			t.Fatalf("unknown speaker %q", who)
		}
	}
	conversation, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	c, err := subject.New([]byte(card), conversation)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fired lists the rules that speak, for an error message and for looking up one.
func fired(c *subject.Case) map[string]string {
	rules := map[string]string{}
	for _, f := range findAll(read(c)) {
		rules[f.Rule] = fmt.Sprintf("%s in message %d: %q", f.Severity, f.Message, f.Quote)
	}
	return rules
}
