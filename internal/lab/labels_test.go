package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/must"
)

func TestLabels(t *testing.T) {
	got := must.Get(ParseLabels("labels.json", []byte(`{
 "a": {"outcome": "good"},
 "b": {"outcome": "failed", "kind": "wrong amount", "trade": "shop", "source": "an auditor"},
 "c": {"task_success": true, "why": "she got what she asked for", "source": "bench", "task": 2, "trial": "7"},
 "d": {"task_success": false}
}`)))(t)
	want := Labels{"a": {}, "b": {Failed: true, Kind: "wrong amount", Trade: "shop", Source: "an auditor"}, "c": {Source: "bench"}, "d": {Failed: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBrokenLabels: each problem is named with its place, and with what is wanted there.
func TestBrokenLabels(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{``, "line 1, column 1: this is not JSON: the document ends too early"},
		{`[]`, `line 1, column 1: want {"CASE":`},
		{`{}`, "it labels no case"},
		{`{"a": {"outcome": "good"}} {}`, "something follows the object"},
		{"{\n  \"a\": {\"outcome\": \"fine\"}}", `line 2, column 20, /a/outcome: "fine": want "good" or "failed"`},
		{`{"a": {"outcome": true}}`, `/a/outcome: true: want "good" or "failed"`},
		{`{"a": {"task_success": "true"}}`, `/a/task_success: "true": want true or false`},
		{`{"a": {}}`, `/a: the outcome is missing`},
		{`{"a": {"outcome": "good", "task_success": true}}`, `/a: "outcome" and "task_success" say the same thing`},
		{`{"a": {"outcome": "good", "colour": 1}}`, `column 27, /a/colour: unknown member "colour": want "outcome"`},
		{`{"a": {"outcome": "good", "kind": 7}}`, `/a/kind: 7: want a text`},
		{`{"a": {"outcome": "good", "kind": "a\nb"}}`, `/a/kind: "a\nb": want a text`},
		{`{"a": {"outcome": "good", "task": {}}}`, `/a/task: {}: want a text or a number`},
		{`{"a": "good"}`, `/a: want an object such as`},
		{`{"a": ["good"]}`, `/a: want an object such as`},
		{`{"../a": {"outcome": "good"}}`, `"../a" cannot be a case`},
		{`{"": {"outcome": "good"}}`, `"" cannot be a case`},
		{`{"a": {"outcome": "good"}, "a": {"outcome": "failed"}}`, "twice"},
		{`{"a": {"outcome": "good", "outcome": "failed"}}`, "twice"},
		{`{"a": {"outcome": "good"`, "this is not JSON"},
		{`{"a": {"outcome": "good",}}`, "this is not JSON"},
	} {
		_, err := ParseLabels("labels.json", []byte(tt.doc))
		var e *LabelError
		if err == nil || !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n got  %v\n want %s", tt.doc, err, tt.want)
		}
	}
	_, err := ParseLabels("labels.json", []byte(`{"a": {"outcome": 1}, "b": {}, "c": {"outcome": "good", "x": 1}}`))
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("three problems are told at once, and not %d: %v", n+1, err)
	}
}

func FuzzLabels(f *testing.F) {
	f.Add([]byte(`{"a": {"outcome": "good", "kind": "k"}}`))
	f.Add([]byte(`{"a": {"task_success": false, "task": 1e9}}`))
	f.Add([]byte(`{"a": [`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		labels, err := ParseLabels("labels.json", doc)
		if err == nil && len(labels) == 0 {
			t.Error("no labels and no problem")
		}
		var e *LabelError
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1) {
			t.Errorf("a problem without a place: %v", err)
		}
	})
}

const (
	card         = `{"name": "An agent"}`
	conversation = `[{"role": "user", "content": "Hello, this is about WHAT."}, {"role": "assistant", "content": "Done."}]`
)

// folder writes cases: each name is what its conversation is about, up to a slash.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		name, about, _ := strings.Cut(name, "=")
		if about == "" {
			about = name
		}
		must.Do(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		for file, text := range map[string]string{"agent-card.json": card, "conversation.json": strings.ReplaceAll(conversation, "WHAT", about)} {
			must.Do(t, os.WriteFile(filepath.Join(dir, name, file), []byte(text), 0o644))
		}
	}
	return dir
}

func TestLoadCases(t *testing.T) {
	dir := folder(t, "a", "b", "c")
	cases, unlabelled, err := LoadCases(dir, Labels{"a": {}, "b": {Failed: true}})
	if err != nil || len(cases) != 2 || cases[1].Name != "b" || !cases[1].Failed || len(unlabelled) != 1 || unlabelled[0] != "c" {
		t.Errorf("%v, %v, %v", cases, unlabelled, err)
	}
	dir = folder(t, "a", "twin=a")
	must.Do(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o755))
	_, _, err = LoadCases(dir, Labels{"a": {}, "twin": {}, "gone": {}, "empty": {}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"case twin: it holds the same evidence as a", "case gone: it has a label, and there is no such folder", "case empty: conversation.json: no such file"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func open(t *testing.T, file string, ceiling, sealed int64) *fund {
	t.Helper()
	return must.Get(openFund(file, ceiling, sealed))(t)
}

func spent(f *fund) int64 { n, _ := f.state(); return n }

// TestFundAfterAKill: a call whose cost was never written counts with all that was set aside, and half a line is no call.
func TestFundAfterAKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spending")
	f := open(t, file, 100, 0)
	settle := must.Get(f.Reserve(40))(t)
	settle(10)
	settle(10)
	if _, err := f.Reserve(30); err != nil { // and then the process is killed
		t.Fatal(err)
	}
	if _, err := f.Reserve(61); !errors.Is(err, ErrCeiling) {
		t.Errorf("10 are spent and 30 set aside of 100: %v", err)
	}
	if _, refused := f.state(); !refused {
		t.Error("it does not know that it refused")
	}
	half := must.Get(os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0))(t)
	if _, err := half.WriteString(`{"call":3,"asideMi`); err != nil || half.Close() != nil {
		t.Fatal(err)
	}
	again := open(t, file, 100, 5)
	if spent(again) != 40 {
		t.Errorf("spent %d, want 10 and the 30 that may have been paid", spent(again))
	}
	if _, err := again.Reserve(61); !errors.Is(err, ErrCeiling) {
		t.Errorf("%v", err)
	}
	settle = must.Get(again.Reserve(60))(t)
	settle(60)
	// Trials that were held without a ceiling are in no list, and count by their records.
	if third := open(t, file, 1000, 130); spent(third) != 130 {
		t.Errorf("spent %d, want 130", spent(third))
	}
	if fourth := open(t, file, 1000, 130); spent(fourth) != 130 {
		t.Errorf("spent %d, want 130 again", spent(fourth))
	}
}

func TestBrokenFund(t *testing.T) {
	for _, line := range []string{`{"call":0,"costMicroUSD":1}`, `{"call":1}`, `{"call":1,"costMicroUSD":-1}`, `{"call":1,"costMicroUSD":1,"asideMicroUSD":1}`, `{"x":1}`, `nonsense`} {
		file := filepath.Join(t.TempDir(), "spending")
		must.Do(t, os.WriteFile(file, []byte(line+"\n"), 0o644))
		if _, err := openFund(file, 100, 0); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", line, err)
		}
	}
}
