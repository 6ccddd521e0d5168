package jurat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/internal/test/must"
)

// TestREADME runs the commands in the README and the guide as they are written, in order, in a copy of this module. Their
// files stay in the copy. The output that the README shows must be what they print. The server that the README starts
// runs beside them to the end, at a free port.
func TestREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	for _, name := range []string{"bash", "curl", "openssl"} {
		if _, err := exec.LookPath(name); err != nil && os.Getenv("CI") == "true" {
			t.Fatal(err)
		} else if err != nil {
			t.Skipf("there is no %s", name)
		}
	}
	t.Setenv("OPENAI_BASE_URL", model(t)+"/v1") // of the agent that the README records
	blocks := append(readBlocks(t, "README.md"), readBlocks(t, "docs/guide.md")...)
	at := &place{folder: clone(t)}
	output, ran := "", 0
	for _, b := range blocks {
		switch {
		case b.language == "console" && strings.Contains(b.text, "scripts/test"):
		case b.language == "console" && strings.Contains(b.text, "SHA256SUMS"): // internal/release installs from an archive that it made
		case b.language == "console" && b.text == serveCommand+"\n":
			output = at.serve(t)
			ran++
		case b.language == "console":
			output = b.run(t, at)
			at.build(t)
			ran++
		case b.language == "text":
			b.isShortened(t, output)
		case b.language != "":
			t.Errorf("%s:%d: nothing runs a block of %q", b.file, b.line, b.language)
		}
	}
	must.Hold(t, ran >= 10 && at.url != "",
		"ran %d blocks of commands, the server at %q: the README has more, or this test does not find them", ran, at.url)
}

// model starts a model that answers every call of Chat Completions in the same way.
func model(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/v1/chat/completions" {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, `{"id":"c","object":"chat.completion","model":"gpt-5-mini-2026-05-01","choices":[{"index":0,"message":{"role":"assistant","content":"From ten to six."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const (
	serveCommand = "go run ./cmd/jurat serve"
	shownURL     = "http://127.0.0.1:8417" // where the README's server is
)

// A place is a copy of the module in which the README's commands run.
type place struct {
	folder string // a copy of the module
	tools  string // a folder with the built program, and a go command that runs it; "": it is not built yet
	url    string // where the server is; "": none was started
}

// build builds the program as go run does for the first block, and spares the others that it looks at all sources again: of a command that fails, go run makes 1.
func (p *place) build(t *testing.T) {
	t.Helper()
	if p.tools != "" {
		return
	}
	tools := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(tools, "jurat"), "./cmd/jurat")
	build.Dir = p.folder
	out, err := build.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	command := fmt.Sprintf("#!/bin/sh\nif [ \"$1 $2\" = 'run ./cmd/jurat' ]; then shift 2; '%s/jurat' \"$@\" || exit 1; else exec '%s' \"$@\"; fi\n", tools, must.Get(exec.LookPath("go"))(t))
	must.Do(t, os.WriteFile(filepath.Join(tools, "go"), []byte(command), 0o700))
	p.tools = tools
}

// serve runs the README's server beside the following commands, and returns what it prints at its start.
func (p *place) serve(t *testing.T) string { // with a terminal, because the server prints the link only there
	t.Helper()
	p.build(t)
	screen, file := terminal(t)
	var mu sync.Mutex // held while said is read or written
	var said []byte
	go func() {
		for part := make([]byte, 4096); ; {
			n, err := screen.Read(part)
			mu.Lock()
			said = append(said, bytes.ReplaceAll(part[:n], []byte("\r"), nil)...)
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	server := exec.Command(filepath.Join(p.tools, "jurat"), "serve", "--addr", "127.0.0.1:0")
	server.Dir, server.Env, server.Stdout, server.Stderr = p.folder, p.environment(), file, file
	must.Do(t, server.Start())
	t.Cleanup(func() {
		err := errors.Join(server.Process.Signal(os.Interrupt), server.Wait(), file.Close())
		must.Want(t, err, nil)
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		mu.Lock()
		doc := bytes.Clone(said)
		mu.Unlock()
		if m := servedAt.FindSubmatch(doc); m != nil {
			p.url = string(m[1])
			return strings.ReplaceAll(string(doc), p.url, shownURL)
		}
		must.Need(t, !time.Now().After(end), "the server does not say where it is:\n%s", doc)
	}
}

var servedAt = regexp.MustCompile(`(?m)^(http://127\.0\.0\.1:[0-9]+)$`)

// TestGuideSendsTheSourcesExample: the guide sends the audit model's own example, unchanged.
func TestGuideSendsTheSourcesExample(t *testing.T) {
	example := must.Get(os.ReadFile("evidence/testdata/source/action.json"))(t)
	sent := slices.ContainsFunc(readBlocks(t, "docs/guide.md"), func(b block) bool {
		return b.language == "console" && strings.Contains(b.text, "--data '"+strings.TrimSpace(string(example))+"'")
	})
	must.Hold(t, sent, "no command of the guide sends the example")
}

// TestREADMEPictures: the README's pictures exist, and are small enough to load fast.
func TestREADMEPictures(t *testing.T) {
	doc := must.Get(os.ReadFile("README.md"))(t)
	shown := regexp.MustCompile(`!\[[^]]+\]\(([^)]+)\)`).FindAllStringSubmatch(string(doc), -1)
	must.Hold(t, len(shown) >= 2, "the README shows %d pictures", len(shown))
	for _, m := range shown {
		picture, err := os.ReadFile(m[1])
		if err != nil || len(picture) > 250_000 || http.DetectContentType(picture) != "image/png" {
			t.Errorf("%s: %d bytes, %v", m[1], len(picture), err)
		}
	}
}

// A block is the text between two fences.
type block struct {
	file     string
	line     int // of the first line inside
	language string
	text     string
}

func readBlocks(t *testing.T, file string) []block {
	t.Helper()
	doc := must.Get(os.ReadFile(file))(t)
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
	must.Need(t, len(blocks) != 0 && !open, "%s: %d blocks, and an unclosed fence: %v", file, len(blocks), open)
	return blocks
}

// exitComment says with which code a block ends, if it is not 0.
var exitComment = regexp.MustCompile(`# exit code ([0-9]+)\n$`)

// run runs the block's commands, which must all succeed, but for the last one if a comment says its exit code.
func (b block) run(t *testing.T, at *place) string {
	t.Helper()
	text, want := b.text, "0"
	if at.url != "" {
		text = strings.ReplaceAll(text, shownURL, at.url)
	}
	if m := exitComment.FindStringSubmatch(b.text); m != nil {
		want = m[1]
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-u", "-o", "pipefail", "-c", text)
	cmd.Dir, cmd.Env = at.folder, at.environment()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	must.Need(t, err == nil || errors.As(err, &exit), "%v", err)
	got := cmd.ProcessState.ExitCode()
	must.Need(t, strconv.Itoa(got) == want, "%s:%d: exit code %d, want %s:\n%s%s", b.file, b.line, got, want, out, &stderr)
	return string(out)
}

// environment is this process's environment without variables that lead the commands to the user's own data and
// settings.
func (p *place) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "JURAT_") || strings.HasPrefix(v, "JURY_") || strings.HasPrefix(v, "PWD=") ||
			strings.Contains(v, "_API_KEY=") // so that no test asks a vendor
	})
	return append(env, "PWD="+p.folder, "PATH="+strings.TrimPrefix(p.tools+":", ":")+os.Getenv("PATH"))
}

// isShortened compares every line that the block shows with the output. "…" matches any part of a line.
func (b block) isShortened(t *testing.T, output string) {
	t.Helper()
	lines := strings.Split(output, "\n")
	for i, shown := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		parts := strings.Split(strings.TrimRight(shown, " "), "…")
		for j := range parts {
			parts[j] = regexp.QuoteMeta(parts[j])
		}
		line := regexp.MustCompile("^" + strings.Join(parts, ".*") + " *$")
		must.Hold(t, slices.ContainsFunc(lines, line.MatchString), "%s:%d shows a line that the commands do not print: %q", b.file, b.line+i, shown)
	}
}

// clone copies the module as it is in a fresh checkout.
func clone(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	must.Do(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
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
	}))
	return to
}

// belongs leaves out files that commands run by hand may have left beside the sources.
func belongs(path string) bool {
	if strings.Contains(filepath.ToSlash(path), "/") {
		return true
	}
	return slices.Contains([]string{".go", ".mod", ".sum", ".md"}, filepath.Ext(path))
}

// TestFormatExamples: each example in docs/format.md is what the file says that is named before it, but for white space and what "…" leaves out.
func TestFormatExamples(t *testing.T) {
	page := string(must.Get(os.ReadFile("docs/format.md"))(t))
	examples := regexp.MustCompile("(?s)`([^`\n]+)`[^`]*\n\n```[a-z]+\n(.+?)\n```\n").FindAllStringSubmatch(page, -1)
	must.Need(t, len(examples) >= 8 && len(examples) == strings.Count(page, "\n```\n"), "found %d examples with a file before them", len(examples))
	dense := func(text string) string { return strings.Join(strings.Fields(strings.ReplaceAll(text, `\"`, `"`)), "") }
	for _, example := range examples {
		rest := dense(string(must.Get(os.ReadFile(example[1]))(t)))
		for part := range strings.SplitSeq(dense(example[2]), "…") {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%s does not say, or not there: %s", example[1], part)
			}
			rest = after
		}
	}
}
