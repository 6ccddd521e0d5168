package evidence

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/must"
)

// A draft that is made of a payload is the one that its document makes, whether its values are canonical or not.
func TestNewDraftIsItsDocument(t *testing.T) {
	for _, text := range []string{`"plain"`, `"\n\u001f\\é"`, ` "spaced" `, `"\u00e9\/"`, `"` + strings.Repeat("long", 1<<18) + `"`} {
		p := Payload{ActionType: ObservedCall, AgentID: "recorder", RequestID: "r", Timestamp: "2026-01-31T16:15:00.000Z", Response: jsontext.Value(text), RequestBody: jsontext.Value(text),
			Observed: &Observed{Agent: "a", Began: "2026-01-31T16:15:00.000Z", Ended: Complete, Fidelity: ByBytes, Protocol: "p/1", Vantage: Proxy,
				Request: &ObservedBody{Bytes: 1, SHA256: DigestOf([]byte("x"))}}}
		doc := must.Get(json.Marshal(p))(t)
		parsed, errParsed := ParseDraft(doc)
		made, errMade := NewDraft(p)
		if errParsed != nil || errMade != nil {
			t.Fatalf("%.20s: %v, %v", text, errParsed, errMade)
		}
		if !bytes.Equal(parsed.members.canonical(), made.members.canonical()) {
			t.Errorf("%.20s: %.300s\nand its document: %.300s", text, made.members.canonical(), parsed.members.canonical())
		}
		if n := len(made.members.canonical()); n != made.members.size() {
			t.Errorf("%.20s: %d bytes, and the size is %d", text, n, made.members.size())
		}
	}
}

// Texts count for the size of a payload.
func TestNewDraftOfTooLongTexts(t *testing.T) {
	long := jsontext.Value(`"` + strings.Repeat("a", MaxDocument/2) + `"`)
	_, err := NewDraft(Payload{ActionType: ModelOutput, AgentID: "a", RequestID: "r", Timestamp: "2026-01-31T16:15:00.000Z", Model: "m", ModelVersion: "1", Parameters: jsontext.Value("{}"),
		Prompt: long, Response: long})
	if _, is := errors.AsType[*SyntaxError](err); !is || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%v", err)
	}
}
