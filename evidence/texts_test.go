package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A text that is taken for canonical is one that Canonical returns as it is, and no other is.
func TestCanonicalText(t *testing.T) {
	check := func(v string) {
		t.Helper()
		form, err := Canonical([]byte(v))
		want := err == nil && string(form) == v && v[0] == '"'
		if got := isCanonicalText(jsontext.Value(v)); got != want {
			t.Errorf("%q: %t, and its canonical form is %q, %v", v, got, form, err)
		}
	}
	for c := range 256 {
		check(fmt.Sprintf(`"%c"`, c))
		check(`"` + string([]byte{byte(c)}) + `"`)
		check(fmt.Sprintf(`"\u%04x"`, c))
		check(fmt.Sprintf(`"\u%04X"`, c))
		check(fmt.Sprintf(`"\%c"`, c))
		check(fmt.Sprintf(`"\u00%c0"`, c))
		check(fmt.Sprintf(`"\u000%c"`, c))
		check(fmt.Sprintf(`"\u%c00b"`, c))
	}
	for _, v := range []string{`""`, `"`, `"\"`, `"\\"`, `"\\\"`, `"a"b"`, `"a" `, ` "a"`, `"\u001"`, `"\u00"`, `"\u"`, "\"\u2028\u2029\U0001F600\"", `"\ud83d\ude00"`, `"\ud83d"`,
		"\"\xed\xa0\x80\"", `{"a":1}`, `["a"]`, `1`, `null`} {
		check(v)
	}
	random := rand.New(rand.NewPCG(1, 2))
	const parts = `"\\\\ubnrt/019af00cC ` + "\n\x1f\x7f\xc3\xa9é😀"
	for range 20_000 {
		text := []byte{'"'}
		for range random.IntN(9) {
			text = append(text, parts[random.IntN(len(parts))])
		}
		check(string(append(text, '"')))
	}
}

// A draft that is made of a payload is the one that its document makes, whether its values are canonical or not.
func TestNewDraftIsItsDocument(t *testing.T) {
	for _, text := range []string{`"plain"`, `"\n\u001f\\é"`, ` "spaced" `, `"\u00e9\/"`, `"` + strings.Repeat("long", 1<<18) + `"`} {
		p := Payload{ActionType: ObservedCall, AgentID: "recorder", RequestID: "r", Timestamp: "2026-01-31T16:15:00.000Z", Response: jsontext.Value(text), RequestBody: jsontext.Value(text),
			Observed: &Observed{Agent: "a", Began: "2026-01-31T16:15:00.000Z", Ended: Complete, Fidelity: ByBytes, Protocol: "p/1", Vantage: Proxy,
				Request: &ObservedBody{Bytes: 1, SHA256: DigestOf([]byte("x"))}}}
		doc, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
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
