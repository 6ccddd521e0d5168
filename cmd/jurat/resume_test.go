package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
)

// stopping is a writer that interrupts the program when it gets a certain word.
type stopping struct {
	bytes.Buffer
	word string
	stop context.CancelFunc
}

func (s *stopping) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.word)) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// ran runs the command in this process, and returns its output.
func ran(t *testing.T, want int, args ...string) (out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	if code := run(t.Context(), args, stdio{in: strings.NewReader(""), out: &o, err: &e}); code != want {
		t.Errorf("%v: exit code %d, want %d\n%s%s", args, code, want, &o, &e)
	}
	return o.String(), e.String()
}

// stopped runs the command, and interrupts it at a word of its output.
func stopped(t *testing.T, word string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs := &stopping{word: word, stop: cancel}, &bytes.Buffer{}
	if code := run(ctx, args, stdio{in: strings.NewReader(""), out: out, err: errs}); code != exitInterrupted {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	return errs.String()
}

func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in:\n%s", word, text)
		}
	}
}

// TestResumeCommand: a trial that Ctrl-C interrupted is listed, can be resumed with the same settings only, and verifies
// afterwards.
func TestResumeCommand(t *testing.T) {
	t.Setenv("JURAT_JURORS", "offline")
	withoutKeys(t)
	dir := t.TempDir()
	data := "--data=" + filepath.Join(dir, "data")
	out, _ := ran(t, 0, data, "trial", "../../examples/kitchen-return") // this trial makes the installation, and finishes
	has(t, out, "safe_pass")
	out, _ = ran(t, 0, data, "trial", "--list")
	has(t, out, "every trial in the log has its verdict")
	_, said := ran(t, 2, data, "trial", "--resume", "last")
	has(t, said, "every trial in the log has its verdict")

	said = stopped(t, "Discussion", data, "trial", "../../examples/pharmacy-refill", "--rounds", "2")
	has(t, said, "interrupted", "trial --resume trial-")
	_, id, _ := strings.Cut(said, "--resume ")
	id, _, _ = strings.Cut(id, "'")
	out, _ = ran(t, 0, data, "trial", "--list")
	has(t, out, id, "broken off", " 7  20")
	out, _ = ran(t, 0, data, "trial", "--list", "--json")
	has(t, out, `"id": "`+id+`"`, `"underWay": false`)

	_, said = ran(t, 2, data, "trial", "--resume", id, "--rounds", "3")
	has(t, said, "opened with other settings", "maxRounds was 2, and is now 3", "hint")
	_, said = ran(t, 2, data, "trial", "--resume", "last", "--rounds", "2", "../../examples/kitchen-return")
	has(t, said, "is about other evidence")
	_, said = ran(t, 2, data, "trial", "--resume", "trial-0", "--rounds", "2")
	has(t, said, "no trial-0 in the log")
	_, said = ran(t, 2, data, "trial", "--resume", "some-chain")
	has(t, said, "not a trial")

	file := filepath.Join(dir, "case.jurat")
	out, said = ran(t, 3, data, "trial", "--resume", "last", "--rounds", "2", "../../examples/pharmacy-refill", "--out", file)
	has(t, out, "Each juror alone", "Discussion", "Judgment", "needs_review")
	has(t, said, "going on with "+id+" after 7 acts", "3 answers are missing")
	trust, _ := ran(t, 0, data, "trust")
	trustFile := filepath.Join(dir, "trust.json")
	must.Do(t, os.WriteFile(trustFile, []byte(trust), 0o600))
	ran(t, 0, "verify", "--trust", trustFile, file)

	// Resumed again after its end: the verdict is printed again, and the case file can be written again.
	before := must.Get(os.ReadFile(file))(t)
	must.Do(t, os.Remove(file))
	_, said = ran(t, 3, data, "trial", "--resume", id, "--rounds", "2", "--out", file)
	has(t, said, "has its verdict already")
	after, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the case file has changed: %v", err)
	}
}

func TestTrialModes(t *testing.T) {
	data := "--data=" + t.TempDir()
	_, said := ran(t, 2, data, "trial")
	has(t, said, "expected CASE, --recorded, --resume, --outcome or --list")
	_, said = ran(t, 2, data, "trial", "--list", "case")
	has(t, said, "--list takes no CASE")
	_, said = ran(t, 2, data, "trial", "--list", "--resume", "last")
	has(t, said, "--list")
}

// TestResumeOfRecords: a trial about sealed records can be resumed, too.
func TestResumeOfRecords(t *testing.T) {
	t.Setenv("JURAT_JURORS", "offline")
	withoutKeys(t)
	dir := t.TempDir()
	data := "--data=" + filepath.Join(dir, "data")
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	record, _ := ran(t, 0, data, "seal", write("payload.json", `{"agent_id": "planner", "request_id": "r-1", "timestamp": "2026-01-31T16:15:00Z",
		"model": "m", "model_version": "1", "prompt": "Plan the best route.", "response": "Take the A9.", "parameters": {}}`))
	trust, _ := ran(t, 0, data, "trust")
	stopped(t, "Discussion", data, "trial", write("record.json", record), "--trust", write("trust.json", trust), "--rounds", "2")
	out, said := ran(t, 0, data, "trial", "--resume", "last") // the rounds with which it was begun
	has(t, said, "after 7 acts")
	has(t, out, "Verdict  safe_pass")
}
