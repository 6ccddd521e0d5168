package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"jurat/internal/must"
	"jurat/jurattest"
)

// withInput, if set in the environment, makes the command exit when its standard input ends.
const withInput = "JURAT_TEST_ENDS_WITH_INPUT"

// TestMain makes this binary the command as well. Both collect their little garbage seldom, but where a test looks at memory for long.
func TestMain(m *testing.M) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		debug.SetGCPercent(400)
	}
	testscript.Main(m, map[string]func(){"jurat": func() {
		if os.Getenv(withInput) != "" {
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin) // in any way
				os.Exit(1)
			}()
		}
		main()
	}, "jurat-pkcs11-lying": lying})
}

// endsWithTest makes a command that is about to be started exit when this process ends, in any way.
func endsWithTest(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(slices.Clone(cmd.Env), withInput+"=1")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
}

// TestEndsWithTest: a server ends when its test process has died.
func TestEndsWithTest(t *testing.T) {
	server := exec.Command("jurat", "--data", filepath.Join(t.TempDir(), "data"), "serve", "--addr", "127.0.0.1:0")
	server.Env = append(os.Environ(), withInput+"=1")
	input := must.Get(server.StdinPipe())(t)
	must.Do(t, server.Start())
	if err := input.Close(); err != nil { // as the system does when a process ends
		t.Fatal(err)
	}
	if err := server.Wait(); err == nil {
		t.Error("it ended by itself")
	}
}

// TestScripts runs the real command as users run it.
func TestScripts(t *testing.T) {
	examples := must.Get(filepath.Abs("../../examples"))(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Condition:           condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Setenv("JURAT_JURORS", "offline") // scripts use rules as jurors
			env.Values[authoritiesKey{}] = authorities{}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exit": exit, "flip": flip, "authority": authority},
	})
}

// condition answers [has:PROGRAM]. Under CI=true it fails if the program is missing, so that CI runs every script whole.
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

// exit CODE PROGRAM ARG... runs a program and requires this exit code.
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

// flip FILE changes one byte in the middle of a file; flip FILE TEXT the first byte of a text in it.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: flip FILE [TEXT]")
	}
	file := ts.MkAbs(args[0])
	content, err := os.ReadFile(file)
	ts.Check(err)
	at := len(content) / 2
	if len(args) == 2 {
		if at = bytes.Index(content, []byte(args[1])); at < 0 {
			ts.Fatalf("%s does not have %q", args[0], args[1])
		}
	}
	content[at] ^= 1
	ts.Check(os.WriteFile(file, content, 0o644))
}

// authority NAME starts an outside time-stamping authority. Its URL is in the variable NAME, its root in NAME.pem.
// authority NAME MOOD makes it answer in that way from now on.
func authority(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: authority NAME [MOOD]")
	}
	running := ts.Value(authoritiesKey{}).(authorities)
	if len(args) == 2 {
		if running[args[0]] == nil {
			ts.Fatalf("no authority %s was started", args[0])
		}
		ts.Check(running[args[0]].Be(jurattest.Mood(args[1])))
		return
	}
	a, err := jurattest.StartTSA()
	ts.Check(err)
	ts.Defer(a.Close)
	running[args[0]] = a
	ts.Setenv(strings.ToUpper(args[0]), a.URL)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pem"), a.PEM(), 0o644))
}

// authorities are the authorities of one script, by name.
type authorities map[string]*jurattest.TSA

// authoritiesKey is their key in the script's values.
type authoritiesKey struct{}
