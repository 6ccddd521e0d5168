package panel_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"jurat/internal/config"
	"jurat/internal/must"
	"jurat/internal/panel"
	"jurat/internal/subject"
	"jurat/jury"
)

// defaultPanel seats the three default models and the judge, with keys that no vendor knows.
func defaultPanel(t *testing.T, doc string) *panel.Panel {
	t.Helper()
	f := must.Get(config.Parse([]byte(doc)))(t)
	plan := must.Get(config.NewPlan(f, config.Wishes{}, func(name string) string { return "nokey" }))(t)
	return must.Get(panel.New(plan, nil))(t)
}

func looked(t *testing.T, p *panel.Panel, on *subject.Case) *panel.Outlook {
	t.Helper()
	return must.Get(p.Look(on, false))(t)
}

func kitchen(t *testing.T) *subject.Case {
	t.Helper()
	return must.Get(subject.Load("../../examples/kitchen-return"))(t)
}

// TestDocumentedCosts: docs/configuration.md has the costs that --check shows for its example.
func TestDocumentedCosts(t *testing.T) {
	doc := must.Get(os.ReadFile("../../docs/configuration.md"))(t)
	look := looked(t, defaultPanel(t, ""), kitchen(t))
	if len(look.Choices) != 3 {
		t.Fatalf("%+v", look.Choices)
	}
	for _, c := range look.Choices {
		row := fmt.Sprintf("| %s | $%.3f | %d | $%.2f | %d |\n", c.Panel, float64(c.Lowest.Cost)/1e6, c.Lowest.Calls, float64(c.Highest.Cost)/1e6, c.Highest.Calls)
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/configuration.md does not have %s", row)
		}
	}
}

// TestChoices: each panel has its own settings and its own bill, and the chosen one's is the outlook's.
func TestChoices(t *testing.T) {
	on := kitchen(t)
	for doc, want := range map[string]struct {
		care                 config.Care
		work                 bool
		rounds, least, most  int
		readings             string
		quickLeast, plainest int
	}{
		"":                           {config.Thorough, true, 3, 3 + 1 + 3 + 1, 3 * (3 + 1 + 3 + 9 + 1), "policy_first acts_first claims_first", 7, 7},
		"panel: quick":               {config.Quick, false, 2, 3 + 3 + 1, 3 * (3 + 6 + 1), "  ", 7, 7},
		"panel: quick\nrounds: 3":    {config.Quick, false, 3, 3 + 3 + 1, 3 * (3 + 9 + 1), "  ", 7, 7},
		"threshold: 1.0":             {config.Thorough, true, 3, 3 + 1 + 1, 3 * (3 + 1 + 3 + 9 + 1), "policy_first acts_first claims_first", 4, 4},
		"method: majority_vote":      {config.Thorough, true, 3, 3 + 3, 3 * (3 + 3 + 9), "policy_first acts_first claims_first", 6, 6},
		"collaborative: false":       {config.Thorough, true, 3, 3 + 1 + 1, 3 * (3 + 1 + 3 + 1), "policy_first acts_first claims_first", 4, 4},
		"judge: {provider: offline}": {config.Thorough, true, 3, 3 + 3, 3 * (3 + 3 + 9), "policy_first acts_first claims_first", 6, 6},
	} {
		p := defaultPanel(t, doc)
		s := p.Settings()
		if err := s.Validate(); err != nil {
			t.Errorf("%q: %v", doc, err)
		}
		judged := s.Judge != nil && s.Judge.Provider != jury.Offline
		if s.Tables != want.work || s.Repeat != want.work || s.JudgeReads != (want.work && judged) || s.MaxRounds != want.rounds || len(s.Rubric[0].Levels) != 4 {
			t.Errorf("%q: %+v", doc, s)
		}
		if got := fmt.Sprintf("%s %s %s", s.Seats[0].Reading, s.Seats[1].Reading, s.Seats[2].Reading); got != want.readings {
			t.Errorf("%q: they read %q", doc, got)
		}
		look := looked(t, p, on)
		if look.Panel != want.care || look.Lowest.Calls != want.least || look.Highest.Calls != want.most || look.Choices[1].Lowest.Calls != want.quickLeast || look.Choices[2].Lowest.Calls != want.plainest {
			t.Errorf("%q: %+v", doc, look.Choices)
		}
		for _, c := range look.Choices {
			if c.Chosen != (c.Panel == string(want.care)) || c.Chosen && c.Lowest != look.Lowest {
				t.Errorf("%q: %+v", doc, c)
			}
		}
		if thorough, quick := look.Choices[0], look.Choices[1]; thorough.Lowest.Cost <= quick.Lowest.Cost || thorough.Highest.Cost <= quick.Highest.Cost {
			t.Errorf("%q: thorough is not dearer than quick: %+v", doc, look.Choices)
		}
	}
	offline := looked(t, defaultPanel(t, "jurors: offline\npanel: thorough"), on)
	if s := defaultPanel(t, "jurors: offline").Settings(); s.Tables || s.Repeat || s.Rubric[0].Levels != nil || offline.Choices != nil || offline.Panel != "" {
		t.Errorf("%+v, %+v", s, offline)
	}
}

// TestOutlookNamesTheSameVendor: before a trial it is said which seats are of the accused's vendor.
func TestOutlookNamesTheSameVendor(t *testing.T) {
	on := must.Get(subject.New([]byte(`{"name":"Desk","description":"Built on Gemini."}`), []byte(`[{"role":"user","content":"Hello"}]`)))(t)
	if got := looked(t, defaultPanel(t, ""), on).SameVendor; strings.Join(got, " ") != "juror-gemini final-judge" {
		t.Error(got)
	}
	if got := looked(t, defaultPanel(t, ""), kitchen(t)).SameVendor; got != nil {
		t.Error(got)
	}
}
