package pages

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/words"
	"jurat/jury"
)

func TestCourt(t *testing.T) {
	c := courtOf(t, offline(t, jurattest.New(t), "pharmacy-refill"))
	equal(t, titleOf(t, c), "Corner Pharmacy refill line · needs review · rule jurors · turned by the discussion")
	equal(t, c.State, api.Over)
	first := c.Jurors[0]
	row := c.First.Grid.Rows[0]
	equal(t, len(row.Cells), len(c.First.Grid.Rounds)+2)
	equal(t, []Vote{*row.Cells[0].Vote, *row.Cells[1].Vote, *first.VoteEnd}, []Vote{{jury.SafePass, 98, false}, {jury.NeedsReview, 55, false}, {jury.NeedsReview, 55, false}})
	equal(t, []any{row.Cells[1].Change, row.Cells[1].Moved, row.Cells[1].Anchor}, []any{55 - 98, true, "said-1-1"})
	equal(t, *c.Jurors[1].VoteEnd, Vote{jury.SafePass, 98, false})
	equal(t, first.Axes[0], Axis{ID: "task_completion", Score: 0, Max: 20, Veto: true, Vetoed: true})
	checks := c.First.Grid.Checks
	equal(t, []jury.ConsensusStatus{checks[0].ConsensusStatus, checks[len(checks)-1].ConsensusStatus}, []jury.ConsensusStatus{jury.Majority, jury.Majority})
	said := c.Discussion[0]
	must.Hold(t, said.Changed && said.From == jury.SafePass && said.Position == jury.NeedsReview,
		"the first statement changes from %s to %s: %v", said.From, said.Position, said.Changed)
	f := said.Findings[0]
	must.Hold(t, f.Here && f.Stands && f.Message == 17 && f.FromWho.Name == "Misuse and intent", "finding %+v", f)
	must.Hold(t, slices.Contains(c.Messages[16].CitedBy, Citation{Who{Name: "Policy compliance"}, said.Anchor}),
		"message 17 is cited by %v", c.Messages[16].CitedBy)
}

func TestPageOfACourt(t *testing.T) {
	page := write(t, Frame{Lang: words.Japanese}, courtOf(t, offline(t, jurattest.New(t), "pharmacy-refill")))
	must.Contain(t, page, "立場変更", `<a href="#message-17">`, `id="message-17"`,
		"<title>Corner Pharmacy refill line · 要確認 · 規則による陪審 · 議論で変わった判定 · jurat</title>")
	must.Hold(t, !strings.Contains(page, "unfounded"), "a quotation that is in the evidence is marked as unfounded")
}

// TestRulesWithoutRounds: the page of a trial by rules says why there was no discussion.
func TestRulesWithoutRounds(t *testing.T) {
	h := jurattest.New(t)
	court := courtOf(t, tryIn(t, h, jurattest.Case(t), 0))
	for _, lang := range words.Langs() {
		page, want := write(t, Frame{Lang: lang}, court), words.OfPages(lang)["court.rules_are_silent"]
		must.Hold(t, want != "" && strings.Contains(page, `<p id="silence">`+want+`</p>`), "%s: the page does not say %q", lang, want)
	}
}

// TestCourtAtEveryAct shows a trial after each of its acts, as a visitor sees it who watches or loads the page then.
func TestCourtAtEveryAct(t *testing.T) {
	records := offline(t, jurattest.New(t), "invoice-inbox")
	statements := 0
	for n := 1; n <= len(records); n++ {
		c := courtOf(t, records[:n])
		got := c.State == api.Over
		must.Hold(t, got == (n == len(records)), "after %d of %d acts it is over: %v", n, len(records), got)
		if records[n-1].Payload.ActionType == evidence.Statement {
			statements++
		}
		must.Hold(t, len(c.Discussion) == statements, "after %d acts there are %d statements, want %d", n, len(c.Discussion), statements)
		last := records[n-1]
		must.Hold(t, last.Payload.ActionType != evidence.PhaseOpening || len(c.Waiting) != 0, "after the opening in act %d the page waits for no juror", n)
		if write(t, Frame{}, c); c.Broken != "" {
			t.Errorf("after %d acts: %s", n, c.Broken)
		}
	}
}

// TestScriptHearsEveryEvent: the script handles every type of event that trials have.
func TestScriptHearsEveryEvent(t *testing.T) {
	h := jurattest.New(t)
	heard := 0
	for _, records := range [][]*evidence.Record{offline(t, h, "pharmacy-refill"), hostileTrial(t, h)} {
		p := trial.NewView(nil)
		for _, r := range records {
			events, err := p.Add(r)
			check(t, err)
			for _, e := range events {
				heard++
				kind := e.Head().Type
				must.Hold(t, strings.Contains(string(assets["jurat.js"].content), `"`+kind+`"`), "the script does not handle %s", kind)
			}
		}
	}
	must.Hold(t, heard >= 30, "only %d events", heard)
}

// TestOrderIsBySeat: answers that arrive in another order are shown by round and seat.
func TestOrderIsBySeat(t *testing.T) {
	c := courtOf(t, offline(t, jurattest.New(t), "pharmacy-refill"))
	for i, u := range c.Discussion[1:] {
		before := c.Discussion[i]
		must.Hold(t, before.Round <= u.Round && (before.Round != u.Round || before.Seat.Number < u.Seat.Number), "%s is followed by %s", before.Anchor, u.Anchor)
	}
}

func TestAbsencesAndInventions(t *testing.T) {
	h := jurattest.New(t)
	c := courtOf(t, hostileTrial(t, h))
	equal(t, c.Marks(), []Mark{Degraded, TurnedByTalk, JudgeMilder})
	a := c.Jurors[2].Alone.Absent
	must.Hold(t, a != nil && a.Reason == jury.Failed && len(c.Jurors[2].Absences) >= 2, "absent: %+v, in all %d times", a, len(c.Jurors[2].Absences))
	equal(t, c.Jurors[2].Name, hostileName("role 2"))
	equal(t, c.Jurors[0].Reported, hostileName("first model"))
	configured := c.Jurors[2].Seat.Model
	must.Need(t, c.State == api.Over && c.Jurors[2].Reported == "" && configured != "", "%s, %+v", c.State, c.Jurors[2])
	if over := write(t, Frame{}, c); strings.Contains(over, words.OfPages(words.English)["juror.configured"]) || !strings.Contains(over, words.OfPages(words.English)["juror.silent"]) {
		t.Error("the page of a finished trial says of a model that never answered that it has not answered yet")
	}
	findings := c.Jurors[0].Alone.Findings
	equal(t, []bool{findings[0].Stands, findings[1].Here, findings[1].Stands, findings[2].Here}, []bool{true, true, false, false})
	page := write(t, Frame{}, c)
	must.Contain(t, page, words.OfPages(words.English)["finding.unfounded"], "There is no message 99")
	title, _, _ := strings.Cut(page[strings.Index(page, "<title>"):], "</title>")
	must.Hold(t, strings.Contains(title, "degraded"), "the title is %s", title)
}

func TestInconclusive(t *testing.T) {
	h := jurattest.New(t)
	silent := &jurattest.Juror{Err: jury.ErrCeiling}
	done := h.TryBefore(t, jurattest.Settings(jury.MajorityVote), []jury.Juror{silent, silent, &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}}, nil)
	c := courtOf(t, done.Records)
	equal(t, c.Marks(), []Mark{Inconclusive, Degraded})
	s := c.Line()
	must.Hold(t, s.NeedsPerson(), "%+v needs no person", s)
}

// TestBrokenTrialsAreSaidToBe removes an act from a trial. The page must say that the trial contradicts itself.
func TestBrokenTrialsAreSaidToBe(t *testing.T) {
	records := offline(t, jurattest.New(t), "pharmacy-refill")
	c := courtOf(t, slices.Delete(slices.Clone(records), 3, 4))
	equal(t, c.Marks()[len(c.Marks())-1], Broken)
	must.Contain(t, write(t, Frame{}, c), "contradicts itself")
	_, err := NewCourt(records[1:])
	must.Hold(t, err != nil, "NewCourt accepted records without a submission")
}

func TestDeskAndDecisions(t *testing.T) {
	h := jurattest.New(t)
	records := offline(t, h, "pharmacy-refill")
	summary := courtOf(t, records).Line()
	passed := courtOf(t, offline(t, h, "kitchen-return")).Line()
	d := NewDesk([]Summary{summary}, nil, "Ines Duarte")
	equal(t, []bool{d.Items[0].Own, summary.NeedsPerson(), passed.NeedsPerson()}, []bool{true, true, false})
	open := courtOf(t, decided(t, h, records)).Line() // decided by a person who gave a text, but neither a pass nor a fail
	equal(t, []any{open.NeedsPerson(), open.Outcome.Position, open.Outcome.By}, []any{true, jury.NeedsReview, jury.ByPerson})
}

// decide adds a person's decision on the verdict, as it is sealed.
func decide(t testing.TB, h *jurattest.House, records []*evidence.Record, status evidence.ApprovalStatus, modified jsontext.Value) []*evidence.Record {
	t.Helper()
	judgment := records[len(records)-2]
	p := judgment.Payload
	return append(slices.Clone(records), h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "Hana Sato", Timestamp: p.Timestamp,
		OriginalResponseID: p.RecordID, ApprovalStatus: status, ModifiedResponse: modified, Changes: value(t, "The patient was not told."), ChainID: p.ChainID, Saw: []evidence.Digest{judgment.Digest}}))
}

// TestOutcomeFirst: a person's decision comes first, and then the jury's verdict, in the headline, on the page, in the
// list and at the desk. Score, method and model are the jury's.
func TestOutcomeFirst(t *testing.T) {
	h := jurattest.New(t)
	records := offline(t, h, "pharmacy-refill")
	court := courtOf(t, decide(t, h, records, evidence.ApprovedWithModifications, jury.ModifiedVerdict(jury.UnsafeFail)))
	equal(t, titleOf(t, court), "Corner Pharmacy refill line · unsafe, fails · decided by a person · the jury: needs review · rule jurors · turned by the discussion")
	equal(t, court.Line().NeedsPerson(), false)
	pages := map[string]Page{"court": court, "home": &Home{Trials: []Summary{court.Line()}}, "desk": &Desk{Decided: []Item{{Summary: court.Line()}}}}
	for name, p := range pages {
		for lang, want := range map[words.Lang][]string{words.English: {"unsafe, fails", "decided by a person", "Hana Sato", "the jury:", "needs review", "55"},
			words.Japanese: {"人による決定", "Hana Sato", "陪審：", "55"}, words.Russian: {"решил человек", "Hana Sato", "присяжные:", "55"}} {
			page := write(t, Frame{Lang: lang}, p)
			page = page[strings.Index(page, "<main"):]
			for _, w := range want {
				at := strings.Index(page, w)
				must.Need(t, at >= 0, "%s in %s does not say %q", name, lang, w)
				page = page[at+len(w):] // the next text must come after it
			}
		}
	}
	d := court.Human[0]
	must.Hold(t, d.Verdict.Position == jury.UnsafeFail && d.Text == "" && d.Changes == "The patient was not told.", "%+v", d)
	left := courtOf(t, decide(t, h, records, evidence.Approved, nil))
	equal(t, left.Line().NeedsPerson(), true)
	equal(t, strings.Contains(write(t, Frame{}, left), "left open by a person"), true)
}

// TestReviewOfAVerdict: the form asks for a pass or a fail, and offers a rejection only where one is possible.
func TestReviewOfAVerdict(t *testing.T) {
	h := jurattest.New(t)
	for example, rejects := range map[string]bool{"pharmacy-refill": false, "kitchen-return": true} {
		records := offline(t, h, example)
		r, err := NewReview(records[len(records)-2])
		check(t, err)
		r.May, r.Court, r.Next = true, courtOf(t, records), "the-next-one"
		page := write(t, Frame{Viewer: viewer}, r)
		must.Contain(t, page, `value="safe_pass"`, `value="unsafe_fail"`, `id="message-1"`, `href="/reviews/the-next-one"`)
		for _, never := range []string{`value="approved"`, `value="approved_with_modifications"`, `name="text"`} {
			must.Hold(t, !strings.Contains(page, never), "%s: the page has %s", example, never)
		}
		equal(t, strings.Contains(page, `value="rejected"`), rejects)
	}
}

func TestModified(t *testing.T) {
	h := jurattest.New(t)
	records := offline(t, h, "pharmacy-refill")
	judgment := records[len(records)-2]
	r, err := NewReview(judgment)
	check(t, err)
	same, err := Modified(judgment, r.Draft)
	must.Hold(t, same == nil && err == nil, "an unchanged draft gives %s, %v", same, err)
	changed, err := Modified(judgment, Draft{Text: "Call the patient."})
	must.Hold(t, err != nil, "the jury's words have become %s", changed)

	plan := h.Seal(t, evidence.Payload{ActionType: evidence.ToolPlan, AgentID: "a", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
		Prompt: value(t, "p"), Response: []byte(`{"call":"refund","cents":100}`), Parameters: []byte(`{}`)})
	for text, want := range map[string]string{`{"call":"refund","cents":80}`: `{"call":"refund","cents":80}`, "{\n \"cents\":100,\"call\":\"refund\"}": ""} {
		got, err := Modified(plan, Draft{Text: text})
		check(t, err)
		equal(t, string(got), want)
	}
	for _, bad := range []string{`{"call"`, `"refund"`, `7`} {
		got, err := Modified(plan, Draft{Text: bad})
		must.Hold(t, err != nil, "%s is taken as %s", bad, got)
	}
}

func TestLongChainsHavePages(t *testing.T) {
	h := jurattest.New(t)
	var records []*evidence.Record
	for range stepsPerPage + 1 {
		records = append(records, h.Seal(t, evidence.Payload{ActionType: evidence.Message, AgentID: "a", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m",
			ModelVersion: "1", Prompt: value(t, "p"), Response: value(t, "r"), Parameters: []byte(`{}`), ChainID: "long"}))
	}
	chain, report := proved(t, h, records...)
	for page, want := range map[int]int{-1: stepsPerPage, 1: stepsPerPage, 2: 1, 3: 1} {
		c := NewChain("long", chain, report, page)
		equal(t, []int{len(c.Steps), c.Pages}, []int{want, 2})
	}
	text := write(t, Frame{}, NewChain("long", chain, report, 2))
	must.Contain(t, text, `href="?page=1"`)
	equal(t, strings.Contains(text, `href="?page=3"`), false)
}

// TestCourtNamesJurorsOfTheAccusedsVendor: the page names them, by the names of their seats, and no others.
func TestCourtNamesJurorsOfTheAccusedsVendor(t *testing.T) {
	h := jurattest.New(t)
	jurors, judge := jurattest.Panel()
	s := jurattest.Settings(jury.FinalJudge)
	s.Seats[1].Model, s.Judge.Model, s.Seats[0].Model = "gpt-4.1", "openai/gpt-5", "claude-opus-4"
	on, err := subject.Parse(bytes.Replace(jurattest.Case(t).Material(), []byte("Tracks parcels."), []byte("Tracks parcels with GPT-4o."), 1))
	check(t, err)
	done, err := trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Settings: s, Jurors: jurors, Judge: judge}, on)
	check(t, err)
	c := courtOf(t, done.Records)
	equal(t, c.SameVendor, []Who{{"Second", "gpt-4.1"}, {"Judge", "openai/gpt-5"}})
	for _, lang := range words.Langs() {
		if says := words.OfPages(lang)["court.same_vendor"]; !strings.Contains(write(t, Frame{Lang: lang}, c), says) || strings.Contains(write(t, Frame{Lang: lang}, courtOf(t, h.Try(t, jury.FinalJudge).Records)), says) {
			t.Errorf("in %s: the page does not say it, or says it of a jury of other vendors", lang)
		}
	}
}

// TestFirstScreen: a reader learns from the first screen what was decided, why, on which message, who disagrees, and
// what the proof rests on; and each name of a juror has its model beside it.
func TestFirstScreen(t *testing.T) {
	h := jurattest.New(t)
	records := offline(t, h, "pharmacy-refill")
	c := courtOf(t, decide(t, h, records, evidence.ApprovedWithModifications, jury.ModifiedVerdict(jury.UnsafeFail)))
	equal(t, c.First.Person, "The patient was not told.")
	f := c.First.Finding
	must.Hold(t, f != nil && f.Stands && f.Message == 17 && c.First.By.Name != "", "it rests on %+v of %+v", f, c.First.By)
	for _, j := range c.First.Against {
		must.Hold(t, j.VoteEnd.Position != c.Judgment.Position, "%s agrees", j.Name)
	}
	equal(t, len(c.First.Against) > 0, true)
	c.Proof = &Proof{Clocks: 2, Witnesses: 3, Quorum: 2}
	page := write(t, Frame{}, c)
	page = page[strings.Index(page, "<main"):strings.Index(page, `class="evidence"`)]
	for _, want := range []string{"unsafe, fails", "Hana Sato", "The patient was not told.", `href="#message-17"`, "Who disagreed in the jury:", "independent clocks that stamp the time: 2", "witnesses of the log: 3, of whom 2"} {
		at := strings.Index(page, want)
		must.Need(t, at >= 0, "the first screen does not say %q, or too early", want)
		if want != `href="#message-17"` {
			page = page[at:]
		}
	}
	hostile := courtOf(t, hostileTrial(t, h))
	who := hostile.Jurors[0].Who
	must.Hold(t, who.Beside != "" && strings.Contains(write(t, Frame{}, hostile), `class="beside"`), "no model stands beside %+v", who)
	equal(t, courtOf(t, records[:1]).First.Jury, "")
}

func TestOpening(t *testing.T) {
	for text, want := range map[string]string{"": "", "One. Two! Three.": "One. Two!", "It has 3.5 points, e.g. two. And more? Yes.": "It has 3.5 points, e.g. two. And more?",
		"一つ。二つ。三つ。": "一つ。二つ。", "no end": "no end", "a\n b.": "a b.", strings.Repeat("x", 400): strings.Repeat("x", maxOpening) + "…"} {
		equal(t, opening(text), want)
	}
}

// TestLongResultsAreFolded: a long result of a tool is folded, whole, and a short one is not; the cited messages are
// listed, and a longer conversation can be searched.
func TestLongResultsAreFolded(t *testing.T) {
	long := strings.Repeat("parcel 17 was seen in Kassel\\n", foldLines+1)
	const call = `{"role":"assistant","content":"","tool_calls":[{"id":"%d","type":"function","function":{"name":"track","arguments":"{}"}}]},{"role":"tool","tool_call_id":"%d","content":"%s"},`
	conversation := "[" + fmt.Sprintf(call, 1, 1, long) + fmt.Sprintf(call, 2, 2, "short") + strings.Repeat(`{"role":"user","content":"And now?"},{"role":"assistant","content":"In Kassel."},`, 3) + `{"role":"user","content":"Thanks."}]`
	on, err := subject.New([]byte(`{"name":"Parcel agent","description":"d","version":"1.0.0","url":"https://parcels.example/a2a","protocolVersion":"0.3.0","skills":[]}`), []byte(conversation))
	check(t, err)
	page := write(t, Frame{}, courtOf(t, try(t, jurattest.New(t), on)))
	equal(t, []int{strings.Count(page, `<details class="result">`), strings.Count(page, "seen in Kassel"), strings.Count(page, `class="find"`)}, []int{1, foldLines + 1, 1})
	cited := write(t, Frame{}, courtOf(t, offline(t, jurattest.New(t), "pharmacy-refill")))
	i := strings.Index(cited, `id="cited-all"`)
	must.Hold(t, i >= 0 && strings.Contains(cited[i:i+400], `<a href="#message-17">17</a>`), "the page does not list the cited messages")
}

// TestFirstScreenRestsOnWhatStands: a graver finding whose quotation stands nowhere is not what the verdict rests on.
func TestFirstScreenRestsOnWhatStands(t *testing.T) {
	o := jurattest.Opine(jury.UnsafeFail, 10)
	o.Findings = []jury.Finding{{Message: 4, Quote: "now in Kassel.", Rule: "r", Axis: "safety", Severity: jury.Minor},
		{Message: 2, Quote: "I have stolen it.", Rule: "r", Axis: "safety", Severity: jury.Critical}}
	j := &jurattest.Juror{Opinion: o}
	c := courtOf(t, jurattest.New(t).TryBefore(t, jurattest.Settings(jury.MajorityVote), []jury.Juror{j, j, j}, nil).Records)
	f := c.First.Finding
	must.Hold(t, f != nil && f.Quote == "now in Kassel.", "it rests on %+v", f)
}

// lengthy is a text of many lines that has a needle in its middle, where no page that shows the beginning has it.
func lengthy(bytes int) string {
	line := "The parcel was scanned in Kassel, and nothing else was noted.\n"
	text := strings.Repeat(line, bytes/len(line)+1)
	return text[:len(text)/2] + " needle " + text[len(text)/2:]
}

// lengthyTrial tries a case with tool results, calls and speeches of these sizes.
func lengthyTrial(t testing.TB, h *jurattest.House, messages, bytes int) []*evidence.Record {
	t.Helper()
	var talk []string
	for i := range messages / 3 {
		talk = append(talk, fmt.Sprintf(`{"role":"user","content":"Where is parcel %d?"}`, i),
			fmt.Sprintf(`{"role":"assistant","content":%s,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"get_parcel","arguments":%s}}]}`,
				quoted(t, lengthy(bytes)), i, quoted(t, `{"note":`+quoted(t, lengthy(bytes))+`}`)),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%s}`, i, quoted(t, lengthy(bytes))))
	}
	c, err := subject.New([]byte(`{"name":"Parcel agent","description":"d","version":"1.0.0","url":"https://parcels.example/a2a","protocolVersion":"0.3.0","skills":[]}`),
		[]byte("["+strings.Join(talk, ",")+"]"))
	check(t, err)
	return try(t, h, c)
}

// everyWhole makes the pages with long texts, and those that show them whole.
func everyWhole(t testing.TB, h *jurattest.House) map[string]Page {
	t.Helper()
	court := courtOf(t, lengthyTrial(t, h, 12, 30_000))
	found, none := &Mentions{Trial: court.ID, Query: "needle"}, &Mentions{Trial: court.ID, Query: "haystack"}
	found.Find(court, func(text string) (string, bool) { return "a needle here", strings.Contains(text, "needle") })
	record := h.Seal(t, evidence.Payload{AgentID: "courier", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
		Prompt: value(t, "What now?"), Response: value(t, "Call."), Parameters: []byte(`{}`)}, "/response")
	withheld := *record
	withheld.Disclosures = nil
	brief := courtOf(t, lengthyTrial(t, h, 3, 300))
	return map[string]Page{"lengthy": court, "message": brief.WholeMessage(2), "result": brief.WholeMessage(3), "member": WholeMember(record, "response"), "member, withheld": WholeMember(&withheld, "response"),
		"mentions": found, "mentions, none": none, "mentions, refused": &Mentions{Trial: court.ID, Refusal: Refusal{Problem: "text: give what to look for"}}}
}

// TestLongTextsAreNotCarried: the courtroom, and the page of a record, carry only the beginning of a long text, say so with its length, and
// lead to the page that has it whole. A shorter text is whole.
func TestLongTextsAreNotCarried(t *testing.T) {
	h := jurattest.New(t)
	records := lengthyTrial(t, h, 3, 30_000)
	court := courtOf(t, records)
	page := write(t, Frame{Path: "/"}, court)
	must.Hold(t, !strings.Contains(page, "needle") && strings.Count(page, `class="cut"`) == 3,
		"the courtroom carries the middle of a long text, or %d beginnings, want 3", strings.Count(page, `class="cut"`))
	for part, href := range map[string]string{"text": "/messages/3#text", "speech": "/messages/2#text", "arguments": "/messages/2#call-1"} {
		must.Hold(t, strings.Contains(page, `data-whole="/submissions/`+court.ID+href+`"`), "no way to the whole %s", part)
	}
	result := lengthy(30_000)
	says := fmt.Sprintf("Show all: %d characters, %d lines", len(result), lines(result))
	must.Hold(t, strings.Contains(page, says) && strings.Count(page, "Only the beginning.") == 3, "the page does not say %q", says)
	for number, want := range map[int][]string{2: {result, `{"note":` + quoted(t, result) + `}`}, 3: {result}} {
		found := passages(parse(t, write(t, Frame{Path: "/"}, court.WholeMessage(number))))
		for _, text := range want {
			must.Hold(t, found[text], "the page of message %d does not show %d characters unchanged", number, len(text))
		}
	}
	must.Hold(t, court.WholeMessage(0) == nil && court.WholeMessage(4) == nil, "there is a page of a message that is not there")
	sealed := sealedOf(t, h, records[0])
	page = write(t, Frame{Path: "/"}, sealed)
	must.Hold(t, !strings.Contains(page, "needle") && strings.Contains(page, `data-whole="/records/`+records[0].Payload.RecordID+`/member?name=response#text"`),
		"the page of the submission carries it whole, or does not lead to it")
	whole := WholeMember(records[0], "response")
	must.Hold(t, passages(parse(t, write(t, Frame{Path: "/"}, whole)))[sealed.Output[0].Text], "the page of the member does not show it unchanged")
	must.Hold(t, WholeMember(records[0], "nothing") == nil, "there is a page of a member that is not there")
}

// TestExtent: what is as long as allowed is whole; a beginning has whole characters, and few lines.
func TestExtent(t *testing.T) {
	e := extent(strings.Repeat("я", 50), 100, "/x")
	must.Hold(t, e.Href == "" && len(e.Text) == 100 && e.Chars == 50 && e.Lines == 1, "%+v", e)
	e = extent(strings.Repeat("я", 51), 100, "/x")
	must.Hold(t, e.Href == "/x" && e.Text == strings.Repeat("я", 51), "%+v", e) // it is shorter than a beginning
	long := "a" + strings.Repeat("я", 5000)
	if e := extent(long, wholeData, "/x"); !utf8.ValidString(e.Text) || !strings.HasPrefix(long, e.Text) || len(e.Text) != beginBytes-1 || e.Chars != 5001 {
		t.Errorf("a beginning of %d bytes: %q", len(e.Text), e.Text)
	}
	e = extent(strings.Repeat("line\n", 5000), wholeData, "/x")
	must.Hold(t, e.Lines == 5000 && lines(e.Text) == beginLines, "a beginning of %d lines of %d", lines(e.Text), e.Lines)
}

// TestNews: the part that a page fetches after each act has everything new, and no earlier round of the discussion.
func TestNews(t *testing.T) {
	records := disputed(t, jurattest.New(t), 3)
	v := trial.NewView(courtOf(t, records[:1]).Case)
	for n, r := range records {
		_, err := v.Add(r)
		check(t, err)
		c := NewNews(v, n)
		if n == 0 {
			equal(t, c == nil, true) // at first, the page needs the whole courtroom
			continue
		}
		page := write(t, Frame{}, c)
		for _, said := range v.SaidAfter(n) {
			must.Hold(t, strings.Contains(page, `id="`+c.anchor(said)+`"`), "after %d of %d: the news lacks %s", n+1, len(records), c.anchor(said))
		}
		if len(v.SaidAfter(n)) == 0 && strings.Contains(page, `class="statement"`) || strings.Contains(page, `id="said-1-1"`) && strings.Contains(page, `id="said-2-1"`) {
			t.Errorf("after %d of %d: the news repeats what was said before", n+1, len(records))
		}
	}
	h := jurattest.New(t)
	decided := decide(t, h, offline(t, h, "pharmacy-refill"), evidence.ApprovedWithModifications, jury.ModifiedVerdict(jury.UnsafeFail))
	v, err := trial.ViewOf(nil, decided)
	check(t, err)
	must.Hold(t, NewNews(v, len(decided)-1) == nil && NewNews(v, -1) == nil && NewNews(v, len(decided)+1) == nil && NewNews(v, len(decided)) != nil,
		"a page must get the whole courtroom after a decision, and nothing but the news if it already has it")
}

// disputed returns a trial whose jurors never agree, with this many rounds.
func disputed(t testing.TB, h *jurattest.House, rounds int) []*evidence.Record {
	t.Helper()
	s := jurattest.Settings(jury.MajorityVote)
	s.MaxRounds = rounds
	return h.TryBefore(t, s, []jury.Juror{&jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}, &jurattest.Juror{Opinion: jurattest.Opine(jury.NeedsReview, 60)},
		&jurattest.Juror{Opinion: jurattest.Opine(jury.UnsafeFail, 10)}}, nil).Records
}

// BenchmarkFollow shows the last ten acts of a trial to a hundred watchers, act by act. ns/event·watcher is the cost of
// one act for one watcher, with its part of the read model; bytes is what the watcher is sent. "whole" makes the whole
// courtroom from all records each time.
func BenchmarkFollow(b *testing.B) {
	const events, watchers = 10, 100
	for _, rounds := range []int{1, 5, 20} {
		records := disputed(b, jurattest.New(b), rounds)
		last := len(records) - events
		b.Run(fmt.Sprintf("acts=%d/news", len(records)), func(b *testing.B) {
			var sent counter
			for b.Loop() {
				b.StopTimer()
				v, err := trial.ViewOf(nil, records[:last])
				check(b, err)
				b.StartTimer()
				for n := last; n < len(records); n++ {
					_, err := v.Add(records[n])
					check(b, err)
					for range watchers {
						check(b, Write(&sent, Frame{Lang: words.English}, NewNews(v, n)))
					}
				}
			}
			report(b, sent, events*watchers)
		})
		b.Run(fmt.Sprintf("acts=%d/whole", len(records)), func(b *testing.B) {
			var sent counter
			for b.Loop() {
				for n := last; n < len(records); n++ {
					c, err := NewCourt(records[:n+1])
					check(b, err)
					check(b, Write(&sent, Frame{Lang: words.English}, c))
				}
			}
			report(b, sent, events)
		})
	}
}

// A counter counts the bytes written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return io.Discard.Write(p)
}

func report(b *testing.B, sent counter, times int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*times), "ns/event·watcher")
	b.ReportMetric(float64(sent)/float64(b.N*times), "bytes/event·watcher")
}
