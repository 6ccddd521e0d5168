package pages

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
)

// texts returns the text of every element of a class or, if the class is "", of a kind, each in one line.
func texts(doc *html.Node, kind, class string) (list []string) {
	for _, n := range elements(doc) {
		if n.Data == kind && (class == "" || hasClass(n, class)) {
			list = append(list, strings.Join(strings.Fields(content(n)), " "))
		}
	}
	return list
}

// TestPagesOfRecordsSayOnWhoseWord: beside the outcome, each page of records says in its own language on whose word the
// proof rests, and each answer has its reason in that language. So does an answer that refutes.
func TestPagesOfRecordsSayOnWhoseWord(t *testing.T) {
	h := jurattest.New(t)
	records := h.Try(t, jury.MajorityVote).Records
	chain, whole := proved(t, h, records...)
	_, cut := proved(t, h, slices.Delete(slices.Clone(records), 2, 3)...)
	equal(t, []verify.Status{whole.Outcome, cut.Outcome}, []verify.Status{verify.Proved, verify.Refuted})
	for _, report := range []*verify.Report{whole, cut} {
		for _, lang := range words.Langs() {
			for name, page := range map[string]Page{"record": NewSealed(chain[0], report, ""), "chain": NewChain("trial", chain, report, 1)} {
				doc := parse(t, write(t, Frame{Lang: lang}, page))
				rests := strings.Join(texts(doc, "p", "whose"), "")
				want := words.Of(lang)["status."+string(report.Outcome)] + " " + words.RestsOn(lang, report)
				must.Hold(t, strings.HasPrefix(rests, strings.Join(strings.Fields(want), " ")), "%s in %s: %q does not begin with %q", name, lang, rests, want)
				all := strings.Join(texts(doc, "dd", ""), "\n")
				for _, f := range report.Guarantees {
					if name == "record" {
						f = report.For(f.Guarantee, chain[0].Payload.RecordID)
					}
					said := strings.Join(strings.Fields(words.Reason(lang, f)), " ")
					must.Hold(t, strings.Contains(all, said), "%s in %s does not say of %s: %s", name, lang, f.Guarantee, said)
				}
				if lists := strings.Join(texts(doc, "li", ""), "\n"); name == "chain" {
					for _, f := range report.Details {
						said := words.Reason(lang, f)
						must.Hold(t, strings.Contains(lists, said), "the doubts in %s do not say: %s", lang, said)
					}
				}
			}
		}
	}
}

func granted(state api.GrantState, session bool) Granted {
	return Granted{Grant: api.Grant{Token: evidence.DigestOf([]byte("x")), Name: "mia \u202e<b>", Roles: []string{"agent", "auditor", "operator", "reviewer", "submitter"},
		State: state, Session: session, By: "otto", Reason: "she reviews", Since: jurattest.Start.Format(time.RFC3339), NotAfter: jurattest.Start.AddDate(0, 2, 0).Format(time.RFC3339)}}
}

// everyAccess makes the pages of who may do what.
func everyAccess(t testing.TB) map[string]Page {
	t.Helper()
	good, expired, revoked := granted(api.GrantGood, false), granted(api.GrantExpired, true), granted(api.GrantRevoked, false)
	good.Used, good.Acted = jurattest.Start, jurattest.Start
	acts := []Act{{ID: "a", Action: evidence.HumanReview, At: jurattest.Start}, {ID: "b"}}
	return map[string]Page{
		"access":       &Access{Grants: []Granted{good, expired, revoked}, Began: jurattest.Start, Next: 2, Ended: true},
		"access-empty": &Access{Began: jurattest.Start},
		"token":        &Token{Granted: good, Acts: acts, Began: jurattest.Start, Own: true, Refusal: Refusal{Problem: "reason: want 1 to 1000 bytes"}, Typed: "because <script>"},
		"token-ended":  &Token{Granted: revoked, Began: jurattest.Start},
	}
}

// TestTokenPage: only a valid token has a form, and that asks whether this is wanted.
func TestTokenPage(t *testing.T) {
	for _, lang := range words.Langs() {
		all := everyAccess(t)
		page := write(t, Frame{Lang: lang, Path: "/access/x", Viewer: viewer}, all["token"])
		must.Contain(t, page, `name="sure" value="yes" required`, `name="form" value="form-key"`, `because &lt;script&gt;`, `href="/records/a"`)
		ended := write(t, Frame{Lang: lang, Path: "/access/x", Viewer: viewer}, all["token-ended"])
		must.Hold(t, !strings.Contains(ended, `name="sure"`), "%s: a token that has ended can be ended", lang)
	}
}

// agentOf makes the page of an agent of whom n records were tried, each with the position of its number. change may change
// the facts.
func agentOf(t testing.TB, n int, position func(int) jury.Position, change ...func(*reputation.Facts)) *Agent {
	t.Helper()
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Unix()
	const day = 86_400
	f := &reputation.Facts{Format: reputation.FactsFormat, At: start + 100*day, Policy: reputation.DefaultPolicy(),
		Identity: reputation.Identity{Name: "desk", By: "keys", Keys: []reputation.KeyOfRecord{{From: start, Revoked: start + 90*day}}}}
	panel := reputation.Panel{Digest: evidence.DigestOf([]byte("panel")), Method: jury.MajorityVote, Seats: []string{"openai/gpt-4o", "anthropic/claude"}, Judge: "google/gemini"}
	for i := range n {
		at := start + int64(i)*day
		exhibit, judgment := evidence.DigestOf(fmt.Appendf(nil, "record %d", i)), evidence.DigestOf(fmt.Appendf(nil, "judgment %d", i))
		f.Records = append(f.Records, reputation.RecordFact{Place: reputation.Place{Digest: exhibit, ID: "r", Origin: "log", Index: int64(2 * i)},
			Standing: reputation.Standing{Time: at, Proved: true}, By: "keys", Keys: []evidence.KeyID{{}}})
		f.Trials = append(f.Trials, reputation.TrialFact{Place: reputation.Place{Digest: judgment, ID: "j", Origin: "log", Index: int64(2*i + 1)},
			Standing: reputation.Standing{Time: at, Proved: true}, Position: position(i), Panel: panel, Exhibits: []evidence.Digest{exhibit},
			Raters: []reputation.Rater{{Role: evidence.RoleSubmitter, Name: "sam"}}})
		f.Counted = append(f.Counted, reputation.CountedFact{Origin: "log", Index: int64(2*i + 1), Of: reputation.OfSubject, Seq: int64(i + 1), Digest: judgment})
	}
	for _, c := range change {
		c(f)
	}
	v, err := f.View()
	check(t, err)
	return NewAgent(v)
}

func passes(int) jury.Position { return jury.SafePass }

// everyAgent makes pages of agents: with a number, with too few, with missing judgments, with nothing.
func everyAgent(t testing.TB) map[string]Page {
	return map[string]Page{
		"agent": agentOf(t, 30, func(i int) jury.Position {
			return map[bool]jury.Position{true: jury.UnsafeFail, false: jury.SafePass}[i == 20]
		}, func(f *reputation.Facts) {
			f.Trials[3].Transcript, f.Trials[4].Proved, f.Trials[4].Rule = true, false, "content/signature"
		}),
		"agent-few":     agentOf(t, 9, passes),
		"agent-hole":    agentOf(t, 12, passes, func(f *reputation.Facts) { f.Counted = f.Counted[1:] }),
		"agent-nothing": agentOf(t, 0, passes),
	}
}

// TestAgentNumbers: there is a number, and a picture, only where there are enough observations and no judgment is missing.
func TestAgentNumbers(t *testing.T) {
	pages := everyAgent(t)
	for name, want := range map[string]struct {
		picture bool
		says    string
	}{
		"agent":         {true, "Between 81.86 % and 99.38 %"},
		"agent-few":     {false, "Too few for a number. At least 10 whole"},
		"agent-hole":    {false, "No number: judgments are missing."},
		"agent-nothing": {false, words.OfPages(words.English)["agent.unjudged"]},
	} {
		page := write(t, Frame{Lang: words.English, Path: "/agents/desk"}, pages[name])
		got := strings.Contains(page, `<svg viewBox="-90`)
		must.Hold(t, got == want.picture, "%s: a picture: %v", name, got)
		must.Hold(t, strings.Contains(page, want.says), "%s does not say %q", name, want.says)
		must.Hold(t, want.picture || !strings.Contains(page, " %</td>"), "%s has bounds in its table, but no number", name)
	}
}

// TestPicture: the lines begin where the number does, and each step is where the verdict is.
func TestPicture(t *testing.T) {
	at := time.Date(2026, 1, 11, 0, 0, 0, 0, time.UTC)
	move := func(day int, b *reputation.Bounds) reputation.Move {
		return reputation.Move{Bounds: b, At: at.AddDate(0, 0, day-10).Format(time.RFC3339)}
	}
	got := picture([]reputation.Move{move(0, nil), move(0, &reputation.Bounds{Lower: 5000, Upper: 10_000}), move(5, &reputation.Bounds{Lower: 2500, Upper: 5000}),
		move(5, &reputation.Bounds{Lower: 7500, Upper: 10_000})}, at)
	want := Picture{Since: at.AddDate(0, 0, -10)}
	want.Lower, want.Upper, want.Band = "0,100 300,100 300,50 600,50 600,50", "0,0 300,0 300,0 600,0 600,0", "0,0 300,0 300,0 600,0 600,0 600,50 600,50 300,50 300,100 0,100"
	equal(t, got, want)
	equal(t, picture([]reputation.Move{move(0, &reputation.Bounds{}), move(1, nil)}, at), Picture{})
	equal(t, picture(nil, at), Picture{})
	one := picture([]reputation.Move{move(10, &reputation.Bounds{Lower: 1, Upper: 9999})}, at) // at the moment of asking
	must.Hold(t, one.Band != "", "no picture of a number that is new")
}

// TestAgentCommand: no name can end the quotation.
func TestAgentCommand(t *testing.T) {
	a := agentOf(t, 0, passes, func(f *reputation.Facts) { f.Identity.Name = "it's $(x)" })
	equal(t, a.Command(), `jurat reputation 'it'\''s $(x)' --at 2026-04-11T12:00:00Z --json`)
}

// TestAgentWithoutAKey: of an agent that only recorders know, the page does not say that the trust file gives it keys.
func TestAgentWithoutAKey(t *testing.T) {
	texts := words.OfPages(words.English)
	byKeys, byRecorders := texts["agent.by_keys"], texts["agent.by_recorders"]
	for keyless, want := range map[bool]string{true: byRecorders, false: byKeys} {
		page := write(t, Frame{Lang: words.English, Path: "/agents/desk"}, agentOf(t, 0, passes, func(f *reputation.Facts) {
			if keyless {
				f.Identity.Keys = nil
			}
		}))
		must.Hold(t, strings.Contains(page, want) && strings.Contains(page, byRecorders) != strings.Contains(page, byKeys), "without a key %t: %s", keyless, page)
	}
}

// gridOf makes a grid of these scores, -1 where a juror was absent and -2 where it was not asked; the last are at the end.
func gridOf(rounds int, scores ...[]int) (g Grid) {
	for round := range rounds {
		g.Rounds = append(g.Rounds, round+1)
	}
	for i, list := range scores {
		row := Row{Who: Who{Name: "juror " + string(rune('A'+i))}, Number: i + 1}
		for _, score := range list {
			cell := Cell{}
			switch score {
			case -1:
				cell.Absent = jury.AbsenceReason("timeout")
			case -2:
			default:
				cell.Vote = &Vote{Position: jury.NeedsReview, Score: score}
			}
			row.Cells = append(row.Cells, cell)
		}
		g.Rows = append(g.Rows, row)
	}
	for range rounds + 1 {
		g.Checks = append(g.Checks, &jury.ConsensusResult{AgreementLevel: 0.5, ConsensusStatus: "split"})
	}
	return g
}

// TestChart: each score of the grid is in the chart, where its points put it; a juror that was absent leaves a gap.
func TestChart(t *testing.T) {
	g := gridOf(2, []int{100, 40, 0, 0}, []int{50, -1, 60, 60}, []int{-2, 70, 70, -2})
	c := g.Chart()
	must.Need(t, c != nil, "there is no chart")
	equal(t, len(c.Lines), 3)
	equal(t, c.Lines[0].Path, "M56 10L136 70L216 110L296 110")
	equal(t, c.Lines[1].Path, "M60 60M220 50L300 50")
	equal(t, c.Lines[2].Path, "M144 40L224 40")
	equal(t, c.Lines[1].Scores, []int{50, 60, 60})
	equal(t, c.Bars, []Bar{{53, 170, 20, 60, 166, 0.5}, {133, 170, 20, 140, 166, 0.5}, {213, 170, 20, 220, 166, 0.5}})
	equal(t, len(c.Labels), 3)
	must.Hold(t, gridOf(0, []int{50, 50}).Chart() == nil, "without a discussion there is a chart")
}

// TestChartOfAFullPanel: twelve jurors are told from each other, and all stand within the picture.
func TestChartOfAFullPanel(t *testing.T) {
	var all [][]int
	for i := range 12 {
		all = append(all, []int{i, 100 - i, 50})
	}
	looks := map[string]bool{}
	css := string(assets["jurat.css"].content)
	for _, l := range gridOf(1, all...).Chart().Lines {
		look := l.Sample
		for _, rule := range strings.Split(css, "\n") {
			if strings.HasPrefix(rule, ".chart") && (strings.Contains(rule, ".of-"+strconv.Itoa(l.Style)+",") || strings.Contains(rule, ".of-"+strconv.Itoa(l.Style)+")")) {
				look += rule[strings.Index(rule, "{"):]
			}
		}
		must.Hold(t, !looks[look], "%s looks like another juror: %s", l.Name, look)
		looks[look] = true
	}
}

// TestChartInPages: the picture of a trial has a title, a description and a way to the table, in each language; and none where
// nobody discussed.
func TestChartInPages(t *testing.T) {
	for name, page := range everyPage(t) {
		court, is := page.(*Court)
		if !is {
			continue
		}
		for _, lang := range words.Langs() {
			text := write(t, Frame{Lang: lang}, court)
			figure := text[strings.Index(text, `<figure class="chart"`):]
			figure = figure[:strings.Index(figure, "</figure>")]
			if court.First.Grid.Chart() == nil {
				must.Hold(t, !strings.Contains(figure, "<svg"), "%s: a picture of nothing", name)
				continue
			}
			says := words.OfPages(lang)
			for _, want := range []string{`role="img"`, `<title id="chart-title">` + says["chart.title"], `<desc id="chart-desc">` + says["chart.desc"], `href="#grid"`, says["chart.agreement"]} {
				must.Hold(t, strings.Contains(figure, want), "%s in %s: %q is missing in %s", name, lang, want, figure)
			}
		}
	}
}

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
		must.Contain(t, page, want)
	}
	for _, status := range []string{"proved", "not_proved", "refuted"} {
		is := strings.Count(page, `class="status `+status+`"`)
		must.Hold(t, is == 1, "%d hits are %s, want 1", is, status)
	}
	person, jurys := strings.Index(page, "unsafe, fails"), strings.Index(page, "safe, passes")
	must.Hold(t, person >= 0 && jurys >= person && strings.Contains(page, "mia"), "the person's decision is not first")
	for name, p := range map[string]*Search{"form": {Searched: Searched{Query: url.Values{"lang": {"ja"}, "sort": {"oldest"}, "text": {""}}}}, "asks": {Searched: Searched{Query: url.Values{"chain": {"x"}}}}} {
		must.Hold(t, p.Asks() == (name == "asks"), "%s: asks %t", name, p.Asks())
	}
	for says, p := range map[string]*Search{"No record matches": searched(nil, api.HitList{}), "The search goes on": searched(nil, api.HitList{Next: "7"})} {
		page := write(t, Frame{Path: "/search", Viewer: viewer}, p)
		must.Hold(t, strings.Contains(page, says) && strings.Contains(page, "No record matches") == (p.Next == ""), "an empty page does not say %q", says)
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
		must.Contain(t, page, want)
	}
	own := NewComparison(api.TrialComparison{A: api.TrialSheet{Axes: []string{"own-axis"}, Seats: []api.TrialSeat{{JurorID: "j"}}}, OnlyA: []api.TrialFinding{{Axis: "other-axis"}}})
	page = write(t, Frame{Path: "/trials", Viewer: viewer}, own)
	must.Hold(t, strings.Contains(page, "own-axis") && strings.Contains(page, "other-axis"), "an axis of another rubric has no name")
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
		before, after := sides(d)
		must.Need(t, before == x && after == y, "%q to %q: %v", x, y, d)
		a, b := cut(x), cut(y)
		want := len(a) + len(b) - 2*common(a, b)
		must.Need(t, edits(d) == want, "%q to %q: %d edits, want %d: %v", x, y, edits(d), want, d)
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
	before, after := sides(d)
	must.Hold(t, before == x && after == y && len(d) == 2, "%d changes", len(d))
}
