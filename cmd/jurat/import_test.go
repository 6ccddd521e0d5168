package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestImport: what a file tells is sealed once, shown as a conversation, tried as second hand, and never proved; an entry that was changed or is wrong
// is named, and then nothing is sealed.
func TestImport(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data, file := filepath.Join(folder, "data"), filepath.Join(folder, "talks.jsonl")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	jurat := func(code int, args ...string) string {
		t.Helper()
		out, said := both(t, code, append([]string{"--data", data}, args...)...)
		return strings.Join(strings.Fields(out+" "+said), " ")
	}
	says := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in: %s", want, text)
			}
		}
	}
	first := `{"messages":[{"role":"user","content":"Where is order 7?"},{"role":"assistant","content":"It is shipped."}],"model":"openai:gpt-4o","usage":{"prompt_tokens":100,"completion_tokens":10}}` + "\n"
	second := `{"messages":[{"role":"user","content":"Thanks"},{"role":"assistant","content":"You are welcome."}]}` + "\n"
	write(first + "{}\n")
	says(jurat(2, "import", file, "--agent", "mia"), "talks.jsonl: line 2:", "1 entry cannot be imported; nothing was sealed", "--skip passes over them")
	if _, err := os.Stat(data); err == nil {
		t.Error("a file that is refused makes an installation")
	}
	write(first + second)
	says(jurat(0, "import", file, "--agent", "mia", "--dry-run"), "2 to seal", "recorded/mia/talks-1 line 1 2 messages")
	says(jurat(0, "import", file, "--agent", "mia"), "2 exchanges in 2 conversations: 2 sealed, 0 already sealed", "recorded/mia/talks-2")
	says(jurat(0, "import", file, "--agent", "mia"), "0 sealed, 2 already sealed")
	says(jurat(0, "record", "show", "recorded/mia/talks-1"), "told by a file that others wrote", "Where is order 7?", "It is shipped.", "100 tokens read, 10 written", "$0.0", "from talks.jsonl, line 1", "not seen: the bytes that passed")
	says(jurat(0, "record", "chains", "--agent", "mia"), "second hand", "recorded/mia/talks-1", "2 chains")
	says(jurat(3, "trial", "--recorded", "recorded/mia/talks-1", "--out", filepath.Join(folder, "case.jurat")), "told by a file that others wrote, which the recorder \"importer\" imported: nobody saw the bytes")
	write(strings.Replace(first, "shipped", "lost", 1) + second)
	says(jurat(2, "import", file, "--agent", "mia"), "it was changed since it was imported", "nothing was sealed")
	says(jurat(2, "record", "show", "recorded/mia/other"), "there is nothing that a recorder saw", "jurat record chains")
	says(jurat(2, "import", file, "--agent", "mia", "--from", "yaml"), "unknown format")
	says(jurat(2, "import", file, "--agent", "importer"), "--recorder: the recorder is a witness")
}
