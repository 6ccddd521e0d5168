package panel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/internal/config"
	"jurat/internal/llm/llmtest"
	"jurat/internal/must"
	"jurat/internal/panel"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// servers starts three vendors' servers and one for the judge. Each takes this long to answer.
func servers(t testing.TB, delays ...time.Duration) (config string, all []*llmtest.Server) {
	t.Helper()
	vendors := []llmtest.Vendor{llmtest.OpenAI, llmtest.Anthropic, llmtest.Gemini, llmtest.Compatible}
	providers := []string{"openai", "anthropic", "gemini", "compatible"}
	seats := make([]string, len(vendors))
	for i, vendor := range vendors {
		server := llmtest.New(t, vendor, func(c llmtest.Call) llmtest.Reply {
			return llmtest.Reply{Delay: delays[i%len(delays)], Text: llmtest.Answer(c, jury.SafePass, 90, nil)}
		})
		file := filepath.Join(t.TempDir(), "key")
		must.Do(t, os.WriteFile(file, []byte(server.Key), 0o600))
		seats[i] = fmt.Sprintf("{id: seat-%d, role: Role %d, provider: %s, model: m-%d, base_url: '%s', key: {file: '%s'}, price: {input: 1, output: 10}}",
			i, i, providers[i], i, server.URL, file)
		all = append(all, server)
	}
	return "panel: [" + strings.Join(seats[:3], ", ") + "]\njudge: " + seats[3] + "\n", all
}

func planned(t testing.TB, doc string) *config.Plan {
	t.Helper()
	f := must.Get(config.Parse([]byte(doc)))(t)
	return must.Get(config.NewPlan(f, config.Wishes{}, func(string) string { return "" }))(t)
}

func seat(t testing.TB, doc string) *panel.Panel {
	t.Helper()
	return must.Get(panel.New(planned(t, doc), nil))(t)
}

func try(t testing.TB, h *jurattest.House, p *panel.Panel) (*trial.Trial, error) {
	jurors, judge, err := p.Sit(0)
	if err != nil {
		return nil, err
	}
	return trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Settings: p.Settings(), Jurors: jurors, Judge: judge}, jurattest.Case(t))
}

// TestSettings: the settings of a trial say who sits and how, and contain no key.
func TestSettings(t *testing.T) {
	doc, all := servers(t, 0)
	p := seat(t, doc+"cost_ceiling: 3\nshorten_over: 5000\n")
	s := p.Settings()
	must.Do(t, s.Validate())
	if s.CostCeiling != 3_000_000 || s.Shortening.Limit != 5000 || s.Seats[1].Provider != "anthropic" || s.Judge.Model != "m-3" {
		t.Errorf("%+v", s)
	}
	if got := string(s.Seats[2].Parameters); got != `{"base_url":"`+all[2].URL+`","max_tokens":16384}` {
		t.Errorf("parameters %s", got)
	}
	body := must.Get(jury.EncodeBody(s))(t)
	for _, server := range all {
		if strings.Contains(string(body), server.Key) {
			t.Error("the settings contain a key")
		}
	}
}

// TestRules: a panel may mix models and rules. A panel of rules only is the offline panel.
func TestRules(t *testing.T) {
	doc, _ := servers(t, 0)
	mixed := seat(t, strings.Replace(doc, "panel: [", "panel: [{id: rules, role: Rules, provider: offline}, ", 1))
	done := must.Get(try(t, jurattest.New(t), mixed))(t)
	if done.Result.Offline || done.Result.Degraded || len(done.Result.Phase1Evaluations) != 4 {
		t.Errorf("%+v", done.Result)
	}
	offline := seat(t, "jurors: offline")
	if done = must.Get(try(t, jurattest.New(t), offline))(t); !done.Result.Offline || offline.Settings().Shortening != nil {
		t.Errorf("%+v", done)
	}
	judged := seat(t, "panel: [{id: a, provider: offline}, {id: b, provider: offline}]\njudge: {provider: offline}\nrounds: 0")
	if done = must.Get(try(t, jurattest.New(t), judged))(t); done.Result.Degraded {
		t.Errorf("%+v", done)
	}
}

// TestNew: a plan with an impossible seat is refused before any model is asked.
func TestNew(t *testing.T) {
	for doc, want := range map[string]string{
		"panel: [{id: a, provider: compatible, model: m, base_url: 'http://127.0.0.1:1/v1'}, {id: b, provider: offline}]\nmethod: majority_vote\ncost_ceiling: 1":                                                 "needs a price for a (compatible m)",
		"panel: [{id: a, provider: compatible, model: m, base_url: 'http://127.0.0.1:1/v1', key: {file: FILE}, seed: 1}, {id: b, provider: openai, model: m, key: {file: FILE}, seed: 1}]\nmethod: majority_vote": "seating b: openai: seed",
	} {
		file := filepath.Join(t.TempDir(), "key")
		must.Do(t, os.WriteFile(file, []byte("k"), 0o600))
		if _, err := panel.New(planned(t, strings.ReplaceAll(doc, "FILE", file)), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestLook: Look describes a trial without asking any model. The estimated cost lies between the lowest and the highest.
func TestLook(t *testing.T) {
	doc, all := servers(t, 0)
	p := seat(t, doc+"rounds: 2\n")
	look := must.Get(p.Look(jurattest.Case(t), true))(t)
	if look.Lowest.Calls != 3+1+3+1 || look.Highest.Calls != 3*(3+1+3+6+1) || look.Lowest.Cost <= 0 || look.Highest.Cost <= look.Lowest.Cost {
		t.Errorf("%+v, %+v", look.Lowest, look.Highest)
	}
	if look.Degraded || look.Judge == nil || look.Deadlines.Longest != "20m0s" {
		t.Errorf("%+v", look)
	}
	for _, s := range look.Seats {
		if !strings.Contains(s.Prompt.Message, "Parcel 17 is in transit") || !strings.Contains(s.Prompt.System, s.Role) || s.Prompt.Tokens == 0 {
			t.Errorf("%+v", s.Prompt)
		}
	}
	if short, err := p.Look(jurattest.Case(t), false); err != nil || short.Seats[0].Prompt.Message != "" {
		t.Errorf("%v, %+v", err, short)
	}
	for _, server := range all {
		if len(server.Requests()) > 0 {
			t.Error("Look asked a model")
		}
	}
	// One juror is absent from the beginning.
	empty := seat(t, strings.Replace(doc, "key: {file: '"+keyFile(doc, 0), "key: {file: '/none", 1))
	if look = must.Get(empty.Look(jurattest.Case(t), false))(t); !look.Degraded || look.Seats[0].Missing == "" {
		t.Errorf("%+v", look)
	}
}

func keyFile(doc string, n int) string {
	_, rest, _ := strings.Cut(strings.SplitN(doc, "id: seat-", n+3)[n+1], "key: {file: '")
	name, _, _ := strings.Cut(rest, "'")
	return name
}

// TestSharedAccounts: seats and trials with the same account share its limit. Here none of them may ask a second time.
func TestSharedAccounts(t *testing.T) {
	server := llmtest.New(t, llmtest.Compatible, func(c llmtest.Call) llmtest.Reply {
		return llmtest.Reply{Text: llmtest.Answer(c, jury.SafePass, 90, nil)}
	})
	file := filepath.Join(t.TempDir(), "key")
	must.Do(t, os.WriteFile(file, []byte(server.Key), 0o600))
	member := fmt.Sprintf("provider: compatible, model: m, base_url: '%s', key: {file: '%s'}, requests_per_minute: 0.001", server.URL, file)
	p := seat(t, fmt.Sprintf("panel: [{id: a, %s}, {id: b, %s}]\nmethod: majority_vote\nrounds: 0\ndeadlines: {phase: 3s}", member, member))
	h := jurattest.New(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			done, err := try(t, h, p)
			if err != nil || !done.Result.Inconclusive {
				t.Errorf("%v, %+v", err, done)
			}
		})
	}
	all.Wait()
	if n := len(server.Requests()); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestSpentBefore: a resumed trial may spend only what is left of its money.
func TestSpentBefore(t *testing.T) {
	doc, all := servers(t, 0)
	p := seat(t, doc+"cost_ceiling: 1\n")
	jurors, judge, err := p.Sit(1_000_000)
	must.Do(t, err)
	h := jurattest.New(t)
	done, err := trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Settings: p.Settings(), Jurors: jurors, Judge: judge}, jurattest.Case(t))
	if err != nil || !done.Result.Inconclusive || done.Result.Absences[0].Reason != jury.Ceiling {
		t.Errorf("%v, %+v", err, done)
	}
	for _, server := range all {
		must.Equal(t, len(server.Requests()), 0)
	}
}

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
