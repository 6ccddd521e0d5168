package subject

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/internal/tap/convo"
	"jurat/internal/test/must"
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
	diff := cmp.Diff(c.LeftOut, again.LeftOut) + cmp.Diff(c.Source, again.Source)
	must.Need(t, diff == "", "%v", diff)
}

// taken is the case of a conversation without mistakes.
func taken(t testing.TB, form Form, text string) *Case {
	t.Helper()
	c, err := NewAs(form, nil, []byte(text))
	must.Need(t, err == nil, "%v\n%s", err, text)
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
			left(convo.Unreadable, convo.Reasoning)},
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
			left(convo.Elsewhere, convo.Reasoning)},
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
			left(convo.Reasoning, convo.Unreadable, convo.Alternatives)},
		{"chat with reasoning", `[{"role":"assistant","content":[{"type":"thinking","thinking":"secret"},{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"u"}}]},{"role":"assistant","content":"c","reasoning_content":"secret"}]`, ChatForm,
			[]Message{{Number: 1, Role: Assistant, Text: "b\n[image_url]"}, {Number: 2, Role: Assistant, Text: "c"}}, left(convo.Reasoning, convo.Reasoning, convo.Unreadable)},
		{"promptfoo, messages in a string and calls as the output", `{"prompt":"[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"a\"}]","output":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, PromptfooForm,
			[]Message{{Number: 1, Role: System, Text: "S"}, {Number: 2, Role: User, Text: "a"}, {Number: 3, Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: "{}"}}}}, nil},
	} {
		t.Run(one.name, func(t *testing.T) {
			c := taken(t, "", one.text)
			ignored := cmp.Options{cmpopts.IgnoreFields(ToolCall{}, "Args")}
			diff := cmp.Diff(one.want, c.Messages, ignored)
			must.Hold(t, diff == "" && c.Form == one.form, "form %s: %s", c.Form, diff)
			must.Equal(t, cmp.Diff(one.left, c.LeftOut), "")
			for i := range c.Messages {
				must.Hold(t, !c.Messages[i].Holds("secret"), "message %d has the inner reasoning", i+1)
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
		got := c.Digest().String()
		must.Hold(t, got == want, "%s: %s", text, got)
		must.Hold(t, !strings.Contains(string(c.Material()), `"format"`), "%s", c.Material())
	}
}

// TestChosenForm: a form that was chosen decides, and the evidence says it.
func TestChosenForm(t *testing.T) {
	const mixed = `{"system":"S","messages":[{"role":"assistant","content":"b","tool_calls":[{"id":"1","name":"a"}]}]}`
	if c := taken(t, ChatForm, mixed); len(c.Messages) != 1 || len(c.Messages[0].ToolCalls) != 1 {
		t.Errorf("%+v", c.Messages)
	}
	c := taken(t, AnthropicForm, mixed)
	must.Hold(t, len(c.Messages) == 2 && strings.Contains(string(c.Material()), `"format":"anthropic"`), "%+v", c.Messages)
	sameAgain(t, c)
}

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
				must.Hold(t, strings.Contains(err.Error(), one.want), "%v", err)
				return
			}
			got := answers(c)
			must.Hold(t, got == one.want, "got\n%s\nwant\n%s", got, one.want)
			sameAgain(t, c)
		})
	}
	c := taken(t, GeminiForm, model+`"candidates":[{"finishReason":"SAFETY"}]}`)
	must.Hold(t, len(c.LeftOut) == 0, "%+v", c.LeftOut)
}

// TestLinesOfAFile: an error in JSON Lines names the line of the file, and the other cases are read.
func TestLinesOfAFile(t *testing.T) {
	found, err := ReadTranscripts("runs.jsonl", []byte("[{\"role\":\"user\",\"content\":\"a\"}]\n\n[{\"role\":\"user\",\n[{\"role\":\"wizard\"}]\n{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\n{\"role\":\"user\"}\n"), Options{})
	must.Need(t, err == nil && len(found) == 5, "%v, %d cases", err, len(found))
	for i, want := range []string{"", "runs.jsonl:3:", "runs.jsonl:4:10: at /0/role", "", "runs.jsonl:6:1: at the document (byte "} {
		err := found[i].Err()
		must.Hold(t, (want != "" || err == nil) && (want == "" || err != nil && strings.Contains(err.Error(), want)),
			"case %d: got %v, want …%s…", i, err, want)
	}
	from, to, _ := found[3].Case.Lines(1)
	must.Hold(t, from == 5 && to == 5 && found[3].Name == "5", "lines %d to %d of %s", from, to, found[3].Name)
	c := only(t, "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}", Options{Card: []byte(cardV03)})[0]
	if from, _, _ := c.Lines(2); from != 2 || !c.HasCard || string(c.Material()) != string(only(t, `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, Options{Card: []byte(cardV03)})[0].Material()) {
		t.Errorf("%d %s", from, c.Material())
	}
	found, err = ReadTranscripts("one.jsonl", []byte("{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"wizard\"}\n"), Options{})
	must.Hold(t, err == nil && len(found) == 1 && strings.Contains(found[0].Err().Error(), "one.jsonl:2:9: at /1/role"), "%v, %+v", err, found)
}

// TestEveryMistake: a check finds all mistakes of a conversation, and reports no result for which a mistake hides the call.
func TestEveryMistake(t *testing.T) {
	found, err := ReadTranscripts("f", []byte(`[{"role":"wizard"},{"role":"user","content":7},{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1","content":"x"}]`), Options{Check: true})
	if err != nil || len(found[0].Mistakes) != 3 {
		t.Errorf("%v, %v", err, found[0].Mistakes)
	}
	found, _ = ReadTranscripts("f", []byte(`[{"role":"tool","content":"x"},{"role":"tool","content":"x"}]`), Options{Check: true})
	must.Hold(t, len(found[0].Mistakes) == 2, "%v", found[0].Mistakes)
}

// packed is an Inspect log in its packed form.
func packed(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		must.Do(t, err)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

const sample = `{"id":"s","epoch":2,"input":"a","target":"t","scores":{"m":{"value":"C","explanation":"the score"}},
	"messages":[{"role":"user","content":"attachment://h"},{"role":"assistant","content":"b"}],"attachments":{"h":"a long text","unused":"x"}}`

// TestPackedLog: each sample of a packed log is a case. Its scores are not in the evidence, and its source is.
func TestPackedLog(t *testing.T) {
	c := only(t, string(packed(t, "header.json", "{}", "samples/s_epoch_2.json", sample)), Options{})[0]
	must.Hold(t, c.Source.String() == "s_epoch_2" && c.Messages[0].Text == "a long text" && !strings.Contains(string(c.Material()), "the score"),
		"%+v %s", c.Source, c.Material())
	sameAgain(t, c)
	for want, data := range map[string][]byte{
		"an archive without samples": packed(t, "header.json", "{}"),
		"twice":                      packed(t, "samples/a.json", sample, "samples/a.json", sample),
		"a broken archive":           []byte("PK\x03\x04 and nothing more"),
		"longer than 64 MiB":         packed(t, "samples/a.json", strings.Repeat(" ", maxSample+1)),
	} {
		must.Refuse(t, want)(ReadTranscripts("log.eval", data, Options{}))
	}
	found, err := ReadTranscripts("log.eval", packed(t, "samples/a.json", "{", "samples/b.json", sample), Options{})
	if err != nil || len(found) != 2 || found[0].Err() == nil || !strings.HasPrefix(found[0].Err().Error(), "log.eval:samples/a.json:1:") || found[1].Err() != nil {
		t.Errorf("%v, %+v", err, found)
	}
}

// TestScoresThatAreNoNumbers: what Python writes among scores where it has no number keeps no conversation from being read. In a conversation it is a mistake, with its place.
func TestScoresThatAreNoNumbers(t *testing.T) {
	scored := strings.Replace(sample, `"C"`, `{"mean":NaN,"low":-Infinity,"high":[Infinity,NaN],"\\\"":"NaN \\\" -Infinity"}`, 1)
	turns := `[{"role":"user","content":"NaN, \"Infinity\""},{"role":"assistant","content":"-Infinity"}]`
	for name, text := range map[string]string{
		"a log":     `{"eval":{},"results":{"accuracy":NaN},"samples":[` + scored + `]}`,
		"a sample":  scored,
		"packed":    string(packed(t, "samples/s.json", scored)),
		"promptfoo": `{"results":{"results":[{"id":"r","score":NaN,"response":{"output":"x","metadata":{"messages":` + turns + `}}}],"stats":{"mean":-Infinity}}}`,
	} {
		found, err := ReadTranscripts("f", []byte(text), Options{})
		if err != nil || len(found) != 1 || found[0].Err() != nil {
			t.Errorf("%s: %v, %+v", name, err, found)
			continue
		}
		if name == "promptfoo" && (found[0].Case.Messages[0].Text != `NaN, "Infinity"` || found[0].Case.Messages[1].Text != "-Infinity") {
			t.Errorf("%+v", found[0].Case.Messages)
		}
	}
	for _, number := range []string{"NaN", "Infinity", "-Infinity"} {
		text := `{"eval":{},"samples":[{"id":"s","epoch":1,"messages":[{"role":"user","content":` + number + `}]}]}`
		found, err := ReadTranscripts("f", []byte(text), Options{})
		must.Hold(t, err == nil && len(found) == 1 && found[0].Err() != nil && strings.Contains(found[0].Err().Error(), "at /samples/0/messages/0/content"),
			"%s: %v, %+v", number, err, found)
	}
}

// TestCasesOfResults: logs and results give a case for each sample, and name what is wrong with one.
func TestCasesOfResults(t *testing.T) {
	for text, want := range map[string]string{
		`{"eval":{},"samples":[` + sample + `,{"id":2,"epoch":1}]}`: "s_epoch_2 ok; 2_epoch_1 wrong",
		`{"results":{"results":[{"prompt":{"raw":"a"},"response":{"output":"b","metadata":{"redteamHistory":[{"prompt":"p","output":"q"},{"prompt":"r","output":"s"}]}}},{"prompt":{"raw":"a"},"response":{"output":null}}]}}`: "1 ok; 2 wrong",
		`[[{"role":"user","content":"a"}],{"messages":[]}]`: "1 ok; 2 wrong",
	} {
		found := must.Get(ReadTranscripts("f", []byte(text), Options{}))(t)
		var got []string
		for _, b := range found {
			state := "ok"
			if b.Err() != nil {
				state = "wrong"
			} else {
				sameAgain(t, b.Case)
			}
			got = append(got, b.Name+" "+state)
		}
		all := strings.Join(got, "; ")
		must.Hold(t, all == want, "%s: %s", text, all)
	}
}

// TestTooManyCases: a file with more cases than the limit is refused as a whole.
func TestTooManyCases(t *testing.T) {
	_, err := ReadTranscripts("f", []byte(strings.Repeat(hello+"\n", maxCases+1)), Options{})
	must.Hold(t, err != nil && strings.Contains(err.Error(), fmt.Sprintf("more than %d", maxCases)), "got %v", err)
}

// FuzzTranscripts: each case of a file reads back the same from its evidence, and each mistake has a
// place and a reason.
func FuzzTranscripts(f *testing.F) {
	for _, at := range example.FindAllStringSubmatch(page(f), -1) {
		f.Add([]byte(at[3]), "")
	}
	f.Add([]byte(dual), "chat")
	f.Add([]byte(sample), "")
	f.Add(packed(f, "samples/s.json", sample), "")
	for _, form := range allForms() {
		f.Add([]byte(`{"system":"S","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}]}`), string(form))
	}
	f.Fuzz(func(t *testing.T, data []byte, form string) {
		chosen, err := ParseForm(form)
		if err != nil {
			return
		}
		for _, check := range []bool{false, true} {
			found, err := ReadTranscripts("f", data, Options{Form: chosen, Check: check})
			if err != nil {
				continue
			}
			for _, b := range found {
				must.Need(t, (b.Case == nil) != (b.Err() == nil), "a case and mistakes, or neither: %v", b.Mistakes)
				if b.Case != nil {
					sameAgain(t, b.Case)
				}
			}
		}
	})
}

// TestResultsThatAreNotRead: results of tau2-bench are refused by their name, with what is read.
func TestResultsThatAreNotRead(t *testing.T) {
	_, err := ReadTranscripts("f", []byte(`{"timestamp":"x","tasks":[],"simulations":[{"id":"x","messages":`+dual+`}]}`), Options{})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "tau2-bench are not read: expected a conversation, or results of Inspect or promptfoo"), "%v", err)
}

// hostile are files of about a size that look for work that grows faster than the file.
func hostile(size int) map[string]string {
	many := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	list := func(unit string) string { return "[" + strings.TrimSuffix(many(unit+","), ",") + "]" }
	return map[string]string{
		"calls without results": list(`{"role":"assistant","tool_calls":[{"id":"1","name":"f"}]}`),
		"results without calls": list(`{"role":"tool","tool_call_id":"1","content":""}`),
		"wrong messages":        list(`{"role":"wizard"}`),
		"wrong lines":           many("{\"role\":\"wizard\"}\n"),
		"wrong in one line":     list(`7`),
		"blocks in turn":        `[{"role":"assistant","content":` + list(`{"type":"server_tool_use","id":"1","name":"f","input":{}},{"type":"web_search_tool_result","tool_use_id":"1","content":"x"}`) + `}]`,
		"parallel functions":    `{"contents":[{"role":"model","parts":` + list(`{"functionCall":{"name":"f"}}`) + `},{"parts":` + list(`{"functionResponse":{"name":"f","response":{}}}`) + `}]}`,
		"hosted calls":          list(`{"type":"web_search_call","id":"1","results":[]}`),
		"many members": `[{"role":"user","content":"x"` + func() string {
			var s strings.Builder
			for i := 0; s.Len() < size; i++ {
				fmt.Fprintf(&s, `,"m%d":1`, i)
			}
			return s.String()
		}() + `}]`,
		"attachments":  `{"epoch":1,"messages":` + list(`{"role":"user","content":"attachment://a"}`) + `,"attachments":{"a":"` + many("x") + `"}}`,
		"one string":   `[{"role":"user","content":"` + many(`\"`) + `"}]`,
		"blank lines":  many("\n") + "[]\n[]",
		"status first": `{"status":{"state":"x","message":{"role":"agent","parts":[{"text":"z"}]}},"artifacts":` + list(`{"parts":[{"text":"a"}]}`) + `,"history":` + list(`{"role":"user","parts":[{"text":"a"}]}`) + `}`,
		"prompt":       `{"prompt":"` + strings.ReplaceAll(list(`{"role":"user","content":"x"}`), `"`, `\"`) + `","output":"x"}`,
	}
}

// TestHostileFilesEnd: each of them is read or refused, with at most the mistakes that a check reports.
func TestHostileFilesEnd(t *testing.T) {
	for name, text := range hostile(100_000) {
		found, err := ReadTranscripts("f", []byte(text), Options{Check: true})
		if err != nil {
			continue
		}
		for _, b := range found {
			must.Hold(t, len(b.Mistakes) <= MaxMistakes+1, "%s: %d mistakes", name, len(b.Mistakes))
			if b.Case != nil {
				sameAgain(t, b.Case)
			}
		}
	}
}
