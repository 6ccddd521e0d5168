package server_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"jurat/api"
	"jurat/evidence/operator"
	"jurat/internal/access"
	"jurat/internal/browsertest"
	"jurat/internal/must"
)

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
		if err := json.Unmarshal([]byte(doc), list); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status, doc, err)
		}
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
		if (got == nil) != (want == nil) || got != nil && (got.Since == "" || got.Reviewer != want.Reviewer || got.By != want.By || got.Reason != want.Reason) {
			t.Errorf("%s: %+v, want %+v", where, got, want)
		}
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
		problem(t, answer, doc, want)
		if !strings.Contains(doc, says) {
			t.Errorf("%s %s does not say %q: %s", act, body, says, doc)
		}
	}
	done := func(token, act, body string) {
		t.Helper()
		if answer, doc := r.assign(t, token, id, act, body); answer.StatusCode != http.StatusOK || !strings.Contains(doc, id) {
			t.Fatalf("%s: %s", answer.Status, doc)
		}
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
	must.Do(t, r.Access().SetPublic(t.Context(), id, true, "a test", "tester"))
	if answer, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions/"+id, ""); answer.StatusCode != http.StatusOK || strings.Contains(doc, "mia") {
		t.Errorf("a stranger gets %s: %s", answer.Status, doc)
	}

	post(t, r.URL+"/v1/records/"+r.submission(t, sam, id).Verdict.Record+"/reviews", `{"approval_status":"approved_with_modifications","modified_response":{"position":"safe_pass"},"changes":"right"}`, bearer(ben)...)
	r.has(t, mia, id, nil)
	refused(mia, "take", `{}`, api.ErrConflict, "does not wait for a person")
	records, err := r.Installation.Ledger.Chain(t.Context(), operator.TrialsChain)
	if err != nil || len(records) != 5 {
		t.Errorf("the log has %d acts, %v", len(records), err)
	}
}

// TestAssignmentOutlivesTheServer: who has a case is read from the log.
func TestAssignmentOutlivesTheServer(t *testing.T) {
	dir := t.TempDir() + "/data"
	t.Run("before", func(t *testing.T) {
		r, _, ids := undecidedIn(t, dir, 1)
		if answer, doc := r.assign(t, r.token(t, "mia", access.Reviewer), ids[0], "take", `{}`); answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status, doc)
		}
	})
	r := startIn(t, dir, nil)
	ben := r.token(t, "ben", access.Reviewer)
	var list api.Submissions
	_, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions", "", bearer(ben)...)
	if err := json.Unmarshal([]byte(doc), &list); err != nil || len(list.Submissions) != 1 {
		t.Fatal(doc, err)
	}
	r.has(t, ben, list.Submissions[0].ID, &api.Taken{Reviewer: "mia", By: "mia"})
}

// TestAssignmentOnTheDesk: the form takes, gives back and assigns the marked cases, and the queue shows all, those of the viewer, or those of nobody.
func TestAssignmentOnTheDesk(t *testing.T) {
	r, sam, ids := undecided(t, 3)
	mia, ben, olga := r.visit(t, "mia", access.Reviewer), r.visit(t, "ben", access.Reviewer), r.visit(t, "olga", access.Operator)
	listed := func(v *visitor, show string) int {
		t.Helper()
		answer, page := v.get(t, "/reviews"+show)
		shows(t, answer, page, 200, "It is recorded, hinders no other reviewer from deciding")
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
		if got := listed(mia, show); got != want {
			t.Errorf("mia sees %d with %q, want %d", got, show, want)
		}
	}
	answer, page := ben.get(t, "/reviews?show=mine")
	shows(t, answer, page, 200, "Nothing waits for a decision.")
	answer, page = ben.get(t, "/reviews")
	shows(t, answer, page, 200, `taken by <strong><bdi class="said" dir="auto">mia</bdi></strong>`)
	act(ben, "", url.Values{"decision": {"take"}}, "Done: 1, not done: 2", `"mia" has had it since`)
	act(ben, "", url.Values{"case": {first}, "decision": {"give_back"}}, "Done: 0, not done: 1", `"mia" has this case`)
	act(mia, "", url.Values{"case": {second}, "decision": {"give_back"}, "show": {"mine"}}, "Done: 1, not done: 0", "given back")
	page = act(olga, "?show=unassigned", url.Values{"decision": {"assign"}, "to": {"ben"}, "show": {"unassigned"}}, "Done: 1, not done: 0", `assigned to <bdi class="said" dir="auto">ben</bdi>`)
	if strings.Contains(page, `name="case"`) {
		t.Error("the filter is lost after the form")
	}
	r.has(t, sam, ids[1], &api.Taken{Reviewer: "ben", By: "olga"})
	act(olga, "", url.Values{"case": {first}, "decision": {"assign"}, "to": {"nobody"}}, "Done: 0, not done: 1", "field reviewer", `value="nobody"`)
	_, page = olga.get(t, "/reviews")
	form := severalForm(t, page)
	form.Set("decision", "assign")
	form.Set("to", " ")
	answer, page = olga.post(t, "/reviews", form)
	shows(t, answer, page, 422, "field to: name the reviewer")
	form.Set("decision", "safe_pass")
	if answer, _ = olga.post(t, "/reviews", form); answer.StatusCode != http.StatusForbidden {
		t.Errorf("an operator decides: %s", answer.Status)
	}
	form.Set("show", "yours")
	form.Set("decision", "look")
	if answer, _ = olga.post(t, "/reviews", form); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("an unknown filter: %s", answer.Status)
	}

	third := r.submission(t, sam, ids[2]).Verdict.Record // ben has it, by his form
	answer, page = mia.get(t, "/reviews/"+third)
	shows(t, answer, page, 200, `taken by <strong><bdi class="said" dir="auto">ben</bdi></strong>`, `value="safe_pass"`)
	if strings.Contains(page, `value="take"`) || strings.Contains(page, `value="give_back"`) {
		t.Error("mia can take or give back what ben has")
	}
	answer, _ = mia.fill(t, "/reviews/"+third, "/reviews/"+third, url.Values{"decision": {"take"}})
	if answer.StatusCode != http.StatusConflict {
		t.Errorf("mia takes what ben has: %s", answer.Status)
	}
	for _, step := range []struct{ decision, then string }{{"give_back", "take"}, {"take", "give_back"}} {
		answer, _ = ben.fill(t, "/reviews/"+third, "/reviews/"+third, url.Values{"decision": {step.decision}})
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/reviews/"+third {
			t.Fatalf("%s: %s to %s", step.decision, answer.Status, answer.Header.Get("Location"))
		}
		answer, page = ben.get(t, "/reviews/"+third)
		shows(t, answer, page, 200, `value="`+step.then+`"`)
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
		if w := browsertest.Eval[int](b, "document.documentElement.scrollWidth"); w > 360 {
			t.Errorf("in %s the queue is %d pixels wide", lang, w)
		}
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
	if p := b.Problems(); len(p) > 0 {
		t.Errorf("the pages have problems: %v", p)
	}
}
