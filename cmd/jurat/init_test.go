package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"jurat/internal/config"
)

// TestInitConfigSaysTheDefaults: the configuration that 'jurat init config' writes plans what no configuration plans, with keys and without.
func TestInitConfigSaysTheDefaults(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jurat.yaml")
	doing(t, 0, "init", "config", name)
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := config.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range [][]string{nil, {"OPENAI_API_KEY"}, {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"}} {
		env := func(name string) string {
			if slices.Contains(keys, name) {
				return "key"
			}
			return ""
		}
		got, err := config.NewPlan(file, config.Wishes{}, env)
		if err != nil {
			t.Fatal(err)
		}
		want, err := config.NewPlan(&config.File{}, config.Wishes{}, env)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(config.Plan{}), cmp.Transformer("text", func(err error) string { return fmt.Sprint(err) })); diff != "" {
			t.Errorf("with %v:\n%s", keys, diff)
		}
	}
}

// TestInitNeverOverwrites: if one of its files is there, it writes none.
func TestInitNeverOverwrites(t *testing.T) {
	for _, kind := range []string{"case", "config", "ci"} {
		dir := t.TempDir()
		at, there := filepath.Join(dir, "new"), filepath.Join(dir, "new")
		if kind == "case" {
			there = filepath.Join(dir, "new", "conversation.json")
		}
		if err := os.MkdirAll(filepath.Dir(there), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(there, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		doing(t, 2, "init", kind, at)
		if text, err := os.ReadFile(there); err != nil || string(text) != "mine" {
			t.Errorf("%s: %q, %v", kind, text, err)
		}
		if entries, err := os.ReadDir(filepath.Dir(there)); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v, %v", kind, entries, err)
		}
	}
}

// TestInitCase: the case that is written can be tried, and its check finds nothing wrong.
func TestInitCase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "case")
	doing(t, 0, "init", "case", dir)
	if text := doing(t, 0, "case", "check", dir); !strings.Contains(text, "Parcel desk") {
		t.Error(text)
	}
	doing(t, 0, "--data", filepath.Join(t.TempDir(), "data"), "trial", dir, "--jurors", "offline")
}

// A workflow is what GitHub reads, as far as the test goes.
type workflow struct {
	Env  map[string]string `yaml:"env"`
	Jobs map[string]struct {
		Steps []struct {
			Name, Run, Uses string
			Continue        any `yaml:"continue-on-error"`
		}
	}
	Defaults struct{ Run struct{ Shell string } }
}

// TestInitCI runs the steps of the workflow as GitHub's shell does. It fails if nothing is filled in, there is no case, no model has a key, or a case
// fails; it passes only if all pass.
func TestInitCI(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".github", "workflows", "jurat.yml")
	doing(t, 0, "init", "ci", name)
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(doc, &w); err != nil {
		t.Fatal(err)
	}
	if w.Defaults.Run.Shell != "bash" || w.Env["JURAT_VERSION"] != "" || w.Env["JURAT_REPOSITORY"] != "" {
		t.Errorf("%+v", w)
	}
	steps := map[string]string{}
	for _, s := range w.Jobs["trial"].Steps {
		if s.Continue != nil || strings.Contains(s.Run, "|| true") {
			t.Errorf("%s goes on after a failure", s.Name)
		}
		steps[s.Name] = s.Run
	}
	fill, try := steps["Check what has to be filled in"], steps["Try the cases"]
	if fill == "" || try == "" || !strings.Contains(try, "--fail-on unsafe_fail,needs_review,degraded") {
		t.Fatalf("%q", steps)
	}
	dir := t.TempDir()
	step(t, dir, fill, 2, "JURAT_REPOSITORY=a/b", "JURAT_VERSION=")
	step(t, dir, fill, 2, "JURAT_REPOSITORY=", "JURAT_VERSION=1")
	step(t, dir, fill, 0, "JURAT_REPOSITORY=a/b", "JURAT_VERSION=1")
	step(t, dir, try, 2) // there is no case
	copyCase(t, "kitchen-return", dir)
	step(t, dir, try, 2) // no model has a key
	byRules := strings.Replace(try, "--jurors llm", "--jurors offline", 1)
	step(t, dir, byRules, 0)
	for _, file := range []string{"jurat.xml", "jurat.sarif"} {
		if _, err := os.Stat(filepath.Join(dir, "reports", file)); err != nil {
			t.Error(err)
		}
	}
	copyCase(t, "invoice-inbox", dir)
	if err := os.RemoveAll(filepath.Join(dir, "reports")); err != nil { // each run begins with a new folder
		t.Fatal(err)
	}
	step(t, dir, byRules, 1)
}

// step runs a step of a workflow.
func step(t *testing.T, dir, script string, want int, env ...string) {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "RUNNER_TEMP="+dir, "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "GEMINI_API_KEY=", "GOOGLE_API_KEY=", "JURAT_JURORS=")...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		t.Fatalf("%s\n%v, want exit code %d\n%s", script, err, want, out)
	}
}

// copyCase copies an example into the folder cases.
func copyCase(t *testing.T, name, dir string) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(dir, "cases", name), os.DirFS(filepath.Join("../../examples", name))); err != nil {
		t.Fatal(err)
	}
}
