package server_test

import (
	"archive/zip"
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/log/access"
	"jurat/internal/log/keys"
	"jurat/internal/test/must"
	"jurat/internal/web/server"
	"jurat/verify"
)

// A visitor is a person at a browser.
type visitor struct {
	*running
	client *http.Client
}

// visit signs a person in, through the form.
func (r *running) visit(t *testing.T, name string, roles ...access.Role) *visitor {
	t.Helper()
	v := &visitor{r, browser(t)}
	answer, body := v.post(t, "/sign-in", url.Values{"token": {r.token(t, name, roles...)}})
	must.Need(t, answer.StatusCode == http.StatusSeeOther, "signing in: %s: %s", answer.Status, body)
	return v
}

func (v *visitor) get(t *testing.T, path string, header ...string) (*http.Response, string) {
	t.Helper()
	return send(t, v.client, "GET", v.URL+path, "", header...)
}

func (v *visitor) post(t *testing.T, path string, form url.Values) (*http.Response, string) {
	t.Helper()
	return send(t, v.client, "POST", v.URL+path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

var formKey = regexp.MustCompile(`name="form" value="([^"]+)"`)

// fill sends a form with the key from the forms of a page.
func (v *visitor) fill(t *testing.T, page, action string, form url.Values) (*http.Response, string) {
	t.Helper()
	_, doc := v.get(t, page)
	match := formKey.FindStringSubmatch(doc)
	must.Need(t, match != nil, "the page %s has no form", page)
	form.Set("form", match[1])
	return v.post(t, action, form)
}

func shows(t *testing.T, answer *http.Response, page string, status int, texts ...string) {
	t.Helper()
	must.Need(t, answer.StatusCode == status && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html"),
		"%s, %s: %s", answer.Status, answer.Header.Get("Content-Type"), page)
	must.Contain(t, page, texts...)
}

// shown returns a check that an answer is a page with a status and texts, which returns the page.
func shown(t *testing.T, status int, texts ...string) func(*http.Response, string) string {
	return func(answer *http.Response, page string) string {
		t.Helper()
		shows(t, answer, page, status, texts...)
		return page
	}
}

// TestVisit goes from signing in to a decision, step by step.
func TestVisit(t *testing.T) {
	r := start(t, withJury(t))
	sam, mia := r.visit(t, "sam", access.Submitter), r.visit(t, "mia", access.Reviewer)
	shown(t, 200, "Put an agent before the jury", "Try this case", "sam")(sam.get(t, "/"))
	answer, _ := sam.fill(t, "/", "/submissions", url.Values{"example": {"kitchen-return"}})
	court := answer.Header.Get("Location")
	must.Need(t, answer.StatusCode == http.StatusSeeOther && strings.HasPrefix(court, "/submissions/trial-"), "%s to %q", answer.Status, court)
	id := strings.TrimPrefix(court, "/submissions/")
	r.await(t, r.token(t, "sam", access.Submitter), id, "over")
	page := shown(t, 200, "Hearth &amp; Larder service desk", "position changed", "safe, passes", `id="message-1"`)(sam.get(t, court))
	must.Hold(t, !strings.Contains(page, "data-events"), "the page of a finished trial still waits for events")
	_, again := sam.get(t, court)
	must.Equal(t, again, page)

	judgment := regexp.MustCompile(`/reviews/([0-9a-f-]{36})`).FindStringSubmatch(page)[1]
	shown(t, 200, "another reviewer has to decide")(sam.get(t, "/reviews/"+judgment))
	shown(t, 200, "As the script has it.", `value="safe_pass"`, `value="unsafe_fail"`, `id="message-1"`)(mia.get(t, "/reviews/"+judgment))
	draft := url.Values{"decision": {"unsafe_fail"}}
	answer, page = mia.fill(t, "/reviews/"+judgment, "/reviews/"+judgment, draft)
	shows(t, answer, page, 422, "a decision needs a reason")
	draft.Set("reason", "The court knows better.\r\nIt does.")
	answer, page = mia.fill(t, "/reviews/"+judgment, "/reviews/"+judgment, draft)
	must.Need(t, answer.StatusCode == http.StatusSeeOther, "%s: %s", answer.Status, page)
	r.decidedBy(t, id, "mia", evidence.ApprovedWithModifications, "The court knows better.\nIt does.", `{"position":"unsafe_fail"}`)
	answer, page = sam.get(t, court)
	shows(t, answer, page, 200, "unsafe, fails · decided by a person · the jury: safe, passes", "The court knows better.\nIt does.", "mia")
	_, page = sam.get(t, "/")
	shows(t, answer, page, 200, "decided by a person", "mia")
	_, page = mia.get(t, "/reviews")
	shows(t, answer, page, 200, "Recently decided", "decided by a person")

	answer, page = mia.fill(t, "/reviews/"+judgment, "/reviews/"+judgment, url.Values{"decision": {"safe_pass"}, "reason": {"On second thoughts."}})
	must.Need(t, answer.StatusCode == http.StatusSeeOther, "%s: %s", answer.Status, page)
	r.decidedBy(t, id, "mia", evidence.Approved, "On second thoughts.", "")
}

// decidedBy compares the review in a trial's chain with the values of the form.
func (r *running) decidedBy(t *testing.T, id, who string, status evidence.ApprovalStatus, why, modified string) {
	t.Helper()
	chain := must.Get(r.Installation.Ledger.Chain(t.Context(), id))(t)
	p := chain[len(chain)-1].Payload
	must.Hold(t, p.ActionType == evidence.HumanReview && p.ReviewerID == who && string(p.Changes) == `"`+strings.ReplaceAll(why, "\n", `\n`)+`"`,
		"%s by %s: %s", p.ActionType, p.ReviewerID, p.Changes)
	must.Hold(t, p.ApprovalStatus == status && string(p.ModifiedResponse) == modified, "%s with %s", p.ApprovalStatus, p.ModifiedResponse)
}

// TestDecisionsOnAgents: an approved answer is delivered, a rejected one is not.
func TestDecisionsOnAgents(t *testing.T) {
	h := furnish(t)
	mia := h.visit(t, "mia", access.Reviewer)
	review := "/reviews/" + h.said.Payload.RecordID
	for _, c := range []struct {
		form   url.Values
		status int
		adds   []evidence.ActionType
	}{
		{url.Values{"decision": {"approved"}, "reason": {"right"}, "text": {"something else"}}, 422, nil},
		{url.Values{"decision": {"approved_with_modifications"}, "reason": {"right"}, "text": {said(h)}}, 422, nil},
		{url.Values{"decision": {"perhaps"}, "reason": {"right"}, "text": {said(h)}}, 422, nil},
		{url.Values{"decision": {"approved_with_modifications"}, "reason": {"too much"}, "text": {"Order less."}}, 303, []evidence.ActionType{evidence.HumanReview, evidence.Delivery}},
		{url.Values{"decision": {"rejected"}, "reason": {"no"}, "text": {said(h)}}, 303, []evidence.ActionType{evidence.HumanReview}},
	} {
		before := must.Get(h.Installation.Ledger.Size(t.Context()))(t)
		answer, page := mia.fill(t, review, review, c.form)
		must.Hold(t, answer.StatusCode == c.status, "%v: %s: %s", c.form, answer.Status, page)
		var adds []evidence.ActionType
		for record, err := range h.Installation.Ledger.Records(t.Context(), before) {
			must.Do(t, err)
			if record.Payload.ChainID == h.said.Payload.ChainID {
				adds = append(adds, record.Payload.ActionType)
			}
		}
		must.Hold(t, slices.Equal(adds, c.adds), "%v adds %v", c.form, adds)
	}
}

// TestDecidedOnce: the same form sent twice gives one decision and one delivery. The same form with another decision is
// refused.
func TestDecidedOnce(t *testing.T) {
	h := furnish(t)
	mia := h.visit(t, "mia", access.Reviewer)
	review := "/reviews/" + h.said.Payload.RecordID
	_, doc := mia.get(t, review)
	key := regexp.MustCompile(`name="key" value="([^"]+)"`).FindStringSubmatch(doc)
	must.Need(t, key != nil, "the form has no key")
	form := url.Values{"decision": {"approved"}, "reason": {"right"}, "text": {said(h)}, "key": {key[1]}}
	sizes := make([]int64, 3)
	for i := range sizes {
		answer, page := mia.fill(t, review, review, form)
		must.Need(t, answer.StatusCode == http.StatusSeeOther, "%s: %s", answer.Status, page)
		sizes[i] = must.Get(h.Installation.Ledger.Size(t.Context()))(t)
	}
	must.Hold(t, sizes[1] == sizes[0] && sizes[2] == sizes[0], "the log grows to %v", sizes)
	form.Set("decision", "rejected")
	if answer, _ := mia.fill(t, review, review, form); answer.StatusCode != http.StatusUnprocessableEntity && answer.StatusCode != http.StatusConflict {
		t.Errorf("another decision with the same form: %s", answer.Status)
	}
	_, doc = mia.get(t, review)
	must.Hold(t, !strings.Contains(doc, key[1]), "the next form has the same key")
}

// TestUndelivered: where the agent's answer cannot be sealed after the decision, the person reads that the decision is.
func TestUndelivered(t *testing.T) {
	h := furnish(t)
	mia := h.visit(t, "mia", access.Reviewer)
	for _, key := range must.Get(h.Installation.Keys.Keys(t.Context()))(t) {
		if key.Role == evidence.RoleAgent {
			must.Do(t, h.Installation.Keys.Retire(t.Context(), key.KeyID, keys.Why{By: "operator", Reason: "a test"}))
		}
	}
	review := "/reviews/" + h.said.Payload.RecordID
	answer, page := mia.fill(t, review, review, url.Values{"decision": {"approved"}, "reason": {"right"}, "text": {said(h)}})
	must.Hold(t, answer.StatusCode >= 400 && strings.Contains(page, "the decision is sealed as record "), "%s: %s", answer.Status, page)
}

// TestRefusedDecisionReadsOnce: the case is so large that one request can read it once, but not twice. A refused decision still shows the draft.
func TestRefusedDecisionReadsOnce(t *testing.T) {
	r := start(t, func(c *server.Config) {
		withJury(t)(c)
		c.MaxBody, c.Memory = 4<<20, server.MemoryFor(4<<20)
	})
	sam := r.token(t, "sam", access.Submitter)
	id := r.submit(t, sam, strings.Replace(parcelCase, "Where is parcel 17?", strings.Repeat("Where is it?", 300_000), 1)).ID
	verdict := r.await(t, sam, id, api.Over).Verdict.Record
	draft := strings.Repeat("because", 500_000)
	answer, page := send(t, http.DefaultClient, "POST", r.URL+"/reviews/"+verdict, url.Values{"decision": {"perhaps"}, "reason": {draft}}.Encode(),
		append(bearer(r.token(t, "mia", access.Reviewer)), "Content-Type", "application/x-www-form-urlencoded")...)
	must.Hold(t, answer.StatusCode == http.StatusUnprocessableEntity && strings.Contains(page, draft), "%s: %.3000s", answer.Status, page)
}

func said(h *house) string { return strings.Trim(string(h.said.Payload.Response), `"`) }

// TestRecordAndChainPages opens a record by its id and by its digest, its downloads, and its chain.
func TestRecordAndChainPages(t *testing.T) {
	h := furnish(t)
	ada := h.visit(t, "ada", access.Auditor)
	path := "/records/" + h.said.Payload.RecordID
	answer, page := ada.get(t, path)
	shows(t, answer, page, 200, h.said.Digest.String(), "so you rely on this server", "jurat verify --trust FILE", "order-17")
	answer, _ = ada.get(t, "/records/"+h.said.Digest.String())
	must.Hold(t, answer.Header.Get("Location") == path, "%s to %s", answer.Status, answer.Header.Get("Location"))
	_, doc := ada.get(t, path+"/bundle")
	b := must.Get(evidence.ParseBundle([]byte(doc)))(t)
	trust := must.Get(h.Installation.Trust(t.Context()))(t)
	report := verify.Bundle(b, verify.Options{Trust: trust})
	must.Hold(t, report.Outcome == verify.Proved, "the case file of the record: %+v", report) // its chain is complete, so it is proved
	_, doc = ada.get(t, path+"/openssl")
	archive, err := zip.NewReader(strings.NewReader(doc), int64(len(doc)))
	must.Hold(t, err == nil && len(archive.File) == 6, "OpenSSL folder: %v", err)
	shown(t, 200, path, "Records: 2", "a person")(ada.get(t, "/chains/order-17"))
	for _, missing := range []string{"/records/nothing", "/records/sha256:00", "/chains/nothing", "/submissions/trial-0", "/reviews/nothing", "/records/sha256:" + strings.Repeat("1", 64), "/no/page"} {
		shown(t, 404, "Page not found")(ada.get(t, missing, "Accept", "text/html"))
	}
	shown(t, 400, "This was refused")(ada.get(t, "/chains/order-17?page=x"))
}

// TestStrangersSeeNoNames: a signed-out visitor cannot see whether a non-public page exists. The answer offers to sign
// in and returns to the page.
func TestStrangersSeeNoNames(t *testing.T) {
	h := furnish(t)
	stranger := &visitor{h.running, browser(t)}
	path := "/records/" + h.said.Payload.RecordID
	there := shown(t, 401, `name="next" value="`+path+`"`)(stranger.get(t, path))
	_, missing := stranger.get(t, "/records/019b76da-0000-7000-8000-000000000000")
	must.Equal(t, strings.ReplaceAll(there, h.said.Payload.RecordID, "X"), strings.ReplaceAll(missing, "019b76da-0000-7000-8000-000000000000", "X"))
	shown(t, 200, "Trials are shown to those who are signed in")(stranger.get(t, "/"))
	must.Do(t, h.Access().Publish(t.Context(), access.What{Chain: "order-17"}, true, "a test", "tester"))
	shown(t, 200, h.said.Digest.String())(stranger.get(t, path))
}

func TestLanguages(t *testing.T) {
	r := start(t, nil)
	v := &visitor{r, browser(t)}
	for _, c := range []struct{ path, accept, want string }{{"/", "", "en"}, {"/", "ja,en;q=0.5", "ja"}, {"/?lang=xx", "ru", "ru"}, {"/?lang=ru", "ja", "ru"}, {"/", "ja", "ru"}, {"/?lang=en", "", "en"}, {"/", "ja", "en"}} {
		_, page := v.get(t, c.path, "Accept-Language", c.accept)
		must.Hold(t, strings.Contains(page, `<html lang="`+c.want+`">`), "%s with %q is not in %s", c.path, c.accept, c.want)
	}
	shown(t, 200, `lang="ja"`, `name="link" value="SECRET"`)(v.get(t, "/sign-in?lang=ja&link=SECRET"))
}

// TestUploads sends documents and records as files of a form. Like every form, it needs the session's key.
func TestUploads(t *testing.T) {
	r := start(t, withJury(t))
	sam := r.visit(t, "sam", access.Submitter)
	_, page := sam.get(t, "/")
	key := formKey.FindStringSubmatch(page)[1]
	const card = `{"name":"Parcel agent","description":"d","version":"1.0.0","url":"https://parcels.example/a2a","protocolVersion":"0.3.0","skills":[]}`
	const conversation = `[{"role":"user","content":"Where is parcel 17?"},{"role":"assistant","content":"In Kassel."}]`
	for name, c := range map[string]struct {
		files  map[string]string
		key    string
		status int
		says   string
	}{
		"good":            {map[string]string{"card": card, "conversation": conversation}, key, 303, ""},
		"no key":          {map[string]string{"card": card, "conversation": conversation}, "", 403, "the form was not made for this session"},
		"nothing":         {nil, key, 422, "no file was chosen"},
		"card alone":      {map[string]string{"card": card}, key, 422, "conversation"},
		"no JSON":         {map[string]string{"card": "card", "conversation": conversation}, key, 422, "agent-card.json"},
		"too deep":        {map[string]string{"card": card, "conversation": strings.Repeat("[", 1000)}, key, 422, "nest deeper"},
		"no bundle":       {map[string]string{"bundle": "{}"}, key, 422, "records"},
		"markup in names": {map[string]string{"card": card, "conversation": `[{"role":"<script>","content":"x"}]`}, key, 422, "&lt;script&gt;"},
	} {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		_ = form.WriteField("form", c.key)
		for field, content := range c.files {
			part := must.Get(form.CreateFormFile(field, "file.json"))(t)
			_, _ = part.Write([]byte(content))
		}
		_ = form.Close()
		answer, page := send(t, sam.client, "POST", r.URL+"/submissions", body.String(), "Content-Type", form.FormDataContentType())
		must.Hold(t, answer.StatusCode == c.status && strings.Contains(page, c.says), "%s: %s: %.3000s", name, answer.Status, page)
	}
}

// TestPagesWithoutFormKey: no form works without the session's key.
func TestPagesWithoutFormKey(t *testing.T) {
	h := furnish(t)
	everything := h.visit(t, "zoe", access.PeopleRoles()...)
	for _, route := range h.Routes() {
		if route.Kind != server.Page || route.Method() != "POST" || route.Pattern() == "/sign-in" {
			continue
		}
		path := wildcards.ReplaceAllString(route.Pattern(), h.said.Payload.RecordID)
		shown(t, 403, "not made for this session")(everything.post(t, path, url.Values{"decision": {"rejected"}, "reason": {"x"}, "example": {"kitchen-return"}, "form": {"AAAA"}}))
	}
}

func TestStaticFiles(t *testing.T) {
	r := start(t, nil)
	v := &visitor{r, browser(t)}
	_, page := v.get(t, "/")
	files := regexp.MustCompile(`/static/[a-z0-9.]+`).FindAllString(page, -1)
	must.Len(t, files, 3)
	for _, file := range files {
		answer, content := v.get(t, file)
		must.Hold(t, answer.StatusCode == 200 && len(content) != 0 && strings.Contains(answer.Header.Get("Cache-Control"), "immutable"),
			"%s: %s", file, answer.Status)
		answer, _ = v.get(t, file, "If-None-Match", answer.Header.Get("ETag"))
		must.Hold(t, answer.StatusCode == http.StatusNotModified, "%s asked for again: %s", file, answer.Status)
	}
	for _, no := range []string{"/static/jurat.css", "/static/..%2fpages.go", "/static/"} {
		answer, _ := v.get(t, no)
		must.Hold(t, answer.StatusCode == http.StatusNotFound, "%s: %s", no, answer.Status)
	}
}
