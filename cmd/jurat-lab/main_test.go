package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"jurat/internal/llm/llmtest"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/jury"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"jurat-lab": main}) }

// built is the program jurat, beside the test binary, which the go command removes.
var built = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(self)
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "jurat"), "jurat/cmd/jurat").CombinedOutput()
	if err != nil {
		err = errors.New(string(out))
	}
	return dir, err
})

// jurat runs the program jurat, which must succeed, and returns what it prints.
func jurat(t *testing.T, args ...string) string {
	t.Helper()
	dir := must.Get(built())(t)
	out, err := exec.Command(filepath.Join(dir, "jurat"), args...).Output()
	if err != nil {
		t.Fatalf("jurat %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func TestScripts(t *testing.T) {
	dir := must.Get(built())(t)
	examples := must.Get(filepath.Abs("../../examples"))(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Setenv("JURAT_JURORS", "offline")
			env.Setenv("PATH", env.Getenv("PATH")+string(os.PathListSeparator)+dir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exit": exit},
	})
}

// exit CODE PROGRAM ARG... runs a program and requires this exit code.
func exit(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// ran runs the command in this process.
func ran(t *testing.T, want int, args ...string) (out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	if code := run(t.Context(), args, streams{strings.NewReader(""), &o, &e}); code != want {
		t.Errorf("%v: exit code %d, want %d\n%s%s", args, code, want, &o, &e)
	}
	return o.String(), e.String()
}

func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in:\n%s", word, text)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(file))(t))
}

func withoutKeys(t *testing.T) {
	t.Helper()
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		t.Setenv(name, "")
	}
}

type object = map[string]any

// answer returns a model's answer that gives each axis the same percentage of its maximum.
func answer(c llmtest.Call, position jury.Position, percent int, change func(object)) string {
	return jurattest.ModelAnswer(c.Messages[0].Text, c.Schema.JSON, position, percent, change)
}
