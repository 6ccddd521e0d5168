package importing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gptNode is a node of ChatGPT's export.
func gptNode(id, parent, role, content, more string) string {
	return fmt.Sprintf(`%q:{"id":%[1]q,"parent":%[2]q,"message":{"id":%[1]q,"author":{"role":%[3]q,"name":null},"create_time":1762449445.115,"content":%[4]s,"status":"finished_successfully","recipient":"all"%[5]s}}`, id, parent, role, content, more)
}

func gptText(text string) string { return `{"content_type":"text","parts":["` + text + `"]}` }

func gptTalk(id, last string, nodes ...string) string {
	return `{"conversation_id":"` + id + `","current_node":"` + last + `","mapping":{"client-created-root":{"id":"client-created-root","message":null,"parent":null},` + strings.Join(nodes, ",") + `}}`
}

// TestChatGPTSpeakers: what ChatGPT remembers stands as the assistant's and is not; files that were attached, reasoning, a failed tool, what was broken off and
// a participant of another kind are named.
func TestChatGPTSpeakers(t *testing.T) {
	b := newBook()
	file := "[" + gptTalk("c", "f",
		gptNode("m", "client-created-root", "assistant", `{"content_type":"model_editable_context","model_set_context":"Likes tea"}`, ""),
		gptNode("u", "m", "user", gptText("Read it"), `,"metadata":{"attachments":[{"id":"file-1","name":"plan.pdf","mimeType":"application/pdf"}]}`),
		gptNode("h", "u", "assistant", gptText("I should look"), `,"channel":"analysis"`),
		gptNode("k", "h", "assistant", `{"content_type":"code","text":"1/0"}`, `,"recipient":"web.run","channel":"commentary"`),
		strings.Replace(gptNode("r", "k", "tool", `{"content_type":"execution_output","text":"ZeroDivisionError"}`, `,"metadata":{"aggregate_result":{"status":"failed_with_in_kernel_exception"}}`), `"name":null`, `"name":"web"`, 1),
		gptNode("c", "r", "critic", gptText("Hm"), ""),
		strings.Replace(gptNode("f", "c", "assistant", gptText("It fai"), `,"metadata":{"model_slug":"gpt-5"}`), "finished_successfully", "in_progress", 1)) + "]"
	if checked, _ := imported(t, b, "conversations.json", file); len(checked.Faults) > 0 {
		t.Fatal(checked.Faults)
	}
	want := []string{
		`recorded/support/c import/chatgpt: [{"role":"system","content":"Likes tea","name":"ChatGPT's memory"},{"role":"user","content":"Read it"}] => [{"role":"assistant","content":"","tool_calls":[{"id":"k","type":"function","function":{"name":"web.run","arguments":"1/0"}}]}]|||||1762449445.115`,
		`recorded/support/c import/chatgpt: [{"role":"tool","content":"ZeroDivisionError","name":"web","tool_call_id":"k","is_error":true}] => "It fai"|gpt-5||||1762449445.115`}
	if diff := cmp.Diff(want, b.said()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	missing(t, b, 0, []string{"what is in a file that was attached", "left out: images, sounds or files", "left out: inner reasoning"}, nil)
	missing(t, b, 1, []string{"what a participant of a kind says that is not known here: critic", "the rest of a message, which was broken off"}, nil)
}

// TestExportInSeveralFiles: an export of 2026 has its conversations in numbered files.
func TestExportInSeveralFiles(t *testing.T) {
	talk := func(id string) string {
		return gptTalk(id, "u", gptNode("u", "client-created-root", "user", gptText("Hi "+id), ""))
	}
	b := newBook()
	archive := string(packed(t, "user.json", "{}", "x/conversations-001.json", "["+talk("c")+"]", "__MACOSX/x/._conversations-000.json", "?", "x/conversations-000.json", "["+talk("a")+","+talk("b")+"]", "x/conversations-002.json", "[]"))
	if checked, sealed := imported(t, b, "export.zip", archive); len(checked.Faults) > 0 || sealed.New != 3 {
		t.Fatalf("%+v", checked)
	}
	for _, id := range []string{"a", "b", "c"} {
		if text := strings.Join(b.said(), "\n"); !strings.Contains(text, "recorded/support/"+id+" ") {
			t.Errorf("%s is not in %s", id, text)
		}
	}
	if _, err := in(t, "e.zip", packed(t, "conversations-000.json", "["+talk("a")+"]", "conversations-001.json", `[{"uuid":"c","chat_messages":[]}]`), Unknown); err == nil || !strings.Contains(err.Error(), "conversations-001.json: it is of claude-ai, and others in the archive are of chatgpt") {
		t.Error(err)
	}
}

// caiSaid is a message of Claude.ai's export.
func caiSaid(uuid, parent, sender, content, more string) string {
	return fmt.Sprintf(`{"uuid":%q,"parent_message_uuid":%q,"sender":%q,"text":"","content":[%s],"created_at":"t","attachments":[],"files":[]%s}`, uuid, parent, sender, content, more)
}

// TestClaudeAICalls: results are of the calls that they name or, in older exports, of the first call of that name; blocks of another kind are named.
func TestClaudeAICalls(t *testing.T) {
	b := newBook()
	const use, result, text = `{"type":"tool_use","name":"%s","input":{}%s}`, `{"type":"tool_result","name":"%s","content":[{"type":"text","text":"%s","uuid":"x"}],"is_error":%t%s}`, `{"type":"text","text":"%s"}`
	file := `[{"uuid":"c","name":"","chat_messages":[` +
		caiSaid("1", "0", "human", fmt.Sprintf(text, "Go"), "") + "," +
		caiSaid("2", "1", "assistant", strings.Join([]string{fmt.Sprintf(use, "a", ""), fmt.Sprintf(use, "b", ""), fmt.Sprintf(result, "a", "of a", false, ""), fmt.Sprintf(result, "b", "of b", true, ""), `{"type":"hologram"}`, fmt.Sprintf(text, "Done")}, ","), `,"truncated":true`) + "," +
		caiSaid("3", "2", "human", fmt.Sprintf(text, "Again"), "") + "," +
		caiSaid("4", "3", "assistant", strings.Join([]string{fmt.Sprintf(use, "a", `,"id":"t1"`), fmt.Sprintf(use, "a", `,"id":"t2"`), fmt.Sprintf(result, "a", "of 2", false, `,"tool_use_id":"t2"`), fmt.Sprintf(result, "a", "of 1", false, `,"tool_use_id":"t1"`)}, ","), "") + `]}]`
	if checked, _ := imported(t, b, "conversations.json", file); len(checked.Faults) > 0 {
		t.Fatal(checked.Faults)
	}
	for i, want := range [][]string{{`"content":"of a","tool_call_id":"2/0"}`, `"content":"of b","tool_call_id":"2/1","is_error":true}`}, {`"content":"of 2","tool_call_id":"t2"}`, `"content":"of 1","tool_call_id":"t1"}`}} {
		for _, part := range want {
			if said := b.said()[i]; !strings.Contains(said, part) {
				t.Errorf("%s is not in %s", part, said)
			}
		}
	}
	missing(t, b, 0, []string{"what a block of a kind says that is not known here: hologram", "the rest of a message, which was broken off"}, []string{wentBack})
}

// TestClaudeAIBranches: of messages that are a tree, the branch is read that ends where the export says, or all of them, and where it goes back is named.
func TestClaudeAIBranches(t *testing.T) {
	said := func(uuid, parent, sender string) string {
		return caiSaid(uuid, parent, sender, `{"type":"text","text":"`+uuid+`"}`, "")
	}
	messages := strings.Join([]string{said("q", "0", "human"), said("a1", "q", "assistant"), said("a2", "q", "assistant"), said("q2", "a2", "human"), said("a3", "q2", "assistant")}, ",")
	b := newBook()
	imported(t, b, "conversations.json", `[{"uuid":"c","current_leaf_message_uuid":"a3","chat_messages":[`+messages+`]}]`)
	if got := strings.Join(b.said(), "\n"); strings.Contains(got, "a1") || !strings.Contains(got, `"q"}] => "a2"`) || len(b.order) != 2 {
		t.Error(got)
	}
	missing(t, b, 0, nil, []string{wentBack})
	b = newBook()
	imported(t, b, "conversations.json", `[{"uuid":"c","chat_messages":[`+messages+`]}]`)
	if got := strings.Join(b.said(), "\n"); !strings.Contains(got, "a1") || !strings.Contains(got, "a2") {
		t.Error(got)
	}
	missing(t, b, 0, []string{wentBack}, nil)
	missing(t, b, 1, nil, []string{wentBack})
	twice := said("q", "0", "human") + "," + said("a1", "q", "assistant")
	for _, leaf := range []string{"", "a1"} {
		checked, _ := imported(t, newBook(), "conversations.json", `[{"uuid":"c","current_leaf_message_uuid":"`+leaf+`","chat_messages":[`+twice+","+said("q", "0", "human")+`]}]`)
		if len(checked.Faults) != 1 || !strings.Contains(checked.Faults[0].Error(), `messages 0 and 2 have the same uuid, "q"`) {
			t.Errorf("an id twice: %v", checked.Faults)
		}
	}
	b = newBook()
	imported(t, b, "conversations.json", `[{"uuid":"c","current_leaf_message_uuid":"a1","chat_messages":[`+said("", "", "human")+","+said("q", "gone", "human")+","+said("a1", "q", "assistant")+","+said("", "q", "human")+`]}]`)
	if got := b.said(); len(got) != 1 || !strings.Contains(got[0], `"q"}] => "a1"`) {
		t.Errorf("messages without ids, and a parent that is not there: %s", got)
	}
	missing(t, b, 0, []string{"what was said before it: it names a message"}, nil)
	for leaf, want := range map[string]string{"x": "which branch is the conversation is not known", "p": "in a circle"} {
		checked, _ := imported(t, newBook(), "conversations.json", `[{"uuid":"c","current_leaf_message_uuid":"`+leaf+`","chat_messages":[`+said("p", "o", "human")+","+said("o", "p", "assistant")+`]}]`)
		if len(checked.Faults) != 1 || !strings.Contains(checked.Faults[0].Error(), want) {
			t.Errorf("%s: %v", leaf, checked.Faults)
		}
	}
}
