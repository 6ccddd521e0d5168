package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"jurat/internal/court/llm/llmtest"
	"jurat/internal/test/must"
	"jurat/jury"
)

// TestInert: text of an accused agent cannot move the cursor, colour the verdict, or change the direction of a line.
func TestInert(t *testing.T) {
	for in, want := range map[string]string{
		"plain, 日本語, é":           "plain, 日本語, é",
		"a\x1b[32mPROVED":         "a\uFFFD[32mPROVED",
		"over\rwritten":           "over\uFFFDwritten",
		"\u202eevil\u202c":        "\uFFFDevil\uFFFD",
		"tab\there\x00\x7f\u0085": "tab here\uFFFD\uFFFD\uFFFD",
		"line\u2028break":         "line\uFFFDbreak",
	} {
		must.Equal(t, inert(in), want)
	}
}

// hostile has every kind of character that controls a terminal: C0, C1 as a character and as a byte, DEL, a change of
// direction, and line feeds.
const hostile = "x\x1b[2J\x1b]0;owned\x07\u009b31m\x9b\x7f\u202e\u2066\u061c\u2028\r\njurat: forged: PROVED\n"

// tame returns an error for a character that a terminal would obey, and for a line on stderr that is not the program's
// own.
func tame(out, errs string) error {
	for _, text := range []string{out, errs} {
		for at, c := range text {
			if c != '\n' && obeyed(c) || c == '\uFFFD' && text[at] != 0xef {
				return fmt.Errorf("byte %d is printed unchanged: %q", at, text[max(0, at-40):min(len(text), at+40)])
			}
		}
	}
	for line := range strings.Lines(errs) {
		if !strings.HasPrefix(line, "jurat: ") || strings.HasPrefix(line, "jurat: forged") {
			return fmt.Errorf("a line on stderr that is not the program's: %q", line)
		}
	}
	return nil
}

// trying runs a command on hostile input, for a short time.
func trying(t *testing.T, input string, args ...string) (out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var o, e bytes.Buffer
	run(ctx, args, stdio{in: strings.NewReader(input), out: &o, err: &e})
	return o.String(), e.String()
}

// TestHostileArguments: no argument of any command can move the cursor or make a line of its own in the output.
func TestHostileArguments(t *testing.T) {
	t.Chdir(t.TempDir())
	parser := must.Get(kong.New(&app{}, kong.Name("jurat")))(t)
	tried := 0
	for _, command := range parser.Model.Leaves(true) {
		path := strings.Fields(command.Path())
		var whole []string // the command with all that it demands
		for _, arg := range command.Positional {
			whole = append(whole, valueOf(arg))
		}
		for _, flag := range command.Flags {
			if flag.Required || listens(flag.Name) {
				whole = append(whole, "--"+flag.Name+"="+valueOf(flag.Value))
			}
		}
		lines := [][]string{{hostile}, {"--" + hostile}, whole}
		for _, flag := range command.Flags {
			if !flag.IsBool() {
				lines = append(lines, append([]string{"--" + flag.Name + "=" + hostile}, whole...))
			}
		}
		for _, line := range lines {
			args := append(append([]string{"--data", "none"}, path...), line...)
			if out, errs := trying(t, hostile, args...); tame(out, errs) != nil {
				t.Errorf("%q: %v", args, tame(out, errs))
			}
			tried++
		}
	}
	must.Hold(t, tried >= 300, "only %d were tried", tried)
}

// listens reports whether a flag says where a command listens: at an address that no machine has, it ends at once.
func listens(flag string) bool { return flag == "addr" || flag == "listen" }

// valueOf returns a value that a flag accepts, hostile if it may be any text.
func valueOf(v *kong.Value) string {
	switch {
	case v.Enum != "":
		return strings.Split(v.Enum, ",")[0]
	case listens(v.Name):
		return "256.0.0.1:0"
	}
	return hostile
}

// TestHostileFiles: names of files, names of members in them, and their values cannot control the terminal.
func TestHostileFiles(t *testing.T) {
	accused := must.Get(filepath.Abs(kitchen))(t)
	t.Chdir(t.TempDir())
	doing(t, 0, "trial", accused, "--jurors", "offline", "--out", "case.jurat")
	must.Do(t, os.WriteFile("trust.json", []byte(doing(t, 0, "trust")+"\n"), 0o600))
	case_ := must.Get(os.ReadFile("case.jurat"))(t)
	quoted, _ := json.Marshal(strings.ToValidUTF8(hostile, ""))
	member := string(quoted)
	name := "f" + strings.ReplaceAll(hostile, "/", "")
	for what, content := range map[string]string{
		"member":       `{` + member + `:1}` + "\n",
		"raw member":   "{\"" + hostile + "\":1}\n",
		"value":        `{"agent_id":` + member + `,"action_type":` + member + `}`,
		"bundle":       `{"bundle":` + member + `,"records":[]}` + "\n",
		"line":         member + "\n",
		"no JSON":      hostile,
		"changed case": strings.Replace(string(case_), `"records":[{`, `"records":[{`+member+`:1,`, 1),
		"other action": strings.Replace(string(case_), `"action_type":"`, `"action_type":`+member+`,"x":"`, 1),
		"envelope":     `{"payload":` + member + `,"payloadType":` + member + `,"signatures":[{` + member + `:1}]}`,
		"checkpoint":   hostile + "\n1\nAAAA\n\n\u2014 " + hostile + " AAAA\n",
	} {
		for _, file := range []string{"h.json", name} {
			must.Do(t, os.WriteFile(file, []byte(content), 0o600))
			for _, args := range [][]string{
				{"trial", file}, {"trial", file, file, "--parallel", "2"}, {"trial", file, "--trust", file}, {"trial", "case.jurat", "--config", file},
				{"trial", "case.jurat", "--card", file}, {"seal", file}, {"seal", file, "--signature", file}, {"export", file, "--withhold", "prompt"}, {"export", "case.jurat", "--withhold", file},
				{"export", file, "--openssl", "o"}, {"export", "case.jurat", "--trust", file, "--openssl", "o"}, {"export", file, "--scitt", "-"},
				{"verify", file}, {"verify", "--trust", "trust.json", file, "case.jurat"}, {"verify", "--trust", file, "case.jurat"},
				{"verify", "--trust", "trust.json", "--checkpoint", file, "case.jurat"}, {"verify", "--trust", "trust.json", "--entries", file, "case.jurat"},
				{"verify", "--trust", "trust.json", "--consistency", file, "--checkpoint", file, "case.jurat"}, {"verify", "--crl", file, "case.jurat"},
				{"explain", file}, {"explain", "case.jurat", "--trust", file}, {"explain", file, "--who-said", hostile},
				{"seal", "--sign-only", "--key", file, file},
				{"trial", "case.jurat", "--method", "calibrated", "--calibration", file}, {"log", "prove", file}, {"log", "prove", file, "--linked"},
				{"log", "checkpoint", "--since", file}, {"init", "--from", file, "--none-later", "--data", "r"}, {"keys", "new", "agent", "a", "--public", file, "--reason", "x"},
				{"tsa", "a", "http://127.0.0.1:1", "--root", file}, {"witness", "--log", file, "--addr", "256.0.0.1:0"},
			} {
				out, errs := trying(t, content, args...)
				must.Want(t, tame(out, errs), nil, what, args)
			}
		}
	}
}

// TestHostileRecords: a sealed text is shown inert to people, has the same value for machines, and is unchanged in the
// file.
func TestHostileRecords(t *testing.T) {
	t.Chdir(t.TempDir())
	said := strings.ToValidUTF8(hostile, "")
	quoted, _ := json.Marshal(said)
	payload := fmt.Sprintf(`{"agent_id":"a","request_id":"1","timestamp":"2026-01-01T00:00:00Z","model":"m","model_version":"1","prompt":%[1]s,"response":%[1]s,"parameters":{%[1]s:%[1]s}}`, quoted)
	sealed, _ := trying(t, payload, "seal", "-")
	must.Contain(t, sealed, "\u202e")
	must.Do(t, os.WriteFile("record.json", []byte(sealed), 0o600))
	doing(t, 0, "access", "grant", "a", "agent", "--reason", "why\u202e\u009b", "--by", "tester")
	must.Do(t, os.WriteFile("trust.json", []byte(doing(t, 0, "trust")+"\n"), 0o600))
	for _, args := range [][]string{{"verify", "record.json"}, {"verify", "--trust", "trust.json", "record.json"}, {"explain", "record.json"}, {"keys", "list"},
		{"access", "list"}, {"access", "list", "--all"}, {"log", "stamp", "--list"}, {"log", "fsck"}, {"apart"}} {
		out, errs := trying(t, "", args...)
		must.Want(t, tame(out, errs), nil, args)
	}
	for _, args := range [][]string{{"keys", "list", "--json"}, {"access", "list", "--json"}, {"verify", "--trust", "trust.json", "--json", "record.json"}} {
		out, errs := trying(t, "", args...)
		must.Want(t, tame(out, errs), nil, args)
		err := json.Unmarshal([]byte(out), new(any))
		must.Hold(t, err == nil, "%q is no JSON: %v\n%s", args, err, out)
		must.Hold(t, args[0] != "access" || strings.Contains(unescaped(t, out), "why\u202e\u009b"), "%q: the reason has changed: %s", args, out)
	}
}

// unescaped returns a JSON document with the escapes that Go writes.
func unescaped(t *testing.T, doc string) string {
	t.Helper()
	var value any
	must.Do(t, json.Unmarshal([]byte(doc), &value))
	return string(must.Get(json.Marshal(value))(t))
}

// TestOneLine: an error is one line. Joined errors are separated in it, and foreign line feeds are replaced.
func TestOneLine(t *testing.T) {
	a, b := errors.New("a\nb"), errors.New("c")
	for want, err := range map[string]error{
		"a\uFFFDb; c":                  errors.Join(a, b),
		"x\uFFFD: a\uFFFDb; c":         fmt.Errorf("x\n: %w", errors.Join(a, b)),
		"a\uFFFDb, c, y":               fmt.Errorf("%w, %w, y", a, b),
		"at: a\uFFFDb; c; again: c":    errors.Join(fmt.Errorf("at: %w", errors.Join(a, b)), fmt.Errorf("again: %w", b)),
		"open f\uFFFDx: no such file":  &os.PathError{Op: "open", Path: "f\nx", Err: errors.New("no such file")},
		"hinted: c":                    hint(fmt.Errorf("hinted: %w", b), "do"),
		"it hides what it is made of":  hiding{a},
		"failing: \uFFFDjurat: PROVED": fmt.Errorf("failing: %w", errors.New("\njurat: PROVED")),
	} {
		must.Equal(t, oneLine(err), want)
	}
}

type hiding struct{ error }

func (hiding) Error() string   { return "it hides what it is made of" }
func (h hiding) Unwrap() error { return h.error }

// TestGuardedAlone: no command uses os.Stdout or os.Stderr directly.
func TestGuardedAlone(t *testing.T) {
	bypass := regexp.MustCompile(`os\.Std(out|err)|fmt\.Print|\bprintln\(|Fprint(f|ln)?\(std\.out|std\.out\.Write|New(JSON|Text)Handler|\blog\.(Print|Fatal)`)
	files, err := filepath.Glob("*.go")
	must.Need(t, err == nil && len(files) >= 50, "%v %v", files, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "terminal.go" || file == "main.go" {
			continue
		}
		text := must.Get(os.ReadFile(file))(t)
		found := bypass.Find(text)
		must.Hold(t, found == nil, "%s writes without the guards of terminal.go: %s", file, found)
	}
}

// TestHead: if a reader such as head closes the pipe, the command reports no error.
func TestHead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "case.jurat")
	doing(t, 0, "--data", filepath.Join(dir, "data"), "trial", kitchen, "--jurors", "offline", "--out", file)
	reader, writer, err := os.Pipe()
	must.Do(t, err)
	must.Do(t, reader.Close())
	defer writer.Close()
	for args, says := range map[string]string{
		"verify " + file: "", "explain " + file: "", "stats " + file: "", "stats --json " + file: "",
		"trial --jurors offline " + kitchen + " --out " + filepath.Join(dir, "2.jurat"): "jurat: hint: the trial is over",
	} {
		var errs bytes.Buffer
		code := run(t.Context(), append([]string{"--data", filepath.Join(dir, "data")}, strings.Fields(args)...), stdio{out: writer, err: &errs})
		must.Hold(t, code != 0 && !strings.Contains(errs.String(), "pipe") && strings.Contains(errs.String(), says),
			"%s: exit code %d\n%s", args, code, &errs)
	}
}

// TestInertJSONInPieces: a document comes out the same, however it is divided into writes.
func TestInertJSONInPieces(t *testing.T) {
	doc := []byte("{\"a\":\"\u202e \u0085 \u00e9 \u65e5 \U000e0041 z\"}\n")
	want := string(inertJSON(doc))
	for size := 1; size <= len(doc); size++ {
		var out bytes.Buffer
		w := &inertJSONWriter{to: &out}
		for piece := range slices.Chunk(doc, size) {
			n, err := w.Write(piece)
			must.Need(t, n == len(piece) && err == nil, "%v %v", n, err)
		}
		must.Hold(t, out.String() == want, "in pieces of %d: %q, want %q", size, out.String(), want)
	}
}

// TestRunnersTakeNoCommands: under a runner of GitHub Actions or of Azure Pipelines, nothing that an agent says is a command: not at the
// beginning of a line, after blanks, in the middle of one, in a message, or in JSON, whose values stay the same.
func TestRunnersTakeNoCommands(t *testing.T) {
	evil := []string{"::error::x", "  ::set-output name=a::b", "fine\n\t::add-mask::x", "\ufeff::stop-commands::x", "\u00a0::debug::x", "say ##[set-env name=PATH]x", "##[add-path]x",
		"##vso[task.setvariable variable=x]y", "###[warning]x", "\x1b::warning::x"}
	for _, runner := range []string{"GITHUB_ACTIONS", "TF_BUILD", ""} {
		t.Setenv("GITHUB_ACTIONS", "")
		t.Setenv("TF_BUILD", "")
		if runner != "" {
			t.Setenv(runner, "true")
		}
		for _, text := range evil {
			var out, said strings.Builder
			std := stdio{out: &out, err: &said}.guarded()
			fmt.Fprintln(std.out, text)
			fmt.Fprintln(std.err, text)
			p := newPrinter(std.out)
			p.text("", text)
			p.line("%s", text)
			people := out.String() + said.String()
			must.Equal(t, commanding(people), runner == "", runner, text, "is printed as", people)
			out.Reset()
			must.Do(t, std.json(map[string]string{"text": text}))
			var back map[string]string
			if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back["text"] != text || runner != "" && commanding(out.String()) {
				t.Errorf("%s: %q as JSON: %s %v", runner, text, out.String(), err)
			}
		}
	}
}

// commanding reports whether a runner finds a command in what it reads.
func commanding(text string) bool {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "##[") || strings.Contains(line, "##vso[") || strings.HasPrefix(strings.TrimLeft(line, " \t\u00a0\ufeff\ufffd"), "::") {
			return true
		}
	}
	return false
}

// TestQuiet: with --quiet a command says results, errors and hints, and nothing else; the exit code is the same.
func TestQuiet(t *testing.T) {
	t.Setenv("JURAT_JURORS", "offline")
	withoutKeys(t)
	dir := t.TempDir()
	data := "--data=" + filepath.Join(dir, "data")
	out, said := ran(t, 0, data, "--quiet", "trial", kitchen) // it makes the installation, and does not say so
	must.Hold(t, said == "" && strings.Count(out, "\n") == 1 && strings.Contains(out, "safe_pass"), "%q\n%s", said, out)
	out, said = ran(t, 1, data, "--quiet", "trial", kitchen, invoice, "--parallel", "2")
	must.Hold(t, said == "" && strings.Count(out, "\n") == 2 && strings.Contains(out, "unsafe_fail"), "%q\n%s", said, out)
	out, said = ran(t, 0, data, "trial", kitchen, "--json", "--quiet")
	must.Hold(t, said == "" && strings.Contains(out, `"finalVerdict": "safe_pass"`), "%q\n%s", said, out)
	_, said = ran(t, exitCannot, data, "--quiet", "trial", filepath.Join(dir, "nowhere"))
	must.Contain(t, said, "nowhere: no such file", "hint: ")
	t.Setenv("JURAT_JURORS", "")
	_, said = ran(t, exitUndecided, data, "--quiet", "trial", kitchen)
	must.Equal(t, said, "")
}

// TestClosedPipe: if the reader of stdout goes away, as head does, the command ends without a word; a trial goes on to its end, is in the log,
// and its exit code says that not all was said.
func TestClosedPipe(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"trial", kitchen, "--jurors", "offline"}, {"trial", "--list"}, {"--help"}, {"help", "verifying"}, {"log", "checkpoint", "--entries"}} {
		read, write, err := os.Pipe()
		must.Do(t, err)
		must.Do(t, read.Close())
		var said bytes.Buffer
		cmd := exec.Command("jurat", append([]string{"--data", filepath.Join(dir, "data")}, args...)...)
		cmd.Stdout, cmd.Stderr = write, &said
		err = cmd.Run()
		must.Do(t, write.Close())
		var ended *exec.ExitError
		must.Hold(t, errors.As(err, &ended) && ended.ExitCode() == exitCannot, "%q: %v", args, err)
		text := said.String()
		must.Hold(t, !strings.Contains(text, "goroutine") && !strings.Contains(text, "broken pipe"), "%q: %s", args, text)
	}
	must.Contain(t, doing(t, 0, "--data", filepath.Join(dir, "data"), "trial", "--list"), "every trial in the log has its verdict")
	doing(t, 0, "--data", filepath.Join(dir, "data"), "log", "fsck")
}

// TestInterruptedEndsWith130: Ctrl-C ends a command with 130, in a few words, and leaves a log that is whole and a trial that can go on.
func TestInterruptedEndsWith130(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	read, write, err := os.Pipe()
	must.Do(t, err)
	var said bytes.Buffer
	cmd := exec.Command("jurat", "--data", data, "trial", kitchen, invoice, pharmacy, "--jurors", "offline")
	cmd.Stdout, cmd.Stderr = write, &said
	must.Do(t, cmd.Start())
	must.Do(t, write.Close())
	part := make([]byte, 1)
	_, err = read.Read(part)
	must.Need(t, err == nil, "%v", err) // the first trial has begun
	must.Do(t, cmd.Process.Signal(syscall.SIGINT))
	go io.Copy(io.Discard, read) // until the command ends
	var ended *exec.ExitError
	err = cmd.Wait()
	must.Hold(t, errors.As(err, &ended) && ended.ExitCode() == exitInterrupted, "%v\n%s", err, &said)
	must.Hold(t, !strings.Contains(said.String(), "goroutine") && strings.Contains(said.String(), "interrupted"), "%s", &said)
	doing(t, 0, "--data", data, "log", "fsck")
}

// TestNobodyReadsTheLog: a server whose stderr is a pipe without a reader still answers, and ends when it is told to.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe() // a pipe holds about 64 KiB
	must.Do(t, err)
	defer reader.Close()
	defer writer.Close()
	out, stdout := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, []string{"--data", filepath.Join(t.TempDir(), "data"), "serve", "--addr", "127.0.0.1:0", "--jurors", "offline", "--rate-limit", "0"},
			stdio{in: strings.NewReader(""), out: stdout, err: writer})
		stdout.Close()
		ended <- code
	}()
	defer cancel()
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	client := &http.Client{Timeout: 30 * time.Second}
	for n := range 1500 {
		answer, err := client.Get(strings.TrimSpace(line) + "/v1/trust")
		must.Need(t, err == nil, "request %d: %v", n, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	cancel()
	select {
	case code := <-ended:
		must.Equal(t, code, 0)
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

// TestLinesThatAreLeftOut: lines that a slow reader missed are counted, and the last lines are written.
func TestLinesThatAreLeftOut(t *testing.T) {
	var got bytes.Buffer
	gate := make(chan struct{})
	p := newLossyWriter(gated{&got, gate}, leftOut(true))
	const n = heldLines + 500
	for i := range n {
		fmt.Fprintf(p, "{\"line\":%d}\n", i)
	}
	close(gate)
	p.flush()
	fmt.Fprintf(p, "{\"last\":true}\n")
	p.flush()
	text := got.String()
	if lines := strings.Count(text, "\"line\""); lines < heldLines || lines > heldLines+1 || !strings.Contains(text, fmt.Sprintf("%d lines are left out", n-lines)) ||
		!strings.HasSuffix(text, "{\"last\":true}\n") {
		t.Errorf("%d lines; the end is %s", lines, text[max(0, len(text)-300):])
	}
}

// gated blocks every write until gate is closed.
type gated struct {
	to   io.Writer
	gate chan struct{}
}

func (g gated) Write(p []byte) (int, error) { <-g.gate; return g.to.Write(p) }

// TestHangUp: when its terminal is closed, a server ends as it does on Ctrl-C.
func TestHangUp(t *testing.T) {
	heard := make(chan os.Signal, 1) // so that the server does not inherit an ignored SIGHUP, as under nohup
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	for _, sent := range []os.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		cmd := exec.CommandContext(t.Context(), "jurat", "--data", filepath.Join(t.TempDir(), "data"), "serve", "--addr", "127.0.0.1:0", "--jurors", "offline")
		endsWithTest(t, cmd)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		must.Fail(t, nil)(bufio.NewReader(out).ReadString('\n'))
		must.Do(t, cmd.Process.Signal(sent))
		must.Want(t, cmd.Wait(), nil, sent)
	}
}

// TestWatched: a reader reads a file to its end, stops when the program is to end, and reports progress.
func TestWatched(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(name, bytes.Repeat([]byte("x"), 1<<20), 0o600))
	file := must.Get(os.Open(name))(t)
	defer file.Close()
	var told bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	r := watch(ctx, stdio{err: &told}, file)
	n, err := io.Copy(io.Discard, io.LimitReader(r, 1<<19))
	must.Need(t, n == 1<<19 && err == nil, "%d bytes, %v", n, err)
	cancel()
	must.Fail(t, context.Canceled)(r.Read(make([]byte, 1)))
	tell := progress(stdio{err: &told}, "verified")
	last := time.Now().Add(time.Second)
	for told.Len() == 0 && time.Now().Before(last.Add(10*time.Second)) {
		tell(1, 2)
	}
	must.Contain(t, told.String(), "jurat: verified: 1 of 2")
}

// A cue is a text that lets jurors answer when words of theirs are in it.
type cue struct {
	mu     sync.Mutex
	text   bytes.Buffer
	cues   map[string]chan struct{} // by words; closed when they have been written
	missed chan struct{}            // closed when the command has ended
}

func newCue(words ...string) *cue {
	c := &cue{cues: map[string]chan struct{}{}, missed: make(chan struct{})}
	for _, w := range words {
		c.cues[w] = make(chan struct{})
	}
	return c
}

func (c *cue) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.text.String()
	c.text.Write(p)
	for words, is := range c.cues {
		if !strings.Contains(before, words) && strings.Contains(c.text.String(), words) {
			close(is)
		}
	}
	return len(p), nil
}

func (c *cue) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// on has a juror answer when these words have been written.
func (c *cue) on(words string, script llmtest.Script) llmtest.Script {
	return func(call llmtest.Call) llmtest.Reply {
		select {
		case <-c.cues[words]:
		case <-c.missed:
		}
		return script(call)
	}
}

// held runs a trial whose first two jurors wait until stderr says that they are waited for, and that the first has answered.
func held(t *testing.T, more ...string) (out, said string) {
	t.Helper()
	const waits, first = "waiting for", "The juror-gpt has answered"
	c := newCue(waits, first)
	s := newScene(t, map[int]llmtest.Script{0: c.on(waits, finds(jury.SafePass, 90)), 1: c.on(first, finds(jury.SafePass, 90))})
	s.extra = slices.Repeat([]string{", attempts: 1, price: {input: 1, output: 2}"}, len(seatIDs))
	var stdout bytes.Buffer
	code := run(t.Context(), append([]string{"--data=" + s.data, "trial", "--config=" + s.config(), s.accused}, more...), stdio{in: strings.NewReader(""), out: &stdout, err: c})
	if close(c.missed); code != 0 {
		t.Errorf("exit code %d\n%s", code, c)
	}
	return stdout.String(), c.String()
}

// TestWaiting: while models think, stderr says what is waited for, who has answered, how long it takes and what it has cost, with a line for
// each event at most. stdout has the transcript or the JSON alone.
func TestWaiting(t *testing.T) {
	out, said := held(t, "--json")
	must.Hold(t, strings.HasPrefix(out, "{") && !strings.Contains(out, "waiting for"), "stdout has more than JSON:\n%s", out)
	lines := slices.DeleteFunc(strings.Split(said, "\n"), func(line string) bool { return !strings.Contains(line, "each juror alone") })
	next := 0
	for _, want := range []string{
		`^jurat: each juror alone; (.* answered; )?waiting for .*The juror-(gpt|claude).*; \d+s(; \$0\.\d+ so far)?$`,
		`^jurat: each juror alone; The juror-gpt has answered; waiting for .*The juror-claude.*; \d+s; \$0\.\d+ so far$`,
		`^jurat: each juror alone; The juror-claude has answered; (waiting for .*; )?\d+s; \$0\.\d+ so far$`,
	} {
		at := slices.IndexFunc(lines[next:], regexp.MustCompile(want).MatchString)
		must.Need(t, at >= 0, "no line from %d on is %s:\n%s", next, want, said)
		next += at + 1
	}
	must.Hold(t, len(lines) <= 1+len(seatIDs), "%d lines:\n%s", len(lines), said)
	out, _ = held(t)
	must.Hold(t, !strings.Contains(out, "waiting for") && strings.Contains(out, "Verdict"), "stdout:\n%s", out)
}

var namesItsCase = regexp.MustCompile(`(?m)^jurat: \.\./\.\./examples/(pharmacy-refill|kitchen-return): each juror alone; `) // whichever waits

// TestWaitingOfSeveral: of several cases at a time, each line names its case, and comes while the trial goes on.
func TestWaitingOfSeveral(t *testing.T) {
	_, said := held(t, "../../examples/pharmacy-refill", "--parallel", "2")
	must.Hold(t, namesItsCase.MatchString(said), "%v", said)
}

// TestNotWaiting: with --quiet nothing is said of a wait, however long.
func TestNotWaiting(t *testing.T) {
	s := newScene(t, map[int]llmtest.Script{0: slowly(2*patience, finds(jury.SafePass, 90))})
	out, said := s.hold(0, 0, "--quiet")
	must.Hold(t, said == "" && !strings.Contains(out, "waiting for"), "%s%s", out, said)
}

// slowly has a juror answer after a while.
func slowly(after time.Duration, script llmtest.Script) llmtest.Script {
	return func(c llmtest.Call) llmtest.Reply {
		reply := script(c)
		reply.Delay = after
		return reply
	}
}
