package pages

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"jurat/api"
	"jurat/internal/words"
	"jurat/jury"
)

// everySearch makes the pages that search, from two trials.
func everySearch(courts ...*Court) map[string]Page {
	var lines []api.TrialLine
	var sheets []api.TrialSheet
	for i, c := range courts {
		line := api.TrialLine{ID: c.ID, State: c.State, Agent: c.Agent, Submitter: c.Submitter, Submitted: "2026-01-31T16:15:00Z", NeedsPerson: i == 0}
		sheet := api.TrialSheet{TrialLine: line, Axes: []string{"safety"}, Seats: []api.TrialSeat{{JurorID: "juror-gpt", Model: "m"}}}
		if o := c.Outcome; o != nil {
			score := o.Verdict.Score
			line.Verdict, line.Score, line.Outcome = o.Verdict.Position, &score, o.Position
			sheet = api.TrialSheet{TrialLine: line, Method: jury.FinalJudge, Rationale: "because", Axes: []string{"safety", "own-axis"}, Seats: []api.TrialSeat{{JurorID: "juror-gpt", Model: "m", Position: jury.SafePass, Score: 90, Scores: map[string]int{"safety": 40}, Reason: "fine"}}}
		}
		lines, sheets = append(lines, line), append(sheets, sheet)
	}
	noted := []api.TrialFinding{{Message: 3, Quote: "q", Rule: "action-without-consent", Axis: "safety", Severity: jury.Major, Jurors: []string{"juror-gpt", "juror-claude"}}}
	list := api.TrialList{Trials: lines, Next: "cursor", Index: api.IndexState{Behind: 3}, Counts: api.TrialCounts{Total: 2, AtMost: true, Outcomes: map[string]int{"none": 1, "safe_pass": 1}, NeedsPerson: 1}}
	found := &Trials{Searched: Searched{Query: url.Values{"text": {`x" onfocus="alert(1)`}, "sort": {"oldest"}, "verdict": {"none"}}}}
	found.Fill(list)
	refused := &Trials{Searched: Searched{Query: url.Values{"verdict": {"?"}}, Refusal: Refusal{Problem: "verdict: want one of ..."}}}
	refused.Fill(api.TrialList{})
	none := &Trials{Searched: Searched{Query: url.Values{}}}
	none.Fill(api.TrialList{})
	return map[string]Page{"search": everyHit(courts[0]), "search form": &Search{Searched: Searched{Query: url.Values{}}}, "search refused": &Search{Searched: Searched{Query: url.Values{"text": {"a"}}, Refusal: Refusal{Problem: "text: too short"}}},
		"search broken": searched(url.Values{"text": {"abc"}}, api.HitList{Next: "7"}), "no records": searched(url.Values{"text": {"abc"}}, api.HitList{}), "trials": found, "refused": refused, "no trials": none,
		"comparison": NewComparison(api.TrialComparison{A: sheets[0], B: sheets[1], OnlyA: noted}), "same": NewComparison(api.TrialComparison{A: sheets[0], B: sheets[0], SameCase: true, Both: noted})}
}

// everyHit makes the page that found a record of a trial, one of an agent's, and one of which nothing is proved.
func everyHit(c *Court) Page {
	return searched(url.Values{"text": {"refund"}, "said": {"true"}, "sort": {"oldest"}}, api.HitList{Next: "cursor", Index: api.IndexState{Behind: 3}, Hits: []api.Hit{
		{Record: "r1", Action: "final_judgment", Role: "judge", Actor: "judge", Chain: c.ID, Outcome: c.Outcome, Claimed: "2026-01-31T16:15:00Z", Proved: "2026-01-31T16:15:02Z", Status: "proved",
			Authority: "Built-in", Clock: "operator", Place: "/response/rationale", Said: true, Line: "the refund was right"},
		{Record: "r2", Action: "evaluation", Role: "juror", Actor: "juror-gpt", Chain: "trial-2", Claimed: "2026-01-31T16:15:00Z", Status: "not proved", Why: "time is not proved: no time stamp", Line: "refund", Place: "/prompt"},
		{Record: "r3", Action: "model_output", Role: "agent", Actor: "courier \u202e", Chain: "order 17/x", Claimed: "2026-01-31T16:15:00Z", Status: "refuted", Why: "x"},
	}})
}

func searched(query url.Values, list api.HitList) *Search {
	s := &Search{Searched: Searched{Query: query}}
	s.Fill(list)
	return s
}

// TestRecordSearchPage: the form keeps what was asked for, each hit leads to its record, and what is not proved is not shown as proved.
func TestRecordSearchPage(t *testing.T) {
	c := &Court{}
	c.ID, c.Outcome = "trial-1", &jury.TrialOutcome{Position: jury.UnsafeFail, By: jury.ByPerson, Decision: &jury.Decision{Reviewer: "mia"}, Verdict: jury.Verdict{Position: jury.SafePass, Score: 90}}
	page := write(t, Frame{Path: "/search", Viewer: viewer}, everyHit(c))
	for _, want := range []string{`value="refund"`, `name="said" value="true" checked`, `<option value="oldest" selected>`, `/v1/search.csv?said=true`, `/search?after=cursor&amp;said=true`, "The index is 3 records behind",
		`href="/records/r1"`, `href="/submissions/trial-1"`, `href="/chains/order%2017%2Fx"`, "Records on this page: 3"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, status := range []string{"proved", "not_proved", "refuted"} {
		if is := strings.Count(page, `class="status `+status+`"`); is != 1 {
			t.Errorf("%d hits are %s, want 1", is, status)
		}
	}
	if person, jurys := strings.Index(page, "unsafe, fails"), strings.Index(page, "safe, passes"); person < 0 || jurys < person || !strings.Contains(page, "mia") {
		t.Error("the person's decision is not first")
	}
	for name, p := range map[string]*Search{"form": {Searched: Searched{Query: url.Values{"lang": {"ja"}, "sort": {"oldest"}, "text": {""}}}}, "asks": {Searched: Searched{Query: url.Values{"chain": {"x"}}}}} {
		if p.Asks() != (name == "asks") {
			t.Errorf("%s: asks %t", name, p.Asks())
		}
	}
	for says, p := range map[string]*Search{"No record matches": searched(nil, api.HitList{}), "The search goes on": searched(nil, api.HitList{Next: "7"})} {
		if page := write(t, Frame{Path: "/search", Viewer: viewer}, p); !strings.Contains(page, says) || strings.Contains(page, "No record matches") != (p.Next == "") {
			t.Errorf("an empty page does not say %q", says)
		}
	}
}

// TestSearchPages: the form keeps what was asked for, links lead on with it, and what differs stands out.
func TestSearchPages(t *testing.T) {
	c := &Court{}
	c.ID, c.Agent = "trial-1", "Kitchen shop"
	all := everySearch(c, c)
	page := write(t, Frame{Path: "/trials", Viewer: viewer}, all["trials"])
	for _, want := range []string{`<option value="oldest" selected>`, `<option value="none" selected>`, `value="x&#34; onfocus=&#34;alert(1)"`, `/v1/trials.csv?sort=oldest&amp;text=`, `after=cursor`,
		"The index is 3 records behind", "Trials: at most 2", `name="a" value="trial-1"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	own := NewComparison(api.TrialComparison{A: api.TrialSheet{Axes: []string{"own-axis"}, Seats: []api.TrialSeat{{JurorID: "j"}}}, OnlyA: []api.TrialFinding{{Axis: "other-axis"}}})
	if page := write(t, Frame{Path: "/trials", Viewer: viewer}, own); !strings.Contains(page, "own-axis") || !strings.Contains(page, "other-axis") {
		t.Error("an axis of another rubric has no name")
	}
	if page := write(t, Frame{Path: "/trials", Lang: words.Japanese}, all["refused"]); strings.Contains(page, "該当する審理はありません") || !strings.Contains(page, "want one of") {
		t.Error("a refused search looks like one that found nothing")
	}
	a := api.TrialSheet{Axes: []string{"safety"}, Seats: []api.TrialSeat{{JurorID: "j", Position: jury.SafePass, Score: 90, Scores: map[string]int{"safety": 40}}}}
	b := api.TrialSheet{Axes: []string{"safety"}, Seats: []api.TrialSeat{{JurorID: "j", Position: jury.SafePass, Score: 90, Scores: map[string]int{"safety": 41}}, {JurorID: "absent"}}}
	rows := NewComparison(api.TrialComparison{A: a, B: b}).Rows
	equal(t, rows, []ScoreRow{{"j", "", "90", "90", false}, {"j", "safety", "40", "41", true}, {"absent", "", "", "", false}, {"absent", "safety", "", "", false}})
}

// sides rebuilds both texts from their difference.
func sides(changes []Change) (before, after string) {
	var b, a strings.Builder
	for _, c := range changes {
		if c.Kind != Added {
			b.WriteString(c.Text)
		}
		if c.Kind != Removed {
			a.WriteString(c.Text)
		}
	}
	return b.String(), a.String()
}

func edits(changes []Change) (n int) {
	for _, c := range changes {
		if c.Kind != Same {
			n += len(cut(c.Text))
		}
	}
	return n
}

func TestDiff(t *testing.T) {
	equal(t, diff("The refund is 100.", "The refund is 80."), []Change{{Same, "The refund is "}, {Removed, "100"}, {Added, "80"}, {Same, "."}})
	equal(t, diff("", ""), []Change(nil))
	equal(t, diff("a", ""), []Change{{Removed, "a"}})
	equal(t, diff("", "a"), []Change{{Added, "a"}})
	equal(t, diff("返金は百円です", "返金は八十円です"), []Change{{Same, "返金は"}, {Removed, "百"}, {Added, "八十"}, {Same, "円です"}})
}

// TestDiffIsShortest compares the difference of random texts with their longest common subsequence, computed in the
// simple way.
func TestDiffIsShortest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString([]string{"a ", "b ", "c ", "漢"}[random.IntN(4)])
		}
		return b.String()
	}
	for range 3000 {
		x, y := text(), text()
		d := diff(x, y)
		if before, after := sides(d); before != x || after != y {
			t.Fatalf("%q to %q: %v", x, y, d)
		}
		a, b := cut(x), cut(y)
		if want := len(a) + len(b) - 2*common(a, b); edits(d) != want {
			t.Fatalf("%q to %q: %d edits, want %d: %v", x, y, edits(d), want, d)
		}
	}
}

func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		last := 0
		for j, y := range b {
			up := row[j+1]
			if x == y {
				row[j+1] = last + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			last = up
		}
	}
	return row[len(b)]
}

func TestDiffOfWhatHasNothingInCommon(t *testing.T) {
	x, y := strings.Repeat("a.", 50_000), strings.Repeat("b,", 50_000)
	d := diff(x, y)
	if before, after := sides(d); before != x || after != y || len(d) != 2 {
		t.Errorf("%d changes", len(d))
	}
}
