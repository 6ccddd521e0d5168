package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"jurat/internal/config"
	"jurat/internal/must"
)

// TestInitConfigSaysTheDefaults: the configuration that 'jurat init config' writes plans what no configuration plans, with keys and without.
func TestInitConfigSaysTheDefaults(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jurat.yaml")
	doing(t, 0, "init", "config", name)
	doc := must.Get(os.ReadFile(name))(t)
	file := must.Get(config.Parse(doc))(t)
	for _, keys := range [][]string{nil, {"OPENAI_API_KEY"}, {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"}} {
		env := func(name string) string {
			if slices.Contains(keys, name) {
				return "key"
			}
			return ""
		}
		got := must.Get(config.NewPlan(file, config.Wishes{}, env))(t)
		want := must.Get(config.NewPlan(&config.File{}, config.Wishes{}, env))(t)
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
		must.Do(t, os.MkdirAll(filepath.Dir(there), 0o755))
		must.Do(t, os.WriteFile(there, []byte("mine"), 0o644))
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
	if text := doing(t, 0, "trial", dir, "--check"); !strings.Contains(text, "Parcel desk") {
		t.Error(text)
	}
	doing(t, 0, "--data", filepath.Join(t.TempDir(), "data"), "trial", dir, "--jurors", "offline")
}

// A workflow is what GitHub reads, as far as the test goes.
type workflow struct {
	Env  map[string]string `yaml:"env"`
	Jobs map[string]struct {
		Steps []workflowStep
	}
	Defaults struct{ Run struct{ Shell string } }
}

type workflowStep struct {
	Name, Run, Uses, If, ID, Shell string

	With, Env map[string]string
	Continue  any `yaml:"continue-on-error"`
}

// A compositeAction is what action.yml holds, as far as the test goes.
type compositeAction struct {
	Inputs map[string]struct {
		Required bool
		Default  string
	}
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []workflowStep
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	doc := must.Get(os.ReadFile(file))(t)
	if err := yaml.Unmarshal(doc, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// A runner runs an action's steps in an empty folder, as GitHub's shell does, with the program of the test in place of the one that is built.
type runner struct {
	t    *testing.T
	dir  string // the workspace
	temp string
	root string // where the action is
	act  compositeAction
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	root := must.Get(filepath.Abs("../.."))(t)
	r := &runner{t: t, dir: t.TempDir(), temp: t.TempDir(), root: root}
	readYAML(t, filepath.Join(root, "action.yml"), &r.act)
	return r
}

// try runs the step that tries cases with these inputs, and returns its exit code, its outputs, and the summary that people see.
func (r *runner) try(inputs map[string]string, env ...string) (code int, outputs, summary string) {
	r.t.Helper()
	i := slices.IndexFunc(r.act.Runs.Steps, func(s workflowStep) bool { return s.ID == "try" })
	step := r.act.Runs.Steps[i]
	output, shown := filepath.Join(r.temp, "output"), filepath.Join(r.temp, "summary")
	for _, file := range []string{output, shown} {
		write(r.t, file, "")
	}
	for name, value := range step.Env {
		value = expression.ReplaceAllStringFunc(value, func(e string) string {
			of := strings.TrimSpace(strings.Trim(e, "${}"))
			if input, ok := strings.CutPrefix(of, "inputs."); ok {
				declared, ok := r.act.Inputs[input]
				if !ok {
					r.t.Errorf("action.yml has no input %s", input)
				}
				if given, ok := inputs[input]; ok {
					return given
				}
				return declared.Default
			}
			return "" // of the action's own address, which a folder has not
		})
		env = append([]string{name + "=" + value}, env...)
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), "RUNNER_TEMP="+r.temp, "GITHUB_ACTION_PATH="+r.root, "GITHUB_OUTPUT="+output, "GITHUB_STEP_SUMMARY="+shown,
		"GITHUB_SERVER_URL=https://github.com", "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "GEMINI_API_KEY=", "GOOGLE_API_KEY=", "JURAT_JURORS="), env...)
	said, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	r.t.Logf("%s", said)
	return cmd.ProcessState.ExitCode(), string(must.Get(os.ReadFile(output))(r.t)), string(must.Get(os.ReadFile(shown))(r.t))
}

var expression = regexp.MustCompile(`\$\{\{[^}]*\}\}`)

// TestAction runs the action's own step: a good case is green; a failed one, a missing key, a set without cases, old reports and a damaged baseline are red.
func TestAction(t *testing.T) {
	r := newRunner(t)
	if r.act.Runs.Using != "composite" || !r.act.Inputs["cases"].Required {
		t.Errorf("%+v", r.act)
	}
	for _, s := range r.act.Runs.Steps {
		if s.Continue != nil || strings.Contains(s.Run, "|| true") || s.Run != "" && s.Shell != "bash" || strings.Contains(s.Run, "${{") {
			t.Errorf("%+v", s)
		}
	}
	n := 0
	try := func(want int, inputs map[string]string, env ...string) (string, string) {
		t.Helper()
		n++
		if _, ok := inputs["reports"]; !ok {
			inputs["reports"] = fmt.Sprint("reports ", n)
		}
		code, outputs, summary := r.try(inputs, env...)
		if code != want {
			t.Errorf("%v: exit code %d, want %d", inputs, code, want)
		}
		return filepath.Join(r.dir, inputs["reports"]), outputs + summary
	}
	rules := func(cases string, more ...string) map[string]string {
		inputs := map[string]string{"cases": cases, "jurors": "offline"}
		for i := 0; i+1 < len(more); i += 2 {
			inputs[more[i]] = more[i+1]
		}
		return inputs
	}
	try(2, rules("cases/*/")) // there is no case
	try(2, rules(""))
	try(2, rules("\n  \n"))
	copyCase(t, "kitchen-return", r.dir)
	try(2, map[string]string{"cases": "cases/*/"}) // no model has a key
	try(2, map[string]string{"cases": "cases/*/", "jurors": ""})
	try(2, rules("cases/*/\nnowhere"))
	reports, said := try(0, rules("cases/*/"))
	has(t, said, "exit-code=0", "1 case, and none fails")
	for _, file := range []string{"jurat.xml", "jurat.sarif", "jurat.md", "trust.json", "case-files/kitchen-return.jurat"} {
		if _, err := os.Stat(filepath.Join(reports, file)); err != nil {
			t.Error(err)
		}
	}
	doing(t, 0, "verify", "--trust", filepath.Join(reports, "trust.json"), filepath.Join(reports, "case-files", "kitchen-return.jurat"))
	try(2, rules("cases/*/", "reports", filepath.Base(reports))) // old reports are there

	copyCase(t, "invoice-inbox", r.dir)
	_, said = try(1, rules("cases/*/"))
	has(t, said, "exit-code=1", "1 of 2 cases fails", "`cases/invoice-inbox/`")
	base := filepath.Join(r.dir, "baseline.json")
	t.Run("baseline", func(t *testing.T) {
		t.Chdir(r.dir)
		t.Setenv("JURAT_JURORS", "offline")
		ran(t, 1, "--data="+filepath.Join(r.temp, "base"), "trial", "cases/kitchen-return", "cases/invoice-inbox", "--write-baseline", base)
	})
	try(0, rules("cases/*/", "baseline", "baseline.json"))
	copyCase(t, "pharmacy-refill", r.dir)
	try(1, rules("cases/*/", "baseline", "baseline.json")) // a new case that needs a person, which fail-on names
	write(t, base, "{}")
	try(2, rules("cases/*/", "baseline", "baseline.json"))
	try(2, rules("cases/*/", "baseline", "no.json"))
	try(2, rules("cases/*/", "config", "no.yaml"))
}

// TestInitCI: the workflow fails if nothing is filled in, gives the action no input that it lacks, and nothing in it goes on after a failure. Its comment
// is the report.
func TestInitCI(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".github", "workflows", "jurat.yml")
	doing(t, 0, "init", "ci", name)
	var w workflow
	readYAML(t, name, &w)
	if w.Defaults.Run.Shell != "bash" || w.Env["JURAT_VERSION"] != "" || w.Env["JURAT_REPOSITORY"] != "" {
		t.Errorf("%+v", w)
	}
	act := newRunner(t).act
	steps := map[string]workflowStep{}
	for _, s := range w.Jobs["trial"].Steps {
		if s.Continue != nil || strings.Contains(s.Run, "|| true") || strings.Contains(s.Run, "${{") {
			t.Errorf("%s goes on after a failure, or runs what others name", s.Name)
		}
		steps[s.Name] = s
	}
	fill, try, comment := steps["Check what has to be filled in"], steps["Try the cases"], steps["Comment"]
	if fill.Run == "" || try.Uses != "./.jurat-source" || try.If != "" || try.With["fail-on"] != "needs_review,degraded" || try.With["jurors"] != "llm" {
		t.Fatalf("%+v", steps)
	}
	for input := range try.With {
		if _, ok := act.Inputs[input]; !ok {
			t.Errorf("the action has no input %s", input)
		}
	}
	dir := t.TempDir()
	step(t, dir, fill.Run, 2, "JURAT_REPOSITORY=a/b", "JURAT_VERSION=")
	step(t, dir, fill.Run, 2, "JURAT_REPOSITORY=", "JURAT_VERSION=1")
	step(t, dir, fill.Run, 0, "JURAT_REPOSITORY=a/b", "JURAT_VERSION=1")
	write(t, filepath.Join(dir, "gh"), "#!/bin/sh\nprintf '%s\\n' \"$@\" > said\n")
	must.Do(t, os.Chmod(filepath.Join(dir, "gh"), 0o700))
	step(t, dir, comment.Run, 0, "PATH="+dir+":"+os.Getenv("PATH"), "NUMBER=7", "GITHUB_REPOSITORY=a/b")
	has(t, string(must.Get(os.ReadFile(filepath.Join(dir, "said")))(t)), "pr\ncomment\n7\n", try.With["reports"]+"/jurat.md")
	if !strings.Contains(comment.If, "head.repo.full_name == github.repository") {
		t.Error(comment.If)
	}
}

// step runs a step of a workflow.
func step(t *testing.T, dir, script string, want int, env ...string) {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		t.Fatalf("%s\n%v, want exit code %d\n%s", script, err, want, out)
	}
}

// copyCase copies an example into the folder cases.
func copyCase(t *testing.T, name, dir string) {
	t.Helper()
	must.Do(t, os.CopyFS(filepath.Join(dir, "cases", name), os.DirFS(filepath.Join("../../examples", name))))
}

// TestActionsArePinned: the action, the workflow that 'jurat init ci' writes, and the documents name the actions of others by a full commit hash.
func TestActionsArePinned(t *testing.T) {
	uses := regexp.MustCompile(`(?m)uses: ([^\s#]+)`)
	pinned := regexp.MustCompile(`^(\./.*|OWNER/jurat@COMMIT|[\w./-]+@[0-9a-f]{40})$`)
	for _, file := range []string{"../../action.yml", "begin/ci.yml", "../../docs/ci.md"} {
		doc := must.Get(os.ReadFile(file))(t)
		all := uses.FindAllStringSubmatch(string(doc), -1)
		if len(all) < 2 {
			t.Errorf("%s uses %v", file, all)
		}
		for _, one := range all {
			if !pinned.MatchString(one[1]) {
				t.Errorf("%s: %s can be moved", file, one[1])
			}
		}
	}
}
