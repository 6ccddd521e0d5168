package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/must"
	"jurat/reputation"
	"jurat/verify"
)

// found asks for a list, and reads the answer.
func found[T any](t *testing.T, h *house, path string, token string) T {
	t.Helper()
	var list T
	answer, text := send(t, http.DefaultClient, "GET", h.URL+path, "", bearer(token)...)
	if err := json.Unmarshal([]byte(text), &list, json.RejectUnknownMembers(true)); err != nil || answer.StatusCode != 200 {
		t.Fatal(path, answer.Status, text, err)
	}
	return list
}

// TestFindShowsWhatMayBeRead: what callers find, and every count, is of what they may read, and the same as if nothing else existed.
func TestFindShowsWhatMayBeRead(t *testing.T) {
	h := furnish(t)
	const secret = "the violet lighthouse"
	other := h.token(t, "another", access.Agent)
	said := strings.Replace(action, "logistics-agent-v1", "another", 1)
	said = strings.Replace(said, "{", fmt.Sprintf(`{"context":{"note":%q},`, secret), 1)
	if answer, text := send(t, http.DefaultClient, "POST", h.URL+"/v1/records", said, append(bearer(other), "Content-Type", "application/json")...); answer.StatusCode != 201 || !strings.Contains(text, secret) {
		t.Fatal(answer.Status, text)
	}
	for _, path := range []string{"/v1/search?text=" + url.QueryEscape(secret), "/v1/search?actor=another"} {
		for role, want := range map[access.Role]int{access.Agent: 0, access.Submitter: 0, access.Auditor: 1, access.Reviewer: 1, access.Operator: 1} {
			if list := found[api.HitList](t, h, path, h.tokens[role]); len(list.Hits) != want || list.Next != "" || list.Index.Behind != 0 {
				t.Errorf("%s: %s finds %+v, want %d", path, role, list, want)
			}
		}
		if list := found[api.HitList](t, h, path, other); len(list.Hits) != 1 || list.Hits[0].Actor != "another" {
			t.Errorf("%s: its own agent finds %+v", path, list)
		}
	}
	stranger := h.token(t, "someone-else", access.Submitter)
	for _, query := range []string{"", "?record=" + h.trial, "?text=parcel", "?agent=a", "?juror=jur", "?verdict=safe_pass", "?submitter=s"} {
		list := found[api.TrialList](t, h, "/v1/trials"+query, stranger)
		if len(list.Trials) != 0 || list.Counts.Total+list.Counts.NeedsPerson+len(list.Counts.Verdicts)+len(list.Counts.Outcomes) != 0 || list.Next != "" {
			t.Errorf("%s: another submitter finds %+v", query, list)
		}
	}
	own, all := found[api.TrialList](t, h, "/v1/trials", h.tokens[access.Submitter]), found[api.TrialList](t, h, "/v1/trials", h.tokens[access.Auditor])
	if own.Counts.Total == 0 || len(own.Trials) != own.Counts.Total || all.Counts.Total < own.Counts.Total || own.Trials[0].State == "" {
		t.Errorf("own %+v, all %+v", own, all)
	}
}

// TestFindRefuses: a wrong value, and an unknown parameter, are named, with what there is.
func TestFindRefuses(t *testing.T) {
	h := furnish(t)
	for query, names := range map[string][]string{
		"/v1/trials?verdict=bad": {"verdict", "safe_pass, needs_review, unsafe_fail, none"}, "/v1/trials?agnt=x": {"agnt", "agent, verdict, outcome"}, "/v1/trials?limit=9999": {"limit", "1 to 500"},
		"/v1/trials?after=x": {"after", "cursor"}, "/v1/search?text=%20": {"text", "white space"}, "/v1/search?text=%00%00%00": {"text"}, "/v1/search?text=" + strings.Repeat("a", 2001): {"text", "2000"},
		"/v1/search?said=perhaps&text=abc": {"said", "true or false"}, "/v1/search?page=2": {"page", "text, said, actor"},
	} {
		text := problem(t, api.ErrMalformed)(send(t, http.DefaultClient, "GET", h.URL+query, "", bearer(h.tokens[access.Auditor])...))
		for _, name := range names {
			if !strings.Contains(text, name) {
				t.Errorf("%.60s: %s does not name %q", query, text, name)
			}
		}
	}
	r := h.visit(t, "vera", access.Auditor)
	answer, page := r.get(t, "/trials?verdict=bad")
	shows(t, answer, page, 400, "safe_pass, needs_review, unsafe_fail, none", `name="agent"`)
}

// TestFindByPage goes through the list and the form as a person without scripts does.
func TestFindByPage(t *testing.T) {
	h := furnish(t)
	v := h.visit(t, "vera", access.Auditor)
	answer, page := v.get(t, "/trials?text=parcel&sort=oldest&verdict=&outcome=&agent=&from=&lang=en")
	shows(t, answer, page, 200, "/submissions/"+h.trial, `<option value="oldest" selected>`, "/v1/trials.csv?")
	answer, page = v.get(t, "/trials?agent=nobody-of-this-name&lang=ru")
	shows(t, answer, page, 200, "Подходящих разбирательств нет")
	answer, _ = v.get(t, "/trials?a="+h.trial+"&b="+h.trial)
	if to := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || to != "/trials/"+h.trial+"/compare/"+h.trial {
		t.Fatalf("%s to %q", answer.Status, to)
	}
	answer, page = v.get(t, "/trials/"+h.trial+"/compare/"+h.trial+"?lang=en")
	shows(t, answer, page, 200, "Both judged the same evidence")
	answer, text := send(t, http.DefaultClient, "GET", h.URL+"/v1/trials.csv", "", bearer(h.tokens[access.Auditor])...)
	if !strings.HasPrefix(text, "submitted,agent,outcome,") || !strings.Contains(text, h.trial) || !strings.Contains(answer.Header.Get("Content-Disposition"), "trials.csv") {
		t.Errorf("%s %v", text, answer.Header)
	}
	agent := found[api.TrialList](t, h, "/v1/trials?record="+h.trial, h.tokens[access.Auditor]).Trials[0].Agent
	history := found[api.AgentHistory](t, h, "/v1/agents/"+url.PathEscape(agent)+"/history", h.tokens[access.Auditor])
	if history.Measured == 0 || len(history.Jurors) == 0 || history.Trials.Counts.Total == 0 {
		t.Errorf("%+v", history)
	}
	answer, page = v.get(t, "/agents/logistics-agent-v1?lang=en")
	shows(t, answer, page, 200, "Trials of this agent")
}

// TestSearchByPage asks who said something as a person without scripts does. The page finds what /v1/search finds, for each
// role; the links to it and to what operators see are shown to those who may follow them.
func TestSearchByPage(t *testing.T) {
	h := furnish(t)
	for role, finds := range map[access.Role]bool{access.Auditor: true, access.Operator: true, access.Reviewer: true, access.Submitter: false} {
		v := h.visit(t, "person-"+string(role), role)
		answer, page := v.get(t, "/search?lang=en")
		shows(t, answer, page, 200, "Find records", `action="/search"`, `href="/search"`)
		if strings.Contains(page, `id="found-title"`) {
			t.Errorf("%s: without a condition it lists records", role)
		}
		if strings.Contains(page, `href="/access"`) != (role == access.Operator) {
			t.Errorf("%s: the link to who may do what", role)
		}
		if strings.Contains(page, `href="/reviews"`) != (role != access.Submitter) {
			t.Errorf("%s: the link to the desk", role)
		}
		answer, page = v.get(t, "/search?text=&said=&action=&record="+h.said.Payload.RecordID)
		shows(t, answer, page, 200, `id="found-title"`)
		if strings.Contains(page, `href="/records/`+h.said.Payload.RecordID+`"`) != finds {
			t.Errorf("%s finds %t, want %t", role, !finds, finds)
		}
	}
	v := h.visit(t, "vera", access.Auditor)
	answer, page := v.get(t, "/search?text=parcel&limit=1")
	next := regexp.MustCompile(`href="(/search[?]after=[^"]*)"`).FindStringSubmatch(page)
	if shows(t, answer, page, 200, `class="status proved"`); next == nil || strings.Count(page, `class="entry"`) != 1 {
		t.Fatal("the page has no next one")
	}
	answer, page = v.get(t, strings.ReplaceAll(next[1], "&amp;", "&"))
	shows(t, answer, page, 200, `value="parcel"`)
	for query, names := range map[string]string{"text=a": "too short", "from=tomorrow&text=abc": "2026-01-31", "said=perhaps&text=abc": "true or false", "limit=0&text=abc": "1 to 500"} {
		answer, page := v.get(t, "/search?"+query)
		shows(t, answer, page, 400, names, `action="/search"`)
		if strings.Contains(page, `id="found-title"`) {
			t.Errorf("%s: a refused search looks like one that found nothing", query)
		}
	}
	stranger := &visitor{h.running, browser(t)}
	answer, page = stranger.get(t, "/search?text=parcel")
	shows(t, answer, page, 401, `name="next" value="/search?text=parcel"`)
	if strings.Contains(page, `href="/search"`) {
		t.Error("a stranger is shown the link to the search")
	}
}

// TestAgentIsPublished: strangers read what the log has of an agent once the operator has published it, and its records
// stay private. Withdrawing ends that.
func TestAgentIsPublished(t *testing.T) {
	h := furnish(t)
	const page, doc = "/agents/logistics-agent-v1", "/v1/agents/logistics-agent-v1/reputation"
	for _, public := range []bool{false, true, false} {
		must.Do(t, h.Access().Publish(t.Context(), access.What{Agent: "logistics-agent-v1"}, public, "its owner agrees", "otto"))
		for _, path := range []string{page, doc} {
			want := map[bool]int{true: 200, false: 401}[public]
			answers(t, want, http.DefaultClient, "GET", h.URL+path, "")
		}
		for _, path := range []string{"/v1/records/" + h.said.Payload.RecordID, "/agents/another", "/v1/agents/another/reputation", doc[:len(doc)-len("reputation")] + "conduct"} {
			answers(t, 401, http.DefaultClient, "GET", h.URL+path, "")
		}
	}
}

// TestAgentPage: the page and the JSON are of one view, which is kept until the log has something new of the agent.
func TestAgentPage(t *testing.T) {
	h := furnish(t)
	ada := bearer(h.tokens[access.Auditor])
	view := func() (v *reputation.View, text string) {
		t.Helper()
		answer, text := send(t, http.DefaultClient, "GET", h.URL+"/v1/agents/logistics-agent-v1/reputation", "", ada...)
		v = new(reputation.View)
		if err := json.Unmarshal([]byte(text), v, json.RejectUnknownMembers(true)); err != nil || answer.StatusCode != 200 {
			t.Fatal(answer.Status, err)
		}
		return v, text
	}
	another := bearer(h.token(t, "another", access.Agent))
	other := func() {
		post(t, h.URL+"/v1/records", strings.Replace(action, "logistics-agent-v1", "another", 1), another...)
	}
	other() // its key comes into the trust file
	first, text := view()
	if first.Identity.Name != "logistics-agent-v1" || first.Coverage.Known+int64(len(first.LeftOut)) == 0 || len(first.Completeness) != 1 {
		t.Errorf("%s", text)
	}
	other()
	if _, again := view(); again != text {
		t.Errorf("a record of another agent changes the view:\n%s\n%s", text, again)
	}
	post(t, h.URL+"/v1/records", action, bearer(h.tokens[access.Agent])...)
	second, _ := view()
	must.Equal(t, second.Completeness[0].Records.Total, first.Completeness[0].Records.Total+1)
	answer, page := send(t, http.DefaultClient, "GET", h.URL+"/agents/logistics-agent-v1", "", ada...)
	shows(t, answer, page, 200, "logistics-agent-v1", "personal data", "/v1/agents/logistics-agent-v1/reputation", second.Trust.String(), second.Policy.String(), second.At)
	answer, page = send(t, http.DefaultClient, "GET", h.URL+"/agents/nobody", "", append([]string{"Accept", "text/html"}, ada...)...)
	shows(t, answer, page, 404, "Page not found")
}

// TestConductOfAgent: the lines are bundles that verify, of what the log had at the size that is asked for.
func TestConductOfAgent(t *testing.T) {
	h := furnish(t)
	ada := bearer(h.tokens[access.Auditor])
	const path = "/v1/agents/logistics-agent-v1/conduct"
	answer, text := send(t, http.DefaultClient, "GET", h.URL+path, "", ada...)
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "application/x-ndjson" || !strings.HasSuffix(text, "\n") {
		t.Fatal(answer.Status, answer.Header, text)
	}
	by := must.Get(h.Installation.Trust(t.Context()))(t)
	found := false
	for line := range strings.Lines(text) {
		report, err := verify.File([]byte(line), verify.Options{Trust: by})
		if err != nil || report.Records == 0 || report.Log == nil || report.Log.Origin != h.Installation.Ledger.Origin() {
			t.Errorf("%v, %+v", err, report)
		}
		found = found || strings.Contains(line, h.said.Payload.RecordID)
	}
	if !found {
		t.Errorf("the agent's record is not in it: %s", text)
	}
	size := must.Get(h.Installation.Ledger.Size(t.Context()))(t)
	for query, want := range map[string]int{"?size=0": 200, "?size=-1": 400, "?size=": 200, "?size=x": 400, fmt.Sprintf("?size=%d", size+1000): 400, "?ca=x": 400} {
		answer, text := send(t, http.DefaultClient, "GET", h.URL+path+query, "", ada...)
		if answer.StatusCode != want || query == "?size=0" && text != "" {
			t.Errorf("%s: %s %s", query, answer.Status, text)
		}
	}
	if answer, text := send(t, http.DefaultClient, "HEAD", h.URL+path, "", ada...); answer.StatusCode != 200 || text != "" {
		t.Error(answer.Status, text)
	}
	answers(t, 404, http.DefaultClient, "GET", h.URL+"/v1/agents/nobody/conduct", "", ada...)
}
