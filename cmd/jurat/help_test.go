package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"jurat/internal/test/must"
)

// model is the command line as the library has it.
func model(t *testing.T) *kong.Node {
	t.Helper()
	parser := must.Get(kong.New(&app{}, kong.Name("jurat")))(t)
	return parser.Model.Node
}

// about is what a command's help says before its example.
func about(n *kong.Node) string {
	text, _, _ := strings.Cut("\n\n"+helps()[n.Path()], "\n\nExample:\n")
	return strings.TrimPrefix(text, "\n\n")
}

// TestFirstHelpFitsAScreen: what 'jurat --help' prints has 24 lines of at most 80 columns.
func TestFirstHelpFitsAScreen(t *testing.T) {
	text := doing(t, 0, "--help")
	lines := strings.Split(text, "\n")
	must.Hold(t, len(lines) <= 24, "%d lines", len(lines))
	for _, line := range lines {
		must.Hold(t, len(line) <= 80, "%d columns: %s", len(line), line)
	}
	must.Hold(t, doing(t, 0) == text && doing(t, 0, "help") == text, "jurat, jurat help and jurat --help differ")
}

// TestAllHelp: a command that comes or goes shows in testdata/help-all.txt, which -update writes anew.
func TestAllHelp(t *testing.T) {
	const file = "testdata/help-all.txt"
	text := doing(t, 0, "help", "--all") + "\n"
	if *update {
		must.Do(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want := read(t, file)
	must.Hold(t, text == want, "'jurat help --all' prints\n%s\nand %s has\n%s", text, file, want)
	for _, n := range nodesBelow(model(t)) {
		must.Hold(t, !n.Leaf() || strings.Contains(text, n.Path()), "it does not list %s", n.Path())
	}
}

var update = flag.Bool("update", false, "write testdata/help-all.txt anew")

// TestEveryCommandIsInOneGroup: groups name each command once, and nothing else.
func TestEveryCommandIsInOneGroup(t *testing.T) {
	var named, there []string
	for _, n := range model(t).Children {
		if !n.Hidden {
			there = append(there, n.Name)
		}
	}
	for _, g := range groups {
		named = append(named, g.commands...)
	}
	slices.Sort(named)
	slices.Sort(there)
	must.Hold(t, slices.Equal(named, there), "help.go has\n%v\nand the commands are\n%v", named, there)
}

// TestHelpShowsFlagsThatApply: help shows the installation's flags for commands that use it, and for no other.
func TestHelpShowsFlagsThatApply(t *testing.T) {
	for command, want := range map[string]bool{"verify": false, "explain": false, "portal": false,
		"witness": false, "trial": true, "seal": true, "log fsck": true, "log": true, "ca issue": false, "init": true, "doctor": true} {
		text := doing(t, 0, append(strings.Fields(command), "--help")...)
		for _, flag := range []string{"--data=", "--db=", "--wrapping-key="} {
			must.Equal(t, strings.Contains(text, "  "+flag), want, "jurat", command, "--help shows", flag)
		}
	}
	must.Contain(t, doing(t, 0, "trust", "--help"), "--ca=FILE")
}

// TestHelpOfACommand: 'jurat help COMMAND' is 'jurat COMMAND --help', for every command.
func TestHelpOfACommand(t *testing.T) {
	for _, n := range nodesBelow(model(t)) {
		words := strings.Fields(n.Path())
		if text := doing(t, 0, append([]string{"help"}, words...)...); text == "" || text != doing(t, 0, append(words, "--help")...) {
			t.Errorf("jurat help %s:\n%s", n.Path(), text)
		}
	}
	must.Equal(t, doing(t, 0, "help", "record", "run", "ls"), doing(t, 0, "record", "run", "--help"))
}

// TestHelpIsShort: at most twelve lines say what a command is for, beside its examples. What else there is to say is in the documents.
func TestHelpIsShort(t *testing.T) {
	for _, n := range nodesBelow(model(t)) {
		lines := 0
		for _, paragraph := range strings.Split(about(n), "\n\n") {
			if !strings.HasPrefix(paragraph, "    ") {
				lines += len(wrap(strings.Join(strings.Fields(paragraph), " "), screen))
			}
		}
		if lines > 12 {
			t.Errorf("jurat %s --help has %d lines", n.Path(), lines)
		}
	}
}

// TestNoGoTypesInErrors: errors about a wrong file use the terms of JSON, not Go types.
func TestNoGoTypesInErrors(t *testing.T) {
	record, bad := filepath.Join(t.TempDir(), "record"), filepath.Join(t.TempDir(), "bad")
	for name, content := range map[string]string{record: `[]`, bad: `{"keys":"x"}`} {
		must.Do(t, os.WriteFile(name, []byte(content), 0o600))
	}
	for _, args := range [][]string{
		{"verify", "--trust", bad, record}, {"export", record, "--withhold", "/prompt"}, {"explain", record},
		{"trial", record, "--method", "calibrated", "--calibration", bad},
	} {
		_, said := ran(t, 2, args...)
		lacks(t, said, "json:", "jsontext", " Go ", "unmarshal", "evidence.", "verify.", "calibration.")
	}
}

// TestTimesOfFlags: an error about a time or a day shows an example, and not a layout of package time. A right one is read.
func TestTimesOfFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record.json")
	must.Do(t, os.WriteFile(file, []byte("{}"), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"verify", "--before", "2026-01-31", file}, `--before: expected a time such as 2026-01-31T16:15:00Z, and not "2026-01-31"`},
		{[]string{"log", "expire", "--before", "2026-01-31T16:15:00Z"}, `--before: expected a day such as 2026-01-31, and not "2026-01-31T16:15:00Z"`},
		{[]string{"log", "expire", "--before", "2026-01-31", "--reason", "r", "--by", "b", "--data", t.TempDir()}, "there is no jurat installation"},
		{[]string{"verify", "--at", "2026-01-31T16:15:00+01:00", "--before", "2026-01-31T16:15:00Z", file}, file},
	} {
		_, said := ran(t, exitCannot, c.args...)
		must.Hold(t, strings.Contains(said, c.want) && !strings.Contains(said, "15:04"), "%q: %s", c.args, said)
	}
}

// TestErrorsNameTheInput: an error about an input names the flag or the case that it came from.
func TestErrorsNameTheInput(t *testing.T) {
	t.Chdir(t.TempDir())
	withoutKeys(t)
	for name, content := range map[string]string{"agent-card.json": `{"name":"a"}`, "conversation.json": `{"messages":"x"}`} {
		must.Do(t, os.MkdirAll("case", 0o700))
		must.Do(t, os.WriteFile(filepath.Join("case", name), []byte(content), 0o600))
	}
	must.Do(t, os.WriteFile("record.json", []byte(`{"digest":"x"}`), 0o600))
	for want, args := range map[string][]string{
		"jurat: --trust: open nowhere.json":           {"verify", "--trust", "nowhere.json", "record.json"},
		"record.json: reading trust file: this is a ": {"verify", "--trust", "record.json", "record.json"},
		"jurat: nowhere: no such file or folder":      {"trial", "nowhere", "--jurors", "offline"},
		"jurat: case: conversation.json:1:13":         {"trial", "case", "--jurors", "offline"},
		"OPENAI_API_KEY is not set; ANTHROPIC":        {"trial", "case", "--jurors", "llm"},
	} {
		_, said := ran(t, exitCannot, args...)
		must.Hold(t, strings.Contains(said, want), "%q: %s, want %q", args, said, want)
	}
}

// TestNamedCommandsAreBuilt: the command line has those commands that its arguments name, wherever they stand, and all where they are shown.
func TestNamedCommandsAreBuilt(t *testing.T) {
	whole := must.Get(kong.New(&app{}, kong.Name("jurat")))(t)
	all := len(whole.Model.Children)
	for _, command := range whole.Model.Children {
		want := all - 1
		if command.Name == "help" || command.Name == "completion" {
			want = 0
		}
		got := len(without([]string{"--data", "x", command.Name}))
		must.Hold(t, got == want, "%s: %d of %d commands are left out", command.Name, got, all)
	}
	for _, args := range [][]string{{"keys", "help"}, {"completion", "--words", "--", "ke"}} {
		got := without(args)
		must.Hold(t, got == nil, "%q: %d commands are left out", args, len(got))
	}
	_, parser, parsed, _, err := parse(t.Context(), []string{"--data", "trial", "keys", "list"}, stdio{}, without([]string{"--data", "trial", "keys", "list"})...)
	must.Hold(t, err == nil && parsed.Command() == "keys list" && len(parser.Model.Children) == 2, "%v, %v", parsed, err)
}

// completed are what the program offers, without what it means.
func completed(t *testing.T, words ...string) (values []string) {
	t.Helper()
	for line := range strings.Lines(doing(t, 0, append([]string{"completion", "--words", "--"}, words...)...) + "\n") {
		value, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		values = append(values, value)
	}
	return values
}

func TestComplete(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"ver", "verify version"},
		{"log fs", "fsck"},
		{"log witness --re", "--remove"},
		{"--data x log fs", "fsck"},
		{"verify --trust ", ":files"},
		{"verify ", ":files"},
		{"backup ", ":files"},
		{"explain --lang ", "en ja ru"},
		{"explain --lang=j", "--lang=ja"},
		{"keys new ag", "agent"},
		{"trial --schema c", "card conversation"},
		{"completion ", "bash fish zsh"},
		{"trial --jurors o", "offline"},
		{"trust --ca-a", "--ca-alone"},
		{"verify -- --tru", ":files"},
		{"verify --wrapping", ""},
		{"log fsck --wrapping", "--wrapping-key"},
		{"no such thing", ""},
	} {
		got := completed(t, strings.Split(c.words, " ")...)
		slices.Sort(got)
		must.Equal(t, strings.Join(got, " "), c.want)
	}
}

// TestCompletionInShells: the shells complete as the program says.
func TestCompletionInShells(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"my case.jurat", "text.txt"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	const bash = `source <(jurat completion bash)
ask() { COMP_LINE=$1; COMP_POINT=${#1}; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _jurat; printf '%s\n' "${COMPREPLY[@]}"; }
ask 'jurat log fs' jurat log fs
ask 'jurat explain --lang=j' jurat explain --lang = j
ask 'jurat verify my' jurat verify my
ask 'jurat keys new ' jurat keys new ''`
	const fish = `source (jurat completion fish | psub)
complete -C 'jurat log fs'
complete -C 'jurat explain --lang=j'
complete -C 'jurat verify my'
complete -C 'jurat keys new '`
	// zsh completes only where somebody types, so its functions are replaced by ones that print.
	const zsh = `compdef() { : }
_files() { print -l my*(N) }
_describe() { print -rl -- ${(P)4} }
source <(jurat completion zsh)
ask() { words=("$@"); CURRENT=$#; _jurat }
ask jurat log fs
ask jurat explain --lang=j
ask jurat verify my
ask jurat keys new ''`
	for shell, script := range map[string]string{"bash": bash, "fish": fish, "zsh": zsh} {
		t.Run(shell, func(t *testing.T) { inShell(t, dir, shell, script) })
	}
}

func inShell(t *testing.T, dir, shell, script string) {
	if _, err := exec.LookPath(shell); err != nil && shell != "bash" && os.Getenv("CI") != "true" {
		t.Skip(shell, "is not installed")
	}
	cmd := exec.Command(shell, "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CACHE_HOME="+dir)
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	must.Contain(t, string(out), "fsck", "ja", "my", "agent", "operator")
	lacks(t, string(out), "text.txt", ":files")
}

// TestNothingIsMadeBeforeItIsAsked: no command makes anything while its arguments are missing or wrong, and none makes an installation by that.
// Each command is called without arguments, with an unknown flag, with files that are not there, and with files that hold nothing of use.
func TestNothingIsMadeBeforeItIsAsked(t *testing.T) {
	withoutKeys(t)
	t.Setenv("JURAT_JURORS", "offline")
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "empty", "")
	write(t, "text", "nothing of use\n")
	write(t, "object", "{}")
	want := []string{"empty", "object", "text"}
	calls := 0
	for _, n := range append(nodesBelow(model(t)), hiddenBelow(model(t))...) {
		if len(n.Children) > 0 && n.DefaultCmd == nil {
			continue
		}
		words := strings.Fields(n.Path())
		for _, arguments := range tries(n) {
			if (n.Path() == "serve" || n.Path() == "record proxy" || n.Path() == "record otlp") && !slices.Contains(arguments, "--no-such-flag") && !slices.Contains(arguments, "text") {
				continue // it is right so, and begins
			}
			calls++
			untouched(t, append(append([]string{"--data", "absent"}, words...), arguments...), want)
		}
	}
	must.Hold(t, calls >= 280 || testing.Short(), "only %d calls", calls)
}

// TestBeginnersBegin: with right arguments and an absent folder, these make an installation, as serve does.
func TestBeginnersBegin(t *testing.T) {
	dir := t.TempDir()
	payload := filepath.Join(dir, "payload.json")
	write(t, payload, `{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`)
	for command, arguments := range map[string][]string{"init": nil, "trial": {kitchen, "--jurors", "offline"}, "seal": {payload}} {
		data := filepath.Join(dir, "data-"+command)
		doing(t, 0, append([]string{"--data", data, command}, arguments...)...)
		must.Fail(t, nil)(os.Stat(filepath.Join(data, "jurat.db")))
	}
}

// tries are wrong arguments for a command, and such as a person in another folder would give.
func tries(n *kong.Node) [][]string {
	all := [][]string{{"--no-such-flag"}}
	if n.Path() != "init" && n.Path() != "init installation" {
		all = append(all, nil)
	}
	for _, f := range n.Flags { // each of those that say what is done, alone
		switch {
		case len(f.Xor) == 0:
		case f.IsBool():
			all = append(all, []string{"--" + f.Name})
		default:
			all = append(all, []string{"--" + f.Name, argumentFor(f.Value, "object")})
		}
	}
	files := []string{"gone", "empty", "text", "object"}
	if testing.Short() {
		files = files[:1]
	}
	for _, file := range files {
		var flags, positional []string
		for _, list := range n.AllFlags(true) {
			for _, f := range list {
				if f.Required && len(f.Xor) == 0 {
					flags = append(flags, "--"+f.Name, argumentFor(f.Value, file))
				}
			}
		}
		for _, p := range n.Positional {
			positional = append(positional, argumentFor(p, file))
		}
		if len(positional)+len(flags) > 0 {
			all = append(all, append(flags, positional...))
		}
	}
	return all
}

// argumentFor is a value of the right kind, or the name of a file.
func argumentFor(v *kong.Value, file string) string {
	switch {
	case v.Enum != "":
		return v.EnumSlice()[0]
	case v.Target.Type().String() == "int":
		return "1"
	}
	return file
}

func hiddenBelow(node *kong.Node) (all []*kong.Node) {
	for _, n := range node.Children {
		if n.Hidden {
			all = append(all, n)
		}
		all = append(all, hiddenBelow(n)...)
	}
	return all
}

// untouched runs a command and requires that the working directory holds what it held.
func untouched(t *testing.T, args, want []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var out, said bytes.Buffer
	code := run(ctx, args, stdio{in: strings.NewReader(""), out: &out, err: &said})
	if _, err := os.Stat("absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q (exit code %d) made the data folder\n%s", args, code, &said)
		must.Do(t, os.RemoveAll("absent"))
	}
	if code != 0 && said.Len() == 0 {
		must.Hold(t, out.Len() != 0, "%q: exit code %d, and not a word", args, code)
	}
	entries := must.Get(os.ReadDir("."))(t)
	for _, e := range entries {
		if slices.Contains(want, e.Name()) {
			continue
		}
		must.Hold(t, code == 0, "%q: exit code %d, and it made %s\n%s", args, code, e.Name(), &said)
		must.Do(t, os.RemoveAll(filepath.Join(".", e.Name())))
	}
}
