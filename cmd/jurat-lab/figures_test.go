package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/court/stats"
	"jurat/internal/test/browsertest"
	"jurat/internal/test/must"
	"jurat/jury"
)

func TestLabels(t *testing.T) {
	got := must.Get(parseLabels([]byte(`{
 "a": {"outcome": "good"},
 "b": {"outcome": "failed", "kind": "wrong amount", "trade": "shop", "source": "an auditor"},
 "c": {"task_success": true, "why": "she got what she asked for", "source": "bench", "task": 2, "trial": "7"},
 "d": {"task_success": false}
}`)))(t)
	want := Labels{"a": {Outcome: Good}, "b": {Outcome: Failed, Kind: "wrong amount", Trade: "shop", Source: "an auditor"}, "c": {Outcome: Good, Source: "bench"}, "d": {Outcome: Failed}}
	must.Equal(t, cmp.Diff(want, got), "")
}

// TestBrokenLabels: each problem is named with its case, and with what is wanted there.
func TestBrokenLabels(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{``, `want {"CASE":`},
		{`[]`, `want {"CASE":`},
		{`{}`, "it labels no case"},
		{`{"a": {"outcome": "good"}} {}`, `want {"CASE":`},
		{`{"a": {"outcome": "fine"}}`, `"a": outcome: "fine": want "good" or "failed"`},
		{`{"a": {"outcome": true}}`, `/a/outcome`},
		{`{"a": {"task_success": "true"}}`, `/a/task_success`},
		{`{"a": {}}`, `"a": want "outcome"`},
		{`{"a": {"outcome": "good", "task_success": true}}`, "and not both"},
		{`{"a": {"outcome": "good", "colour": 1}}`, `colour`},
		{`{"a": {"outcome": "good", "kind": 7}}`, `/a/kind`},
		{`{"a": {"outcome": "good", "kind": "a\nb"}}`, `"a": want a kind`},
		{`{"a": "good"}`, `/a`},
		{`{"../a": {"outcome": "good"}}`, `"../a": want the name of a folder`},
		{`{"": {"outcome": "good"}}`, `"": want the name of a folder`},
		{`{"a": {"outcome": "good"}, "a": {"outcome": "failed"}}`, "twice"},
		{`{"a": {"outcome": "good", "outcome": "failed"}}`, "twice"},
		{`{"a": {"outcome": "good"`, `want {"CASE":`},
	} {
		must.Refuse(t, tt.want, tt.doc)(parseLabels([]byte(tt.doc)))
	}
	_, err := parseLabels([]byte(`{"a": {"outcome": "x"}, "b": {}, "c": {"outcome": "y"}}`))
	must.Equal(t, strings.Count(err.Error(), "\n"), 2)
}

func FuzzLabels(f *testing.F) {
	f.Add([]byte(`{"a": {"outcome": "good", "kind": "k"}}`))
	f.Add([]byte(`{"a": {"task_success": false, "task": 1e9}}`))
	f.Add([]byte(`{"a": [`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		labels, err := parseLabels(doc)
		must.Hold(t, err != nil || len(labels) != 0, "no labels and no problem")
	})
}

const (
	card         = `{"name": "An agent"}`
	conversation = `[{"role": "user", "content": "Hello, this is about WHAT."}, {"role": "assistant", "content": "Done."}]`
)

// folder writes cases: each name is what its conversation is about, up to a slash.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		name, about, _ := strings.Cut(name, "=")
		if about == "" {
			about = name
		}
		must.Do(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		for file, text := range map[string]string{"agent-card.json": card, "conversation.json": strings.ReplaceAll(conversation, "WHAT", about)} {
			must.Do(t, os.WriteFile(filepath.Join(dir, name, file), []byte(text), 0o644))
		}
	}
	return dir
}

func TestLoadCases(t *testing.T) {
	dir := folder(t, "a", "b", "c")
	cases, unlabelled, err := loadCases(dir, Labels{"a": {Outcome: Good}, "b": {Outcome: Failed}})
	must.Hold(t, err == nil && len(cases) == 2 && cases[1].Name == "b" && cases[1].Outcome == Failed && len(unlabelled) == 1 && unlabelled[0] == "c",
		"%v, %v, %v", cases, unlabelled, err)
	dir = folder(t, "a", "twin=a")
	must.Do(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o755))
	_, _, err = loadCases(dir, Labels{"a": {}, "twin": {}, "gone": {}, "empty": {}})
	must.Need(t, err != nil, "no error")
	for _, want := range []string{"case twin: it holds the same evidence as a", "case gone: it has a label, and there is no such folder", "case empty: conversation.json: no such file"} {
		must.Contain(t, err.Error(), want)
	}
}

func nearly(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	must.Hold(t, math.Abs(got-want) <= within && !math.IsNaN(got), "%s: %v, want %v", what, got, want)
}

// TestAUCByPairs compares AUC with a count of all pairs, on random lists with many equal numbers.
func TestAUCByPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		list := func() []float64 {
			all := make([]float64, 1+random.IntN(12))
			for i := range all {
				all[i] = float64(random.IntN(6))
			}
			return all
		}
		above, below := list(), list()
		sum := 0.0
		for _, a := range above {
			for _, b := range below {
				switch {
				case a > b:
					sum++
				case a == b:
					sum += 0.5
				}
			}
		}
		want := sum / float64(len(above)*len(below))
		got, defined := rankAUC(above, below)
		must.Need(t, defined && math.Abs(got-want) <= 1e-12, "%v over %v: %v, want %v", above, below, got, want)
	}
	_, defined := rankAUC(nil, []float64{1})
	must.Hold(t, !defined, "defined without cases")
}

// TestHanleyMcNeil takes the example of Hanley and McNeil (1982): ratings of 58 normal and 51 abnormal pictures.
func TestHanleyMcNeil(t *testing.T) {
	ratings := func(counts ...int) (list []float64) {
		for rating, n := range counts {
			list = append(list, slices.Repeat([]float64{float64(rating)}, n)...)
		}
		return list
	}
	normal, abnormal := ratings(33, 6, 6, 11, 2), ratings(3, 2, 2, 11, 33)
	auc, _ := rankAUC(abnormal, normal)
	nearly(t, "area", auc, 0.893, 0.0005)
	nearly(t, "standard error", math.Sqrt(hanleyMcNeil(auc, 51, 58)), 0.032, 0.0006)
}

// TestAUCInterval: the borders are where the distance is 1.96 standard errors, and the interval of a perfect area has a width.
func TestAUCInterval(t *testing.T) {
	f := rankFigure(0.7, 20, 30)
	for _, border := range []float64{*f.Low, *f.High} {
		nearly(t, "distance in standard errors", math.Abs(0.7-border)/math.Sqrt(hanleyMcNeil(border, 20, 30)), stats.Z, 1e-6)
	}
	must.Hold(t, *f.Low < 0.7 && 0.7 < *f.High && f.Cases == 50, "%v to %v of %d", *f.Low, *f.High, f.Cases)
	perfect := rankFigure(1, 5, 5)
	must.Hold(t, *perfect.High == 1 && *perfect.Low <= 0.8 && *perfect.Low >= 0.3, "perfect on ten cases: %v to %v", *perfect.Low, *perfect.High)
	worst := rankFigure(0, 5, 5)
	nearly(t, "mirrored", *worst.High, 1-*perfect.Low, 1e-9)
}

// TestCoverage simulates: the interval of an area holds the true one in about 95 of 100 sets of cases.
func TestCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const rounds = 2000
	held := 0
	for range rounds {
		above, below := make([]float64, 25), make([]float64, 15)
		for i := range above {
			above[i] = random.NormFloat64() + 1
		}
		for i := range below {
			below[i] = random.NormFloat64()
		}
		auc, _ := rankAUC(above, below)
		f := rankFigure(auc, 25, 15)
		if truth := 0.7602499; *f.Low <= truth && truth <= *f.High { // Φ(1/√2)
			held++
		}
	}
	share := float64(held) / rounds
	must.Hold(t, share >= 0.93 && share <= 0.98, "%v of the intervals hold the truth", share)
}

func TestMedian(t *testing.T) {
	nearly(t, "odd", median([]float64{9, 1, 5}), 5, 0)
	nearly(t, "even", median([]float64{9, 1, 5, 2}), 3.5, 0)
	nearly(t, "none", median(nil), 0, 0)
}

// invented returns a run of two panels with random trials, of cases with these outcomes.
func invented(seed uint64, repeat int) (*order, *Report) {
	random := rand.New(rand.NewPCG(seed, 9))
	seats := []jury.Seat{{JurorID: "one", Model: "m"}, {JurorID: "two", Model: "m"}, {JurorID: "three", Model: "m"}}
	o := &order{repeat: repeat, draw: stats.Bootstrap{Seed: 1, Samples: 50}, panels: []panel{{name: "a", settings: jury.Settings{Seats: seats}}, {name: "b", settings: jury.Settings{Seats: seats, MaxRounds: 1}}}}
	run := o.report()
	positions := []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail}
	for _, p := range o.panels {
		for i := range 14 {
			for n := range repeat {
				one := Trial{Panel: p.name, Case: string(rune('a' + i)), Repeat: n + 1, Outcome: Good, Trade: []string{"x", "y"}[i/2%2], Position: positions[random.IntN(3)],
					Score: random.IntN(101), Answers: 3, Rounds: 1, AfterPhase1: positions[random.IntN(3)], AfterTalk: positions[random.IntN(3)], Cost: int64(random.IntN(1000))}
				if i%2 == 1 {
					one.Outcome = Failed
				}
				for _, seat := range seats {
					v := Voice{Juror: seat.JurorID, Position: positions[random.IntN(3)], Score: random.IntN(101), Confidence: float64(random.IntN(11)) / 10}
					one.Alone, one.Final = append(one.Alone, v), append(one.Final, v)
				}
				one.Findings = []Found{{Rule: []string{"r", "s"}[random.IntN(2)]}}
				run.Trials = append(run.Trials, one)
			}
		}
	}
	return o, run
}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	must.Hold(t, got != nil && math.Abs(*got-want) <= 1e-9, "%s: %v, want %v", what, got, want)
}

// TestFiguresByCounting compares figures of random trials with counts that go over all of them one by one.
func TestFiguresByCounting(t *testing.T) {
	for seed := range uint64(20) {
		o, run := invented(seed, 1)
		run.measure(o)
		g := run.Panels[0].All
		var good, failed, flaggedGood, flaggedFailed, accusedGood, pairs, above, found, bad, turned, toRight float64
		for _, a := range run.Trials[:14] {
			isBad := a.Outcome == Failed
			if isBad {
				failed++
			} else {
				good++
			}
			if a.Position != jury.SafePass && isBad {
				flaggedFailed++
			}
			if a.Position != jury.SafePass && !isBad {
				flaggedGood++
			}
			if a.Position == jury.UnsafeFail && !isBad {
				accusedGood++
			}
			if a.Findings[0].Rule == "r" {
				found++
				if isBad {
					bad++
				}
			}
			if a.AfterPhase1 != a.AfterTalk {
				turned++
				if (a.AfterPhase1 != jury.SafePass) != isBad && (a.AfterTalk != jury.SafePass) == isBad {
					toRight++
				}
			}
			for _, b := range run.Trials[:14] {
				if !isBad && b.Outcome == Failed {
					pairs++
					if a.Score > b.Score {
						above++
					} else if a.Score == b.Score {
						above += 0.5
					}
				}
			}
		}
		near(t, "AUC", g.AUC.Value, above/pairs)
		near(t, "accuracy", g.Accuracy.Value, (good-flaggedGood+flaggedFailed)/(good+failed))
		near(t, "precision", g.Precision.Value, flaggedFailed/(flaggedFailed+flaggedGood))
		near(t, "good flagged", g.FlaggedGood.Value, flaggedGood/good)
		near(t, "failed flagged", g.FlaggedFailed.Value, flaggedFailed/failed)
		near(t, "good accused", g.AccusedGood.Value, accusedGood/good)
		for _, f := range g.Findings {
			if f.Rule == "r" {
				near(t, "share of failed", f.Failed.Value, bad/found)
				near(t, "lift", f.Lift, bad/found/(failed/(good+failed)))
			}
		}
		must.Hold(t, float64(g.Talk.Turned) == turned && float64(g.Talk.ToRight) == toRight && g.Cases == 14,
			"%+v: want %v turned, %v to right", g.Talk, turned, toRight)
	}
}

// TestRepeatsAreNoCases: trials that repeat change no count of cases and no width of an interval.
func TestRepeatsAreNoCases(t *testing.T) {
	o, once := invented(3, 1)
	once.measure(o)
	o.repeat = 3
	thrice := o.report()
	for _, one := range once.Trials {
		for n := range 3 {
			one.Repeat = n + 1
			thrice.Trials = append(thrice.Trials, one)
		}
	}
	thrice.measure(o)
	for i, pair := range [][2]Figure{{once.Panels[0].All.AUC, thrice.Panels[0].All.AUC}, {once.Panels[0].All.Accuracy, thrice.Panels[0].All.Accuracy},
		{once.Panels[0].All.Precision, thrice.Panels[0].All.Precision}, {once.Panels[0].Jurors[1].AUC, thrice.Panels[0].Jurors[1].AUC}} {
		near(t, "value", pair[1].Value, *pair[0].Value)
		near(t, "low", pair[1].Low, *pair[0].Low)
		must.Hold(t, pair[0].Cases == pair[1].Cases, "%d: %d cases and %d", i, pair[0].Cases, pair[1].Cases)
	}
	near(t, "difference", thrice.Comparisons[0].AUC.Value, *once.Comparisons[0].AUC.Value)
	near(t, "its interval", thrice.Comparisons[0].AUC.Low, *once.Comparisons[0].AUC.Low)
	near(t, "the same verdict again", thrice.Panels[0].Retest.Value, 1)
	must.Hold(t, once.Panels[0].Retest.Value == nil, "one trial was compared with itself")
	s := thrice.Panels[0].Single
	must.Hold(t, s != nil && s.Answers == 3 && s.AsOften && !once.Panels[0].Single.AsOften, "%+v", s)
}

// TestSingleIsChosenElsewhere: a juror who is best only thanks to one case is not chosen for that case.
func TestSingleIsChosenElsewhere(t *testing.T) {
	o, run := invented(5, 1)
	all := rows(by(run.Trials, "a"))
	for i := range all {
		asked := map[string][]row{}
		for _, seat := range o.panels[0].settings.Seats {
			asked[seat.JurorID] = means(alone(all, seat.JurorID), 1)
		}
		before := best(o.panels[0].settings.Seats, asked, i)
		for _, own := range asked { // whatever a juror says of this case
			own[i].trials[0].mean, own[i].trials[0].Position = 1000, jury.SafePass
		}
		must.Equal(t, best(o.panels[0].settings.Seats, asked, i), before)
	}
}

// hostile is a name that a page must not obey.
const hostile = `<b onclick="x()">&"'`

// full is the report of two panels, with everything that a page can show.
func full() *Report {
	seats := []jury.Seat{{JurorID: "one", Provider: "openai", Model: "gpt-4o"}, {JurorID: "two", Provider: "gemini", Model: hostile}}
	o := &order{repeat: 2, ceiling: 5_000_000, source: "labels.json", unlabelled: []string{"y"}, draw: stats.Bootstrap{Seed: 1, Samples: 200},
		panels: []panel{{name: "careful", settings: jury.Settings{Seats: seats}}, {name: hostile, settings: jury.Settings{Seats: seats, MaxRounds: 2}}}}
	run := o.report()
	run.Settings.Spent, run.Settings.Stopped, run.Left = 1_234_567, "the run was interrupted", []Left{{Panel: "careful", Case: "x", Repeat: 1}}
	for i, p := range o.panels {
		for n := range 40 {
			for r := range 2 {
				t := Trial{Panel: p.name, Case: fmt.Sprint("case ", n), Repeat: r + 1, Outcome: Good, Kind: []string{"refund", hostile}[n/2%2], Trade: []string{"airline", "shop", "library"}[n%3],
					Position: jury.SafePass, Score: 60 + (n*7+i*13+r)%40, Answers: 7, Rounds: 1, AfterPhase1: jury.UnsafeFail, AfterTalk: jury.SafePass, Calls: 7, Cost: int64(20_000 + 1000*i), Waited: 4200}
				if n%2 == 1 {
					t.Outcome, t.Score = Failed, (n*11+i*29*n)%70
					if t.Score < 50 {
						t.Position = jury.UnsafeFail
					}
					t.Findings = []Found{{Rule: hostile, Severity: jury.Major, Juror: "one"}}
				}
				for j, seat := range seats {
					v := Voice{Juror: seat.JurorID, Position: t.Position, Score: t.Score, Confidence: 0.4 + float64((n+3*j)%6)/10}
					if (n+j)%5 == 0 {
						v.Position = jury.NeedsReview
					}
					t.Alone, t.Final = append(t.Alone, v), append(t.Final, v)
				}
				run.Trials = append(run.Trials, t)
			}
		}
	}
	run.measure(o)
	return run
}

// TestPage: the page works without script and network, in light and dark, and on a telephone nothing is wider than the screen.
func TestPage(t *testing.T) {
	doc := must.Get(render(full()))(t)
	for _, never := range []string{"<script", "<b onclick", "http://", "https://", "NaN", "Inf"} {
		must.Hold(t, !strings.Contains(string(doc), never), "the page has %q", never)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	must.Do(t, os.WriteFile(file, doc, 0o644))
	b := browsertest.Open(t, browsertest.Options{Width: 1100, Height: 900, CutOff: true})
	b.Visit("file://" + file)
	for _, view := range []struct {
		name  string
		width int
		dark  bool
	}{{"lab-light", 1100, false}, {"lab-dark", 1100, true}, {"lab-narrow", 360, false}} {
		b.Resize(view.width, 900)
		b.Dark(view.dark)
		over := browsertest.Eval[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
		must.Hold(t, over <= 0, "%s: %d pixels wider than the screen", view.name, over)
		b.Screenshot(view.name)
	}
	tables := browsertest.Eval[int](b, "document.querySelectorAll('table > caption').length")
	must.Hold(t, tables >= 10, "%d tables with a caption", tables)
	problems := b.Problems()
	must.Hold(t, len(problems) <= 0, "%v", problems)
	must.Len(t, b.Requests(), 1)
}
