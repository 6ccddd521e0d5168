package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/access"
	"jurat/internal/acts"
	"jurat/internal/browsertest"
	"jurat/internal/erasure"
	"jurat/internal/must"
	"jurat/internal/schedule"
	"jurat/internal/server"
)

// spokenCall is what a recorder saw of a call.
func spokenCall(t testing.TB, n int, question, answer string) observed.Act {
	t.Helper()
	quote := func(text string) string {
		return string(must.Get(json.Marshal(text))(t))
	}
	body := func(text string) *observed.Body {
		return &observed.Body{Bytes: int64(len(text)), SHA256: evidence.DigestOf([]byte(text)), Kept: []byte(text), Type: "application/json"}
	}
	began := time.Now().Add(-time.Hour).Add(time.Duration(n) * time.Second)
	return observed.Act{Recorder: "gate", RequestID: fmt.Sprint("call-", n), At: began.Add(time.Second), Began: began, Elapsed: new(time.Second), Agent: "courier", Vantage: evidence.Proxy,
		Fidelity: evidence.ByBytes, Protocol: "openai.chat", Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete,
		Request:  body(`{"model":"gpt-4o","messages":[{"role":"user","content":` + quote(question) + `}]}`),
		Response: body(`{"model":"gpt-4o-2024-08-06","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":` + quote(answer) + `}}]}`)}
}

// record seals what a recorder saw, with its texts apart, as recorders do.
func (r *running) record(t testing.TB, chain string, a observed.Act) evidence.Digest {
	t.Helper()
	a.ChainID = chain
	p := must.Get(observed.Draft(a))(t).Payload
	draft := must.Get(evidence.NewDraft(p))(t)
	log := acts.New(acts.Config{Ledger: r.Installation.Ledger, Keys: r.Installation.Keys, Disclose: r.Installation.Apart.Disclose, Now: time.Now}).Observations()
	return must.Get(log.Seal(t.Context(), draft.SealingApart("/request_body", "/response_body")))(t)
}

// tell seals what a recorder says of itself.
func (r *running) tell(t testing.TB, e *observed.Event) {
	t.Helper()
	p := must.Get(e.Payload("gate", evidence.FormatTime(time.Now()), "recorder/gate"))(t)
	draft := must.Get(evidence.NewDraft(p))(t)
	log := acts.New(acts.Config{Ledger: r.Installation.Ledger, Keys: r.Installation.Keys, Disclose: r.Installation.Apart.Disclose, Now: time.Now}).Observations()
	if _, err := log.Seal(t.Context(), draft); err != nil {
		t.Fatal(err)
	}
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
		if err := json.Unmarshal([]byte(text), into, json.RejectUnknownMembers(true)); err != nil || answer.StatusCode != 200 {
			t.Fatal(path, answer.Status, text, err)
		}
	}
	var list api.Recordings
	read("/v1/recordings?agent=COUR&limit=1", &list)
	if len(list.Recordings) != 1 || list.Recordings[0].Chain != "recorded/courier/2" || list.Next == "" {
		t.Fatalf("%+v", list)
	}
	after := list.Next
	list = api.Recordings{}
	read("/v1/recordings?agent=COUR&limit=1&after="+after, &list)
	if len(list.Recordings) != 1 || list.Recordings[0].Chain != chain || list.Recordings[0].Calls != 3 || len(list.Recordings[0].Trials) != 0 {
		t.Fatalf("%+v", list)
	}
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
	if tried := list.Recordings[1].Trials; len(tried) != 1 || tried[0].ID != id || tried[0].Outcome == "" || tried[0].State != api.Over {
		t.Errorf("%+v", tried)
	}
	_, court := send(t, http.DefaultClient, "GET", r.URL+"/submissions/"+id, "", bearer(auditor)...)
	must.Contain(t, court, "Where is parcel 2?", `href="`+recordingAddress(chain)+`"`)
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
		if at == "" && !strings.Contains(text, "sealed apart, and are not shown here") {
			t.Error("the page does not say that texts are not shown")
		}
		one, said := send(t, http.DefaultClient, "GET", r.URL+at+recordingAddress("recorded/courier/shut"), "")
		other, told := send(t, http.DefaultClient, "GET", r.URL+at+recordingAddress("recorded/courier/none"), "")
		if one.StatusCode != 401 || other.StatusCode != 401 || strings.ReplaceAll(said, "shut", "none") != told {
			t.Errorf("%s: a private chain: %s, none: %s", at, one.Status, other.Status)
		}
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
		if !browsertest.Eval[bool](b, `window.before === document.querySelector(".entry, .act")`) {
			t.Errorf("%s: what was there was replaced", path)
		}
		const whole = `document.querySelectorAll("input[name=key]").forEach((k) => k.setAttribute("value", "")), document.title + document.getElementById("main").outerHTML`
		grown := browsertest.Eval[string](b, whole)
		b.Visit(r.URL + path)
		if reloaded := browsertest.Eval[string](b, whole); grown != reloaded {
			t.Errorf("%s (-after a reload +live)\n%s", path, cmp.Diff(strings.Split(reloaded, "\n"), strings.Split(grown, "\n")))
		}
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
		if answer.StatusCode != 200 {
			t.Fatal(answer.Status, text)
		}
		return text
	}
	if text := show(); !strings.Contains(text, "my name is Quillon") || strings.Contains(text, "erased") {
		t.Fatal("before the erasure:", text)
	}
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
		if got := browsertest.Eval[string](b, `document.querySelectorAll("main img, main script").length + " " + document.body.textContent.includes("onerror=canary()")`); got != "0 true" {
			t.Errorf("%s: %s", path, got)
		}
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
