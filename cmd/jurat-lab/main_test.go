package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"

	"jurat/internal/court/llm/llmtest"
	"jurat/internal/test/must"
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
	code := run(t.Context(), args, streams{strings.NewReader(""), &o, &e})
	must.Hold(t, code == want, "%v: exit code %d, want %d\n%s%s", args, code, want, &o, &e)
	return o.String(), e.String()
}

func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		must.Contain(t, text, word)
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

// labCases writes so many good and as many failed cases. What a model can see of the outcome is a word in the conversation.
func labCases(t *testing.T, each int) string {
	t.Helper()
	dir := t.TempDir()
	labels := []string{}
	for i := range 2 * each {
		outcome, word := "good", "wheat"
		if i%2 == 1 {
			outcome, word = "failed", "chaff"
		}
		name := fmt.Sprintf("case-%02d", i)
		writeLabCase(t, filepath.Join(dir, name), fmt.Sprintf("Please see to order %d of %s.", i, word))
		labels = append(labels, fmt.Sprintf("%q: {\"outcome\": %q, \"trade\": \"trade %d\"}", name, outcome, i/2%2))
	}
	writeFile(t, filepath.Join(dir, "labels.json"), "{"+strings.Join(labels, ",\n")+"}")
	return dir
}

func writeLabCase(t *testing.T, dir, said string) {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o755))
	writeFile(t, filepath.Join(dir, "agent-card.json"), `{"name": "Grain clerk"}`)
	writeFile(t, filepath.Join(dir, "conversation.json"), fmt.Sprintf(`[{"role": "user", "content": %q}, {"role": "assistant", "content": "It is done."}]`, said))
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte(text), 0o644))
}

// labPanel writes a panel of three seats, which one server answers: three calls a trial.
func labPanel(t *testing.T, name string, server *llmtest.Server, rest string) string {
	t.Helper()
	t.Setenv("TEST_LAB_KEY", server.Key)
	doc := "method: majority_vote\ncollaborative: false\n" + rest + "panel:\n"
	for _, seat := range []string{"one", "two", "three"} {
		doc += fmt.Sprintf("  - {id: %s, provider: compatible, model: stand-in, base_url: '%s', key: {env: TEST_LAB_KEY}, attempts: 1, max_tokens: 1000, price: {input: 0.001, output: 100}}\n", seat, server.URL)
	}
	file := filepath.Join(t.TempDir(), name+".yaml")
	writeFile(t, file, doc)
	return file
}

// failing is an answer that fails the run, with what it found.
func failing(c llmtest.Call) llmtest.Reply {
	return llmtest.Reply{Text: llmtest.Answer(c, jury.UnsafeFail, 20, func(o object) {
		o["findings"] = []object{{"message": 2, "quote": "It is done.", "rule": "bad-grain", "axis": "safety", "severity": "critical", "explanation": "It took what it saw."}}
	})}
}

// reads answers as a juror who sees the word that tells, and blind as one who does not and goes by the number of the order.
func reads(c llmtest.Call) llmtest.Reply {
	if strings.Contains(c.Messages[0].Text, "chaff") {
		return failing(c)
	}
	return llmtest.Reply{Text: llmtest.Answer(c, jury.SafePass, 90, nil)}
}

func blind(c llmtest.Call) llmtest.Reply {
	for n := range 100 {
		if strings.Contains(c.Messages[0].Text, fmt.Sprintf("order %d of", n)) && n/2%2 == 1 {
			return failing(c)
		}
	}
	return llmtest.Reply{Text: llmtest.Answer(c, jury.SafePass, 90, nil)}
}

// labReport reads a laboratory's report.
func labReport(t *testing.T, dir string) *Report {
	t.Helper()
	doc := must.Get(os.ReadFile(filepath.Join(dir, "report.json")))(t)
	r := new(Report)
	must.Do(t, json.Unmarshal(doc, r, json.RejectUnknownMembers(true)))
	return r
}

// TestLabFindsTheBetterPanel: of a panel that sees what tells the cases apart and one that does not, the report names the better one.
func TestLabFindsTheBetterPanel(t *testing.T) {
	withoutKeys(t)
	sharp, dull := llmtest.New(t, llmtest.Compatible, reads), llmtest.New(t, llmtest.Compatible, blind)
	dull.Key = sharp.Key // one variable of the environment has the key of both
	a, b := labPanel(t, "dull", dull, ""), labPanel(t, "sharp", sharp, "")
	cases, out := labCases(t, 6), filepath.Join(t.TempDir(), "laboratory")
	shown, _ := ran(t, 0, "run", cases, "--panel-file", a, "--panel-file", b, "--parallel", "4", "--out", out)
	has(t, shown, "12 cases, 6 good and 6 failed (labels.json); 24 trials, 0 of them held before", "dull minus sharp  12 ", "shown to be better\n", "  sharp\n", "Not measured")
	must.Equal(t, len(sharp.Requests())+len(dull.Requests()), 72)
	r := labReport(t, out)
	c := r.Comparisons[0]
	must.Hold(t, c.Better == "sharp" && *c.AUC.Value == -0.5, "%+v", c)
	one, other := r.Panels[0], r.Panels[1]
	if *one.All.AUC.Value != 0.5 || *other.All.AUC.Value != 1 || *other.All.FlaggedGood.Value != 0 || *other.All.FlaggedFailed.Value != 1 || !other.All.Small {
		t.Errorf("%+v\n%+v", one.All.AUC, other.All.AUC)
	}
	f := other.All.Findings
	must.Hold(t, len(f) == 1 && f[0].Rule == "bad-grain" && f[0].Found == 18 && f[0].Failed.Cases == 6 && *f[0].Lift == 2, "%+v", f)
	must.Len(t, other.ByTrade, 2)
	cost := other.All.Costs
	must.Hold(t, cost.Calls == 3 && cost.Cost > 0, "%+v", cost)

	// The votes are what 'jurat-lab calibrate' reads.
	said, _ := ran(t, 0, "calibrate", "--votes", filepath.Join(out, "votes-sharp.jsonl"), "--out", filepath.Join(out, "c.json"))
	has(t, said, "12 items with a label", "one", "correct 12 of 12", "errors of one and two", "independent votes")
	if made := read(t, filepath.Join(out, "c.json")); !strings.Contains(made, `"model": "`) || !strings.Contains(made, `"template": "sha256:`) {
		t.Errorf("the calibration does not name model and template of each juror:\n%s", made)
	}

	// The same command again asks nothing, and measures the same.
	again, _ := ran(t, 0, "run", cases, "--panel-file", a, "--panel-file", b, "--out", out)
	has(t, again, "24 of them held before", "  sharp\n")
	must.Equal(t, len(sharp.Requests())+len(dull.Requests()), 72)
	// The laboratory's records are an installation of their own, and in order.
	jurat(t, "--data", filepath.Join(out, "data"), "log", "fsck")
}

// TestLabSurvivesAKill: SIGKILL in the middle of a trial loses the answers under way, and no sealed one is asked again.
func TestLabSurvivesAKill(t *testing.T) {
	withoutKeys(t)
	server := llmtest.New(t, llmtest.Compatible, func(c llmtest.Call) llmtest.Reply {
		reply := reads(c)
		if c.Number == 11 || c.Number == 12 {
			reply.Delay = time.Hour // until the caller dies
		}
		return reply
	})
	args := []string{"run", labCases(t, 3), "--panel-file", labPanel(t, "panel", server, ""), "--out", filepath.Join(t.TempDir(), "laboratory"), "--cost-ceiling", "50"}
	out := args[5]
	process := exec.Command("jurat-lab", args...)
	must.Do(t, process.Start())
	// Three trials are over, and of the fourth one answer is sealed: submission, opening, evaluation.
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if len(server.Requests()) == 12 {
			if list := jurat(t, "--data", filepath.Join(out, "data"), "trial", "--list"); strings.Contains(list, " 3  20") {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d calls", len(server.Requests()))
		}
	}
	must.Do(t, process.Process.Kill())
	_ = process.Wait()
	shown, _ := ran(t, 0, args...)
	has(t, shown, "6 trials, 3 of them held before")
	n, want := len(server.Requests()), 12+3*6-10
	must.Hold(t, n == want, "%d calls in all, want %d: 12 before the kill, and all but the 10 sealed answers after it", n, want)
	r := labReport(t, out)
	must.Hold(t, *r.Panels[0].All.AUC.Value == 1 && len(r.Left) == 0, "%+v", r.Panels[0].All.AUC)
	must.Hold(t, r.Settings.Spent > 0, "spent %d", r.Settings.Spent)
}

// TestLabStopsAtTheCeiling: once as much is spent, no trial begins, the one under way ends, and under a higher ceiling the others are held.
func TestLabStopsAtTheCeiling(t *testing.T) {
	withoutKeys(t)
	server := llmtest.New(t, llmtest.Compatible, reads)
	cases, panel, out := labCases(t, 2), labPanel(t, "panel", server, ""), filepath.Join(t.TempDir(), "laboratory")
	args := []string{"run", cases, "--panel-file", panel, "--out", out, "--cost-ceiling"}
	shown, said := ran(t, 3, append(args, "0.00001")...)
	has(t, said, "3 trials are left without a verdict: the ceiling on cost is reached", "spent in this laboratory so far: $0.0", "the same command goes on")
	has(t, shown, "1 trial, 0 of them held before", "The run is not whole: the ceiling on cost is reached; left: 3 trials")
	must.Equal(t, len(server.Requests()), 3)
	r := labReport(t, out)
	must.Hold(t, len(r.Left) == 3 && len(r.Trials) == 1 && r.Settings.Spent >= r.Settings.Ceiling, "%+v, %+v", r.Left, r.Settings)
	ran(t, 3, append(args, "0.00001")...) // what earlier runs spent counts
	ran(t, 0, append(args, "20")...)
	must.Equal(t, len(server.Requests()), 12)
	r = labReport(t, out)
	must.Hold(t, len(r.Trials) == 4 && len(r.Left) == 0 && r.Panels[0].All.Degraded == 0, "%+v", r.Left)
}

// TestLabNeedsItsModels: a report about rules must not come out where models were asked for.
func TestLabNeedsItsModels(t *testing.T) {
	withoutKeys(t)
	panel := filepath.Join(t.TempDir(), "panel.yaml")
	writeFile(t, panel, "method: majority_vote\n")
	out := filepath.Join(t.TempDir(), "laboratory")
	_, said := ran(t, 2, "run", labCases(t, 1), "--panel-file", panel, "--out", out)
	has(t, said, "panel panel: no language model of it can be asked", "OPENAI_API_KEY", "hint: set the keys")
	must.Fail(t, fs.ErrNotExist)(os.Stat(out))
}
