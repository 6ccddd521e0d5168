package importing

import (
	"jurat/internal/must"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/internal/subject"
)

// TestExamplesReadAsConversations: what is sealed of a conversation, exchange by exchange, reads as the conversation does for a jury.
func TestExamplesReadAsConversations(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/conversation.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		want := must.Get(subject.New(nil, text))(t)
		b := newBook()
		if checked, _ := imported(t, b, "conversation.json", string(text)); len(checked.Faults) > 0 {
			t.Errorf("%s: %v", file, checked.Faults)
		}
		var got []subject.Message
		for _, id := range b.order {
			for _, said := range [][]byte{b.acts[id].Said.Prompt, b.acts[id].Said.Response} {
				got = append(got, readSealed(t, said)...)
			}
		}
		ignored := cmpopts.IgnoreFields(subject.Message{}, "Number", "CallNumber", "CallPlace", "AnswersTo", "Name", "ToolName")
		if diff := cmp.Diff(want.Messages, got, ignored, cmpopts.IgnoreFields(subject.ToolCall{}, "Result"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", file, diff)
		}
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
