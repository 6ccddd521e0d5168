package subject

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
)

// exchanged makes the exhibit of an exchange of messages that a recorder saw.
func exchanged(t testing.TB, n int, side evidence.Side, request, response string) Exhibit {
	t.Helper()
	return exhibit(t, n, fmt.Sprintf(`"action_type":"observed_message","agent_id":"tap","request_id":"r%d","timestamp":"2026-01-31T16:15:00Z","chain_id":"recorded/clerk-bot/c1",
		"observed":{"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":"complete","fidelity":"bytes","vantage":"proxy","protocol":"a2a/1.0","path":"/","side":%q,"status":200,"upstream":{"origin":"https://shop.example"},
		"request":{"bytes":%d,"sha256":%q},"response":{"bytes":%d,"sha256":%q}},"request_body":%q,"response_body":%q`,
		n, side, len(request), evidence.DigestOf([]byte(request)), len(response), evidence.DigestOf([]byte(response)), request, response))
}

func rpc(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
}

func sentMessage(text string) string {
	return rpc("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","contextId":"c1","parts":[{"text":"`+text+`"}]}}`)
}

func aTask(state, message string, artifacts ...string) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t1","contextId":"c1","status":{"state":"` + state + `","message":{"messageId":"s","role":"ROLE_AGENT","parts":[` + message + `]}},"artifacts":[` + strings.Join(artifacts, ",") + `]}}}`
}

// TestExchanges: the agent that was recorded speaks for itself, whether it asks or answers; the other one is never taken for it.
func TestExchanges(t *testing.T) {
	look := `{"text":"I look."},{"data":{"name":"track","id":"k1","args":{"order":12}}},{"data":{"name":"track","id":"k1","response":"Bern"}}`
	report := `{"artifactId":"a1","parts":[{"text":"It is in Bern."},{"raw":"aGVsbG8=","filename":"map.png"}]}`
	records := func(side evidence.Side) []Exhibit {
		return []Exhibit{
			exchanged(t, 1, side, sentMessage("Where is it?"), aTask("TASK_STATE_WORKING", look)),
			exchanged(t, 2, side, rpc("GetTask", `{"id":"t1"}`), aTask("TASK_STATE_WORKING", look)),
			exchanged(t, 3, side, rpc("GetTask", `{"id":"t1"}`), aTask("TASK_STATE_COMPLETED", `{"text":"Done."}`, report)),
			exchanged(t, 4, side, sentMessage("Where is it?"), aTask("TASK_STATE_COMPLETED", `{"text":"Done."}`)),
			exchanged(t, 5, side, sentMessage("Well?"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}`),
		}
	}
	working := "The state of the task, in the agent's word: TASK_STATE_WORKING."
	ended := " How it ended: the answer came to its end, with status 200."
	for side, want := range map[evidence.Side]string{
		evidence.Answered: "1 user prompt: Where is it?\n2 assistant response: I look.track({\"order\":12})->3\n3 tool response: Bern\n4 recorder observed: " + working + ended + "\n" +
			"5 recorder observed: " + working + " The answer has again what stands in message 2, 3." + ended + "\n6 assistant response: It is in Bern.\n[file map.png]\n7 assistant response: Done.\n" +
			"8 user prompt: Where is it?\n9 assistant response: Done.\n10 user prompt: Well?\n11 recorder observed: The provider answered with an error: -32001: Task not found." + ended,
		evidence.Asked: "1 assistant prompt: Where is it?\n2 user response: I look.track({\"order\":12})->3\n3 tool response: Bern\n4 recorder observed: " + working + ended + "\n" +
			"5 recorder observed: " + working + " The answer has again what stands in message 2, 3." + ended + "\n6 user response: It is in Bern.\n[file map.png]\n7 user response: Done.\n" +
			"8 assistant prompt: Where is it?\n9 user response: Done.\n10 assistant prompt: Well?\n11 recorder observed: The provider answered with an error: -32001: Task not found." + ended,
	} {
		c := fromRecords(t, records(side)...)
		if diff := cmp.Diff(want, script(c)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", side, diff)
		}
		for _, m := range c.Messages {
			if (m.Role == Assistant) != (m.Name == "clerk-bot" || m.Name == "artifact" && side == evidence.Answered) {
				t.Errorf("%s: message %d of the %s is by %q", side, m.Number, m.Role, m.Name)
			}
		}
		head := map[evidence.Side]string{evidence.Asked: "this agent asked, and another one answered", evidence.Answered: `bytes seen by the recorder "tap" between the agent and those who ask it`}[side]
		if !strings.Contains(c.Messages[0].Head, head) || !strings.Contains(c.Messages[0].Head, "bytes seen by the recorder") {
			t.Error(c.Messages[0].Head)
		}
		if c.Card.Name != "clerk-bot" {
			t.Errorf("the agent is %q", c.Card.Name)
		}
	}
}

func TestFor(t *testing.T) {
	var c askedCalls
	if n, how := c.For("x", "read", "{}"); n != 0 || how != askedUnknown {
		t.Error("a call is found where there is none")
	}
	c.Add(askedCall{"x", "mcp__files__read", `{"a":1}`, 3})
	c.Add(askedCall{"", "write", `{"a":1}`, 4})
	c.Add(askedCall{"y", "read", `{"a":1}`, 5})
	for _, test := range []struct {
		id, tool, arguments string
		number              int
		how                 askedHow
	}{
		{"x", "read", `{"a":1}`, 3, askedByID},
		{"x", "mcp__files__read", `{"a":1}`, 3, askedByID},
		{"x", "read", `{"a":2}`, 3, askedOtherwise},
		{"x", "write", `{"a":1}`, 3, askedOtherwise},
		{"", "read", `{"a":1}`, 5, askedAlike},
		{"z", "write", `{"a":1}`, 4, askedAlike},
		{"", "files__read", `{"a":1}`, 0, askedUnknown},
		{"", "read", `{"a":2}`, 0, askedUnknown},
	} {
		if n, how := c.For(test.id, test.tool, test.arguments); n != test.number || how != test.how {
			t.Errorf("%+v: message %d, %d", test, n, how)
		}
	}
	c.Add(askedCall{"__", "__", "", 6})
	if n, how := c.For("__", "__", ""); n != 6 || how != askedByID {
		t.Error(n, how)
	}
}

// prompt makes a message of each letter.
func prompt(letters string) (list []shownMessage) {
	for _, letter := range letters {
		list = append(list, shownAs("user", string(letter)))
	}
	return list
}

// TestTalk: of each prompt, what was shown before is found, whatever came in between.
func TestTalk(t *testing.T) {
	var talks talks
	talk, shown := talks.Of("agent", "chain"), 0
	for _, step := range []struct{ prompt, answer, want string }{
		{"sab", "c", ""},
		{"sab", "c", "1 2 3"},     // the same answer again
		{"sab", "d", "1 2 3"},     // another answer
		{"sabce", "f", "1 2 3 4"}, // on from the first
		{"sabde", "g", "1 2 3 5"}, // on from the other
		{"sxy", "z", "1"},         // another conversation with the same instructions
		{"sabcefh", "i", "1 2 3 4 6 7"},
		{"sefhij", "k", "1 6 7 13 14"}, // what is long ago was left out
		{"sk", "", "1 16"},
		{"q", "", ""},
	} {
		asked, answered := prompt(step.prompt), prompt(step.answer)
		line := talk.Repeated(asked)
		var numbers []string
		for _, s := range line {
			numbers = append(numbers, fmt.Sprint(s.Number))
		}
		if got := strings.Join(numbers, " "); got != step.want {
			t.Errorf("%s: %s, want %s", step.prompt, got, step.want)
		}
		fresh := asked[len(line):]
		if talk.Ends(asked, answered) == 0 {
			fresh = slices.Concat(fresh, answered)
		} else if step.prompt+step.answer != "sabc" || shown != 4 {
			t.Errorf("%s: the answer %s was given before", step.prompt, step.answer)
		}
		for _, m := range fresh {
			shown++
			line = append(line, stood{m, shown})
		}
		talk.Keep(line)
	}
	if other := talks.Of("agent", "other"); len(other.Repeated(prompt("sab"))) != 0 || talks.Of("agent", "chain") != talk {
		t.Error("chains are not apart")
	}
	if shownAs("a", "bc") == shownAs("ab", "c") {
		t.Error("texts run into each other")
	}
}

func TestNumbers(t *testing.T) {
	for want, numbers := range map[string][]int{
		"message 4":                          {4},
		"the messages 1 to 3":                {1, 2, 3},
		"the messages 1, 3 to 4, 9":          {1, 3, 4, 9},
		"the messages 1, 3, 5, 7, 9, others": {1, 3, 5, 7, 9, 11, 13},
	} {
		var line []stood
		for _, n := range numbers {
			line = append(line, stood{Number: n})
		}
		if diff := cmp.Diff(want, numbersOf(line)); diff != "" {
			t.Error(diff)
		}
	}
}
