package model

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/llm"
	"jurat/jury"
)

var update = flag.Bool("update", false, "write the golden prompts anew")

// told writes a question as text.
func told(t testing.TB, q llm.Question) string {
	t.Helper()
	var s strings.Builder
	fmt.Fprintf(&s, "template %s\n\n##### system\n%s", Template(), q.System)
	for _, m := range q.Messages {
		fmt.Fprintf(&s, "\n##### %s\n%s", map[bool]string{true: "model", false: "user"}[m.ByModel], m.Text)
	}
	schema := jsontext.Value(q.Schema.JSON).Clone()
	if err := schema.Indent(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&s, "\n##### schema %s\n%s\n", q.Schema.Name, schema)
	return s.String()
}

// TestGoldenPrompts compares the prompts of the three tasks, and of asking again, byte for byte. They may change only
// with the template's digest, which is in every seat, and only on purpose: go test ./internal/juror/model -run Golden
// -update.
func TestGoldenPrompts(t *testing.T) {
	c := talked(t, plainWords+" \u202Egnp.exe\u202C")
	shortened := seated(t, "juror-gpt", talked(t, strings.Repeat("The parcel is on its way. ", 100)))
	shortened.Shortening = &jury.Shortening{Rule: Shorten, Limit: 900}
	for name, b := range map[string]jury.Brief{"evaluate": seated(t, "juror-gpt", c), "discuss": discussing(t, "juror-gpt", jury.Discussion, c),
		"judge": discussing(t, "final-judge", jury.Judging, c), "shortened": shortened,
		"records": seated(t, "juror-gpt", recorded(t, "Parcel 17 is in Kassel."))} {
		q, err := Prompt(b)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, told(t, q))
		if name == "evaluate" {
			if q, err = Follow(q, jury.Attempt{Answer: `{"position":"fine"}`, Problem: "position: \"fine\" is none of …"}); err != nil {
				t.Fatal(err)
			}
			if q, err = Follow(q, jury.Attempt{Answer: `{"evidenceCode":"all is well"}`, Problem: tripped + "…"}); err != nil {
				t.Fatal(err)
			}
			golden(t, "again", told(t, q))
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	want, err := os.ReadFile(path)
	if *update {
		if err == nil && string(want) != got && strings.HasPrefix(string(want), "template "+Template().String()) {
			t.Fatalf("%s has changed, but the template's digest has not: change Version", name)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the prompt differs from %s; if that is on purpose, run with -update (-golden +now):\n%s", path, diff)
	}
}

var vendors = regexp.MustCompile(`(?i)openai|gpt|claude|anthropic|gemini|google|juror-`)

// TestNobodyIsNamed: no prompt contains the vendor, model or id of any juror, the reader included.
func TestNobodyIsNamed(t *testing.T) {
	c := talked(t, plainWords)
	for _, b := range []jury.Brief{seated(t, "juror-gpt", c), discussing(t, "juror-gpt", jury.Discussion, c), discussing(t, "juror-claude", jury.Discussion, c),
		discussing(t, "final-judge", jury.Judging, c)} {
		q, err := Prompt(b)
		if err != nil {
			t.Fatal(err)
		}
		if name := vendors.FindString(told(t, q)); name != "" {
			t.Errorf("%s of %s: %q is named", b.Phase, b.Seat.JurorID, name)
		}
	}
}

// TestSameEvidenceForEverybody: the frame of the evidence has the same bytes in each phase and for each seat. The system
// text does not depend on the evidence or on the jurors' words.
func TestSameEvidenceForEverybody(t *testing.T) {
	c, other := talked(t, plainWords), talked(t, "Something else.")
	frame := func(b jury.Brief) string {
		q, err := Prompt(b)
		if err != nil {
			t.Fatal(err)
		}
		from, to := strings.Index(q.Messages[0].Text, "=== BEGIN EVIDENCE"), strings.Index(q.Messages[0].Text, "=== END EVIDENCE")
		if from != 0 || to < 0 {
			t.Fatalf("no frame: %s", q.Messages[0].Text)
		}
		return q.Messages[0].Text[:to+len("=== END EVIDENCE ae728d30ce8a4b4bba256440b5a1e627 ===")]
	}
	want := frame(seated(t, "juror-gpt", c))
	for _, b := range []jury.Brief{seated(t, "x", c), discussing(t, "juror-gpt", jury.Discussion, c), discussing(t, "judge", jury.Judging, c)} {
		if got := frame(b); got != want {
			t.Errorf("%s of %s:\n%s\nwant\n%s", b.Phase, b.Seat.JurorID, got, want)
		}
	}
	a, err := Prompt(seated(t, "juror-gpt", c))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Prompt(discussing(t, "juror-gpt", jury.Discussion, other))
	if err != nil {
		t.Fatal(err)
	}
	if a.System != b.System {
		t.Error("the system text depends on the evidence or on what jurors said")
	}
}

func TestBriefsThatMakeNoPrompt(t *testing.T) {
	c := talked(t, plainWords)
	for name, change := range map[string]func(*jury.Brief){
		"no submission":        func(b *jury.Brief) { b.Saw = nil },
		"no axes":              func(b *jury.Brief) { b.Rubric = nil },
		"evidence":             func(b *jury.Brief) { b.Material = []byte(`{"agentCard":1}`) },
		"seat.parameters":      func(b *jury.Brief) { b.Seat.Parameters = jsontext.Value("7") },
		"which is not known":   func(b *jury.Brief) { b.Shortening = &jury.Shortening{Rule: "other", Limit: 1} },
		"expected both":        func(b *jury.Brief) { b.Material = []byte(`{}`) },
		"invalid UTF-8 within": func(b *jury.Brief) { b.Seat.RoleName = "\xff" },
	} {
		b := seated(t, "juror-gpt", c)
		change(&b)
		_, err := Prompt(b)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "invalid UTF-8", "invalid UTF-8 within"), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := seat(t, says("{}")).Answer(t.Context(), b); err == nil {
			t.Errorf("%s: there is an evaluation", name)
		}
	}
}
