package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/acts"
	"jurat/internal/court/schedule"
	"jurat/internal/log/access"
	"jurat/internal/log/erasure"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/test/browsertest"
	"jurat/internal/test/must"
	"jurat/internal/web/server"
	"jurat/reputation"
	"jurat/verify"
)

// found asks for a list, and reads the answer.
func found[T any](t *testing.T, h *house, path string, token string) T {
	t.Helper()
	var list T
	answer, text := send(t, http.DefaultClient, "GET", h.URL+path, "", bearer(token)...)
	err := json.Unmarshal([]byte(text), &list, json.RejectUnknownMembers(true))
	must.Need(t, err == nil && answer.StatusCode == 200, "%v %v %v %v", path, answer.Status, text, err)
	return list
}

// TestFindShowsWhatMayBeRead: what callers find, and every count, is of what they may read, and the same as if nothing else existed.
func TestFindShowsWhatMayBeRead(t *testing.T) {
	h := furnish(t)
	const secret = "the violet lighthouse"
	other := h.token(t, "another", access.Agent)
	said := strings.Replace(action, "logistics-agent-v1", "another", 1)
	said = strings.Replace(said, "{", fmt.Sprintf(`{"context":{"note":%q},`, secret), 1)
	answer, text := send(t, http.DefaultClient, "POST", h.URL+"/v1/records", said, append(bearer(other), "Content-Type", "application/json")...)
	must.Need(t, answer.StatusCode == 201 && strings.Contains(text, secret), "%v %v", answer.Status, text)
	for _, path := range []string{"/v1/search?text=" + url.QueryEscape(secret), "/v1/search?actor=another"} {
		for role, want := range map[access.Role]int{access.Agent: 0, access.Submitter: 0, access.Auditor: 1, access.Reviewer: 1, access.Operator: 1} {
			list := found[api.HitList](t, h, path, h.tokens[role])
			must.Hold(t, len(list.Hits) == want && list.Next == "" && list.Index.Behind == 0, "%s: %s finds %+v, want %d", path, role, list, want)
		}
		list := found[api.HitList](t, h, path, other)
		must.Hold(t, len(list.Hits) == 1 && list.Hits[0].Actor == "another", "%s: its own agent finds %+v", path, list)
	}
	stranger := h.token(t, "someone-else", access.Submitter)
	for _, query := range []string{"", "?record=" + h.trial, "?text=parcel", "?agent=a", "?juror=jur", "?verdict=safe_pass", "?submitter=s"} {
		list := found[api.TrialList](t, h, "/v1/trials"+query, stranger)
		must.Hold(t, len(list.Trials) == 0 && list.Counts.Total+list.Counts.NeedsPerson+len(list.Counts.Verdicts)+len(list.Counts.Outcomes) == 0 && list.Next == "",
			"%s: another submitter finds %+v", query, list)
	}
	own, all := found[api.TrialList](t, h, "/v1/trials", h.tokens[access.Submitter]), found[api.TrialList](t, h, "/v1/trials", h.tokens[access.Auditor])
	must.Hold(t, own.Counts.Total != 0 && len(own.Trials) == own.Counts.Total && all.Counts.Total >= own.Counts.Total && own.Trials[0].State != "",
		"own %+v, all %+v", own, all)
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
			must.Hold(t, strings.Contains(text, name), "%.60s: %s does not name %q", query, text, name)
		}
	}
	r := h.visit(t, "vera", access.Auditor)
	shown(t, 400, "safe_pass, needs_review, unsafe_fail, none", `name="agent"`)(r.get(t, "/trials?verdict=bad"))
}

// TestFindByPage goes through the list and the form as a person without scripts does.
func TestFindByPage(t *testing.T) {
	h := furnish(t)
	v := h.visit(t, "vera", access.Auditor)
	shown(t, 200, "/submissions/"+h.trial, `<option value="oldest" selected>`, "/v1/trials.csv?")(v.get(t, "/trials?text=parcel&sort=oldest&verdict=&outcome=&agent=&from=&lang=en"))
	shown(t, 200, "Подходящих разбирательств нет")(v.get(t, "/trials?agent=nobody-of-this-name&lang=ru"))
	answer, _ := v.get(t, "/trials?a="+h.trial+"&b="+h.trial)
	to := answer.Header.Get("Location")
	must.Need(t, answer.StatusCode == http.StatusSeeOther && to == "/trials/"+h.trial+"/compare/"+h.trial, "%s to %q", answer.Status, to)
	shown(t, 200, "Both judged the same evidence")(v.get(t, "/trials/"+h.trial+"/compare/"+h.trial+"?lang=en"))
	answer, text := send(t, http.DefaultClient, "GET", h.URL+"/v1/trials.csv", "", bearer(h.tokens[access.Auditor])...)
	if !strings.HasPrefix(text, "submitted,agent,outcome,") || !strings.Contains(text, h.trial) || !strings.Contains(answer.Header.Get("Content-Disposition"), "trials.csv") {
		t.Errorf("%s %v", text, answer.Header)
	}
	agent := found[api.TrialList](t, h, "/v1/trials?record="+h.trial, h.tokens[access.Auditor]).Trials[0].Agent
	history := found[api.AgentHistory](t, h, "/v1/agents/"+url.PathEscape(agent)+"/history", h.tokens[access.Auditor])
	must.Hold(t, history.Measured != 0 && len(history.Jurors) != 0 && history.Trials.Counts.Total != 0, "%+v", history)
	shown(t, 200, "Trials of this agent")(v.get(t, "/agents/logistics-agent-v1?lang=en"))
}

// TestSearchByPage asks who said something as a person without scripts does. The page finds what /v1/search finds, for each
// role; the links to it and to what operators see are shown to those who may follow them.
func TestSearchByPage(t *testing.T) {
	h := furnish(t)
	for role, finds := range map[access.Role]bool{access.Auditor: true, access.Operator: true, access.Reviewer: true, access.Submitter: false} {
		v := h.visit(t, "person-"+string(role), role)
		page := shown(t, 200, "Find records", `action="/search"`, `href="/search"`)(v.get(t, "/search?lang=en"))
		must.Hold(t, !strings.Contains(page, `id="found-title"`), "%s: without a condition it lists records", role)
		must.Hold(t, strings.Contains(page, `href="/access"`) == (role == access.Operator), "%s: the link to who may do what", role)
		must.Hold(t, strings.Contains(page, `href="/reviews"`) == (role != access.Submitter), "%s: the link to the desk", role)
		page = shown(t, 200, `id="found-title"`)(v.get(t, "/search?text=&said=&action=&record="+h.said.Payload.RecordID))
		must.Hold(t, strings.Contains(page, `href="/records/`+h.said.Payload.RecordID+`"`) == finds, "%s finds %t, want %t", role, !finds, finds)
	}
	v := h.visit(t, "vera", access.Auditor)
	answer, page := v.get(t, "/search?text=parcel&limit=1")
	next := regexp.MustCompile(`href="(/search[?]after=[^"]*)"`).FindStringSubmatch(page)
	if shows(t, answer, page, 200, `class="status proved"`); next == nil || strings.Count(page, `class="entry"`) != 1 {
		t.Fatal("the page has no next one")
	}
	shown(t, 200, `value="parcel"`)(v.get(t, strings.ReplaceAll(next[1], "&amp;", "&")))
	for query, names := range map[string]string{"text=a": "too short", "from=tomorrow&text=abc": "2026-01-31", "said=perhaps&text=abc": "true or false", "limit=0&text=abc": "1 to 500"} {
		page := shown(t, 400, names, `action="/search"`)(v.get(t, "/search?"+query))
		must.Hold(t, !strings.Contains(page, `id="found-title"`), "%s: a refused search looks like one that found nothing", query)
	}
	stranger := &visitor{h.running, browser(t)}
	page = shown(t, 401, `name="next" value="/search?text=parcel"`)(stranger.get(t, "/search?text=parcel"))
	must.Hold(t, !strings.Contains(page, `href="/search"`), "a stranger is shown the link to the search")
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
		err := json.Unmarshal([]byte(text), v, json.RejectUnknownMembers(true))
		must.Need(t, err == nil && answer.StatusCode == 200, "%v %v", answer.Status, err)
		return v, text
	}
	another := bearer(h.token(t, "another", access.Agent))
	other := func() {
		post(t, h.URL+"/v1/records", strings.Replace(action, "logistics-agent-v1", "another", 1), another...)
	}
	other() // its key comes into the trust file
	first, text := view()
	must.Hold(t, first.Identity.Name == "logistics-agent-v1" && first.Coverage.Known+int64(len(first.LeftOut)) != 0 && len(first.Completeness) == 1, "%s", text)
	other()
	_, again := view()
	must.Hold(t, again == text, "a record of another agent changes the view:\n%s\n%s", text, again)
	post(t, h.URL+"/v1/records", action, bearer(h.tokens[access.Agent])...)
	second, _ := view()
	must.Equal(t, second.Completeness[0].Records.Total, first.Completeness[0].Records.Total+1)
	shown(t, 200, "logistics-agent-v1", "personal data", "/v1/agents/logistics-agent-v1/reputation", second.Trust.String(), second.Policy.String(), second.At)(send(t, http.DefaultClient, "GET", h.URL+"/agents/logistics-agent-v1", "", ada...))
	shown(t, 404, "Page not found")(send(t, http.DefaultClient, "GET", h.URL+"/agents/nobody", "", append([]string{"Accept", "text/html"}, ada...)...))
}

// TestConductOfAgent: the lines are bundles that verify, of what the log had at the size that is asked for.
func TestConductOfAgent(t *testing.T) {
	h := furnish(t)
	ada := bearer(h.tokens[access.Auditor])
	const path = "/v1/agents/logistics-agent-v1/conduct"
	answer, text := send(t, http.DefaultClient, "GET", h.URL+path, "", ada...)
	must.Need(t, answer.StatusCode == 200 && answer.Header.Get("Content-Type") == "application/x-ndjson" && strings.HasSuffix(text, "\n"),
		"%v %v %v", answer.Status, answer.Header, text)
	by := must.Get(h.Installation.Trust(t.Context()))(t)
	found := false
	for line := range strings.Lines(text) {
		report, err := verify.File([]byte(line), verify.Options{Trust: by})
		must.Hold(t, err == nil && report.Records != 0 && report.Log != nil && report.Log.Origin == h.Installation.Ledger.Origin(), "%v, %+v", err, report)
		found = found || strings.Contains(line, h.said.Payload.RecordID)
	}
	must.Hold(t, found, "the agent's record is not in it: %s", text)
	size := must.Get(h.Installation.Ledger.Size(t.Context()))(t)
	for query, want := range map[string]int{"?size=0": 200, "?size=-1": 400, "?size=": 200, "?size=x": 400, fmt.Sprintf("?size=%d", size+1000): 400, "?ca=x": 400} {
		answer, text := send(t, http.DefaultClient, "GET", h.URL+path+query, "", ada...)
		must.Hold(t, answer.StatusCode == want && (query != "?size=0" || text == ""), "%s: %s %s", query, answer.Status, text)
	}
	answer, text = send(t, http.DefaultClient, "HEAD", h.URL+path, "", ada...)
	must.Hold(t, answer.StatusCode == 200 && text == "", "%v %v", answer.Status, text)
	answers(t, 404, http.DefaultClient, "GET", h.URL+"/v1/agents/nobody/conduct", "", ada...)
}

// spokenCall is what a recorder saw of a call.
func spokenCall(t testing.TB, n int, question, answer string) observed.Act {
	t.Helper()
	quote := func(text string) string {
		return string(must.Get(json.Marshal(text))(t))
	}
	began := time.Now().Add(-time.Hour).Add(time.Duration(n) * time.Second)
	return observed.Act{Payload: evidence.Payload{AgentID: "gate", RequestID: fmt.Sprint("call-", n), Timestamp: evidence.FormatTime(began.Add(time.Second))},
		Observed: evidence.Observed{Began: evidence.FormatTime(began), EndedMS: observed.Milliseconds(time.Second), Agent: "courier", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: "openai.chat", Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete},
		Request:  observed.Whole(`{"model":"gpt-4o","messages":[{"role":"user","content":`+quote(question)+`}]}`, "application/json"), Response: observed.Whole(`{"model":"gpt-4o-2024-08-06","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":`+quote(answer)+`}}]}`, "application/json")}
}

// record seals what a recorder saw, with its texts apart, as recorders do.
func (r *running) record(t testing.TB, chain string, a observed.Act) evidence.Digest {
	t.Helper()
	a.ChainID = chain
	p := must.Get(observed.Draft(a))(t).Payload
	draft := must.Get(evidence.NewDraft(p))(t)
	log := acts.New(acts.Config{Ledger: r.Installation.Ledger, Keys: r.Installation.Keys, Disclose: r.Installation.Apart.Disclose, Now: time.Now}).Observations()
	return must.Get(log.Seal(t.Context(), draft.SealingApart(nil, "/request_body", "/response_body")))(t)
}

// tell seals what a recorder says of itself.
func (r *running) tell(t testing.TB, e *observed.Event) {
	t.Helper()
	p := must.Get(e.Payload("gate", evidence.FormatTime(time.Now()), "recorder/gate"))(t)
	draft := must.Get(evidence.NewDraft(p))(t)
	log := acts.New(acts.Config{Ledger: r.Installation.Ledger, Keys: r.Installation.Keys, Disclose: r.Installation.Apart.Disclose, Now: time.Now}).Observations()
	_, err := log.Seal(t.Context(), draft)
	must.Need(t, err == nil, "%v", err)
}

func recordingAddress(chain string) string { return "/recordings/" + url.PathEscape(chain) }

// TestRecordingsOverTheAPI: a chain is listed, read in parts, and tried with the texts that are sealed apart; its line then has the trial, and the
// trial's page leads back.
func TestRecordingsOverTheAPI(t *testing.T) {
	r := start(t, withJury(t))
	const chain = "recorded/courier/1"
	for n := range 3 {
		r.record(t, chain, spokenCall(t, n, fmt.Sprintf("Where is parcel %d?", n), "In Kassel."))
	}
	r.record(t, "recorded/courier/2", spokenCall(t, 9, "Hello", "Hi"))
	operator, auditor := r.token(t, "otto", access.Operator), r.token(t, "ada", access.Auditor)
	read := func(path string, into any) {
		t.Helper()
		answer, text := send(t, http.DefaultClient, "GET", r.URL+path, "", bearer(auditor)...)
		err := json.Unmarshal([]byte(text), into, json.RejectUnknownMembers(true))
		must.Need(t, err == nil && answer.StatusCode == 200, "%v %v %v %v", path, answer.Status, text, err)
	}
	var list api.Recordings
	read("/v1/recordings?agent=COUR&limit=1", &list)
	must.Need(t, len(list.Recordings) == 1 && list.Recordings[0].Chain == "recorded/courier/2" && list.Next != "", "%+v", list)
	after := list.Next
	list = api.Recordings{}
	read("/v1/recordings?agent=COUR&limit=1&after="+after, &list)
	must.Need(t, len(list.Recordings) == 1 && list.Recordings[0].Chain == chain && list.Recordings[0].Calls == 3 && len(list.Recordings[0].Trials) == 0,
		"%+v", list)
	var part server.RecordedChain
	read("/v1"+recordingAddress(chain)+"?from=2&limit=1", &part)
	if part.From != 2 || part.Next != 3 || part.Records != 3 || len(part.Steps) != 1 || len(part.Steps[0].Messages) != 2 || part.Steps[0].Messages[0].Text != "Where is parcel 1?" {
		t.Fatalf("%+v", part)
	}
	for path, want := range map[string]int{"/v1" + recordingAddress("nothing"): 404, "/v1" + recordingAddress(chain) + "?from=4": 404, "/v1" + recordingAddress(chain) + "?from=0": 400,
		"/v1" + recordingAddress(chain) + "?limit=101": 400, recordingAddress(chain) + "?page=2": 404, recordingAddress(chain) + "/acts/x": 404, recordingAddress(chain) + "/acts/4": 404, "/recordings?text=ab": 400} {
		answers(t, want, http.DefaultClient, "GET", r.URL+path, "", bearer(auditor)...)
	}
	for body, want := range map[string]int{`{"recorded":"nothing"}`: 404, `{"recorded":"` + chain + `","chainId":"x"}`: 422} {
		answers(t, want, http.DefaultClient, "POST", r.URL+"/v1/submissions", body, append(bearer(operator), "Content-Type", "application/json")...)
	}
	if answer, text := send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", `{"recorded":"`+chain+`"}`, append(bearer(r.token(t, "sam", access.Submitter)), "Content-Type", "application/json")...); answer.StatusCode != 404 {
		t.Errorf("a submitter who may not read the chain: %s %s", answer.Status, text)
	}
	id := r.submit(t, operator, `{"recorded":"`+chain+`"}`).ID
	r.await(t, operator, id, api.Over)
	list = api.Recordings{}
	read("/v1/recordings?agent=courier", &list)
	tried := list.Recordings[1].Trials
	must.Hold(t, len(tried) == 1 && tried[0].ID == id && tried[0].Outcome != "" && tried[0].State == api.Over, "%+v", tried)
	_, court := send(t, http.DefaultClient, "GET", r.URL+"/submissions/"+id, "", bearer(auditor)...)
	must.Contain(t, court, "Where is parcel 2?", `href="`+recordingAddress(chain)+`"`)
}

// TestRecordingBehind: while the index cannot follow the log, as when it is made again, the page of a chain is there, and says so.
func TestRecordingBehind(t *testing.T) {
	path := t.TempDir() + "/find.db"
	r := start(t, func(c *server.Config) { c.Index = path })
	const chain, behind = "recorded/courier/1", "behind, so records may be missing"
	r.record(t, chain, spokenCall(t, 1, "Where is parcel 1?", "In Kassel."))
	auditor := r.token(t, "ada", access.Auditor)
	_, text := send(t, http.DefaultClient, "GET", r.URL+recordingAddress(chain), "", bearer(auditor)...)
	must.Contain(t, text, "parcel 1")
	must.Hold(t, !strings.Contains(text, behind), "%v", text)
	db := must.Get(sqlite.OpenFile(path))(t)
	defer db.Close()
	busy := must.Get(db.BeginTx(t.Context(), nil))(t)
	defer busy.Rollback()
	r.record(t, chain, spokenCall(t, 2, "Where is parcel 2?", "In Kassel."))
	_, text = send(t, http.DefaultClient, "GET", r.URL+recordingAddress(chain), "", bearer(auditor)...)
	must.Contain(t, text, "parcel 1", behind)
	_, text = send(t, http.DefaultClient, "GET", r.URL+"/v1"+recordingAddress(chain), "", bearer(auditor)...)
	must.Contain(t, text, `"index":{"behind":1}`)
}

// TestRecordingBeforeTheIndexHasIt: whoever reads everything is told to try again. For others there is no such chain.
func TestRecordingBeforeTheIndexHasIt(t *testing.T) {
	index := t.TempDir() + "/find.db"
	r := start(t, func(c *server.Config) { c.Index = index })
	const chain = "recorded/courier/new"
	ada, sam := bearer(r.token(t, "ada", access.Auditor)), bearer(r.token(t, "sam", access.Submitter))
	answers(t, http.StatusNotFound, http.DefaultClient, "GET", r.URL+recordingAddress(chain), "", ada...) // the index has all that there is
	db := must.Get(sqlite.OpenFile(index))(t)
	defer db.Close()
	must.Get(db.ExecContext(t.Context(), `CREATE TRIGGER stop BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'a test'); END`))(t)
	r.record(t, chain, spokenCall(t, 1, "Hello", "Hi"))
	for _, path := range []string{"/v1", ""} {
		answer, text := send(t, http.DefaultClient, "GET", r.URL+path+recordingAddress(chain), "", ada...)
		if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || !strings.Contains(text, "the index lacks 1 record, which may have this chain") {
			t.Errorf("%s%v: %s", path, answer, text)
		}
		answers(t, http.StatusNotFound, http.DefaultClient, "GET", r.URL+path+recordingAddress(chain), "", sam...)
	}
	must.Get(db.ExecContext(t.Context(), `DROP TRIGGER stop`))(t)
	answers(t, http.StatusOK, http.DefaultClient, "GET", r.URL+recordingAddress(chain), "", ada...)
}

// TestPublishedRecording: strangers read a chain that is public, without what is sealed apart, and cannot tell a private one from none.
func TestPublishedRecording(t *testing.T) {
	r := start(t, nil)
	r.record(t, "recorded/courier/open", spokenCall(t, 1, "a secret question", "a secret answer"))
	r.record(t, "recorded/courier/shut", spokenCall(t, 2, "Hello", "Hi"))
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: "recorded/courier/open"}, true, "a test", "tester"))
	const stopped = "The recorder gate stopped."
	r.tell(t, &observed.Event{Event: observed.Stop, Reason: "asked to"})
	if _, text := send(t, http.DefaultClient, "GET", r.URL+recordingAddress("recorded/courier/open"), "", bearer(r.token(t, "ada", access.Auditor))...); !strings.Contains(text, stopped) || !strings.Contains(text, "a secret question") {
		t.Error("an auditor does not see that the recorder stopped, or what was said")
	}
	for _, at := range []string{"", "/v1"} {
		answer, text := send(t, http.DefaultClient, "GET", r.URL+at+recordingAddress("recorded/courier/open"), "")
		if answer.StatusCode != 200 || strings.Contains(text, "secret") || strings.Contains(text, stopped) || strings.Contains(text, "asked to") || !strings.Contains(text, "courier") {
			t.Errorf("%s: %s %s", at, answer.Status, text)
		}
		must.Hold(t, at != "" || strings.Contains(text, "sealed apart, and are not shown here"), "the page does not say that texts are not shown")
		one, said := send(t, http.DefaultClient, "GET", r.URL+at+recordingAddress("recorded/courier/shut"), "")
		other, told := send(t, http.DefaultClient, "GET", r.URL+at+recordingAddress("recorded/courier/none"), "")
		must.Hold(t, one.StatusCode == 401 && other.StatusCode == 401 && strings.ReplaceAll(said, "shut", "none") == told,
			"%s: a private chain: %s, none: %s", at, one.Status, other.Status)
	}
}

// TestRecordingsLive: a new call appears on the list and on the page of its chain without a reload, and what is there then is what a reload shows.
func TestRecordingsLive(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{})
	r := start(t, withJury(t))
	const chain = "recorded/courier/live"
	r.record(t, chain, spokenCall(t, 1, "Where is my parcel?", "In Kassel."))
	r.enter(t, b, "ines")
	for i, path := range []string{"/recordings", recordingAddress(chain)} {
		b.Visit(r.URL + path)
		b.Wait(`document.querySelector("main").dataset.events !== undefined && document.body.textContent.includes("courier")`)
		browsertest.Eval[bool](b, `window.before = document.querySelector(".entry, .act"), window.shift = 0, new PerformanceObserver((l) => { for (const e of l.getEntries()) window.shift += e.value }).observe({ type: "layout-shift" }), true`)
		question := fmt.Sprintf("And parcel number %d?", i)
		r.record(t, chain, spokenCall(t, 2+i, question, "On its way."))
		want := []string{fmt.Sprintf("%d acts", 2+i), question}[i]
		b.Wait(`document.body.textContent.includes("` + want + `")`)
		must.Hold(t, browsertest.Eval[bool](b, `window.before === document.querySelector(".entry, .act")`), "%s: what was there was replaced", path)
		const whole = `document.querySelectorAll("input[name=key]").forEach((k) => k.setAttribute("value", "")), document.title + document.getElementById("main").outerHTML`
		grown := browsertest.Eval[string](b, whole)
		b.Visit(r.URL + path)
		reloaded := browsertest.Eval[string](b, whole)
		must.Equal(t, cmp.Diff(strings.Split(reloaded, "\n"), strings.Split(grown, "\n")), "", path, "(-after a reload +live)")
	}
	for _, problem := range b.Problems() {
		t.Error(problem)
	}
}

// TestSendRecordingToTrial presses the button: the trial begins once, its page leads back, and the chain lists it.
func TestSendRecordingToTrial(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{Width: 360, Height: 740})
	r := start(t, withJury(t))
	const chain = "recorded/courier/send"
	r.record(t, chain, spokenCall(t, 1, "Where is my parcel?", "In Kassel."))
	r.enter(t, b, "ines")
	b.Visit(r.URL + recordingAddress(chain))
	browsertest.Eval[bool](b, `(() => { const b = document.querySelector("#send button"); b.click(); setTimeout(() => b.click(), 20); return true })()`)
	b.Wait(`location.pathname.startsWith("/submissions/trial-") && document.readyState === "complete"`)
	b.Wait(`document.body.textContent.includes("In Kassel.")`)
	b.Click(`a[href="` + recordingAddress(chain) + `"]`)
	b.Wait(`location.pathname.startsWith("/recordings/") && document.querySelectorAll("#tried a").length === 1`)
	for _, problem := range b.Problems() {
		t.Error(problem)
	}
}

// TestErasedRecording: after an erasure the page says so, instead of showing nothing.
func TestErasedRecording(t *testing.T) {
	r := start(t, nil)
	const chain = "recorded/courier/gone"
	digest := r.record(t, chain, spokenCall(t, 1, "my name is Quillon", "Noted."))
	record := must.Get(r.Installation.Ledger.RecordByDigest(t.Context(), digest))(t)
	ada := r.token(t, "ada", access.Auditor)
	show := func() string {
		t.Helper()
		answer, text := send(t, http.DefaultClient, "GET", r.URL+recordingAddress(chain), "", bearer(ada)...)
		must.Need(t, answer.StatusCode == 200, "%v %v", answer.Status, text)
		return text
	}
	text := show()
	must.Need(t, strings.Contains(text, "my name is Quillon") && !strings.Contains(text, "erased"), "before the erasure: %s", text)
	if _, err := r.Installation.Apart.Erase(t.Context(), erasure.Order{RecordID: record.Payload.RecordID, Pointers: []string{"/request_body"}, Reason: "asked for", By: "tester"}); err != nil {
		t.Fatal(err)
	}
	if text := show(); strings.Contains(text, "Quillon") || !strings.Contains(text, "the operator has erased its bytes") || !strings.Contains(text, "Noted.") {
		t.Error("after the erasure:", text)
	}
}

// TestHostileChains: a chain of thousands of calls is shown in parts, and one with names that look like markup is inert.
func TestHostileChains(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{})
	r := start(t, func(c *server.Config) {})
	const chain = "recorded/<img src=x onerror=canary()>/1"
	evil := spokenCall(t, 1, `<script>canary()</script>`+"\u202Etxet", `<img src=x onerror=canary()>`)
	evil.Agent = `"'><img src=x onerror=canary()>`
	r.record(t, chain, evil)
	r.enter(t, b, "ines")
	for _, path := range []string{"/recordings", recordingAddress(chain), recordingAddress(chain) + "/acts/1", "/search?actor=" + url.QueryEscape(evil.Agent)} {
		b.Visit(r.URL + path)
		got := browsertest.Eval[string](b, `document.querySelectorAll("main img, main script").length + " " + document.body.textContent.includes("onerror=canary()")`)
		must.Hold(t, got == "0 true", "%s: %s", path, got)
	}
	for _, problem := range b.Problems() {
		t.Error(problem)
	}
}

// TestRecordingEvents: an event comes for what a recorder sealed, and none for what others did; the stream ends with the caller's token.
func TestRecordingEvents(t *testing.T) {
	r := start(t, func(c *server.Config) { c.Live = schedule.Delivery{Heartbeat: 20 * time.Millisecond} })
	ada := r.token(t, "ada", access.Auditor)
	request := must.Get(http.NewRequestWithContext(t.Context(), "GET", r.URL+server.RecordingEventsPath, nil))(t)
	request.Header.Set("Authorization", "Bearer "+ada)
	answer := must.Get(http.DefaultClient.Do(request))(t)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func(prefix string) string {
		t.Helper()
		for lines.Scan() {
			if rest, is := strings.CutPrefix(lines.Text(), prefix); is {
				return rest
			}
		}
		t.Fatalf("the stream ended before %q: %v", prefix, lines.Err())
		return ""
	}
	next("retry:")
	next(":") // the stream is under way
	post(t, r.URL+"/v1/records", action, bearer(r.token(t, "logistics-agent-v1", access.Agent))...)
	r.record(t, "recorded/courier/1", spokenCall(t, 1, "Hello", "Hi"))
	must.Equal(t, next("id: "), fmt.Sprint(r.size(t)-1))
	must.Equal(t, next("event: "), "recorded")
	must.Do(t, r.Access().Revoke(t.Context(), access.IDOf(ada), "left", "tester"))
	for lines.Scan() { // until it ends
	}
	must.Want(t, lines.Err(), nil)
}
