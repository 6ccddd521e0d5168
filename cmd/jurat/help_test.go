package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUsageShowsAlternatives: of flags of which one is needed, a usage line does not say that all are.
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

// TestNoGoTypesInErrors: what is no file of the program's is refused in the words of JSON.
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
