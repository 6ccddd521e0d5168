package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/access"
	"jurat/internal/test/browsertest"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/pages"
	"jurat/jury"
)

// undecided starts a server with trials whose juries leave them open, all submitted by sam.
func undecided(t *testing.T, cases int) (r *running, sam string, ids []string) {
	t.Helper()
	return undecidedIn(t, t.TempDir()+"/data", cases)
}

func undecidedIn(t *testing.T, dir string, cases int) (r *running, sam string, ids []string) {
	t.Helper()
	return tryAll(t, dir, cases, func() ([]jury.Juror, jury.Juror) {
		open := &jurattest.Juror{Opinion: jurattest.Opine(jury.NeedsReview, 60)}
		return []jury.Juror{open, open, open}, open
	})
}

func tryAll(t *testing.T, dir string, cases int, panel func() ([]jury.Juror, jury.Juror)) (r *running, sam string, ids []string) {
	t.Helper()
	r = startIn(t, dir, withPanel(t, cases, panel))
	sam = r.token(t, "sam", access.Submitter)
	for range cases {
		ids = append(ids, r.tried(t, sam))
	}
	return r, sam, ids
}

var (
	markOf = regexp.MustCompile(`name="case" value="([^"]+)"`)
	keyOf  = regexp.MustCompile(`name="key" value="([^"]+)"`)
)

// severalForm is the form on the page of the queue, with all cases marked.
func severalForm(t *testing.T, page string) url.Values {
	t.Helper()
	form, key := formKey.FindStringSubmatch(page), keyOf.FindStringSubmatch(page)
	must.Need(t, form != nil && key != nil, "the page has no form: %s", page)
	values := url.Values{"form": {form[1]}, "key": {key[1]}, "decision": {"unsafe_fail"}, "reason": {"It told nobody.\r\nTwice."}}
	for _, mark := range markOf.FindAllStringSubmatch(page, -1) {
		values.Add("case", mark[1])
	}
	return values
}

// reviewsOf returns the decisions in a trial's chain.
func (r *running) reviewsOf(t *testing.T, id string) (list []evidence.Payload) {
	t.Helper()
	chain := must.Get(r.Installation.Ledger.Chain(t.Context(), id))(t)
	for _, record := range chain {
		if record.Payload.ActionType == evidence.HumanReview {
			list = append(list, record.Payload)
		}
	}
	return list
}

// TestSeveralDecisions: each marked case gets a record of its own, as if it were decided alone, and the same form again makes none.
func TestSeveralDecisions(t *testing.T) {
	r, sam, ids := undecided(t, 3)
	mia := r.visit(t, "mia", access.Reviewer)
	_, page := mia.get(t, "/reviews")
	form := severalForm(t, page)
	must.Len(t, form["case"], 3)
	unmarked := r.submission(t, sam, ids[1]).Verdict.Record
	form["case"] = []string{r.submission(t, sam, ids[0]).Verdict.Record, r.submission(t, sam, ids[2]).Verdict.Record}
	for range 2 { // the answer may have been lost
		page := shown(t, 200, "Done: 2, not done: 0", `value="`+unmarked+`"`)(mia.post(t, "/reviews", form))
		must.Hold(t, strings.Count(page, `name="case"`) == 1 && !strings.Contains(page, "checked") && !strings.Contains(page, "It told nobody.\n"),
			"after all are decided, the page has other cases or keeps the form: %s", page)
	}
	for n, id := range ids {
		reviews := r.reviewsOf(t, id)
		if n == 1 {
			must.Equal(t, len(reviews), 0)
			continue
		}
		must.Len(t, reviews, 1)
		r.decidedBy(t, id, "mia", evidence.ApprovedWithModifications, "It told nobody.\nTwice.", `{"position":"unsafe_fail"}`)
		s := r.submission(t, sam, id)
		must.Hold(t, !s.Outcome.Open && s.Outcome.Failed(), "%s: %+v", id, s.Outcome)
	}
}

// TestSeveralThatMovedOn: what was decided after the page was loaded is refused, and so is the reviewer's own case, a record that is no
// verdict, and one that is not there. The others are decided. The page says why, and keeps reason and marks for those that still wait.
func TestSeveralThatMovedOn(t *testing.T) {
	r, sam, ids := tryAll(t, t.TempDir()+"/data", 4, func() ([]jury.Juror, jury.Juror) { // they pass the agent, but a vote is missing
		pass := &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}
		return []jury.Juror{pass, pass, &jurattest.Juror{Err: errors.New("away")}}, pass
	})
	mia, ben := r.visit(t, "mia", access.Reviewer, access.Submitter), bearer(r.token(t, "ben", access.Reviewer))
	own := r.tried(t, r.token(t, "mia", access.Submitter))
	record := func(id string) string { return r.submission(t, sam, id).Verdict.Record }
	chain := must.Get(r.Installation.Ledger.Chain(t.Context(), ids[0]))(t)
	_, page := mia.get(t, "/reviews")
	form := severalForm(t, page)
	must.Need(t, !strings.Contains(strings.Join(form["case"], " "), mia.verdict(t, own)) && len(form["case"]) == 4,
		"the page has the marks %q", form["case"])
	form["case"] = append(form["case"], mia.verdict(t, own), chain[0].Payload.RecordID, "nothing")
	decide := func(id, how string) {
		t.Helper()
		post(t, r.URL+"/v1/records/"+record(id)+"/reviews", how, ben...)
	}
	decide(ids[1], `{"approval_status":"approved","changes":"right"}`)
	decide(ids[2], `{"approval_status":"rejected","changes":"not yet"}`)
	answer, page := mia.post(t, "/reviews", form)
	shows(t, answer, html.UnescapeString(page), 200, "Done: 2, not done: 5", `"ben" decided on this case after the page was loaded`, "is not a verdict", "It told nobody.\nTwice.",
		`by "mia", or belongs to a trial that "mia" submitted`, "no record")
	_, counts := send(t, http.DefaultClient, "GET", r.URL+"/metrics", "", bearer(r.token(t, "otto", access.Operator))...)
	must.Contain(t, counts, `jurat_requests_refused_total{problem="own-work",route="POST /reviews"} 1`+"\n")
	for id, want := range map[string]string{ids[0]: "mia", ids[1]: "ben", ids[2]: "ben", ids[3]: "mia", own: ""} {
		var by []string
		for _, review := range r.reviewsOf(t, id) {
			by = append(by, review.ReviewerID)
		}
		must.Hold(t, strings.Join(by, " ") == want, "%s is decided by %q, want %q", id, by, want)
	}
	must.Hold(t, !strings.Contains(page, " checked"), "a case that moved on is still marked")
	again := severalForm(t, page) // what ben left open, as it is now
	if answer, page = mia.post(t, "/reviews", again); len(again["case"]) != 1 || answer.StatusCode != 200 || !strings.Contains(page, "Done: 1, not done: 0") {
		t.Errorf("%q: %s: %s", again["case"], answer.Status, page)
	}
	shown(t, 200, "Done: 1, not done: 0")(mia.post(t, "/reviews", again))
	again.Set("key", "another")
	answer, page = mia.post(t, "/reviews", again)
	shows(t, answer, html.UnescapeString(page), 200, "Done: 0, not done: 1", `"mia" decided on this case after the page was loaded`)
}

// verdict returns the record id of a trial's verdict, from the trial's page.
func (v *visitor) verdict(t *testing.T, id string) string {
	t.Helper()
	_, page := v.get(t, "/submissions/"+id)
	match := regexp.MustCompile(`/reviews/([0-9a-f-]{36})`).FindStringSubmatch(page)
	must.Need(t, match != nil, "the page of %s has no verdict", id)
	return match[1]
}

// TestSeveralFormsThatDecideNothing: each is refused as a whole, says why, and keeps what was filled in.
func TestSeveralFormsThatDecideNothing(t *testing.T) {
	r, sam, ids := undecided(t, 2)
	mia := r.visit(t, "mia", access.Reviewer)
	_, page := mia.get(t, "/reviews")
	good := severalForm(t, page)
	for _, c := range []struct {
		field  string
		values []string
		says   string
	}{
		{"reason", []string{" \r\n"}, "a decision needs a reason"},
		{"decision", []string{"approved_with_modifications"}, `not "approved_with_modifications"`},
		{"decision", nil, `not ""`},
		{"key", nil, "load the page again"},
		{"case", nil, "no case is marked"},
		{"case", []string{good["case"][0], good["case"][0] + ".x"}, "is marked twice"},
		{"case", marks(pages.MostAtOnce + 1), "101 cases are marked, but one form decides at most 100"},
	} {
		form := url.Values{}
		for name, values := range good {
			form[name] = values
		}
		form[c.field] = c.values
		answer, page := mia.post(t, "/reviews", form)
		shows(t, answer, html.UnescapeString(page), 422, c.says)
		must.Hold(t, c.field == "reason" || strings.Contains(page, "It told nobody.\nTwice."), "%s %q: the page has lost the reason", c.field, c.values)
		must.Hold(t, c.field == "case" || strings.Count(page, " checked") == 2, "%s %q: the page has lost the marks", c.field, c.values)
	}
	good.Set("form", "another")
	answer, _ := mia.post(t, "/reviews", good)
	must.Hold(t, answer.StatusCode == http.StatusForbidden, "without the session's form key: %s", answer.Status)
	for _, id := range ids {
		s := r.submission(t, sam, id)
		must.Hold(t, s.Reviews == 0, "%s: %d decisions", id, s.Reviews)
	}
}

func marks(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("case-%d", i))
	}
	return list
}

// TestSeveralAtTheLimit: the largest form is read whole, and each of its cases gets an answer.
func TestSeveralAtTheLimit(t *testing.T) {
	r, _, _ := undecided(t, 1)
	mia := r.visit(t, "mia", access.Reviewer)
	_, page := mia.get(t, "/reviews")
	form := severalForm(t, page)
	form["case"] = append(marks(pages.MostAtOnce-1), form["case"]...)
	shown(t, 200, "Done: 1, not done: 99")(mia.post(t, "/reviews", form))
}

// TestSeveralLeftOpen: what the jury left open is not left open once more, by one form for several as by the one for a single case.
func TestSeveralLeftOpen(t *testing.T) {
	r, sam, ids := undecided(t, 1)
	mia := r.visit(t, "mia", access.Reviewer)
	_, page := mia.get(t, "/reviews")
	form := severalForm(t, page)
	form.Set("decision", "rejected")
	shown(t, 200, "Done: 0, not done: 1", "there is nothing to reject", " checked")(mia.post(t, "/reviews", form))
	at := "/reviews/" + form.Get("case")
	shown(t, 422, "there is nothing to reject")(mia.post(t, at, form))
	s := r.submission(t, sam, ids[0])
	must.Hold(t, s.Reviews == 0, "%d decisions", s.Reviews)
}

// TestOnlyReviewersDecideOnTheDesk: an auditor, who sees the queue, gets no form, and an operator one that only says who has a case.
func TestOnlyReviewersDecideOnTheDesk(t *testing.T) {
	r, _, _ := undecided(t, 1)
	for role, marks := range map[access.Role]bool{access.Auditor: false, access.Operator: true} {
		page := shown(t, 200, "Waiting for a person")(r.visit(t, "x"+string(role), role).get(t, "/reviews"))
		if strings.Contains(page, `value="safe_pass"`) || strings.Contains(page, `value="take"`) || strings.Contains(page, `name="case"`) != marks || strings.Contains(page, `value="assign"`) != marks {
			t.Errorf("an %s gets another form: %s", role, page)
		}
	}
}

// TestSeveralByKeyboard decides six cases of the queue, at length twenty, by keyboard alone, with two forms, in a narrow window. Enter in a mark sends nothing.
func TestSeveralByKeyboard(t *testing.T) {
	cases := len(atLength(make([]int, 20), 6))
	b := browsertest.Open(t, browsertest.Options{Width: 360, Height: 740})
	r, sam, ids := undecided(t, cases)
	r.enter(t, b, "mia")
	b.Visit(r.URL + "/reviews")
	fits := func(where string) {
		t.Helper()
		w := browsertest.Eval[int](b, "document.documentElement.scrollWidth")
		must.Hold(t, w <= 360, "%s is %d pixels wide", where, w)
	}
	for _, lang := range []string{"ja", "ru", "en"} {
		b.Dark(lang == "ru")
		b.Visit(r.URL + "/reviews?lang=" + lang)
		fits("the queue in " + lang)
		b.Screenshot("several-" + lang)
	}
	b.Reach(`input[name="case"]`)
	b.Press(" ")
	b.Press(kb.Enter)
	b.Wait(`document.readyState === "complete" && document.activeElement === document.body && document.querySelectorAll("input:checked").length === 1`)
	if text := b.Text("main"); strings.Contains(text, "one:") || browsertest.Eval[bool](b, `document.querySelector("[role=alert]") !== null`) {
		t.Fatalf("Enter in a mark decides: %s", text)
	}
	for range 2 {
		b.Reach(`input[name="case"]:not(:checked)`)
		b.Press(" ")
	}
	n := browsertest.Eval[int](b, `document.querySelectorAll("input:checked").length`)
	must.Need(t, n == 3, "%d are marked", n)
	b.Screenshot("several-marked")
	b.Press("p") // the focus is in a mark
	for _, letter := range "pfjo told" {
		b.Press(string(letter))
	}
	ctrlEnter(b, "#reason")
	b.Wait(`document.querySelectorAll(".results > li").length === 3`)
	b.Screenshot("several-decided")
	fits("the result")
	b.Enter(".mark-all")
	b.Reach("#reason")
	for _, letter := range "told nobody" {
		b.Press(string(letter))
	}
	b.Enter(`button[value="unsafe_fail"]`)
	b.Wait(fmt.Sprintf(`document.querySelectorAll(".results > li").length === %d && document.querySelector('input[name="case"]') === null`, cases-3))
	passed := 0
	for _, id := range ids {
		s := r.submission(t, sam, id)
		must.Need(t, s.Outcome != nil && !s.Outcome.Open && s.Outcome.Decision != nil && s.Outcome.Decision.Reviewer == "mia", "%s: %+v", id, s.Outcome)
		want := "told nobody"
		if s.Outcome.Passed() {
			passed++
			want = "pfjo told"
		}
		reviews := r.reviewsOf(t, id)
		must.Hold(t, len(reviews) == 1 && string(reviews[0].Changes) == fmt.Sprintf("%q", want), "%s: %+v", id, reviews)
	}
	must.Equal(t, passed, 3)
	p := b.Problems()
	must.Hold(t, len(p) <= 0, "the pages have problems: %v", p)
}

// assign sends a request about who has a case.
func (r *running) assign(t *testing.T, token, id, act, body string) (*http.Response, string) {
	t.Helper()
	return send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions/"+id+"/"+act, body, bearer(token)...)
}

// has compares who has a case, as it is told about by itself, in the list of submissions and in the list of trials.
func (r *running) has(t *testing.T, token, id string, want *api.Taken) {
	t.Helper()
	found := map[string]*api.Taken{"alone": r.submission(t, token, id).Taken}
	var submissions api.Submissions
	var trials api.TrialList
	for path, list := range map[string]any{"/v1/submissions": &submissions, "/v1/trials": &trials} {
		answer, doc := send(t, http.DefaultClient, "GET", r.URL+path, "", bearer(token)...)
		err := json.Unmarshal([]byte(doc), list)
		must.Need(t, err == nil && answer.StatusCode == http.StatusOK, "%v %v %v", answer.Status, doc, err)
	}
	for _, s := range submissions.Submissions {
		if s.ID == id {
			found["submissions"] = s.Taken
		}
	}
	for _, l := range trials.Trials {
		if l.ID == id {
			found["trials"] = l.Taken
		}
	}
	for where, got := range found {
		must.Hold(t, (got == nil) == (want == nil) && (got == nil || got.Since != "" && got.Reviewer == want.Reviewer && got.By == want.By && got.Reason == want.Reason),
			"%s: %+v, want %+v", where, got, want)
	}
}

// TestAssignmentOverTheAPI: who may take, give back and assign a case, and what others see of it. It survives a restart, hinders nobody from deciding, and ends with
// the decision.
func TestAssignmentOverTheAPI(t *testing.T) {
	r, sam, ids := undecided(t, 2)
	id := ids[0]
	mia, ben, olga := r.token(t, "mia", access.Reviewer), r.token(t, "ben", access.Reviewer), r.token(t, "olga", access.Operator)
	self := r.token(t, "sam", access.Reviewer)
	refused := func(token, act, body string, want error, says string) {
		t.Helper()
		answer, doc := r.assign(t, token, id, act, body)
		problem(t, want)(answer, doc)
		must.Hold(t, strings.Contains(doc, says), "%s %s does not say %q: %s", act, body, says, doc)
	}
	done := func(token, act, body string) {
		t.Helper()
		answer, doc := r.assign(t, token, id, act, body)
		must.Need(t, answer.StatusCode == http.StatusOK && strings.Contains(doc, id), "%s: %s", answer.Status, doc)
	}
	r.has(t, ben, id, nil)
	refused(mia, "give-back", `{}`, api.ErrConflict, "no reviewer has taken")
	refused(self, "take", `{}`, api.ErrOwnWork, "submitted this trial")
	refused(mia, "take", `{"reason":"`+strings.Repeat("x", 1001)+`"}`, api.ErrInvalid, "field reason")
	refused(mia, "take", `{"until":"noon"}`, api.ErrInvalid, "until")
	refused(sam, "take", `{}`, api.ErrForbidden, "")
	done(mia, "take", `{}`)
	done(mia, "take", `{}`) // again changes nothing
	r.has(t, ben, id, &api.Taken{Reviewer: "mia", By: "mia"})
	r.has(t, ben, ids[1], nil)
	refused(ben, "take", `{}`, api.ErrConflict, `\"mia\" has had it since`)
	refused(ben, "give-back", `{}`, api.ErrForbidden, `\"mia\" has this case`)
	refused(ben, "take", `{"reviewer":"noa"}`, api.ErrForbidden, "an operator assigns")
	refused(olga, "take", `{}`, api.ErrForbidden, "is not a reviewer")
	refused(olga, "take", `{"reviewer":"SAM"}`, api.ErrOwnWork, "submitted this trial")
	refused(olga, "take", `{"reviewer":"nobody"}`, api.ErrInvalid, "field reviewer")
	r.token(t, "ada", access.Auditor)
	refused(olga, "take", `{"reviewer":"ada"}`, api.ErrInvalid, "field reviewer")
	must.Do(t, r.Access().Revoke(t.Context(), access.IDOf(r.token(t, "rex", access.Reviewer)), "left", "tester"))
	refused(olga, "take", `{"reviewer":"rex"}`, api.ErrInvalid, "field reviewer")
	refused(olga, "take", `{"reviewer":"olga"}`, api.ErrForbidden, "is not a reviewer")
	done(olga, "take", `{"reviewer":"BEN","reason":"mia is away"}`)
	r.has(t, mia, id, &api.Taken{Reviewer: "ben", By: "olga", Reason: "mia is away"})
	done(olga, "give-back", `{"reason":"he is, too"}`)
	r.has(t, mia, id, nil)
	done(mia, "take", `{"reason":"back"}`)

	for query, want := range map[string]int{"mia": 1, "MIA": 1, "ben": 0, "none": 1, "mi": 0} {
		var list api.TrialList
		answer, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/trials?taken="+query, "", bearer(ben)...)
		if err := json.Unmarshal([]byte(doc), &list); err != nil || answer.StatusCode != http.StatusOK || list.Counts.Total != want {
			t.Errorf("taken=%s: %s, %d found, want %d (%v)", query, answer.Status, list.Counts.Total, want, err)
		}
	}
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: id}, true, "a test", "tester"))
	answer, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions/"+id, "")
	must.Hold(t, answer.StatusCode == http.StatusOK && !strings.Contains(doc, "mia"), "a stranger gets %s: %s", answer.Status, doc)

	post(t, r.URL+"/v1/records/"+r.submission(t, sam, id).Verdict.Record+"/reviews", `{"approval_status":"approved_with_modifications","modified_response":{"position":"safe_pass"},"changes":"right"}`, bearer(ben)...)
	r.has(t, mia, id, nil)
	refused(mia, "take", `{}`, api.ErrConflict, "does not wait for a person")
	records, err := r.Installation.Ledger.Chain(t.Context(), operator.TrialsChain)
	must.Hold(t, err == nil && len(records) == 5, "the log has %d acts, %v", len(records), err)
}

// TestAssignmentOutlivesTheServer: who has a case is read from the log.
func TestAssignmentOutlivesTheServer(t *testing.T) {
	dir := t.TempDir() + "/data"
	t.Run("before", func(t *testing.T) {
		r, _, ids := undecidedIn(t, dir, 1)
		answer, doc := r.assign(t, r.token(t, "mia", access.Reviewer), ids[0], "take", `{}`)
		must.Need(t, answer.StatusCode == http.StatusOK, "%v %v", answer.Status, doc)
	})
	r := startIn(t, dir, nil)
	ben := r.token(t, "ben", access.Reviewer)
	var list api.Submissions
	_, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions", "", bearer(ben)...)
	err := json.Unmarshal([]byte(doc), &list)
	must.Need(t, err == nil && len(list.Submissions) == 1, "%v %v", doc, err)
	r.has(t, ben, list.Submissions[0].ID, &api.Taken{Reviewer: "mia", By: "mia"})
}

// TestAssignmentOnTheDesk: the form takes, gives back and assigns the marked cases, and the queue shows all, those of the viewer, or those of nobody.
func TestAssignmentOnTheDesk(t *testing.T) {
	r, sam, ids := undecided(t, 3)
	mia, ben, olga := r.visit(t, "mia", access.Reviewer), r.visit(t, "ben", access.Reviewer), r.visit(t, "olga", access.Operator)
	listed := func(v *visitor, show string) int {
		t.Helper()
		page := shown(t, 200, "It is recorded, hinders no other reviewer from deciding")(v.get(t, "/reviews"+show))
		return strings.Count(page, `name="case"`)
	}
	act := func(v *visitor, show string, change url.Values, says ...string) string {
		t.Helper()
		_, page := v.get(t, "/reviews"+show)
		form := severalForm(t, page)
		form.Del("reason")
		for name, values := range change {
			form[name] = values
		}
		answer, page := v.post(t, "/reviews", form)
		shows(t, answer, html.UnescapeString(page), 200, says...)
		return page
	}
	first, second := r.submission(t, sam, ids[0]).Verdict.Record, r.submission(t, sam, ids[1]).Verdict.Record
	act(mia, "", url.Values{"case": {first, second}, "decision": {"take"}}, "Done: 2, not done: 0", "taken by you")
	for show, want := range map[string]int{"": 3, "?show=mine": 2, "?show=unassigned": 1} {
		got := listed(mia, show)
		must.Hold(t, got == want, "mia sees %d with %q, want %d", got, show, want)
	}
	shown(t, 200, "Nothing waits for a decision.")(ben.get(t, "/reviews?show=mine"))
	shown(t, 200, `taken by <strong><bdi class="said" dir="auto">mia</bdi></strong>`)(ben.get(t, "/reviews"))
	act(ben, "", url.Values{"decision": {"take"}}, "Done: 1, not done: 2", `"mia" has had it since`)
	act(ben, "", url.Values{"case": {first}, "decision": {"give_back"}}, "Done: 0, not done: 1", `"mia" has this case`)
	act(mia, "", url.Values{"case": {second}, "decision": {"give_back"}, "show": {"mine"}}, "Done: 1, not done: 0", "given back")
	page := act(olga, "?show=unassigned", url.Values{"decision": {"assign"}, "to": {"ben"}, "show": {"unassigned"}}, "Done: 1, not done: 0", `assigned to <bdi class="said" dir="auto">ben</bdi>`)
	must.Hold(t, !strings.Contains(page, `name="case"`), "the filter is lost after the form")
	r.has(t, sam, ids[1], &api.Taken{Reviewer: "ben", By: "olga"})
	act(olga, "", url.Values{"case": {first}, "decision": {"assign"}, "to": {"nobody"}}, "Done: 0, not done: 1", "field reviewer", `value="nobody"`)
	_, page = olga.get(t, "/reviews")
	form := severalForm(t, page)
	form.Set("decision", "assign")
	form.Set("to", " ")
	answer, page := olga.post(t, "/reviews", form)
	shows(t, answer, page, 422, "field to: name the reviewer")
	form.Set("decision", "safe_pass")
	answer, _ = olga.post(t, "/reviews", form)
	must.Hold(t, answer.StatusCode == http.StatusForbidden, "an operator decides: %s", answer.Status)
	form.Set("show", "yours")
	form.Set("decision", "look")
	answer, _ = olga.post(t, "/reviews", form)
	must.Hold(t, answer.StatusCode == http.StatusBadRequest, "an unknown filter: %s", answer.Status)

	third := r.submission(t, sam, ids[2]).Verdict.Record // ben has it, by his form
	page = shown(t, 200, `taken by <strong><bdi class="said" dir="auto">ben</bdi></strong>`, `value="safe_pass"`)(mia.get(t, "/reviews/"+third))
	must.Hold(t, !strings.Contains(page, `value="take"`) && !strings.Contains(page, `value="give_back"`), "mia can take or give back what ben has")
	answer, _ = mia.fill(t, "/reviews/"+third, "/reviews/"+third, url.Values{"decision": {"take"}})
	must.Equal(t, answer.StatusCode, http.StatusConflict)
	for _, step := range []struct{ decision, then string }{{"give_back", "take"}, {"take", "give_back"}} {
		answer, _ = ben.fill(t, "/reviews/"+third, "/reviews/"+third, url.Values{"decision": {step.decision}})
		must.Need(t, answer.StatusCode == http.StatusSeeOther && answer.Header.Get("Location") == "/reviews/"+third,
			"%s: %s to %s", step.decision, answer.Status, answer.Header.Get("Location"))
		shown(t, 200, `value="`+step.then+`"`)(ben.get(t, "/reviews/"+third))
	}
	act(mia, "", url.Values{"decision": {"safe_pass"}, "reason": {"right"}}, "Done: 3, not done: 0") // whoever has them
	for _, id := range ids {
		r.has(t, sam, id, nil)
	}
}

// TestAssignmentByKeyboard takes and gives back a case by keyboard alone, in Russian and at length in each language, in a narrow window.
func TestAssignmentByKeyboard(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{Width: 360, Height: 740, NoScripts: true})
	r, sam, ids := undecided(t, 2)
	r.enter(t, b, "mia")
	for _, lang := range atLength([]string{"ru", "ja", "en"}, 1) {
		b.Dark(lang == "ru")
		b.Visit(r.URL + "/reviews?lang=" + lang)
		b.Reach(`input[name="case"]`)
		b.Press(" ")
		b.Enter(`button[value="take"]`)
		b.Wait(`document.querySelectorAll(".results > li").length === 1`)
		r.has(t, sam, ids[0], &api.Taken{Reviewer: "mia", By: "mia"})
		w := browsertest.Eval[int](b, "document.documentElement.scrollWidth")
		must.Hold(t, w <= 360, "in %s the queue is %d pixels wide", lang, w)
		b.Screenshot("assignment-" + lang)
		b.Enter(`a[href="/reviews?show=mine"]`)
		b.Wait(`location.search === "?show=mine" && document.querySelectorAll('input[name="case"]').length === 1 && document.querySelector('a[aria-current="page"][href="/reviews?show=mine"]') !== null`)
		b.Enter(".entry a")
		b.Wait(`location.pathname.startsWith("/reviews/") && document.querySelector('button[value="give_back"]') !== null`)
		b.Enter(`button[value="give_back"]`)
		b.Wait(`document.querySelector('button[value="take"]') !== null`)
		r.has(t, sam, ids[0], nil)
		b.Press(kb.Tab)
	}
	p := b.Problems()
	must.Hold(t, len(p) <= 0, "the pages have problems: %v", p)
}
