package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/internal/lab"
	"jurat/internal/llm/llmtest"
	"jurat/internal/must"
	"jurat/jury"
)

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
	return llmtest.Reply{Text: answer(c, jury.UnsafeFail, 20, func(o object) {
		o["findings"] = []object{{"message": 2, "quote": "It is done.", "rule": "bad-grain", "axis": "safety", "severity": "critical", "explanation": "It took what it saw."}}
	})}
}

// reads answers as a juror who sees the word that tells, and blind as one who does not and goes by the number of the order.
func reads(c llmtest.Call) llmtest.Reply {
	if strings.Contains(c.Messages[0].Text, "chaff") {
		return failing(c)
	}
	return llmtest.Reply{Text: answer(c, jury.SafePass, 90, nil)}
}

func blind(c llmtest.Call) llmtest.Reply {
	for n := range 100 {
		if strings.Contains(c.Messages[0].Text, fmt.Sprintf("order %d of", n)) && n/2%2 == 1 {
			return failing(c)
		}
	}
	return llmtest.Reply{Text: answer(c, jury.SafePass, 90, nil)}
}

// labReport reads a laboratory's report.
func labReport(t *testing.T, dir string) *lab.Report {
	t.Helper()
	doc := must.Get(os.ReadFile(filepath.Join(dir, "report.json")))(t)
	return must.Get(lab.ParseReport(doc))(t)
}

// TestLabFindsTheBetterPanel: of a panel that sees what tells the cases apart and one that does not, the report names the better one.
func TestLabFindsTheBetterPanel(t *testing.T) {
	withoutKeys(t)
	sharp, dull := llmtest.New(t, llmtest.Compatible, reads), llmtest.New(t, llmtest.Compatible, blind)
	dull.Key = sharp.Key // one variable of the environment has the key of both
	a, b := labPanel(t, "dull", dull, ""), labPanel(t, "sharp", sharp, "")
	cases, out := labCases(t, 6), filepath.Join(t.TempDir(), "laboratory")
	shown, _ := ran(t, 0, "run", cases, "--panel-file", a, "--panel-file", b, "--parallel", "4", "--out", out)
	has(t, shown, "12 cases, 6 good and 6 failed; 24 trials, 0 of them held before", "dull minus sharp on 12 cases", "sharp is better", "Not measured:")
	if n := len(sharp.Requests()) + len(dull.Requests()); n != 72 {
		t.Errorf("%d calls, want 3 in each of 24 trials", n)
	}
	r := labReport(t, out)
	if c := r.Comparisons[0]; c.Better != "sharp" || *c.AUC.Value != -0.5 || c.Shared != 0 {
		t.Errorf("%+v", c)
	}
	one, other := r.Panels[0], r.Panels[1]
	if *one.All.AUC.Value != 0.5 || *other.All.AUC.Value != 1 || *other.All.FlaggedGood.Value != 0 || *other.All.FlaggedFailed.Value != 1 || !other.All.Small {
		t.Errorf("%+v\n%+v", one.All.AUC, other.All.AUC)
	}
	if f := other.All.Findings; len(f) != 1 || f[0].Rule != "bad-grain" || f[0].Found != 18 || f[0].Failed.Cases != 6 || *f[0].Lift != 2 {
		t.Errorf("%+v", f)
	}
	if len(other.ByTrade) != 2 || other.MeanTrades.Trades != 2 || *other.MeanTrades.Value != 1 || *one.Effective != 1 {
		t.Errorf("%+v, %+v, effective %v", other.ByTrade, other.MeanTrades, *one.Effective)
	}
	if cost := other.All.Costs; cost.Calls != 3 || cost.Cost <= 0 {
		t.Errorf("%+v", cost)
	}

	// The votes are what 'jurat-lab calibrate' reads.
	said, _ := ran(t, 0, "calibrate", "--votes", filepath.Join(out, "votes-sharp.jsonl"), "--out", filepath.Join(out, "c.json"))
	has(t, said, "12 items with a label", "one", "correct 12 of 12")
	if made := read(t, filepath.Join(out, "c.json")); !strings.Contains(made, `"model": "`) || !strings.Contains(made, `"template": "sha256:`) {
		t.Errorf("the calibration does not name model and template of each juror:\n%s", made)
	}

	// The same command again asks nothing, and measures the same.
	again, _ := ran(t, 0, "run", cases, "--panel-file", a, "--panel-file", b, "--out", out)
	has(t, again, "24 of them held before", "sharp is better")
	if n := len(sharp.Requests()) + len(dull.Requests()); n != 72 {
		t.Errorf("%d calls after the second run", n)
	}
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
	if n, want := len(server.Requests()), 12+3*6-10; n != want {
		t.Errorf("%d calls in all, want %d: 12 before the kill, and all but the 10 sealed answers after it", n, want)
	}
	r := labReport(t, out)
	if *r.Panels[0].All.AUC.Value != 1 || len(r.Left) != 0 {
		t.Errorf("%+v", r.Panels[0].All.AUC)
	}
	// The two calls that died may have been paid: they count with all that was set aside, 0.1 dollars each.
	if r.Settings.Spent < 200_000 {
		t.Errorf("spent %d", r.Settings.Spent)
	}
}

// TestLabStopsBeforeTheCeiling: what could pass the ceiling is not asked, what is under way is still sealed, and the trial goes on
// under a higher one.
func TestLabStopsBeforeTheCeiling(t *testing.T) {
	withoutKeys(t)
	server := llmtest.New(t, llmtest.Compatible, func(c llmtest.Call) llmtest.Reply {
		reply := reads(c)
		reply.Delay = 200 * time.Millisecond // so that the third seat asks while two are under way
		return reply
	})
	cases, panel, out := labCases(t, 2), labPanel(t, "panel", server, ""), filepath.Join(t.TempDir(), "laboratory")
	args := []string{"run", cases, "--panel-file", panel, "--out", out, "--cost-ceiling"}
	shown, said := ran(t, 3, append(args, "0.25")...) // a call sets aside 0.1
	has(t, said, "4 trials are left without a verdict: the next call could have passed the ceiling on cost", "spent in this laboratory so far: $0.00", "of $0.25", "the same command goes on")
	has(t, shown, "0 trials")
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d calls, want the two for which there was money", n)
	}
	r := labReport(t, out)
	if len(r.Left) != 4 || !r.Left[0].Begun || r.Left[1].Begun || r.Settings.Stopped == "" {
		t.Errorf("%+v", r.Left)
	}
	if list := jurat(t, "--data", filepath.Join(out, "data"), "trial", "--list"); !strings.Contains(list, " 4  20") {
		t.Errorf("two answers were not sealed:\n%s", list)
	}
	ran(t, 0, append(args, "20")...)
	if n := len(server.Requests()); n != 12 {
		t.Errorf("%d calls in all, want three for each of four trials", n)
	}
	if r := labReport(t, out); len(r.Trials) != 4 || len(r.Left) != 0 || r.Panels[0].All.Missing.Absences != 0 {
		t.Errorf("%+v", r.Left)
	}
}

// TestLabReusesAnswers: a further panel that asks the same takes the first answers again, and the report says so.
func TestLabReusesAnswers(t *testing.T) {
	withoutKeys(t)
	server := llmtest.New(t, llmtest.Compatible, reads)
	majority, weighted := labPanel(t, "majority", server, ""), labPanel(t, "weighted", server, "")
	doc := must.Get(os.ReadFile(weighted))(t)
	writeFile(t, weighted, strings.Replace(string(doc), "majority_vote", "weighted_average", 1))
	cases, out := labCases(t, 2), filepath.Join(t.TempDir(), "laboratory")
	args := []string{"run", cases, "--panel-file", majority, "--panel-file", weighted, "--repeat", "2", "--out", out}
	shown, _ := ran(t, 0, append(args, "--reuse")...)
	has(t, shown, "24 first answers were another panel's")
	if n := len(server.Requests()); n != 24 {
		t.Errorf("%d calls, want three for each of four cases in each of two repeats", n)
	}
	r := labReport(t, out)
	if r.Panels[0].Reused != 0 || r.Panels[1].Reused != 24 || r.Comparisons[0].Shared != 24 {
		t.Errorf("%d, %d, %d", r.Panels[0].Reused, r.Panels[1].Reused, r.Comparisons[0].Shared)
	}
	// What needs answers of one's own is not measured on another panel's.
	if own := r.Panels[0]; *own.Retest.Value != 1 || own.Jurors[0].Votes != 8 || own.Single == nil || own.Single.Answers != 2 {
		t.Errorf("%+v", own.Jurors)
	}
	if taken := r.Panels[1]; taken.Retest.Value != nil || taken.Jurors[0].Votes != 0 || taken.Single != nil || *taken.All.AUC.Value != 1 {
		t.Errorf("%+v", taken.Jurors)
	}
	ran(t, 0, args...) // the sealed trials are the memory, reused answers included
	if n := len(server.Requests()); n != 24 {
		t.Errorf("%d calls after the second run", n)
	}
}

// TestLabNeedsItsModels: a report about rules must not come out where models were asked for.
func TestLabNeedsItsModels(t *testing.T) {
	withoutKeys(t)
	panel := filepath.Join(t.TempDir(), "panel.yaml")
	writeFile(t, panel, "method: majority_vote\n")
	out := filepath.Join(t.TempDir(), "laboratory")
	_, said := ran(t, 2, "run", labCases(t, 1), "--panel-file", panel, "--out", out)
	has(t, said, "panel panel: no language model of it can be asked", "OPENAI_API_KEY", "hint: set the keys")
	if _, err := os.Stat(out); err == nil {
		t.Error("it made a laboratory")
	}
}
