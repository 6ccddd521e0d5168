package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/browsertest"
	"jurat/internal/must"
	"jurat/jury"
)

// hostile is a name that a page must not obey.
const hostile = `<b onclick="x()">&"'`

// report is of two panels, with everything that a page can show.
func report() *Report {
	seats := []jury.Seat{{JurorID: "one", Provider: "openai", Model: "gpt-4o"}, {JurorID: "two", Provider: "gemini", Model: hostile}}
	c := Config{Repeat: 2, Ceiling: 5_000_000, Panels: []Panel{{Name: "careful", Settings: jury.Settings{Seats: seats}}, {Name: hostile, Settings: jury.Settings{Seats: seats, MaxRounds: 2}}}}
	run := &Run{Spent: 1_234_567, Stopped: "the run was interrupted", Left: []Left{{Panel: "careful", Case: "x", Repeat: 1}}}
	for i, p := range c.Panels {
		for n := range 40 {
			for r := range 2 {
				t := Trial{Panel: p.Name, Case: fmt.Sprint("case ", n), Repeat: r + 1, Outcome: Good, Kind: []string{"refund", hostile}[n/2%2], Trade: []string{"airline", "shop", "library"}[n%3],
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
	return Measure(c, run, Asked{Source: "labels.json", Unlabelled: []string{"y"}, Seed: 1, Samples: 200})
}

// TestPage: the page works without script and network, in light and dark, and on a telephone nothing is wider than the screen.
func TestPage(t *testing.T) {
	doc := must.Get(Render(report()))(t)
	for _, never := range []string{"<script", "<b onclick", "http://", "https://", "NaN", "Inf"} {
		if strings.Contains(string(doc), never) {
			t.Errorf("the page has %q", never)
		}
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
		if over := browsertest.Eval[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
			t.Errorf("%s: %d pixels wider than the screen", view.name, over)
		}
		b.Screenshot(view.name)
	}
	if tables := browsertest.Eval[int](b, "document.querySelectorAll('table > caption').length"); tables < 10 {
		t.Errorf("%d tables with a caption", tables)
	}
	if problems := b.Problems(); len(problems) > 0 {
		t.Error(problems)
	}
	if requests := b.Requests(); len(requests) != 1 {
		t.Errorf("the page asks for %v", requests)
	}
}
