package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"jurat/evidence"
	"jurat/internal/court/panel"
	"jurat/internal/test/must"
)

// TestInitConfigSaysTheDefaults: the configuration that 'jurat init config' writes plans what no configuration plans, with keys and without.
func TestInitConfigSaysTheDefaults(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jurat.yaml")
	doing(t, 0, "init", "config", name)
	doc := must.Get(os.ReadFile(name))(t)
	file := must.Get(panel.Parse(doc))(t)
	for _, keys := range [][]string{nil, {"OPENAI_API_KEY"}, {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"}} {
		env := func(name string) string {
			if slices.Contains(keys, name) {
				return "key"
			}
			return ""
		}
		got := must.Get(panel.NewPlan(file, panel.Wishes{}, env))(t)
		want := must.Get(panel.NewPlan(&panel.File{}, panel.Wishes{}, env))(t)
		diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(panel.Plan{}), cmp.Transformer("text", func(err error) string { return fmt.Sprint(err) }))
		must.Hold(t, diff == "", "with %v:\n%s", keys, diff)
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
		must.Equal(t, read(t, there), "mine")
		entries, err := os.ReadDir(filepath.Dir(there))
		must.Hold(t, err == nil && len(entries) == 1, "%s: %v, %v", kind, entries, err)
	}
}

// TestInitCase: the case that is written can be tried, and its check finds nothing wrong.
func TestInitCase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "case")
	doing(t, 0, "init", "case", dir)
	must.Contain(t, doing(t, 0, "trial", dir, "--check"), "Parcel desk")
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
	must.Do(t, yaml.Unmarshal(doc, into))
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
				must.Hold(r.t, ok, "action.yml has no input %s", input)
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
	must.Need(r.t, cmd.ProcessState != nil, "%v", err)
	r.t.Logf("%s", said)
	return cmd.ProcessState.ExitCode(), string(must.Get(os.ReadFile(output))(r.t)), string(must.Get(os.ReadFile(shown))(r.t))
}

var expression = regexp.MustCompile(`\$\{\{[^}]*\}\}`)

// TestAction runs the action's own step: a good case is green; a failed one, a missing key, a set without cases, old reports and a damaged baseline are red.
func TestAction(t *testing.T) {
	r := newRunner(t)
	must.Hold(t, r.act.Runs.Using == "composite" && r.act.Inputs["cases"].Required, "%+v", r.act)
	for _, s := range r.act.Runs.Steps {
		must.Hold(t, s.Continue == nil && !strings.Contains(s.Run, "|| true") && (s.Run == "" || s.Shell == "bash") && !strings.Contains(s.Run, "${{"),
			"%+v", s)
	}
	n := 0
	try := func(want int, inputs map[string]string, env ...string) (string, string) {
		t.Helper()
		n++
		if _, ok := inputs["reports"]; !ok {
			inputs["reports"] = fmt.Sprint("reports ", n)
		}
		code, outputs, summary := r.try(inputs, env...)
		must.Hold(t, code == want, "%v: exit code %d, want %d", inputs, code, want)
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
	must.Contain(t, said, "exit-code=0", "1 case, and none fails")
	for _, file := range []string{"jurat.xml", "jurat.sarif", "jurat.md", "trust.json", "case-files/kitchen-return.jurat"} {
		must.Fail(t, nil)(os.Stat(filepath.Join(reports, file)))
	}
	doing(t, 0, "verify", "--trust", filepath.Join(reports, "trust.json"), filepath.Join(reports, "case-files", "kitchen-return.jurat"))
	try(2, rules("cases/*/", "reports", filepath.Base(reports))) // old reports are there

	copyCase(t, "invoice-inbox", r.dir)
	_, said = try(1, rules("cases/*/"))
	must.Contain(t, said, "exit-code=1", "1 of 2 cases fails", "`cases/invoice-inbox/`")
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
	must.Hold(t, w.Defaults.Run.Shell == "bash" && w.Env["JURAT_VERSION"] == "" && w.Env["JURAT_REPOSITORY"] == "", "%+v", w)
	act := newRunner(t).act
	steps := map[string]workflowStep{}
	for _, s := range w.Jobs["trial"].Steps {
		must.Hold(t, s.Continue == nil && !strings.Contains(s.Run, "|| true") && !strings.Contains(s.Run, "${{"),
			"%s goes on after a failure, or runs what others name", s.Name)
		steps[s.Name] = s
	}
	fill, try, comment := steps["Check what has to be filled in"], steps["Try the cases"], steps["Comment"]
	if fill.Run == "" || try.Uses != "./.jurat-source" || try.If != "" || try.With["fail-on"] != "needs_review,degraded" || try.With["jurors"] != "llm" {
		t.Fatalf("%+v", steps)
	}
	for input := range try.With {
		_, ok := act.Inputs[input]
		must.Hold(t, ok, "the action has no input %s", input)
	}
	dir := t.TempDir()
	step(t, dir, fill.Run, 2, "JURAT_REPOSITORY=a/b", "JURAT_VERSION=")
	step(t, dir, fill.Run, 2, "JURAT_REPOSITORY=", "JURAT_VERSION=1")
	step(t, dir, fill.Run, 0, "JURAT_REPOSITORY=a/b", "JURAT_VERSION=1")
	write(t, filepath.Join(dir, "gh"), "#!/bin/sh\nprintf '%s\\n' \"$@\" > said\n")
	must.Do(t, os.Chmod(filepath.Join(dir, "gh"), 0o700))
	step(t, dir, comment.Run, 0, "PATH="+dir+":"+os.Getenv("PATH"), "NUMBER=7", "GITHUB_REPOSITORY=a/b")
	must.Contain(t, string(must.Get(os.ReadFile(filepath.Join(dir, "said")))(t)), "pr\ncomment\n7\n", try.With["reports"]+"/jurat.md")
	must.Contain(t, comment.If, "head.repo.full_name == github.repository")
}

// step runs a step of a workflow.
func step(t *testing.T, dir, script string, want int, env ...string) {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	must.Need(t, cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == want, "%s\n%v, want exit code %d\n%s", script, err, want, out)
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
		must.Hold(t, len(all) >= 2, "%s uses %v", file, all)
		for _, one := range all {
			must.Hold(t, pinned.MatchString(one[1]), "%s: %s can be moved", file, one[1])
		}
	}
}

// lines is a writer that tests can read while it is written to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve runs 'jurat serve' until stop is called, which returns its exit code.
func serve(t *testing.T, args ...string) (url string, stderr *lines, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stdout, writer := io.Pipe()
	stderr = new(lines)
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, args, stdio{in: strings.NewReader(""), out: writer, err: stderr})
		writer.Close()
		ended <- code
	}()
	code := -1
	stop = func() int {
		if cancel(); code < 0 {
			code = <-ended
		}
		return code
	}
	t.Cleanup(func() { stop() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must.Need(t, err == nil, "%v\n%s", err, stderr)
	return strings.TrimSpace(line), stderr, stop
}

// doing runs a command to its end.
func doing(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out, errs := jurat(t, args...)
	if code != want {
		t.Fatalf("jurat %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, errs)
	}
	return strings.TrimSpace(out)
}

// TestServe: first start, a token, a record of an agent, the token's revocation while the server runs, and a second
// start.
func TestServe(t *testing.T) {
	data := t.TempDir() + "/data"
	at, stderr, stop := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	if !strings.HasPrefix(at, "http://127.0.0.1:") || strings.Contains(stderr.String(), "link=") || !strings.Contains(stderr.String(), "access grant --link --at "+at) {
		t.Fatalf("%s\n%s", at, stderr)
	}
	token := doing(t, 0, "--data", data, "access", "grant", "logistics-agent-v1", "agent", "--reason", "a test", "--by", "tester")
	const payload = `{"agent_id": "logistics-agent-v1", "chain_id": "order-17", "request_id": "r", "timestamp": "2026-01-31T16:15:00Z", "model": "m",
		"model_version": "m-1", "prompt": "p", "response": "r", "parameters": {}}`
	status, body := postTo(t, at+"/v1/records", token, "order 17", payload)
	first, err := evidence.Open([]byte(body))
	must.Need(t, status == http.StatusCreated && err == nil, "%v %v %v", status, body, err)
	code := stop()
	must.Need(t, code == 0, "exit code %d\n%s", code, stderr)

	// After the restart, only the log remembers earlier requests.
	at, _, stop = serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	status, body = postTo(t, at+"/v1/records", token, "order 17", payload)
	again, err := evidence.Open([]byte(body))
	must.Hold(t, status == http.StatusCreated && err == nil && again.Digest == first.Digest, "%v %v %v", status, body, err)
	status, body = postTo(t, at+"/v1/records", token, "order 17", strings.Replace(payload, `"p"`, `"q"`, 1))
	must.Hold(t, status == http.StatusUnprocessableEntity, "%v %v", status, body)
	list := doing(t, 0, "--data", data, "access")
	must.Hold(t, strings.Contains(list, "agent  20") && !strings.Contains(list, token), "%v", list)
	doing(t, 0, "--data", data, "access", "revoke", token, "--reason", "a test", "--by", "tester")
	status, body = postTo(t, at+"/v1/records", token, "order 18", payload)
	must.Hold(t, status == http.StatusUnauthorized && strings.Contains(body, "revoked"), "%v %v", status, body)
	must.Contain(t, doing(t, 0, "--data", data, "access", "list", "--all", "--json"), `"state": "revoked"`)
	doing(t, exitCannot, "--data", data, "access", "revoke", "nothing", "--reason", "a test", "--by", "tester")
	doing(t, exitCannot, "--data", data, "access", "grant", "n", "juror", "--reason", "a test", "--by", "tester")
	doing(t, 0, "--data", data, "access", "publish", "order-17", "--reason", "a test", "--by", "tester")
	must.Contain(t, doing(t, 0, "--data", data, "access"), "everybody reads the chain order-17")
	doing(t, 0, "--data", data, "access", "publish", "order-17", "--undo", "--reason", "a test", "--by", "tester")
	must.Equal(t, stop(), 0)
}

func postTo(t *testing.T, at, token, key, body string) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), "POST", at, strings.NewReader(body)))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Idempotency-Key", key)
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	doc := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(doc)
}

// TestServeSignsInOnce signs in with a link, which works once.
func TestServeSignsInOnce(t *testing.T) {
	data := t.TempDir() + "/data"
	at, _, _ := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	_, link, _ := strings.Cut(doing(t, 0, "--data", data, "access", "grant", "mia", "--link", "--at", at), "link=")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} {
		answer := must.Get(client.PostForm(at+"/sign-in", url.Values{"link": {link}}))(t)
		answer.Body.Close()
		must.Equal(t, answer.StatusCode, want)
	}
}

// TestServeOrigins: however --origin is spelled, the requests of browsers at that address are accepted.
func TestServeOrigins(t *testing.T) {
	for spelled, sent := range map[string]string{
		"https://jurat.example":                "https://jurat.example",
		"https://jurat.example:443":            "https://jurat.example",
		"https://jurat.example/":               "https://jurat.example",
		"https://jurat.example:443/":           "https://jurat.example",
		"https://jurat.example:0443":           "https://jurat.example",
		"https://jurat.example:":               "https://jurat.example",
		"HTTPS://Jurat.EXAMPLE":                "https://jurat.example",
		"https://jurat.example:08443":          "https://jurat.example:8443",
		"https://xn--bcher-KVA.example":        "https://xn--bcher-kva.example",
		"https://[2001:DB8:0:0:0:0:0:1]:443":   "https://[2001:db8::1]",
		"https://jurat_1.example.":             "https://jurat_1.example.",
		"https://192.0.2.7:8443":               "https://192.0.2.7:8443",
		"https://jurat-test.internal.example/": "https://jurat-test.internal.example",
	} {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		behind := l.Addr().String()
		l.Close()
		at, _, stop := serve(t, "--data", t.TempDir()+"/data", "serve", "--addr", behind, "--origin", spelled, "--jurors", "offline")
		must.Hold(t, at == sent, "%s: it prints %s, want %s", spelled, at, sent)
		for _, host := range []string{strings.TrimPrefix(sent, "https://"), behind} { // a proxy may pass the name on
			for path, want := range map[string]int{"/sign-in": http.StatusUnauthorized, "/v1/submissions": http.StatusUnauthorized} {
				r := must.Get(http.NewRequestWithContext(t.Context(), "POST", "http://"+behind+path, strings.NewReader("token=x")))(t)
				r.Host = host
				r.Header.Set("Origin", sent)
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				answer := must.Get(http.DefaultClient.Do(r))(t)
				answer.Body.Close()
				must.Hold(t, answer.StatusCode == want, "%s: a browser at %s with Host %s gets %s from %s", spelled, sent, host, answer.Status, path)
			}
		}
		must.Equal(t, stop(), 0)
	}
}

// TestServeStaysAtHome: the server listens on other addresses only if there is a token, or another way to sign in, for
// somebody.
func TestServeStaysAtHome(t *testing.T) {
	data := t.TempDir() + "/data"
	for name, args := range map[string][]string{
		"all addresses":       {"--addr", "0.0.0.0:0"},
		"all addresses, IPv6": {"--addr", "[::]:0"},
		"no host":             {"--addr", ":0"},
		"no address":          {"--addr", "nonsense"},
		"a key alone":         {"--addr", "127.0.0.1:0", "--tls-key", "key.pem"},
		"no such key":         {"--addr", "127.0.0.1:0", "--tls-key", "none.pem", "--tls-cert", "none.pem"},
		"an origin by http":   {"--addr", "127.0.0.1:0", "--origin", "http://jurat.example"},
		"a page as an origin": {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example/records"},
		"another alphabet":    {"--addr", "127.0.0.1:0", "--origin", "https://bücher.example"},
		"the same, encoded":   {"--addr", "127.0.0.1:0", "--origin", "https://b%C3%BCcher.example"},
		"an empty query":      {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example?"},
		"an empty fragment":   {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example#"},
		"slashes":             {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example//"},
		"no port":             {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example:70000"},
		"short for 127.0.0.1": {"--addr", "127.0.0.1:0", "--origin", "https://127.1"},
		"a mapped address":    {"--addr", "127.0.0.1:0", "--origin", "https://[::ffff:192.0.2.1]"},
		"a wildcard":          {"--addr", "127.0.0.1:0", "--origin", "https://*.jurat.example"},
		"a user":              {"--addr", "127.0.0.1:0", "--origin", "https://me@jurat.example"},
		"the second of two":   {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example", "--origin", "https://jurat.example/x"},
	} {
		t.Run(name, func(t *testing.T) { doing(t, exitCannot, append([]string{"--data", data, "serve"}, args...)...) })
	}
	must.Fail(t, fs.ErrNotExist)(os.Stat(data))
	_, said := ran(t, exitCannot, "--data", data, "serve", "--addr", "nonsense")
	must.Contain(t, said, "--addr nonsense: want HOST:PORT")
	// Behind a proxy that ends TLS, people sign in with links: no token is needed.
	if at, _, stop := serve(t, "--data", t.TempDir()+"/data", "serve", "--addr", "0.0.0.0:0", "--origin", "https://jurat.example"); at != "https://jurat.example" || stop() != 0 {
		t.Error(at)
	}
	doing(t, 0, "--data", data, "init")
	doing(t, 0, "--data", data, "access", "grant", "ada", "auditor", "--reason", "a test", "--by", "tester")
	at, stderr, stop := serve(t, "--data", data, "serve", "--addr", "0.0.0.0:0")
	must.Hold(t, strings.HasPrefix(at, "http://") && stop() == 0, "%s", at)
	must.Contain(t, stderr.String(), "people on other machines cannot sign in over plain http")
	must.Contain(t, stderr.String(), "hint: --tls-cert and --tls-key")
	lacks(t, stderr.String(), "access grant --link")
}

// TestNothingIsBegun: a command with a mistake, or one that needs an installation, does not create one.
func TestNothingIsBegun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	must.Do(t, os.WriteFile("key.pem", nil, 0o600))
	why := []string{"--reason", "a test", "--by", "tester"}
	for _, args := range [][]string{
		append([]string{"access", "grant", "noa", "reviwer"}, why...), append([]string{"access", "grant", "noa", "reviewer"}, why...),
		{"access", "grant", "--link"}, {"keys", "new", "agent", "a"}, append([]string{"keys", "new", "agent", "a", "--public", "key.pem"}, why...),
		{"tsa", "a", "http://127.0.0.1:1", "--root", "key.pem"}, {"apart", "a", "prompt"}, {"trust"}, {"log", "fsck"},
		{"serve", "--addr", ":99999"}, {"serve", "--addr", "256.0.0.1:0"}, {"serve", "--addr", "0.0.0.0:0"}, {"serve", "--oidc-role", "x"},
		{"serve", "--tsa", "nobody"}, {"serve", "--parallel", "0"}, {"serve", "--addr", "127.0.0.1:0", "--tls-cert", "key.pem", "--tls-key", "key.pem"},
		{"trial", "none"}, {"trial", "--resume", "last"}, {"trial", "--list"}, {"seal", "none"}, {"seal", "key.pem"},
	} {
		_, said := ran(t, exitCannot, args...)
		entries, err := os.ReadDir(dir)
		must.Need(t, err == nil && len(entries) == 1, "%q made %v, %v\n%s", args, entries, err, said)
	}
	_, said := ran(t, exitCannot, append([]string{"access", "grant", "noa", "reviwer"}, why...)...)
	must.Contain(t, said, `unknown role "reviwer"`)
	_, said = ran(t, exitCannot, append([]string{"access", "grant", "noa", "reviewer"}, why...)...)
	must.Contain(t, said, "'jurat init' makes one")
	doing(t, 0, "init")
	doing(t, 0, "init") // a command that needs the installation, and finds it
	doing(t, 0, append([]string{"access", "grant", "noa", "reviewer"}, why...)...)
}

// TestSessionsAreListed: 'access list' shows a session even if its token or link is not in the list.
func TestSessionsAreListed(t *testing.T) {
	data := t.TempDir() + "/data"
	at, _, _ := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	link := doing(t, 0, "--data", data, "access", "grant", "mia", "reviewer", "--link", "--at", at)
	_, secret, _ := strings.Cut(link, "link=")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.PostForm(at+"/sign-in", url.Values{"link": {secret}})
	must.Need(t, err == nil && answer.StatusCode == http.StatusSeeOther, "%v %v", answer, err)
	answer.Body.Close()
	list := doing(t, 0, "--data", data, "access", "list")
	must.Contain(t, list, "  reviewer  20")
	must.Contain(t, list, "mia (session of a browser)")
	lacks(t, list, "operator,")
	for _, args := range [][]string{{"mia", "agent"}, {"mia", "juror"}, {"mia", "--at", "ftp://x"}, {"\u202e"}} {
		doing(t, exitCannot, append([]string{"--data", data, "access", "grant", "--link"}, args...)...)
	}
}
