package subject

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

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
		if diff := gocmp.Diff(want, script(c)); diff != "" {
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
