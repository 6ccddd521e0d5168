package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/api"
	"jurat/evidence/operator"
	"jurat/internal/access"
	"jurat/internal/browsertest"
	"jurat/internal/must"
)

// TestAccessOverTheAPI: the list is that of the command, and a token is ended by its id, at once and with a reason.
func TestAccessOverTheAPI(t *testing.T) {
	h := furnish(t)
	otto := bearer(h.tokens[access.Operator])
	list := func(query string) (list api.AccessList) {
		t.Helper()
		answer, body := send(t, http.DefaultClient, "GET", h.URL+"/v1/access"+query, "", otto...)
		if err := json.Unmarshal([]byte(body), &list); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status, body, err)
		}
		return list
	}
	id := access.IDOf(h.tokens[access.Auditor])
	has := func(l api.AccessList, state api.GrantState) bool {
		return slices.ContainsFunc(l.Grants, func(g api.Grant) bool { return g.Token == id && g.State == state && g.Name == "ada" })
	}
	if !has(list(""), api.GrantGood) {
		t.Error("the list has no valid token of ada")
	}
	path := h.URL + "/v1/access/" + id.String() + "/revoke"
	for body, want := range map[string]error{`{"reason":" "}`: api.ErrInvalid, `{"reason":"` + strings.Repeat("x", 1001) + `"}`: api.ErrInvalid} {
		answer, text := send(t, http.DefaultClient, "POST", path, body, otto...)
		problem(t, answer, text, want)
	}
	answer, text := send(t, http.DefaultClient, "POST", path, `{"reason":"left the team"}`, otto...)
	var ended api.Grant
	if err := json.Unmarshal([]byte(text), &ended); err != nil || answer.StatusCode != http.StatusOK || ended.State != api.GrantRevoked {
		t.Fatal(answer.Status, text, err)
	}
	answer, text = send(t, http.DefaultClient, "GET", h.URL+"/v1/records", "", bearer(h.tokens[access.Auditor])...)
	problem(t, answer, text, api.ErrRevoked)
	if l := list(""); has(l, api.GrantGood) || has(l, api.GrantRevoked) || !has(list("?ended=1"), api.GrantRevoked) {
		t.Errorf("after the end: %+v", l)
	}
	records := must.Get(h.Installation.Ledger.Chain(t.Context(), operator.AccessChain))(t)
	last, err := operator.ReadAccessEvent(&records[len(records)-1].Payload)
	if err != nil || last.Event != operator.AccessRevoked || last.Token != id || last.By != "otto" || last.Reason != "left the team" {
		t.Errorf("the log has %+v, %v", last, err)
	}
	answer, text = send(t, http.DefaultClient, "GET", h.URL+"/v1/access?ended=yes", "", otto...)
	problem(t, answer, text, api.ErrMalformed)
}

// TestAccessPageShowsWhatTheyDid: the last request and the last records, each under its own name.
func TestAccessPageShowsWhatTheyDid(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	h := furnish(t)
	otto := bearer(h.tokens[access.Operator])
	quiet := h.token(t, "quiet", access.Reviewer)
	of := func(token string) string {
		t.Helper()
		answer, page := send(t, http.DefaultClient, "GET", h.URL+"/access/"+access.IDOf(token).String(), "", otto...)
		if answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status, page)
		}
		return page
	}
	for token, want := range map[string]string{h.tokens[access.Agent]: h.said.Payload.RecordID, h.tokens[access.Reviewer]: h.review.Payload.RecordID} {
		if page := of(token); !strings.Contains(page, `href="/records/`+want+`"`) || strings.Contains(page, "<dd>–</dd>") {
			t.Errorf("the page has no %s, or no last request: %s", want, page)
		}
	}
	if page := of(quiet); strings.Contains(page, `href="/records/`) || !strings.Contains(page, "<dd>–</dd>") {
		t.Errorf("who did nothing: %s", page)
	}
	_, page := send(t, http.DefaultClient, "GET", h.URL+"/access", "", otto...)
	if strings.Count(page, `href="/access/sha256:`) != len(h.tokens)+1 || !strings.Contains(page, now.Format("2006-01-02")) {
		t.Errorf("the list: %s", page)
	}
	if _, next := send(t, http.DefaultClient, "GET", h.URL+"/access?page=9223372036854775807", "", otto...); strings.Contains(next, `href="/access/sha256:`) {
		t.Error("a page after the last has tokens")
	}
}

// TestAccessListHasPages: a long list is shown a hundred at a time, and none twice.
func TestAccessListHasPages(t *testing.T) {
	r := start(t, nil)
	otto := bearer(r.token(t, "otto", access.Operator))
	for range 104 {
		r.token(t, "ada", access.Auditor)
	}
	seen := map[string]bool{}
	for path, want := range map[string]int{"/access": 100, "/access?page=2": 5} {
		_, page := send(t, http.DefaultClient, "GET", r.URL+path, "", otto...)
		for _, part := range strings.Split(page, `href="/access/`)[1:] {
			id, _, _ := strings.Cut(part, `"`)
			if seen[id] {
				t.Errorf("%s is listed twice", id)
			}
			if seen[id] = true; strings.HasPrefix(id, "sha256:") {
				want--
			}
		}
		if want != 0 || strings.Contains(page, `rel="next"`) != (path == "/access") {
			t.Errorf("%s: %d tokens are missing", path, want)
		}
	}
}

// hasScript tells in a browser whether the page has loaded a script.
const hasScript = `performance.getEntriesByType("resource").some((e) => e.name.endsWith(".js") && e.responseStatus === 200)`

// TestRevokingInABrowser: without scripts, in each language, with a confirmation.
func TestRevokingInABrowser(t *testing.T) {
	r := start(t, nil)
	link := r.link(t, "otto", access.Operator)
	b := browsertest.Open(t, browsertest.Options{NoScripts: true})
	b.Visit(r.URL + link)
	b.Click("main form button")
	b.Wait(`location.pathname === "/"`)
	for _, lang := range atLength([]string{"en", "ja", "ru"}, 1) {
		token := r.token(t, "mia-"+lang, access.Reviewer)
		id := access.IDOf(token).String()
		b.Visit(r.URL + "/access?lang=" + lang)
		b.Click(`a[href="/access/` + id + `"]`)
		b.Type("#reason", "left the team")
		b.Click("#sure")
		b.Click("form.decide button")
		b.Wait(`!document.querySelector("#sure") && !!document.querySelector("dl.facts")`)
		if answer, _ := send(t, http.DefaultClient, "GET", r.URL+"/v1/records", "", bearer(token)...); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: the token still works: %s", lang, answer.Status)
		}
	}
	if browsertest.Eval[bool](b, hasScript) {
		t.Error("the page has loaded its script")
	}
	scripted := browsertest.Open(t, browsertest.Options{})
	if scripted.Visit(r.URL + "/sign-in"); !browsertest.Eval[bool](scripted, hasScript) {
		t.Error("hasScript does not see a script")
	}
	// Without the tick, the form comes back with what was typed.
	token := r.token(t, "ben", access.Reviewer)
	b.Visit(r.URL + "/access/" + access.IDOf(token).String() + "?lang=en")
	key := browsertest.Eval[string](b, `document.querySelector('form.decide input[name=form]').value`)
	if key == "" {
		t.Fatal("the form has no key")
	}
	otto := r.token(t, "otto", access.Operator)
	answer, page := send(t, http.DefaultClient, "POST", r.URL+"/access/"+access.IDOf(token).String(), url.Values{"reason": {"left & gone"}}.Encode(),
		append(bearer(otto), "Content-Type", "application/x-www-form-urlencoded")...)
	if answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page, "left &amp; gone") || !strings.Contains(page, `role="alert"`) {
		t.Errorf("%s: %s", answer.Status, page)
	}
	if answer, _ := send(t, http.DefaultClient, "GET", r.URL+"/v1/records", "", bearer(token)...); answer.StatusCode != http.StatusOK {
		t.Errorf("the token was ended without a tick: %s", answer.Status)
	}
}
