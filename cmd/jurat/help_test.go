package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUsageShowsAlternatives: if one of several flags is required, the usage line does not say that all are.
func TestUsageShowsAlternatives(t *testing.T) {
	for command, want := range map[string]string{
		"export":  "jurat export (--openssl=DIR | --dsse=OUT) <file> [flags]",
		"restore": "jurat restore (--checkpoint=FILE | --none-later) <from> [flags]",
	} {
		if out := doing(t, 0, command, "--help"); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%s:\n%s", command, out)
		}
	}
}

// TestNoGoTypesInErrors: errors about a wrong file use the terms of JSON, not Go types.
func TestNoGoTypesInErrors(t *testing.T) {
	record, bad := filepath.Join(t.TempDir(), "record"), filepath.Join(t.TempDir(), "bad")
	for name, content := range map[string]string{record: `[]`, bad: `{"keys":"x"}`} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"verify", "--trust", bad, record}, {"stats", record}, {"redact", record, "--field", "/prompt"}, {"explain", record},
		{"calibrate", "--votes", bad, "--out", bad + ".out"}, {"aggregate", "--votes", bad, "--method", "majority"},
	} {
		var said bytes.Buffer
		if code := run(t.Context(), args, stdio{in: strings.NewReader(""), out: io.Discard, err: &said}); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
		for _, word := range []string{"json:", "jsontext", " Go ", "unmarshal", "evidence.", "verify.", "calibration."} {
			if strings.Contains(said.String(), word) {
				t.Errorf("%v: %s", args, &said)
			}
		}
	}
}

// TestTimesOfFlags: an error about a time or a day shows an example, and not a layout of package time. A right one is read.
func TestTimesOfFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"verify", "--before", "2026-01-31", file}, `--before: expected a time such as 2026-01-31T16:15:00Z, and not "2026-01-31"`},
		{[]string{"archive", "create", "--before", "2026-01-31T16:15:00Z"}, `--before: expected a day such as 2026-01-31, and not "2026-01-31T16:15:00Z"`},
		{[]string{"archive", "create", "--before", "2026-01-31", "--data", t.TempDir()}, "there is no jurat installation"},
		{[]string{"verify", "--at", "2026-01-31T16:15:00+01:00", "--before", "2026-01-31T16:15:00Z", file}, file},
	} {
		if _, said := ran(t, exitCannot, c.args...); !strings.Contains(said, c.want) || strings.Contains(said, "15:04") {
			t.Errorf("%q: %s", c.args, said)
		}
	}
}

// TestErrorsNameTheInput: an error about an input names the flag or the case that it came from.
func TestErrorsNameTheInput(t *testing.T) {
	t.Chdir(t.TempDir())
	withoutKeys(t)
	for name, content := range map[string]string{"agent-card.json": `{"name":"a"}`, "conversation.json": `{"messages":"x"}`} {
		if err := os.MkdirAll("case", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("case", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("record.json", []byte(`{"digest":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"jurat: --trust: open nowhere.json":           {"verify", "--trust", "nowhere.json", "record.json"},
		"record.json: reading trust file: this is a ": {"verify", "--trust", "record.json", "record.json"},
		"jurat: nowhere: no such file or folder":      {"trial", "nowhere", "--jurors", "offline"},
		"jurat: case: conversation.json:1:13":         {"trial", "case", "--jurors", "offline"},
		"OPENAI_API_KEY is not set; ANTHROPIC":        {"trial", "case", "--jurors", "llm"},
	} {
		if _, said := ran(t, exitCannot, args...); !strings.Contains(said, want) {
			t.Errorf("%q: %s, want %q", args, said, want)
		}
	}
}
