package subject

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/evidence"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
)

const (
	cardV1 = `{"name":"Desk","description":"Helps.","version":"2","provider":{"organization":"Org","url":"https://o.example"},
	  "supportedInterfaces":[{"url":"https://d.example/a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
	  "skills":[{"id":"s","name":"Serve","description":"Serves.","tags":["a"],"examples":["Please."]}]}`
	cardV03 = `{"protocolVersion":"0.3.0","name":"Desk","url":"https://d.example/a","preferredTransport":"GRPC","skills":[]}`
	hello   = `[{"role":"user","content":"Hi"}]`
)

func TestCards(t *testing.T) {
	for card, want := range map[string]Card{cardV1: {Name: "Desk", Description: "Helps.", Version: "2", Organization: "Org", Skills: []Skill{{"Serve", "Serves."}}}, cardV03: {Name: "Desk"}} {
		want.Text = must.Get(evidence.Canonical([]byte(card)))(t)
		diff := cmp.Diff(want, must.Get(New([]byte(card), []byte(hello)))(t).Card)
		must.Hold(t, diff == "", "%v", diff)
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
			diff := cmp.Diff(one.want, c.Messages, args)
			must.Hold(t, diff == "", "%v", diff)
			again := must.Get(Parse(c.Material()))(t)
			must.Hold(t, again.Digest() == c.Digest(), "the evidence changes when it is read again")
		})
	}
}

func TestMaterialDropsNothing(t *testing.T) {
	c := must.Get(New([]byte(`{"x-vendor":{"deep":[1,2.5,null]},"name":"Desk"}`), []byte(`{"messages":[{"role":"user","content":"Hi","x":true}],"extra":"kept"}`)))(t)
	want := `{"agentCard":{"name":"Desk","x-vendor":{"deep":[1,2.5,null]}},"conversation":{"extra":"kept","messages":[{"content":"Hi","role":"user","x":true}]}}`
	got := string(c.Material())
	must.Hold(t, got == want, "%s", got)
	must.Hold(t, c.Digest() == evidence.DigestOf([]byte(want)), "the digest is not the digest of the material")
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
			must.Hold(t, errors.As(err, &where) && strings.Contains(err.Error(), one.want), "got %v\nwant …%s…", err, one.want)
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
		must.Refuse(t, want)(Load(dir))
	}
	fails("conversation.json: no such file: a case is a folder with conversation.json and, if the agent has a card, agent-card.json")
	write(CardFile, cardV1)
	fails("conversation.json: no such file")
	must.Do(t, os.Symlink("/etc/hostname", filepath.Join(dir, ConversationFile)))
	fails("conversation.json: not a regular file")
	must.Do(t, os.Remove(filepath.Join(dir, ConversationFile)))
	write(ConversationFile, hello)
	c, err := Load(dir)
	must.Hold(t, err == nil && c.HasCard, "%v", err)
	must.Do(t, os.Remove(filepath.Join(dir, CardFile)))
	c, err = Load(dir)
	must.Hold(t, err == nil && !c.HasCard && c.Card.Name == "", "without a card: %v", err)
	must.Fail(t, fs.ErrNotExist)(Load(filepath.Join(dir, "nowhere")))
}

// TestLinesTakeLittleMemory: to see whether a line is a conversation, what is deep in it is not read.
func TestLinesTakeLittleMemory(t *testing.T) {
	line := []byte(`{"messages":[` + strings.Repeat("0,", 1_000_000) + "0]}\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found, err := ReadTranscripts("f.jsonl", slices.Concat(line, line), Options{})
	runtime.ReadMemStats(&after)
	used := after.TotalAlloc - before.TotalAlloc
	must.Hold(t, err == nil && len(found) == 2 && used <= uint64(20*len(line)), "%d MB take %d MB: %+v, %v", len(line)>>20, used>>20, found, err)
}

func TestParseWantsAConversationAndNoMore(t *testing.T) {
	for _, text := range []string{`[]`, `{"agentCard":` + cardV1 + `}`, `{"agentCard":` + cardV1 + `,"conversation":` + hello + `,"x":1}`,
		`{"conversation":` + hello + `,"format":"chat"}`, `{"conversation":` + hello + `,"format":7}`, `{"conversation":` + hello + `,"source":{"kind":7}}`, ``, `{`} {
		_, err := Parse([]byte(text))
		must.Hold(t, err != nil, "accepted: %s", text)
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
			must.Need(t, errors.As(err, &where) && where.Reason != "" && where.Offset >= 0, "an error without a place: %v", err)
			return
		}
		again := must.Get(Parse(c.Material()))(t)
		diff := cmp.Diff(c.Messages, again.Messages)
		must.Need(t, diff == "" && again.Digest() == c.Digest(), "the evidence does not read back the same: %s", diff)
		for i, m := range c.Messages {
			_, _, ok := c.Lines(i + 1)
			must.Need(t, ok, "message %d has no lines", i+1)
			must.Need(t, m.Number == i+1, "message %d has number %d", i+1, m.Number)
		}
	})
}

// TestSchemas: the schemas name the roles, the types of parts and the members that this package reads, and no others.
func TestSchemas(t *testing.T) {
	var chat struct {
		Defs struct {
			Message struct {
				Properties map[string]struct {
					Enum []string `json:"enum"`
				} `json:"properties"`
			} `json:"message"`
			Part struct {
				AnyOf []struct {
					Properties struct {
						Type struct {
							Enum []string `json:"enum"`
						} `json:"type"`
					} `json:"properties"`
				} `json:"anyOf"`
			} `json:"part"`
		} `json:"$defs"`
	}
	must.Do(t, json.Unmarshal(ChatSchema, &chat))
	list := chat.Defs.Message.Properties["role"].Enum
	must.Need(t, len(list) == 6, "roles: %v", list)
	for _, role := range list {
		text := fmt.Sprintf(`[{"role":"assistant","tool_calls":[{"id":"1","name":"f"}]},{"role":%q,"content":"x"}]`, role)
		must.Fail(t, nil, "role", role)(NewAs(ChatForm, nil, []byte(text)))
	}
	kinds := 0
	for _, part := range chat.Defs.Part.AnyOf {
		for _, kind := range part.Properties.Type.Enum {
			kinds++
			must.Fail(t, nil, "part", kind)(NewAs(ChatForm, nil, fmt.Appendf(nil, `[{"role":"user","content":[{"type":%q,"text":"x"}]}]`, kind)))
		}
	}
	must.Equal(t, kinds, len(convo.Unreadables)+5)
	for _, name := range append(slices.Clone(chatMembers), "requestor") {
		_, there := chat.Defs.Message.Properties[name]
		must.Hold(t, there, "the schema does not have %s", name)
	}
	var card struct {
		Properties map[string]any `json:"properties"`
	}
	must.Do(t, json.Unmarshal(CardSchema, &card))
	for _, name := range []string{"name", "description", "version", "protocolVersion", "url", "preferredTransport", "provider", "supportedInterfaces", "skills"} {
		_, there := card.Properties[name]
		must.Hold(t, there, "the schema of the card does not have %s", name)
	}
	must.Equal(t, len(card.Properties), 9)
}

// page is docs/case.md.
func page(t testing.TB) string {
	t.Helper()
	text := must.Get(os.ReadFile("../../../docs/case.md"))(t)
	return string(text)
}

var example = regexp.MustCompile("(?ms)^```(jsonl?) (\\w+)\n(.*?)^```")

// only reads a file and returns its cases, which must be without mistakes.
func only(t testing.TB, text string, o Options) []*Case {
	t.Helper()
	found, err := ReadTranscripts("file", []byte(text), o)
	must.Need(t, err == nil, "%v\n%s", err, text)
	var cases []*Case
	for _, b := range found {
		must.Need(t, b.Err() == nil, "%v\n%s", b.Mistakes, text)
		cases = append(cases, b.Case)
	}
	return cases
}

// TestExamplesOfThePage: each example of docs/case.md is read in the form that it shows, and its evidence reads the same.
func TestExamplesOfThePage(t *testing.T) {
	shown := map[Form]int{}
	for _, at := range example.FindAllStringSubmatch(page(t), -1) {
		cases := only(t, at[3], Options{})
		if at[1] == "jsonl" {
			if want := int(at[2][0] - '0'); len(cases) != want {
				t.Errorf("%d cases, want %d:\n%s", len(cases), want, at[3])
			}
			continue
		}
		if len(cases) != 1 || cases[0].Form != Form(at[2]) {
			t.Errorf("%d cases, the first of the form %s:\n%s", len(cases), cases[0].Form, at[3])
		}
		shown[cases[0].Form]++
		sameAgain(t, cases[0])
	}
	for _, form := range allForms() {
		must.Hold(t, shown[form] != 0, "the page has no example of the form %s", form)
	}
}

// partsOfPage are what every message about a mistake has, by what they say.
var partsOfPage = map[string]*regexp.Regexp{
	"the file and the place":   regexp.MustCompile(`^file:\d+:\d+: at (the document|/\S*) \(byte \d+\): `),
	"what was found":           regexp.MustCompile(`\(byte \d+\): (empty|an? |no |there |ambiguous|invalid|unknown|number |content of|message \d|the (agent|object|string)|.*(, found |, but this looks ))`),
	"what was expected":        regexp.MustCompile(`expected[ ,]`),
	"how it looks if it is so": regexp.MustCompile(`for example,? (--format \w+|[\["{].*["}\]])`),
}

// TestMistakes: each mistake in the table gives its message, and each message says all that people need.
func TestMistakes(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(.*?)` \\| `(.*?)` \\|$")
	table := string(must.Get(os.ReadFile("testdata/mistakes.md"))(t))
	rows := row.FindAllStringSubmatch(table, -1)
	must.Need(t, len(rows) >= 20 && len(rows) == strings.Count(table, "\n| ")-1, "%d rows of %d were found", len(rows), strings.Count(table, "\n| ")-1)
	for _, at := range rows {
		found, err := ReadTranscripts("file", []byte(at[1]), Options{})
		if err == nil && len(found) > 0 {
			err = found[0].Err()
		}
		if err == nil || !strings.Contains(err.Error(), at[2]) {
			t.Errorf("%s\n got %v\nwant …%s…", at[1], err, at[2])
			continue
		}
		for what, part := range partsOfPage {
			if !part.MatchString(err.Error()) {
				t.Errorf("%s\ndoes not say %s: %v", at[1], what, err)
			}
		}
	}
}

// conversationsOf has conversations in each vendor's form, with what that form alone has: what a request has of it, and what an answer, if anything.
var conversationsOf = map[Form][][2]string{
	ChatForm: {{`"messages":[{"role":"developer","content":"S"},
		{"role":"user","name":"Ann","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"u"}},
			{"type":"file","file":{"filename":"a.pdf","file_id":"f"}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"I "},{"type":"text","text":"look."}],"reasoning_content":"t",
			"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"k\": 1}"}},{"id":"2","type":"custom","custom":{"name":"run","input":"ls"}}]},
		{"role":"tool","tool_call_id":"1"},{"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"files"}]},{"role":"assistant","refusal":"no"},
		{"role":"assistant","content":"","function_call":{"name":"g","arguments":{"k" : 1}}},{"role":"function","name":"g","content":"s"}]`, ""}},
	AnthropicForm: {{`"system":"x-anthropic-billing-header: cch=1;\nS","messages":[{"role":"user","content":"a"},
		{"role":"assistant","content":[{"type":"text","text":"I "},{"type":"text","text":"look."},{"type":"tool_use","id":"1","name":"f","input":{"k" : 1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":"r"},
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}},{"type":"search_result","title":"t"}]},
			{"type":"document","title":"Terms","source":{"type":"text","data":"the terms"}},{"type":"search_result","title":"t","source":"u"},
			{"type":"document","title":"d.pdf","source":{"type":"file","file_id":"f"}}]},
		{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s",
			"content":{"type":"web_search_tool_result_error","error_code":"x"}},{"type":"thinking","thinking":"t"},{"type":"text","text":"b"}]},
		{"role":"assistant","content":""}]`, ""}},
	ResponsesForm: {{`"instructions":"S","input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"u"}]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I "},{"type":"output_text","text":"look."}]},{"type":"mcp_list_tools"},
		{"type":"local_shell_call","id":"i","call_id":"c","action":{"command":["ls"]}},{"type":"local_shell_call_output","id":"i","output":"files"},
		{"type":"custom_tool_call","call_id":"2","name":"run","input":"ls"},{"type":"item_reference","id":"m"},
		{"type":"custom_tool_call_output","call_id":"2","output":[{"type":"input_text","text":"files"}]}]`,
		`"output":[{"type":"reasoning","summary":[]},{"type":"code_interpreter_call","id":"3","code":"1+1","outputs":[{"type":"logs","logs":"2"}]},
		{"type":"image_generation_call","id":"4","result":"aGVsbG8="},{"type":"mcp_call","id":"5","name":"m","arguments":"{}","error":"no"},
		{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]`}},
	GeminiForm: {{`"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}},
			{"file_data":{"mime_type":"video/mp4","file_uri":"https://example.org/v"}}]},
		{"role":"model","parts":[{"text":"t","thought":true},{"text":"I "},{"text":"look."},{"functionCall":{"name":"f","args":{"k" : 1}},"thoughtSignature":"s"},
			{"functionCall":{"id":"c","name":"f"}}]},
		{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"output":1}}},{"function_response":{"id":"c","name":"f","response":{"error":"no"}}}]},
		{"role":"model","parts":[]},{"role":"user","parts":[{"text":"c"}]}]`,
		`"candidates":[{"content":{"role":"model","parts":[{"executableCode":{"code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"bad"}},
		{"toolCall":{"id":"g","toolType":"URL_CONTEXT","args":{"n":1}}},{"toolResponse":{"id":"g","toolType":"URL_CONTEXT","response":{"r":1}}},{"text":"yes"}]}}]`}},
	A2AForm: {{`{"role":"ROLE_USER","messageId":"1","parts":[{"text":"a"},{"data":{"k" : 1}},{"raw":"aGVsbG8=","filename":"a.txt"},{"url":"https://example.org/b"}]}`,
		`{"role":"ROLE_AGENT","messageId":"2","parts":[{"text":"I look."},{"data":{"name":"f","id":"1","args":{"k":1}}},{"data":{"name":"f","id":"1","response":{"r":1}}},
			{"data":{"name":"g","arguments":{}}},{"data":{"name":"g","response":"s"}},{"text":"So."}]}],"artifacts":[{"artifactId":"a","parts":[{"text":"b"},{"text":"c"}]}],
		"status":{"state":"TASK_STATE_COMPLETED","message":{"role":"ROLE_AGENT","messageId":"3","parts":[{"text":"Done."}]}}`}},
}

// TestTranscriptsAndRecordings: a transcript and a recording of the same conversation are the same messages, in each vendor's form.
func TestTranscriptsAndRecordings(t *testing.T) {
	for _, at := range example.FindAllStringSubmatch(page(t), -1) {
		form, doc := Form(at[2]), strings.TrimSpace(at[3])
		if doc = `"messages":` + doc; strings.HasPrefix(doc, `"messages":{`) {
			doc = doc[len(`"messages":{`) : len(doc)-1]
		}
		if form == ChatForm || form == AnthropicForm {
			conversationsOf[form] = append(conversationsOf[form], [2]string{doc})
		}
	}
	protocols := map[Form]string{ChatForm: traffic.OpenAIChat, AnthropicForm: traffic.AnthropicMessages, ResponsesForm: traffic.OpenAIResponses,
		GeminiForm: traffic.GeminiGenerate, A2AForm: traffic.A2A10}
	for form, list := range conversationsOf {
		for _, two := range list {
			transcript, request, response := strings.TrimSuffix(two[0]+","+two[1], ","), two[0], `"status":"completed",`+two[1]
			if form == A2AForm {
				transcript = `"id":"t","history":[` + transcript
				request, response = `"method":"SendMessage","params":{"message":`+two[0]+`}`, `"result":{`+transcript+`}`
			}
			c := traffic.Call{Protocol: protocols[form], Path: "/v1/x", Status: 200, Request: []byte("{" + request + "}")}
			if two[1] != "" {
				c.Response = []byte("{" + response + "}")
			}
			p, err := traffic.Project(c)
			must.Need(t, err == nil && p.Problem == "", "%v, %s\n%s", err, p.Problem, request)
			recorded := &Case{Messages: append(shown(p.Asked), shown(p.Answered)...)}
			for i := range recorded.Messages {
				recorded.Messages[i].Number = i + 1
			}
			recorded.link()
			diff := cmp.Diff(taken(t, form, "{"+transcript+"}").Messages, recorded.Messages, cmpopts.EquateEmpty())
			must.Hold(t, diff == "", "%s\n%s (-transcript +recording):\n%s", transcript, form, diff)
		}
	}
}

// TestResultsNameTheirCalls: an output of Responses names a call by its call_id, and by the id of an item only if no call has that; the later of two
// items with one id counts. What a client answers in A2A is a result, and the error of a picture that was not made is shown.
func TestResultsNameTheirCalls(t *testing.T) {
	for text, want := range map[string][]string{
		`[{"type":"function_call","call_id":"x","name":"read","arguments":"{}"},{"type":"function_call","call_id":"y","id":"x","name":"delete","arguments":"{}"},
			{"type":"function_call_output","call_id":"x","output":"r"}]`: {"", "", "x r"},
		`[{"type":"function_call","id":"i","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","id":"i","output":"1"},{"role":"user","content":"again"},
			{"type":"function_call","id":"i","call_id":"b","name":"f","arguments":"{}"},{"type":"function_call_output","id":"i","output":"2"}]`: {"", "a 1", "", "", "b 2"},
		`[{"role":"user","content":"a"},{"type":"image_generation_call","id":"g","result":null,"error":{"message":"policy"}}]`: {"", "", `g {"message":"policy"}`},
	} {
		var got []string
		for _, m := range taken(t, ResponsesForm, text).Messages {
			said := ""
			if m.Role == Tool {
				said = m.ToolCallID + " " + m.Text
			}
			got = append(got, said)
		}
		diff := cmp.Diff(want, got)
		must.Hold(t, diff == "", "%s:\n%s", text, diff)
	}
	c := taken(t, A2AForm, `{"id":"t","history":[{"role":"agent","parts":[{"kind":"data","data":{"name":"f","id":"1","args":{}}}]},
		{"role":"user","parts":[{"kind":"data","data":{"name":"f","id":"1","response":{"r":1}}}]}]}`)
	m := c.Messages[len(c.Messages)-1]
	must.Hold(t, m.Role == Tool && m.ToolCallID == "1", "%+v", c.Messages)
	_, err := Parse([]byte(`{"conversation":[{"role":"assistant","tool_calls":[{"id":"c","name":"f","arguments":{}}]},
		{"role":"tool","tool_messages":[{"tool_call_id":"c","content":"Done"}],"audio":{"transcript":"hi"}}]}`))
	must.Hold(t, err != nil && strings.Contains(err.Error(), "a content beside tool_messages"), "%v", err)
}
