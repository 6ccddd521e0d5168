package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"jurat": main})
}

// TestScripts runs the real command as people run it.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Abs("../../aep/testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Condition:           condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Values[authoritiesKey{}] = authorities{}
			env.Setenv("AEP", packages)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exit": exit, "flip": flip, "authority": authority, "fill": fill},
	})
}

// condition answers [has:PROGRAM]. Under CI=true nothing may be skipped, so everything is there or fails.
func condition(name string) (bool, error) {
	const has = "has:"
	if len(name) <= len(has) || name[:len(has)] != has {
		return false, errors.New("unknown condition " + name)
	}
	if os.Getenv("CI") == "true" {
		return true, nil
	}
	_, err := exec.LookPath(name[len(has):])
	return err == nil, nil
}

// exit CODE PROGRAM ARG... runs a program that must end with that exit code.
func exit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// flip FILE changes one byte in the middle of a file.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: flip FILE")
	}
	file := ts.MkAbs(args[0])
	content, err := os.ReadFile(file)
	ts.Check(err)
	content[len(content)/2] ^= 1
	ts.Check(os.WriteFile(file, content, 0o644))
}
