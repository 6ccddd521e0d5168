package importing

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"jurat/evidence"
	"jurat/internal/court/subject"
	"jurat/internal/tap/telemetry"
	"jurat/internal/test/must"
)

// missing holds that an act names each of some things as missing, and none of others.
func missing(t *testing.T, b *book, act int, want, never []string) {
	t.Helper()
	list := b.acts[b.order[act]].Missing
	named := func(what string) bool {
		return slices.ContainsFunc(list, func(m string) bool { return strings.HasPrefix(m, what) })
	}
	for _, what := range want {
		must.Hold(t, named(what), "act %d: %q is not in %q", act, what, list)
	}
	for _, what := range never {
		must.Hold(t, !named(what), "act %d: %q is in %q", act, what, list)
	}
}

// ccLine is a line as Claude Code 2.1 writes it.
func ccLine(uuid, parent, kind, more string) string {
	return fmt.Sprintf(`{"parentUuid":%q,"isSidechain":false,"type":%q,"uuid":%q,"sessionId":"s","version":"2.1.197",%s}`, parent, kind, uuid, more) + "\n"
}

func ccUser(uuid, parent, text, more string) string {
	return ccLine(uuid, parent, "user", more+`"message":{"role":"user","content":`+text+`}`)
}

func ccAgent(uuid, parent, text string) string {
	return ccLine(uuid, parent, "assistant", `"message":{"id":"m-`+uuid+`","role":"assistant","model":"claude-x","content":[{"type":"text","text":"`+text+`"}]}`)
}

// TestClaudeCodeSpeakers: what the program wrote in the place of a user or of an answer is the program's, what a user said while the agent worked is the
// user's, and what else was added to a prompt is named.
func TestClaudeCodeSpeakers(t *testing.T) {
	b := newBook()
	file := `{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"Hello"}` + "\n" +
		ccUser("u1", "", `"Hello"`, `"origin":{"kind":"human"},`) +
		ccLine("x1", "u1", "attachment", `"attachment":{"type":"skill_listing","content":"- a skill"}`) +
		ccLine("a1", "x1", "assistant", `"message":{"role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t","name":"ls","input":{}}]}`) +
		ccUser("r1", "a1", `[{"type":"tool_result","tool_use_id":"t","content":"a.txt"}]`, "") +
		ccLine("q1", "r1", "attachment", `"attachment":{"type":"queued_command","prompt":"And b?","commandMode":"prompt","origin":{"kind":"human"}}`) +
		ccLine("q2", "q1", "attachment", `"attachment":{"type":"queued_command","prompt":[{"type":"text","text":"task 1 ended"}],"commandMode":"task-notification"}`) +
		ccAgent("a2", "q2", "One file.") +
		ccUser("u2", "a2", `"Go"`, "") +
		ccLine("e1", "u2", "assistant", `"isApiErrorMessage":true,"message":{"role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error: 529"}]}`) +
		ccUser("c1", "e1", `"A summary"`, `"isCompactSummary":true,`) +
		ccUser("c2", "c1", `"Caveat"`, `"isMeta":true,`) +
		ccUser("c3", "c2", `"A task ended"`, `"origin":{"kind":"task-notification"},`) +
		ccLine("n1", "c3", "assistant", `"isApiErrorMessage":false,"message":{"role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}`) +
		ccUser("u3", "n1", `"Now?"`, "") + ccAgent("a3", "u3", "Now.")
	checked, _ := imported(t, b, "s.jsonl", file)
	must.Need(t, len(checked.Faults) == 0, "%v", checked.Faults)
	program := `{"content":"%s","name":"Claude Code","role":"system"}`
	want := []string{
		`recorded/support/s import/claude-code: [{"content":"Hello","role":"user"}] => [{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"ls"},"id":"t","type":"function"}]}]||claude-x|||`,
		`recorded/support/s import/claude-code: [{"content":"a.txt","role":"tool","tool_call_id":"t"},{"content":"And b?","role":"user"},` + fmt.Sprintf(program, "task 1 ended") + `] => "One file."||claude-x||m-a2|`,
		`recorded/support/s import/claude-code: [{"content":"Go","role":"user"},` + fmt.Sprintf(program, "API Error: 529") + `] => ||||||upstream_error`,
		`recorded/support/s import/claude-code: [` + fmt.Sprintf(program, "A summary") + `,` + fmt.Sprintf(program, "Caveat") + `,` + fmt.Sprintf(program, "A task ended") + `,` + fmt.Sprintf(program, "No response requested.") + `,{"content":"Now?","role":"user"}] => "Now."||claude-x||m-a3|`}
	must.Equal(t, cmp.Diff(want, b.said()), "")
	const added, summed, failed = "what the program added to the prompt in a line of its own: skill_listing", "what was said before: from here on the agent was shown a summary", "an answer: the entry of the file says that there was an error"
	missing(t, b, 0, []string{added, noSystem}, []string{summed, failed})
	missing(t, b, 1, nil, []string{added, summed, failed})
	missing(t, b, 2, []string{failed}, []string{summed})
	missing(t, b, 3, []string{summed}, []string{failed})
	must.Equal(t, headerOf(b.acts[b.order[0]].Request, "writer"), "Claude Code 2.1.197")
}

// TestClaudeCodeBranches: where a user went back in a session, that is named. Calls side by side, whose lines are branches, too, are no such place; and a
// session may go round, or begin in another file.
func TestClaudeCodeBranches(t *testing.T) {
	const back = "that all before it was shown to the agent"
	call := func(uuid, parent, id string) string {
		return ccLine(uuid, parent, "assistant", `"message":{"id":"m","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"`+id+`","name":"ls","input":{}}]}`)
	}
	result := func(uuid, parent, id string) string {
		return ccUser(uuid, parent, `[{"type":"tool_result","tool_use_id":"`+id+`","content":"x"}]`, "")
	}
	b := newBook()
	imported(t, b, "s.jsonl", ccUser("u1", "", `"One"`, "")+call("a1", "u1", "t1")+call("a2", "a1", "t2")+result("r2", "a2", "t2")+result("r1", "a1", "t1")+ccAgent("a3", "r1", "Done")+
		ccUser("u2", "a3", `"Two"`, "")+ccAgent("a4", "u2", "2")+ccUser("u3", "a3", `"Other two"`, "")+ccAgent("a5", "u3", "2")+ccUser("u4", "a5", `"Three"`, "")+ccAgent("a6", "u4", "3"))
	if len(b.order) != 5 {
		t.Fatal(b.said())
	}
	for i, backward := range []bool{false, false, false, true, false} {
		if backward {
			missing(t, b, i, []string{back}, nil)
		} else {
			missing(t, b, i, nil, []string{back})
		}
	}
	b = newBook()
	checked, _ := imported(t, b, "s.jsonl", ccUser("u1", "u2", `"One"`, "")+ccUser("u2", "u1", `"Two"`, "")+ccUser("u3", "elsewhere", `"Three"`, ""))
	must.Hold(t, len(checked.Faults) == 0, "%v", checked.Faults)
	missing(t, b, 0, nil, []string{back})
}

const codexMeta = `{"timestamp":"t0","ordinal":0,"type":"session_meta","payload":{"id":"%s","cli_version":"0.171.0","base_instructions":{"text":"You are Codex"}%s}}` + "\n"

// codexItem is an item as the Codex CLI 0.171 writes it.
func codexItem(item string) string {
	return `{"timestamp":"t1","type":"response_item","payload":` + item + `}` + "\n"
}

func codexSaid(role, text, provenance string) string {
	return codexItem(`{"type":"message","id":"i","role":"` + role + `","content":[{"type":"input_text","text":"` + text + `"}],"internal_chat_message_metadata_passthrough":{"content_item_metadata":[{"provenance":{"type":"` + provenance + `"}}]}}`)
}

// TestCodexOfToday: a session as newer programs write it.
func TestCodexOfToday(t *testing.T) {
	b := newBook()
	usage := func(id string) string {
		return `{"timestamp":"t2","type":"token_usage_record","payload":{"response_id":"` + id + `","usage":{"input_tokens":20}}}` + "\n"
	}
	event := func(text string) string { return `{"timestamp":"t2","type":"event_msg","payload":` + text + `}` + "\n" }
	answer := codexItem(`{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"Done."}]}`)
	file := fmt.Sprintf(codexMeta, "c1", "") + `{"timestamp":"t0","type":"turn_context","payload":{"model":"gpt-x"}}` + "\n" +
		codexItem(`{"type":"additional_tools","id":"at","role":"developer","tools":[]}`) +
		codexSaid("developer", "You are Codex", "harness") + codexSaid("user", "cwd is /w", "harness") + codexSaid("user", "Do it", "user") +
		codexItem(`{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"g"}`) + codexItem(`{"type":"custom_tool_call","id":"ct","call_id":"k","name":"exec","input":"ls"}`) + usage("r1") +
		codexItem(`{"type":"custom_tool_call_output","call_id":"k","output":[{"type":"input_text","text":"a.txt"}]}`) +
		event(`{"type":"token_count","info":{"last_token_usage":{"input_tokens":20}}}`) + codexItem(`{"type":"hologram","id":"h"}`) + answer + usage("r2") +
		event(`{"type":"thread_rolled_back","num_turns":2}`) + codexSaid("user", "Again", "user") + event(`{"type":"turn_aborted","reason":"interrupted"}`) +
		`{"timestamp":"t3","type":"compacted","payload":{"message":"A summary"}}` + "\n" +
		codexSaid("user", "Go", "user") + event(`{"type":"error","message":"stream closed"}`) + codexSaid("user", "Go on", "user") + answer
	checked, _ := imported(t, b, "s.jsonl", file)
	must.Need(t, len(checked.Faults) == 0, "%v", checked.Faults)
	want := []string{
		`recorded/support/c1 import/codex: [{"content":"You are Codex","role":"system"},{"content":"cwd is /w","name":"Codex","role":"system"},{"content":"Do it","role":"user"}] => [` + `{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"ls","name":"exec"},"id":"k","type":"function"}]}` + `]|gpt-x||{"input_tokens":20}|r1|t1`,
		`recorded/support/c1 import/codex: [{"content":"a.txt","role":"tool","tool_call_id":"k"}] => "Done."|gpt-x||{"input_tokens":20}|r2|t1`,
		`recorded/support/c1 import/codex: [{"content":"Again","role":"user"},{"content":"Go","role":"user"}] => |||||t1|upstream_error`,
		`recorded/support/c1 import/codex: [{"content":"Go on","role":"user"}] => "Done."|gpt-x|||m1|t1`}
	must.Equal(t, cmp.Diff(want, b.said()), "")
	missing(t, b, 0, nil, []string{noSystem, "whether a user", "counts of tokens"})
	missing(t, b, 1, []string{"what an item of a kind says that is not known here: hologram"}, []string{noSystem})
	missing(t, b, 2, []string{"that all before it was shown to the agent: 2 turns", "the rest of the turn, which was broken off: interrupted", "what was said before: from here on", "an answer:"}, nil)
	missing(t, b, 3, nil, []string{"what was said before", "an answer:"})
}

// TestCodexMessageOfSeveral: a message of which the user wrote one part, and the program another, is not the user's without a word.
func TestCodexMessageOfSeveral(t *testing.T) {
	message := func(kinds ...string) string {
		return codexItem(`{"type":"message","id":"i","role":"user","content":[{"type":"input_text","text":"cwd is /w"},{"type":"input_text","text":"Do it"}],"internal_chat_message_metadata_passthrough":{"content_item_metadata":[` +
			strings.Join(kinds, ",") + `]}}`)
	}
	const user, program, mixed = `{"provenance":{"type":"user"}}`, `{"provenance":{"type":"harness"}}`, "whether a user or the program wrote what stands as the user's: the file says that a part of it is not the user's"
	for name, file := range map[string]string{"the program's first": message(program, user), "the user's first": message(user, program), "a part without a word": message(user)} {
		b := newBook()
		imported(t, b, "s.jsonl", fmt.Sprintf(codexMeta, "c", "")+file)
		t.Log(name)
		missing(t, b, 0, []string{mixed}, nil)
	}
	b := newBook()
	imported(t, b, "s.jsonl", fmt.Sprintf(codexMeta, "c", "")+message(user, user))
	missing(t, b, 0, nil, []string{mixed})
}

// TestCodexOfOthers: files of older programs, of a session that goes on from another one, and of an agent that another one called.
func TestCodexOfOthers(t *testing.T) {
	const user, agent = `{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"Hi"}]}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Ho"}]}`
	const head = `"id":"c1","timestamp":"2025-08-18T01:16:13Z","instructions":null`
	for name, at := range map[string]struct {
		file, conversation, named string
		want, never               []string
	}{
		"bare":     {file: "{" + head + `,"git":{}}` + "\n" + `{"record_type":"state"}` + "\n" + user + "\n" + agent + "\n", conversation: "c1", want: []string{noSystem, "whether a user or the program"}},
		"document": {file: `{"session":{` + head + `},"items":[` + user + "," + agent + `]}`, conversation: "c1", want: []string{noSystem}},
		"copy": {file: fmt.Sprintf(codexMeta, "c2", `,"forked_from_id":"c1"`) + fmt.Sprintf(codexMeta, "c1", "") + codexItem(user) + codexItem(agent), conversation: "c2",
			want: []string{"that all of it was said in this session", "the system prompt, which stays in the first line of the file"}},
		"subagent": {file: fmt.Sprintf(codexMeta, "c3", `,"source":{"subagent":"review"}`) + codexItem(user) + codexItem(agent), conversation: "c3", named: `,"name":"the agent that called this one"`,
			never: []string{"whether a user", "that all of it"}},
	} {
		b := newBook()
		if checked, _ := imported(t, b, "rollout.json", at.file); len(checked.Faults) > 0 {
			t.Errorf("%s: %v", name, checked.Faults)
			continue
		}
		if len(b.order) != 1 || !strings.HasPrefix(b.said()[0], `recorded/support/`+at.conversation+` import/codex: [{"content":"Hi"`+at.named+`,"role":"user"}] => "Ho"|`) {
			t.Errorf("%s: %s", name, b.said())
			continue
		}
		missing(t, b, 0, at.want, at.never)
	}
}

// TestMuchIsMissing: what a hostile file has to be named without end is named up to a bound, and that there is more.
func TestMuchIsMissing(t *testing.T) {
	var attached, events strings.Builder
	attached.WriteString(ccUser("u", "", `"Hi"`, ""))
	events.WriteString(fmt.Sprintf(codexMeta, "c", "") + codexSaid("user", "Hi", "user"))
	for i := range 4_000 {
		attached.WriteString(ccLine(fmt.Sprint("x", i), "u", "attachment", fmt.Sprintf(`"attachment":{"type":"kind%d"}`, i)))
		fmt.Fprintf(&events, `{"timestamp":"t","type":"event_msg","payload":{"type":"turn_aborted","reason":"%d"}}`+"\n", i)
	}
	for _, file := range []string{attached.String(), events.String()} {
		b := newBook()
		imported(t, b, "s.jsonl", file)
		missing(t, b, 0, []string{"more that is not named here"}, nil)
		n := len(b.acts[b.order[0]].Missing)
		must.Hold(t, n <= mostLacks+20, "%d are named", n)
	}
}

// TestSessionsOfTomorrow: a block of a kind that is not known here is named, and the rest of the message is read; what another agent of a team says is that agent's.
func TestSessionsOfTomorrow(t *testing.T) {
	b := newBook()
	checked, _ := imported(t, b, "s.jsonl", ccUser("u", "", `[{"type":"hologram","x":1},{"type":"text","text":"Hi"}]`, "")+ccAgent("a", "u", "Ho"))
	must.Need(t, len(checked.Faults) == 0, "%v", checked.Faults)
	must.Equal(t, b.said()[0], `recorded/support/s import/claude-code: [{"content":"Hi","role":"user"}] => "Ho"||claude-x||m-a|`)
	missing(t, b, 0, []string{"what a block of a kind says that is not known here: hologram"}, nil)
	b = newBook()
	if checked, _ := imported(t, b, "s.jsonl", fmt.Sprintf(codexMeta, "c", "")+codexItem(`{"type":"agent_message","author":"/root/child","recipient":"/root","content":[{"type":"input_text","text":"Found it"},{"type":"encrypted_content","encrypted_content":"g"}]}`)+
		codexItem(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Good."}]}`)); len(checked.Faults) > 0 {
		t.Fatal(checked.Faults)
	}
	if got := b.said()[0]; !strings.HasPrefix(got, `recorded/support/c import/codex: [{"content":"Found it","name":"/root/child","role":"user"}] => "Good."|`) {
		t.Error(got)
	}
	missing(t, b, 0, []string{"left out: images, sounds or files"}, []string{"whether a user", "what an item"})
}

// TestExamplesReadAsConversations: what is sealed of a conversation, exchange by exchange, reads as the conversation does for a jury.
func TestExamplesReadAsConversations(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*/conversation.json")
	must.Need(t, err == nil && len(files) != 0, "%v %v", files, err)
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		want := must.Get(subject.New(nil, text))(t)
		b := newBook()
		checked, _ := imported(t, b, "conversation.json", string(text))
		must.Hold(t, len(checked.Faults) == 0, "%s: %v", file, checked.Faults)
		var got []subject.Message
		for _, id := range b.order {
			for _, said := range [][]byte{b.acts[id].Prompt, b.acts[id].Payload.Response} {
				got = append(got, readSealed(t, said)...)
			}
		}
		ignored := cmpopts.IgnoreFields(subject.Message{}, "Number", "CallNumber", "CallPlace", "AnswersTo", "Name", "ToolName")
		must.Equal(t, cmp.Diff(want.Messages, got, ignored, cmpopts.IgnoreFields(subject.ToolCall{}, "Result"), cmpopts.EquateEmpty()), "", file)
	}
}

// readSealed reads a prompt or a response as it is sealed.
func readSealed(t *testing.T, said []byte) []subject.Message {
	t.Helper()
	switch text := string(said); {
	case text == "":
		return nil
	case strings.HasPrefix(text, `"`):
		said = []byte(`[{"role":"assistant","content":` + text + `}]`)
	}
	c := must.Get(subject.ReadPart("sealed", subject.ChatForm, said))(t)
	return c.Messages
}

// TestPromptfooOutcomes: a check that failed is no error of the agent; an output that the evaluation changed, or kept from before, is named as that.
func TestPromptfooOutcomes(t *testing.T) {
	b := newBook()
	file := `{"evalId":"e","results":{"version":3,"results":[
 {"id":"a","prompt":{"raw":"Q"},"response":{"output":"A"},"failureReason":1,"error":"Expected output to contain \"B\""},
 {"id":"b","prompt":{"raw":"Q"},"response":{"error":"500"},"failureReason":2,"error":"500"},
 {"id":"c","prompt":{"raw":"Q"},"failureReason":2,"error":"it threw"},
 {"id":"d","prompt":{"raw":"Q"},"response":{"output":"A","cached":true},"testCase":{"options":{"transform":"output.trim()"}},"failureReason":0},
 {"id":"e","prompt":{"raw":"Q"},"response":{"output":"A"},"failureReason":2,"error":"the grader failed"},
 {"id":"f","prompt":{"raw":"Q"},"response":{"output":"A"},"error":"Expected"}]}}`
	checked, _ := imported(t, b, "out.json", file)
	must.Need(t, len(checked.Faults) == 0, "%v", checked.Faults)
	const answered, failed = `import/promptfoo: [{"content":"Q","role":"user"}] => "A"|||||`, `import/promptfoo: [{"content":"Q","role":"user"}] => ||||||upstream_error`
	want := []string{"recorded/support/a " + answered, "recorded/support/b " + failed, "recorded/support/c " + failed, "recorded/support/d " + answered, "recorded/support/e " + answered, "recorded/support/f " + answered}
	got := b.said()
	slices.Sort(got)
	must.Equal(t, cmp.Diff(want, got), "")
	const error, changed, kept, doubt = "an answer: the entry of the file says that there was an error", "the output as the agent gave it", "a call of its own", "whether all went well"
	named := map[string][]string{"b": {error}, "c": {error}, "d": {changed, kept}, "e": {doubt}}
	for i, id := range b.order {
		want := named[headerOf(b.acts[id].Request, "conversation")]
		never := slices.DeleteFunc([]string{error, changed, kept, doubt}, func(what string) bool { return slices.Contains(want, what) })
		missing(t, b, i, want, never)
	}
}

// TestInspectInput: an answer that stands in the input of a sample was written beforehand, and is none of the agent's; a sample that was ended before anything was
// said is passed over, and a limit is named.
func TestInspectInput(t *testing.T) {
	b := newBook()
	file := `{"version":2,"eval":{"eval_id":"e","model":"m/x"},"samples":[{"id":1,"epoch":2,"input":[],"limit":{"type":"token","limit":9},"messages":[
 {"id":"1","role":"user","source":"input","content":"Say a"},{"id":"2","role":"assistant","source":"input","content":"a"},{"id":"3","role":"user","source":"input","content":"Say b"},
 {"id":"4","role":"assistant","source":"generate","model":"x-1","content":"b"}],"output":{"model":"x-1","usage":{"input_tokens":3}}},
 {"id":2,"epoch":1,"messages":[],"error":{"message":"no sandbox"}}]}`
	checked, _ := imported(t, b, "log.json", file)
	must.Need(t, len(checked.Faults) == 0, "%v", checked.Faults)
	want := []string{`recorded/support/e-1_epoch_2 import/inspect: [{"content":"Say a","role":"user"},{"content":"a","role":"assistant"},{"content":"Say b","role":"user"}] => "b"|m/x|x-1|{"input_tokens":3}||`}
	must.Equal(t, cmp.Diff(want, b.said()), "")
	missing(t, b, 0, []string{"the rest of the sample, which was ended by its limit: token", "what the log has as events alone"}, nil)
}

// TestInspectUnfinished: a packed log of an evaluation that was ended before its end has its id and model in the journal alone.
func TestInspectUnfinished(t *testing.T) {
	b := newBook()
	imported(t, b, "log.eval", string(packed(t, "_journal/start.json", `{"version":2,"eval":{"eval_id":"e","model":"m/x"},"plan":{}}`,
		"samples/1_epoch_1.json", `{"id":1,"epoch":1,"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"A"}]}`)))
	want := []string{`recorded/support/e-1_epoch_1 import/inspect: [{"content":"Q","role":"user"}] => "A"|m/x||||`}
	must.Equal(t, cmp.Diff(want, b.said()), "")
}

func attribute(name, text string) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: text}}}
}

// spansOf are traces with a call of a model in each span, and with one that is none.
func spansOf(t *testing.T, ids ...byte) []byte {
	t.Helper()
	scope := &traces.ScopeSpans{Spans: []*traces.Span{{TraceId: bytes.Repeat([]byte{9}, 16), SpanId: bytes.Repeat([]byte{9}, 8), Name: "GET"}}}
	for i, id := range ids {
		scope.Spans = append(scope.Spans, &traces.Span{TraceId: bytes.Repeat([]byte{1}, 16), SpanId: bytes.Repeat([]byte{id}, 8), Name: "chat gpt-4o", StartTimeUnixNano: uint64(1_700_000_000+i) * 1e9, EndTimeUnixNano: 1_700_000_100e9,
			Attributes: []*common.KeyValue{attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.request.model", "gpt-4o"), attribute("gen_ai.conversation.id", "talk"),
				attribute("gen_ai.input.messages", fmt.Sprintf(`[{"role":"user","parts":[{"type":"text","content":"Question %d"}]}]`, id)),
				attribute("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"Answer"}],"finish_reason":"stop"}]`)}})
	}
	return marshalled(t, &traces.TracesData{ResourceSpans: []*traces.ResourceSpans{{ScopeSpans: []*traces.ScopeSpans{scope}}}})
}

func entriesOf(t *testing.T, id byte) []byte {
	t.Helper()
	return marshalled(t, &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{{TimeUnixNano: 1_700_000_000e9, EventName: "gen_ai.client.inference.operation.details",
		TraceId: bytes.Repeat([]byte{1}, 16), SpanId: bytes.Repeat([]byte{id}, 8),
		Attributes: []*common.KeyValue{attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"In an event"}]}]`)}}}}}}}})
}

func marshalled(t *testing.T, m proto.Message) []byte {
	t.Helper()
	return must.Get(proto.Marshal(m))(t)
}

// inJSON writes a body as OTLP in JSON.
func inJSON(t *testing.T, body []byte) []byte {
	t.Helper()
	data := must.Get(telemetry.Decode(telemetry.Either, telemetry.Protobuf, body))(t)
	return must.Get(json.Marshal(data))(t)
}

func gzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.Get(w.Write(text))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

// withLengths writes messages as OpenTelemetry's collector writes them into a file.
func withLengths(messages ...[]byte) (file []byte) {
	for _, m := range messages {
		file = append(binary.BigEndian.AppendUint32(file, uint32(len(m))), m...)
	}
	return file
}

// TestTelemetryInFiles: what an exporter wrote into a file is sealed as if it had been sent, whichever way it is written, with the file that it was found in; and once.
func TestTelemetryInFiles(t *testing.T) {
	two, log := spansOf(t, 2, 3), entriesOf(t, 2)
	plain := marshalled(t, &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{{TimeUnixNano: 1, Body: attribute("", "it started").Value}}}}}}})
	for name, test := range map[string]struct {
		file []byte
		acts int
	}{
		"protobuf":                     {two, 2},
		"protobuf, logs":               {log, 1},
		"protobuf, logs without ids":   {plain, 0}, // it could be read as a span without ids
		"protobuf, gzip":               {gzipped(t, two), 2},
		"protobuf with lengths":        {withLengths(spansOf(t, 2), log, spansOf(t, 3)), 3},
		"protobuf with lengths, gzip":  {gzipped(t, withLengths(spansOf(t, 2), spansOf(t, 3))), 2},
		"JSON":                         {inJSON(t, two), 2},
		"JSON that begins with a line": {append([]byte("\n"), inJSON(t, two)...), 2},
		"JSON, logs":                   {inJSON(t, log), 1},
		"JSON in lines":                {bytes.Join([][]byte{inJSON(t, spansOf(t, 2)), inJSON(t, log), inJSON(t, spansOf(t, 3))}, []byte("\n")), 3},
		"JSON in lines, gzip":          {gzipped(t, bytes.Join([][]byte{inJSON(t, spansOf(t, 2)), inJSON(t, spansOf(t, 3))}, []byte("\n"))), 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			for round := range 2 {
				checked, sealed := imported(t, b, "traces.bin", string(test.file))
				if want := test.acts * (1 - round); checked.Entries != test.acts || checked.New != want || sealed.New != want || checked.Known != test.acts-want || len(checked.Faults) > 0 {
					t.Fatalf("%+v %+v", checked, sealed)
				}
			}
			for id, a := range b.acts {
				direct := must.Get(telemetry.Decode(telemetry.Either, telemetry.JSON, a.Request.Kept))(t)
				told := telemetry.Find(direct)
				if len(told.Acts) != 1 || id != told.Acts[0].RecordID("support", false) || a.Protocol != "otlp" || a.AgentID != "recorder" || headerOf(a.Request, "file") != "traces.bin" || headerOf(a.Request, "format") != "otel" ||
					!strings.Contains(strings.Join(a.Missing, ";"), "whether the file is whole") || a.Fidelity != evidence.ByAttributes {
					t.Errorf("%s %+v", id, a)
				}
				must.Hold(t, a.ChainID == "recorded/support/talk" || strings.HasSuffix(a.RequestID, "-events"), "%s is in %s", a.RequestID, a.ChainID)
			}
		})
	}
}

// TestEmptyMessages: a small packed file can have millions of messages of no bytes. The first of them ends the reading.
func TestEmptyMessages(t *testing.T) {
	for name, file := range map[string][]byte{"first": gzipped(t, withLengths(nil, spansOf(t, 2))), "later": withLengths(spansOf(t, 2), nil, nil)} {
		f, err := in(t, "traces.bin", file, Unknown)
		if err == nil {
			_, err = Check(t.Context(), f, newBook().options())
		}
		want := "message " + map[string]string{"first": "1", "later": "2"}[name]
		must.Hold(t, err != nil && strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "0 bytes"), "%s: %v", name, err)
	}
}

// TestTelemetryThatDiffers: another account of a span is named, and of a file with a mistake nothing is taken without --skip.
func TestTelemetryThatDiffers(t *testing.T) {
	b := newBook()
	imported(t, b, "a", string(spansOf(t, 2)))
	checked, _ := imported(t, b, "b", strings.Replace(string(spansOf(t, 2, 3)), "Question 2", "Question 7", 1))
	if checked.Changed != 1 || checked.New != 1 || !errors.Is(checked.Faults[0], ErrChanged) || !strings.Contains(checked.Faults[0].Error(), "message 1, span 01") {
		t.Errorf("%+v", checked)
	}
	nameless := marshalled(t, &traces.TracesData{ResourceSpans: []*traces.ResourceSpans{{ScopeSpans: []*traces.ScopeSpans{{Spans: []*traces.Span{{Name: "x", SpanId: []byte{1}}}}}}}})
	checked, _ = imported(t, b, "z", string(append(spansOf(t, 9), nameless...))) // protobuf joins them
	must.Hold(t, checked.Wrong == 1 && checked.New == 1 && strings.Contains(checked.Faults[0].Error(), "a span without ids"), "%+v", checked)
	without := strings.Replace(string(inJSON(t, spansOf(t, 4, 5))), "0404040404040404", "", 1)
	checked, _ = imported(t, b, "c", without)
	must.Hold(t, checked.Wrong == 1 && checked.New == 1 && strings.Contains(checked.Faults[0].Error(), "a span without ids"), "%+v", checked)
	checked, _ = imported(t, b, "d", string(inJSON(t, spansOf(t, 6)))+"\n{\"resourceSpans\":7}\n"+string(inJSON(t, spansOf(t, 7))))
	must.Hold(t, checked.Wrong == 1 && checked.New == 2 && strings.Contains(checked.Faults[0].Error(), "document 2: not OTLP in JSON"),
		"%+v %v", checked, checked.Faults)
	var entry Entry
	o := b.options()
	o.Each = func(e Entry) { entry = e }
	if _, err := Check(context.Background(), open(t, "e", string(spansOf(t, 8))), o); err != nil || entry.Prompt != 1 || entry.Answers != 1 || entry.Model != "gpt-4o" || !strings.HasPrefix(entry.SaidAt, "2023-11-14T") {
		t.Errorf("%+v %v", entry, err)
	}
}

// TestNoTelemetry: a file that is cut off, is another one, or unpacks without end is an error that names the place.
func TestNoTelemetry(t *testing.T) {
	whole, many := spansOf(t, 2), withLengths(spansOf(t, 2), spansOf(t, 3))
	for name, test := range map[string]struct {
		file   []byte
		format Format
		says   string
	}{
		"cut off":                 {whole[:len(whole)-1], Unknown, "is not certain"},
		"cut off gzip":            {gzipped(t, whole)[:100], Unknown, "unexpected EOF"},
		"gzip of a conversation":  {gzipped(t, []byte(`{"messages":[]}`)), Unknown, "no OTLP"},
		"gzip of nothing":         {gzipped(t, nil), Unknown, "no OTLP"},
		"another length":          {append([]byte{1, 255, 255, 255}, whole...), Unknown, "is not certain"},
		"too long":                {append([]byte{0, 0, 0, 200}, whole[:100]...), Unknown, "is not certain"},
		"protobuf of another":     {[]byte("\n\x05hello"), Unknown, "is not certain"},
		"empty messages":          {withLengths(nil, nil), Unknown, "is not certain"},
		"another format is given": {whole, Chat, "this looks like otel"},
		"metrics":                 {[]byte(`{"resourceMetrics":[]}`), Unknown, "is not certain"},
	} {
		must.Refuse(t, test.says, name)(in(t, "file", test.file, test.format))
	}
	f := open(t, "file", string(many[:len(many)-1]))
	must.Refuse(t, "message 2: unexpected EOF")(Check(context.Background(), f, newBook().options()))
	bomb := gzipped(t, slices.Concat([]byte(`{"resourceSpans":[`), bytes.Repeat([]byte(" "), 70<<20), []byte(`]}`)))
	must.Refuse(t, "longer than 64 MiB")(in(t, "file", bomb, Unknown))
}
