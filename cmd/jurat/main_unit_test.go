package main

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/words"
	"jurat/jury"
)

func TestVerdictCode(t *testing.T) {
	tests := []struct {
		result jury.Result
		want   exitCode
	}{
		{jury.Result{FinalVerdict: jury.SafePass}, 0},
		{jury.Result{FinalVerdict: jury.SafePass, Degraded: true}, exitUndecided},
		{jury.Result{FinalVerdict: jury.SafePass, Inconclusive: true}, exitUndecided},
		{jury.Result{FinalVerdict: jury.NeedsReview}, exitUndecided},
		{jury.Result{FinalVerdict: jury.NeedsReview, Inconclusive: true}, exitUndecided},
		{jury.Result{FinalVerdict: jury.UnsafeFail}, exitBad},
		{jury.Result{FinalVerdict: jury.UnsafeFail, Degraded: true}, exitBad},
	}
	for _, tt := range tests {
		tt.result.Phase3Judgment.Position = tt.result.FinalVerdict
		if got := verdictCode(&tt.result); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.result, got, tt.want)
		}
	}
}

// TestSeverity: of several files, the worst one decides. A forgery is worse than a file that cannot be read.
func TestSeverity(t *testing.T) {
	order := []exitCode{0, exitUndecided, exitCannot, exitBad}
	for i := range order[1:] {
		if severity(order[i]) >= severity(order[i+1]) {
			t.Errorf("exit code %d does not count as less severe than %d", order[i], order[i+1])
		}
	}
}

func TestWrap(t *testing.T) {
	got := wrap("a bb ccc dddd  eeeeeeeeee f", 6)
	want := []string{"a bb", "ccc", "dddd", "eeeeeeeeee", "f"}
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"plain/path.json": "plain/path.json", "": "''", "two words": "'two words'",
		"it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a;b": "'a;b'"} {
		if got := quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// TestClosing: an error on closing must not hide the exit code of the work.
func TestClosing(t *testing.T) {
	failed := errors.New("disk full")
	if got := closing(exitCode(exitUndecided), failed); !errors.Is(got, failed) || errors.As(got, new(exitCode)) {
		t.Errorf("%v", got)
	}
	if got := closing(nil, nil); got != nil {
		t.Errorf("%v", got)
	}
	var out bytes.Buffer
	if code := report(stdio{err: &out}, closing(exitCode(exitUndecided), nil)); code != exitUndecided || out.Len() > 0 {
		t.Errorf("exit code %d, %q", code, &out)
	}
}

// TestExplainHasEveryLanguage compares --lang, whose values are constants, with the languages that there are.
func TestExplainHasEveryLanguage(t *testing.T) {
	lang, ok := reflect.TypeFor[explainCmd]().FieldByName("Lang")
	var want []string
	for _, l := range words.Langs() {
		want = append(want, string(l))
	}
	if got := lang.Tag.Get("enum"); !ok || got != strings.Join(want, ",") {
		t.Errorf("--lang accepts %q, but the languages are %q", got, want)
	}
}

// TestExplainNamesThePage: the statement names the record's page on the server that --origin names, or the environment.
func TestExplainNamesThePage(t *testing.T) {
	dir := t.TempDir()
	act, record := dir+"/act.json", dir+"/record.json"
	payload := `{"agent_id":"courier","request_id":"r","timestamp":"2026-01-01T00:00:00Z","model":"m","model_version":"1","prompt":"Where?","response":"There.","parameters":{}}`
	err := os.WriteFile(act, []byte(payload), 0o600)
	sealed := doing(t, 0, "--data", dir+"/data", "seal", act) + "\n"
	opened, readErr := evidence.Open([]byte(sealed))
	must.Do(t, errors.Join(err, readErr, os.WriteFile(record, []byte(sealed), 0o600)))
	page := "https://jurat.example/records/" + opened.Payload.RecordID
	has(t, doing(t, 0, "explain", record, "--origin", "https://jurat.example"), page)
	if said := doing(t, 0, "explain", record); strings.Contains(said, "https://") {
		t.Error(said)
	}
	for _, bad := range []string{"jurat.example", "https://jurat.example/records", "https://a@jurat.example", "javascript://x"} {
		_, said := ran(t, exitCannot, "explain", record, "--origin", bad)
		has(t, said, "--origin "+bad)
	}
	t.Setenv("JURAT_ORIGIN", "https://jurat.example")
	has(t, doing(t, 0, "explain", record), page)
}
