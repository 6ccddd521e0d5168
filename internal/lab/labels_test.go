package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/must"
)

func TestLabels(t *testing.T) {
	got := must.Get(ParseLabels([]byte(`{
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

// TestBrokenLabels: each problem is named with its case, and with what is wanted there.
func TestBrokenLabels(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{``, `want {"CASE":`},
		{`[]`, `want {"CASE":`},
		{`{}`, "it labels no case"},
		{`{"a": {"outcome": "good"}} {}`, `want {"CASE":`},
		{`{"a": {"outcome": "fine"}}`, `"a": outcome: "fine": want "good" or "failed"`},
		{`{"a": {"outcome": true}}`, `/a/outcome`},
		{`{"a": {"task_success": "true"}}`, `/a/task_success`},
		{`{"a": {}}`, `"a": want "outcome"`},
		{`{"a": {"outcome": "good", "task_success": true}}`, "and not both"},
		{`{"a": {"outcome": "good", "colour": 1}}`, `colour`},
		{`{"a": {"outcome": "good", "kind": 7}}`, `/a/kind`},
		{`{"a": {"outcome": "good", "kind": "a\nb"}}`, `"a": want a kind`},
		{`{"a": "good"}`, `/a`},
		{`{"../a": {"outcome": "good"}}`, `"../a": want the name of a folder`},
		{`{"": {"outcome": "good"}}`, `"": want the name of a folder`},
		{`{"a": {"outcome": "good"}, "a": {"outcome": "failed"}}`, "twice"},
		{`{"a": {"outcome": "good", "outcome": "failed"}}`, "twice"},
		{`{"a": {"outcome": "good"`, `want {"CASE":`},
	} {
		if _, err := ParseLabels([]byte(tt.doc)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n got  %v\n want %s", tt.doc, err, tt.want)
		}
	}
	_, err := ParseLabels([]byte(`{"a": {"outcome": "x"}, "b": {}, "c": {"outcome": "y"}}`))
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("three problems are told at once, and not %d: %v", n+1, err)
	}
}

func FuzzLabels(f *testing.F) {
	f.Add([]byte(`{"a": {"outcome": "good", "kind": "k"}}`))
	f.Add([]byte(`{"a": {"task_success": false, "task": 1e9}}`))
	f.Add([]byte(`{"a": [`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if labels, err := ParseLabels(doc); err == nil && len(labels) == 0 {
			t.Error("no labels and no problem")
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
