package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jurat/internal/must"
)

// completed are what the program offers, without what it means.
func completed(t *testing.T, words ...string) (values []string) {
	t.Helper()
	for line := range strings.Lines(doing(t, 0, append([]string{"complete", "--"}, words...)...) + "\n") {
		value, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		values = append(values, value)
	}
	return values
}

func TestComplete(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"ver", "verify version"},
		{"log fs", "fsck"},
		{"log witness ", "add ask list remove"},
		{"--data x log fs", "fsck"},
		{"verify --trust ", ":files"},
		{"verify ", ":files"},
		{"backup ", ":folders"},
		{"explain --lang ", "en ja ru"},
		{"explain --lang=j", "--lang=ja"},
		{"keys new ag", "agent"},
		{"case schema c", "card conversation"},
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
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("jurat %s: %q, want %q", c.words, text, c.want)
		}
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
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"fsck", "ja", "my", "agent", "operator"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not offered:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "text.txt") || strings.Contains(string(out), ":files") {
		t.Errorf("%s", out)
	}
}
