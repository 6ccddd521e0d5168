package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/jury"
)

// jurat runs the command in this process.
func jurat(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &err})
	return code, out.String(), err.String()
}

// TestRecordedConversations tries every conversation in ../shared/cases, and verifies every case file.
func TestRecordedConversations(t *testing.T) {
	cards := must.Get(filepath.Glob("../../../shared/cases/*/agent-card.json"))(t)
	if len(cards) == 0 {
		t.Skip("there is no ../shared/cases beside the project")
	}
	dir := t.TempDir()
	data, trust := filepath.Join(dir, "data"), filepath.Join(dir, "trust.json")
	var files []string
	for _, card := range cards {
		folder := filepath.Dir(card)
		file := filepath.Join(dir, filepath.Base(folder)+".jurat")
		code, out, errs := jurat(t, "--data", data, "trial", folder, "--jurors", "offline", "--out", file, "--json")
		var result jury.Result
		if err := json.Unmarshal([]byte(out), &result); err != nil {
			t.Fatalf("%s: exit code %d, %v\n%s", folder, code, err, errs)
		}
		want := map[jury.Position]int{jury.SafePass: 0, jury.UnsafeFail: exitBad, jury.NeedsReview: exitUndecided}[result.FinalVerdict]
		if code != want || result.Degraded || result.Inconclusive {
			t.Errorf("%s: exit code %d, %s, degraded %v, inconclusive %v", folder, code, result.FinalVerdict, result.Degraded, result.Inconclusive)
		}
		files = append(files, file)
	}
	code, doc, errs := jurat(t, "--data", data, "trust")
	if code != 0 {
		t.Fatal(errs)
	}
	must.Do(t, os.WriteFile(trust, []byte(doc), 0o600))
	if code, out, _ := jurat(t, "--data", data, "log", "fsck"); code != 0 {
		t.Errorf("fsck: exit code %d\n%s", code, out)
	}
	if err := os.RemoveAll(data); err != nil { // only the case file and the trust file prove a case, not the installation
		t.Fatal(err)
	}
	for _, file := range files {
		if code, out, errs := jurat(t, "verify", "--trust", trust, file); code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", file, code, out, errs)
		}
		if code, _, _ := jurat(t, "verify", file); code != exitUndecided {
			t.Errorf("%s without trust: exit code %d, want %d", file, code, exitUndecided)
		}
	}
}
