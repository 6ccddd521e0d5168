package jurat

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The commands in the README are run as they stand there, in order, in a copy of this module: what they write stays in
// the copy. What the README shows below them must be what they print.
func TestREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	bash, err := exec.LookPath("bash")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("there is no bash")
	}
	if err != nil {
		t.Fatal(err)
	}
	blocks := readBlocks(t, "README.md")
	clone := clone(t)
	output, ran := "", 0
	for _, b := range blocks {
		switch {
		case b.language == "console" && !strings.Contains(b.text, "scripts/test"):
			output = b.run(t, bash, clone)
			ran++
		case b.language == "text":
			b.isShortened(t, output)
		}
	}
	if ran < 4 {
		t.Errorf("ran %d blocks of commands: the README has more, or this test does not find them", ran)
	}
}

// A block is what stands between two fences.
type block struct {
	file     string
	line     int // of the first line inside
	language string
	text     string
}

func readBlocks(t *testing.T, file string) []block {
	t.Helper()
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	open := false
	for i, line := range strings.SplitAfter(string(doc), "\n") {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !open:
			blocks = append(blocks, block{file: file, line: i + 2, language: language})
		case !fence && open:
			blocks[len(blocks)-1].text += line
		}
		if fence {
			open = !open
		}
	}
	if len(blocks) == 0 || open {
		t.Fatalf("%s: %d blocks, and an unclosed fence: %v", file, len(blocks), open)
	}
	return blocks
}

// exitComment says with which code a block ends, if it is not 0.
var exitComment = regexp.MustCompile(`# exit code ([0-9]+)\n$`)

// run runs the block's commands, which must all succeed, but for the last one if a comment says its exit code.
func (b block) run(t *testing.T, bash, folder string) string {
	t.Helper()
	want := "0"
	if m := exitComment.FindStringSubmatch(b.text); m != nil {
		want = m[1]
	}
	cmd := exec.CommandContext(t.Context(), bash, "-e", "-u", "-o", "pipefail", "-c", b.text)
	cmd.Dir, cmd.Env = folder, environment(folder)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); strconv.Itoa(got) != want {
		t.Fatalf("%s:%d: exit code %d, want %s:\n%s%s", b.file, b.line, got, want, out, &stderr)
	}
	return string(out)
}

// environment is this process's without what would lead the commands to somebody's own data and settings.
func environment(folder string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "JURAT_") || strings.HasPrefix(v, "JURY_") || strings.HasPrefix(v, "PWD=") ||
			strings.Contains(v, "_API_KEY=") // no test asks a vendor
	})
	return append(env, "PWD="+folder)
}

// isShortened holds every line that the block shows against the output. "…" stands for anything on a line.
func (b block) isShortened(t *testing.T, output string) {
	t.Helper()
	lines := strings.Split(output, "\n")
	for i, shown := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		parts := strings.Split(strings.TrimRight(shown, " "), "…")
		for j := range parts {
			parts[j] = regexp.QuoteMeta(parts[j])
		}
		line := regexp.MustCompile("^" + strings.Join(parts, ".*") + " *$")
		if !slices.ContainsFunc(lines, line.MatchString) {
			t.Errorf("%s:%d shows a line that the commands do not print: %q", b.file, b.line+i, shown)
		}
	}
}

// clone copies the module as somebody gets it who has run nothing yet.
func clone(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || path == "jurat-data"):
			return fs.SkipDir
		case d.IsDir():
			return os.Mkdir(filepath.Join(to, path), 0o755)
		case !d.Type().IsRegular() || !belongs(path):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// belongs leaves out what commands tried by hand may have left beside the sources.
func belongs(path string) bool {
	if strings.Contains(filepath.ToSlash(path), "/") {
		return true
	}
	return slices.Contains([]string{".go", ".mod", ".sum", ".md"}, filepath.Ext(path))
}
