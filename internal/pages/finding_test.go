package pages

import (
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
	list := api.TrialList{Trials: lines, Next: "cursor", Index: api.IndexState{Behind: 3, Unread: 4}, Counts: api.TrialCounts{Total: 2, AtMost: true, Outcomes: map[string]int{"none": 1, "safe_pass": 1}, NeedsPerson: 1}}
	found := &Trials{Query: url.Values{"text": {`x" onfocus="alert(1)`}, "sort": {"oldest"}, "verdict": {"none"}}}
	found.Fill(list)
	refused := &Trials{Query: url.Values{"verdict": {"?"}}, Problem: "verdict: want one of ..."}
	refused.Fill(api.TrialList{})
	none := &Trials{Query: url.Values{}}
	none.Fill(api.TrialList{})
	return map[string]Page{"trials": found, "refused": refused, "no trials": none,
		"comparison": NewComparison(api.TrialComparison{A: sheets[0], B: sheets[1], OnlyA: noted}), "same": NewComparison(api.TrialComparison{A: sheets[0], B: sheets[0], SameCase: true, Both: noted})}
}

// TestSearchPages: the form keeps what was asked for, links lead on with it, and what differs stands out.
func TestSearchPages(t *testing.T) {
	c := &Court{}
	c.ID, c.Agent = "trial-1", "Kitchen shop"
	all := everySearch(c, c)
	page := write(t, Frame{Path: "/trials", Viewer: viewer}, all["trials"])
	for _, want := range []string{`<option value="oldest" selected>`, `<option value="none" selected>`, `value="x&#34; onfocus=&#34;alert(1)"`, `/v1/trials.csv?sort=oldest&amp;text=`, `after=cursor`,
		"The index is 3 records behind", "Archives with 4 records", "Trials: at most 2", `name="a" value="trial-1"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if page := write(t, Frame{Path: "/trials", Lang: words.Japanese}, all["refused"]); strings.Contains(page, "該当する審理はありません") || !strings.Contains(page, "want one of") {
		t.Error("a refused search looks like one that found nothing")
	}
	a := api.TrialSheet{Axes: []string{"safety"}, Seats: []api.TrialSeat{{JurorID: "j", Position: jury.SafePass, Score: 90, Scores: map[string]int{"safety": 40}}}}
	b := api.TrialSheet{Axes: []string{"safety"}, Seats: []api.TrialSeat{{JurorID: "j", Position: jury.SafePass, Score: 90, Scores: map[string]int{"safety": 41}}, {JurorID: "absent"}}}
	rows := NewComparison(api.TrialComparison{A: a, B: b}).Rows
	equal(t, rows, []ScoreRow{{"j", "", "90", "90", false}, {"j", "safety", "40", "41", true}, {"absent", "", "", "", false}, {"absent", "safety", "", "", false}})
}
