package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"jurat/internal/must"
)

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
	if calls < 280 && !testing.Short() {
		t.Errorf("only %d calls", calls)
	}
}

// TestBeginnersBegin: with right arguments and an absent folder, these make an installation, as serve does.
func TestBeginnersBegin(t *testing.T) {
	dir := t.TempDir()
	payload := filepath.Join(dir, "payload.json")
	write(t, payload, `{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`)
	for command, arguments := range map[string][]string{"init": nil, "trial": {kitchen, "--jurors", "offline"}, "seal": {payload}} {
		data := filepath.Join(dir, "data-"+command)
		doing(t, 0, append([]string{"--data", data, command}, arguments...)...)
		if _, err := os.Stat(filepath.Join(data, "jurat.db")); err != nil {
			t.Error(err)
		}
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
		if out.Len() == 0 {
			t.Errorf("%q: exit code %d, and not a word", args, code)
		}
	}
	entries := must.Get(os.ReadDir("."))(t)
	for _, e := range entries {
		if slices.Contains(want, e.Name()) {
			continue
		}
		if code != 0 {
			t.Errorf("%q: exit code %d, and it made %s\n%s", args, code, e.Name(), &said)
		}
		must.Do(t, os.RemoveAll(filepath.Join(".", e.Name())))
	}
}
