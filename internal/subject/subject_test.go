package subject

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/evidence"
	"jurat/internal/must"
)

const (
	cardV1 = `{"name":"Desk","description":"Helps.","version":"2","provider":{"organization":"Org","url":"https://o.example"},
	  "supportedInterfaces":[{"url":"https://d.example/a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
	  "skills":[{"id":"s","name":"Serve","description":"Serves.","tags":["a"],"examples":["Please."]}]}`
	cardV03 = `{"protocolVersion":"0.3.0","name":"Desk","url":"https://d.example/a","preferredTransport":"GRPC","skills":[]}`
	hello   = `[{"role":"user","content":"Hi"}]`
)

func TestCards(t *testing.T) {
	c := must.Get(New([]byte(cardV1), []byte(hello)))(t)
	want := Card{Name: "Desk", Description: "Helps.", Version: "2", ProtocolVersion: "1.0", Organization: "Org",
		Interfaces: []Interface{{"https://d.example/a", "JSONRPC", "1.0"}},
		Skills:     []Skill{{ID: "s", Name: "Serve", Description: "Serves.", Tags: []string{"a"}, Examples: []string{"Please."}}}}
	if diff := cmp.Diff(want, c.Card); diff != "" {
		t.Error(diff)
	}
	c = must.Get(New([]byte(cardV03), []byte(hello)))(t)
	if diff := cmp.Diff([]Interface{{"https://d.example/a", "GRPC", "0.3.0"}}, c.Card.Interfaces); diff != "" {
		t.Error(diff)
	}
}

func TestConversations(t *testing.T) {
	args := cmpopts.IgnoreFields(ToolCall{}, "Args")
	for _, one := range []struct {
		name, text string
		want       []Message
	}{
		{"chat", `[{"role":"developer","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"get","arguments":"{\"k\": 1}"}}]},
			{"role":"tool","tool_call_id":"1","content":"{}"}]`,
			[]Message{{Number: 1, Role: System, Text: "Be kind."}, {Number: 2, Role: User, Text: "a\nb"},
				{Number: 3, Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: "get", Arguments: `{"k": 1}`, Result: 4}}},
				{Number: 4, Role: Tool, Text: "{}", ToolCallID: "1", ToolName: "get", CallNumber: 3, CallPlace: 1, AnswersTo: Assistant}}},
		{"older function calls", `{"messages":[{"role":"assistant","function_call":{"name":"f","arguments":"x"}},{"role":"function","name":"f","content":"y"}]}`,
			[]Message{{Number: 1, Role: Assistant, ToolCalls: []ToolCall{{Name: "f", Arguments: "x", Result: 2}}},
				{Number: 2, Role: Tool, Text: "y", Name: "f", ToolName: "f", CallNumber: 1, CallPlace: 1, AnswersTo: Assistant}}},
		{"task v0.3", `{"task":{"id":"t","history":[{"role":"user","messageId":"1","parts":[{"kind":"text","text":"Hi"},{"kind":"data","data":{"b":1,"a":2}}]}],
			"artifacts":[{"parts":[{"kind":"text","text":"report"}]}],
			"status":{"state":"completed","message":{"role":"agent","messageId":"2","parts":[{"kind":"text","text":"Bye"}]}}}}`,
			[]Message{{Number: 1, Role: User, Text: "Hi\n{\"a\":2,\"b\":1}"}, {Number: 2, Role: Assistant, Text: "report", Name: "artifact"}, {Number: 3, Role: Assistant, Text: "Bye"}}},
		{"task v1.0", `{"history":[{"role":"ROLE_USER","parts":[{"text":"Hi"}]},{"role":"ROLE_AGENT","messageId":"9","parts":[{"data":{"id":"1","name":"f","args":{"k":1}}}]},
			{"role":"ROLE_AGENT","parts":[{"data":{"id":"1","name":"f","response":{"r":2}}}]}],"status":{"state":"TASK_STATE_COMPLETED","message":{"role":"ROLE_AGENT","messageId":"9","parts":[]}}}`,
			[]Message{{Number: 1, Role: User, Text: "Hi"}, {Number: 2, Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: `{"k":1}`, Result: 3}}},
				{Number: 3, Role: Tool, Text: `{"r":2}`, ToolCallID: "1", Name: "f", ToolName: "f", CallNumber: 2, CallPlace: 1, AnswersTo: Assistant}}},
		{"an id used again", `[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"a","arguments":""}}]},{"role":"tool","tool_call_id":"1","content":"x"},
			{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"b","arguments":""}}]},{"role":"tool","tool_call_id":"1","content":"y"}]`,
			[]Message{{Number: 1, Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: "a", Result: 2}}}, {Number: 2, Role: Tool, Text: "x", ToolCallID: "1", ToolName: "a", CallNumber: 1, CallPlace: 1, AnswersTo: Assistant},
				{Number: 3, Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: "b", Result: 4}}}, {Number: 4, Role: Tool, Text: "y", ToolCallID: "1", ToolName: "b", CallNumber: 3, CallPlace: 1, AnswersTo: Assistant}}},
	} {
		t.Run(one.name, func(t *testing.T) {
			c := must.Get(New([]byte(cardV1), []byte(one.text)))(t)
			if diff := cmp.Diff(one.want, c.Messages, args); diff != "" {
				t.Error(diff)
			}
			again := must.Get(Parse(c.Material()))(t)
			if again.Digest() != c.Digest() {
				t.Error("the evidence changes when it is read again")
			}
		})
	}
}

func TestMaterialDropsNothing(t *testing.T) {
	c := must.Get(New([]byte(`{"x-vendor":{"deep":[1,2.5,null]},"name":"Desk"}`), []byte(`{"messages":[{"role":"user","content":"Hi","x":true}],"extra":"kept"}`)))(t)
	want := `{"agentCard":{"name":"Desk","x-vendor":{"deep":[1,2.5,null]}},"conversation":{"extra":"kept","messages":[{"content":"Hi","role":"user","x":true}]}}`
	if got := string(c.Material()); got != want {
		t.Errorf("%s", got)
	}
	if c.Digest() != evidence.DigestOf([]byte(want)) {
		t.Error("the digest is not the digest of the material")
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	for _, one := range []struct{ name, card, conversation, want string }{
		{"not JSON", cardV1, "[\n  {\"role\": user}\n]", "conversation.json:2:"},
		{"empty file", cardV1, " \n", "conversation.json: empty"},
		{"empty conversation", cardV1, `[]`, "conversation.json:1:1: at the document (byte 0): an empty conversation"},
		{"unknown role", cardV1, "[\n {\"role\":\"wizard\",\"content\":\"x\"}]", `conversation.json:2:10: at /0/role (byte 11): unknown role "wizard"`},
		{"no role", cardV1, `[{"content":"x"}]`, "at /0 (byte 1): a message without a role"},
		{"content of a wrong kind", cardV1, `[{"role":"user","content":7}]`, "at /0/content (byte 26): content of a wrong kind: expected a string, null or an array of parts, found a number"},
		{"part of a wrong kind", cardV1, `[{"role":"user","content":[{"type":"smell"}]}]`, `at /0/content/0/type (byte 35): content of a wrong kind: unknown part type "smell"`},
		{"result without a call", cardV1, `[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"9","content":"x"}]`, `message 2 is the result of a tool, but no earlier message makes the call "9"`},
		{"result of another tool", cardV1, `[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"a","arguments":""}}]},{"role":"tool","name":"b","content":"x"}]`, "message 2 is the result"},
		{"the operator calls tools", cardV1, `[{"role":"system","tool_calls":[{"id":"1","function":{"name":"a","arguments":""}}]}]`, "a message of role system makes tool calls"},
		{"a call of somebody else", cardV1, `[{"role":"assistant","tool_calls":[{"id":"1","name":"a","arguments":{},"requestor":"user"}]}]`, `at /0/tool_calls/0/requestor (byte 83): expected the requestor assistant, because the call is in a message of the assistant, found "user"`},
		{"an unknown requestor", cardV1, `[{"role":"user","tool_calls":[{"id":"1","name":"a"}]},{"role":"tool","id":"1","requestor":"system","content":""}]`, `at /1/requestor (byte 90): unknown requestor`},
		{"a result of the other side", cardV1, `[{"role":"assistant","tool_calls":[{"id":"1","name":"a"}]},{"role":"tool","id":"1","requestor":"user","content":""}]`, `no earlier message makes the call of the user "1"`},
		{"arguments of a wrong kind", cardV1, `[{"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":[]}}]}]`, "expected a tool call's arguments"},
		{"no name", `{"skills":[]}`, hello, "agent-card.json:1:1: at the document (byte 0): an agent card without a name"},
		{"name of a wrong kind", "{\n\"name\": 5}", hello, "agent-card.json:2:9: at /name (byte 10): expected a string, found a number"},
		{"swapped, card", hello, hello, "this looks like a conversation; are the two files swapped?"},
		{"swapped, conversation", cardV1, cardV1, "this looks like an agent card; are the two files swapped?"},
		{"skill of a wrong kind", `{"name":"x","skills":["a"]}`, hello, "at /skills/0 (byte 22): expected a skill (an object), found a string"},
		{"nothing like a conversation", cardV1, `{"a":1}`, "expected an array of chat messages, or an A2A task"},
		{"a scalar", cardV1, `7`, "found a number"},
		{"twice the same member", cardV1, `[{"role":"user","role":"tool"}]`, "the object has this member twice"},
		{"huge number", cardV1, `[{"role":"user","content":"x","n":1e400}]`, "outside the range"},
		{"invalid UTF-8", cardV1, "[{\"role\":\"user\",\"content\":\"\xff\"}]", "invalid UTF-8"},
		{"deep", cardV1, strings.Repeat("[", 100000), "nested deeper than"},
		{"too deep only as evidence", cardV1, `[{"role":"user","content":"x","n":` + strings.Repeat("[", 126) + strings.Repeat("]", 126) + `}]`, "nested deeper than"},
		{"too long", cardV1, `["` + strings.Repeat("x", MaxFile) + `"]`, "conversation.json: longer than 16 MiB"},
	} {
		t.Run(one.name, func(t *testing.T) {
			_, err := New([]byte(one.card), []byte(one.conversation))
			var where *Error
			if !errors.As(err, &where) || !strings.Contains(err.Error(), one.want) {
				t.Errorf("got %v\nwant …%s…", err, one.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	fails := func(want string) {
		t.Helper()
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
	fails("conversation.json: no such file: a case is a folder with conversation.json and, if the agent has a card, agent-card.json")
	write(CardFile, cardV1)
	fails("conversation.json: no such file")
	must.Do(t, os.Symlink("/etc/hostname", filepath.Join(dir, ConversationFile)))
	fails("conversation.json: not a regular file")
	must.Do(t, os.Remove(filepath.Join(dir, ConversationFile)))
	write(ConversationFile, hello)
	if c, err := Load(dir); err != nil || !c.HasCard {
		t.Error(err)
	}
	must.Do(t, os.Remove(filepath.Join(dir, CardFile)))
	if c, err := Load(dir); err != nil || c.HasCard || c.Card.Name != "" {
		t.Errorf("without a card: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

func TestParseWantsAConversationAndNoMore(t *testing.T) {
	for _, text := range []string{`[]`, `{"agentCard":` + cardV1 + `}`, `{"agentCard":` + cardV1 + `,"conversation":` + hello + `,"x":1}`,
		`{"conversation":` + hello + `,"format":"chat"}`, `{"conversation":` + hello + `,"format":7}`, `{"conversation":` + hello + `,"source":{"kind":7}}`, ``, `{`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}

func FuzzCase(f *testing.F) {
	for _, conversation := range []string{hello,
		`{"messages":[{"role":"system","content":"a"},{"role":"assistant","content":[{"type":"text","text":"\ud83d\ude00"}],"tool_calls":[{"id":"1","function":{"name":"get","arguments":{"k":"\\\""}}}]},{"role":"tool","tool_call_id":"1","content":"x"}]}`,
		`{"task":{"history":[{"role":"ROLE_AGENT","parts":[{"data":{"name":"f","args":{}}},{"file":{"name":"n"}}]}],"artifacts":[{"parts":[]}],"status":{"state":"s","message":{"role":"agent","parts":[{"url":"u"}]}}}}`,
		`[{"role":"function","name":"f","content":null}]`, `[[[[`, "{\"a\\\"\":\t-1.5e3 , \"b\":[true,false,null]}", `{"result":{"history":[]}}`, cardV1} {
		f.Add([]byte(cardV1), []byte(conversation))
		f.Add([]byte(cardV03), []byte(conversation))
		f.Add([]byte(conversation), []byte(hello))
	}
	f.Fuzz(func(t *testing.T, card, conversation []byte) {
		c, err := New(card, conversation)
		if err != nil {
			var where *Error
			if !errors.As(err, &where) || where.Reason == "" || where.Offset < 0 {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		again, err := Parse(c.Material())
		if err != nil {
			t.Fatalf("the evidence cannot be read again: %v", err)
		}
		if diff := cmp.Diff(c.Messages, again.Messages); diff != "" || again.Digest() != c.Digest() {
			t.Fatalf("the evidence does not read back the same: %s", diff)
		}
		for i, m := range c.Messages {
			if _, _, ok := c.Lines(i + 1); !ok {
				t.Fatalf("message %d has no lines", i+1)
			}
			if m.Number != i+1 {
				t.Fatalf("message %d has number %d", i+1, m.Number)
			}
		}
	})
}
