package server_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"jurat/client/api"
	"jurat/evidence/operator"
	"jurat/internal/log/access"
	"jurat/internal/test/browsertest"
	"jurat/internal/test/must"
)

// longTalk is a case with a conversation of so many messages, in which tools return results of 10 kB. The result of call n has "needle n" in its middle.
func longTalk(messages int) string {
	var talk []string
	for n := range messages / 4 {
		scan := fmt.Sprintf("scan of parcel %d: passed the gate, weight unchanged\n", n)
		result := strings.Repeat(scan, 100) + fmt.Sprintf("needle %d.\n", n) + strings.Repeat(scan, 100)
		talk = append(talk, fmt.Sprintf(`{"role":"user","content":"Where is parcel %d?"}`, n),
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"get_scans","arguments":"{\"parcel\":%d}"}}]}`, n, n),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, n, result), fmt.Sprintf(`{"role":"assistant","content":"Parcel %d is in Kassel, as the scans say."}`, n))
	}
	return parcelCase[:strings.Index(parcelCase, `"conversation"`)] + `"conversation":[` + strings.Join(talk, ",") + "]}"
}

// talked tries a case with a long conversation.
func (r *running) talked(t *testing.T, messages int) (id string) {
	t.Helper()
	ines := r.token(t, "ines", access.Submitter)
	id = r.submit(t, ines, longTalk(messages)).ID
	r.await(t, ines, id, api.Over)
	return id
}

// shownOfResult is how many characters of a message the page has.
const shownOfResult = `document.querySelector("#message-%d div.said").textContent.length`

// TestLongResultsAreFetchedWhenOpened: a page carries the beginning of a long tool result. A click, and a link to the message, fetch the
// whole text in its place, and the field that finds a text finds what is not there. What was fetched stays when the page is updated.
func TestLongResultsAreFetchedWhenOpened(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{Width: 1280, Height: 900})
	r := start(t, withJury(t))
	id := r.talked(t, 40)
	r.enter(t, b, "ines")
	court := r.URL + "/submissions/" + id
	b.Visit(court)
	whole := len(strings.Split(longTalk(4), "needle")[0]) // longer than what a page carries of it
	shown := browsertest.Eval[int](b, fmt.Sprintf(shownOfResult, 3))
	must.Need(t, shown <= 1000, "at first the page carries %d characters of a result", shown)
	b.Click("#message-3 .rest a")
	b.Wait(fmt.Sprintf(shownOfResult, 3) + " > 8000")
	got, at := b.Text("#message-3 div.said"), browsertest.Eval[string](b, "location.href")
	must.Hold(t, strings.Contains(got, "needle 0.") && at == court && len(got) >= whole/2, "opened, it has %d characters, at %s", len(got), at)
	if !browsertest.Eval[bool](b, `document.activeElement === document.querySelector("#message-3 div.said") && document.querySelector("#message-3 .cut > .rest") === null`) {
		t.Error("what was fetched has no focus, or is still called a beginning")
	}
	browsertest.Eval[bool](b, `fetch(location.href).then(r => r.text()).then(text => { update(document.getElementById("main"), new DOMParser().parseFromString(text, "text/html").getElementById("main")); return true })`)
	shown = browsertest.Eval[int](b, fmt.Sprintf(shownOfResult, 3))
	must.Hold(t, shown >= 8000, "after an update the page has %d characters of what was opened", shown)
	b.Type("#find", "NEEDLE 7")
	b.Click(`.find [data-go="found"]`)
	b.Wait(`document.querySelector(".message.here") !== null`)
	got = browsertest.Eval[string](b, `document.querySelector(".message.here").id + " " + document.querySelector(".find [role=status]").textContent`)
	must.Hold(t, got == "message-31 1 / 1", "found %q", got)
	b.Wait(fmt.Sprintf(shownOfResult, 31) + " > 8000")
	b.Screenshot("long-found")
	b.Visit("about:blank")
	b.Visit(court + "#message-35")
	b.Wait(fmt.Sprintf(shownOfResult, 35) + " > 8000")
	browsertest.Eval[bool](b, `window.fetch = () => Promise.reject(new Error("no connection")), true`)
	b.Type("#find", "needle 9")
	b.Press(kb.Enter)
	b.Wait(`document.querySelector(".find [role=status]").textContent.startsWith("0 Texts of which only the beginning is shown were not searched")`)
	b.Click("#message-3 .rest a")
	b.Wait(`document.querySelector("#message-3 .rest [role=status]").textContent.startsWith("It could not be loaded")`)
	for _, problem := range b.Problems() {
		t.Errorf("in the console: %s", problem)
	}
}

// TestLongResultsWithoutScripts: without scripts a link leads to the page with the whole text, and the form that finds a text lists messages.
func TestLongResultsWithoutScripts(t *testing.T) {
	r := start(t, withJury(t))
	id := r.talked(t, 40)
	v := r.visit(t, "ines", access.Submitter)
	page := shown(t, 200, `href="/submissions/`+id+`/messages/3#text"`, `action="/submissions/`+id+`/messages"`, "Only the beginning.")(v.get(t, "/submissions/"+id))
	must.Hold(t, !strings.Contains(page, "needle"), "the page carries a long result whole")
	shown(t, 200, "needle 0.", "/submissions/"+id+"#message-3")(v.get(t, "/submissions/"+id+"/messages/3"))
	shown(t, 200, "Messages with this text: 1", "/submissions/"+id+"#message-31", "needle 7.")(v.get(t, "/submissions/"+id+"/messages?find="+url.QueryEscape("  NEEDLE\t7")))
	shown(t, 200, "Messages with this text: 0")(v.get(t, "/submissions/"+id+"/messages?find=haystack"))
	shown(t, 400, "give what to look for")(v.get(t, "/submissions/"+id+"/messages?find=+"))
	for _, number := range []string{"0", "41", "x", "-1", "3x"} {
		answer, page := v.get(t, "/submissions/"+id+"/messages/"+number, "Accept", "text/html")
		shows(t, answer, page, 404, "none has this number")
	}
	other := r.visit(t, "another", access.Submitter)
	for _, path := range []string{"/messages/3", "/messages?find=needle"} {
		answer, page := other.get(t, "/submissions/"+id+path)
		must.Hold(t, answer.StatusCode == http.StatusForbidden && !strings.Contains(page, "needle 0"), "another submitter gets %s: %s", path, answer.Status)
	}
	_, list := send(t, http.DefaultClient, "GET", r.URL+"/v1/search?action=submission&chain="+id, "", bearer(r.token(t, "vera", access.Auditor))...)
	first := regexp.MustCompile(`"record": ?"([^"]*)"`).FindStringSubmatch(list)
	must.Need(t, first != nil, "%v", list)
	submission := "/records/" + first[1]
	page = shown(t, 200, `data-whole="`+submission+`/member?name=response#text"`)(v.get(t, submission))
	must.Hold(t, !strings.Contains(page, "needle"), "the page of the submission carries it whole")
	shown(t, 200, "needle 9.")(v.get(t, submission+"/member?name=response"))
	answer, page := v.get(t, submission+"/member?name=nothing", "Accept", "text/html")
	shows(t, answer, page, 404, "no member of this name")
	answer, page = other.get(t, submission+"/member?name=response")
	must.Hold(t, answer.StatusCode == http.StatusForbidden && !strings.Contains(page, "needle"), "another submitter gets the record: %s", answer.Status)
}

// TestLongConversation opens a conversation of 500 messages with long results. Its page takes less than 100 kB on the wire. The test logs how
// much processor time the browser's longest tasks took while the page loaded and while a reader scrolled through it; that depends on the machine.
func TestLongConversation(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{Width: 1280, Height: 900})
	r := start(t, withJury(t))
	id := r.talked(t, 500)
	request := must.Get(http.NewRequestWithContext(t.Context(), "GET", r.URL+"/submissions/"+id, nil))(t)
	request.Header.Set("Accept-Encoding", "gzip")
	request.Header.Set("Authorization", "Bearer "+r.token(t, "vera", access.Auditor))
	answer := must.Get(http.DefaultTransport.RoundTrip(request))(t)
	defer answer.Body.Close()
	packed, err := io.ReadAll(answer.Body)
	must.Need(t, err == nil && answer.StatusCode == 200 && answer.Header.Get("Content-Encoding") == "gzip", "%v %v %v", answer.Status, answer.Header, err)
	unpack := must.Get(gzip.NewReader(strings.NewReader(string(packed))))(t)
	page, err := io.ReadAll(unpack)
	must.Hold(t, err == nil && len(packed) <= 100_000 && strings.Contains(string(page), `id="message-500"`),
		"the page takes %d bytes on the wire: %v", len(packed), err)
	t.Logf("%d bytes, %d on the wire", len(page), len(packed))
	r.enter(t, b, "ines")
	loading := b.Tasks(func() { b.Visit(r.URL + "/submissions/" + id) })
	scrolling := b.Tasks(func() {
		browsertest.Eval[bool](b, `new Promise((done) => {
			const box = document.querySelector(".evidence"), scroller = box.scrollHeight > box.clientHeight ? box : document.scrollingElement;
			const step = () => { scroller.scrollTop += 900; scroller.scrollTop + scroller.clientHeight + 10 >= scroller.scrollHeight ? done(true) : requestAnimationFrame(step) };
			step();
		})`)
	})
	for what, tasks := range map[string][]time.Duration{"loading": loading, "scrolling": scrolling} {
		must.Need(t, len(tasks) != 0, "%s was not watched", what)
		t.Logf("%s: %d tasks, the longest by processor time %v", what, len(tasks), tasks[:min(len(tasks), 5)])
	}
}

// TestAccessOverTheAPI: the list is that of the command, and a token is ended by its id, at once and with a reason.
func TestAccessOverTheAPI(t *testing.T) {
	h := furnish(t)
	otto := bearer(h.tokens[access.Operator])
	list := func(query string) (list api.AccessList) {
		t.Helper()
		answer, body := send(t, http.DefaultClient, "GET", h.URL+"/v1/access"+query, "", otto...)
		err := json.Unmarshal([]byte(body), &list)
		must.Need(t, err == nil && answer.StatusCode == http.StatusOK, "%v %v %v", answer.Status, body, err)
		return list
	}
	id := access.IDOf(h.tokens[access.Auditor])
	has := func(l api.AccessList, state api.GrantState) bool {
		return slices.ContainsFunc(l.Grants, func(g api.Grant) bool { return g.Token == id && g.State == state && g.Name == "ada" })
	}
	must.Hold(t, has(list(""), api.GrantGood), "the list has no valid token of ada")
	path := h.URL + "/v1/access/" + id.String() + "/revoke"
	for body, want := range map[string]error{`{"reason":" "}`: api.ErrInvalid, `{"reason":"` + strings.Repeat("x", 1001) + `"}`: api.ErrInvalid} {
		problem(t, want)(send(t, http.DefaultClient, "POST", path, body, otto...))
	}
	answer, text := send(t, http.DefaultClient, "POST", path, `{"reason":"left the team"}`, otto...)
	var ended api.Grant
	if err := json.Unmarshal([]byte(text), &ended); err != nil || answer.StatusCode != http.StatusOK || ended.State != api.GrantRevoked {
		t.Fatal(answer.Status, text, err)
	}
	problem(t, api.ErrRevoked)(send(t, http.DefaultClient, "GET", h.URL+"/v1/records", "", bearer(h.tokens[access.Auditor])...))
	l := list("")
	must.Hold(t, !has(l, api.GrantGood) && !has(l, api.GrantRevoked) && has(list("?ended=1"), api.GrantRevoked), "after the end: %+v", l)
	records := must.Get(h.Installation.Ledger.Chain(t.Context(), operator.AccessChain))(t)
	last, err := operator.ReadAccessEvent(&records[len(records)-1].Payload)
	must.Hold(t, err == nil && last.Event == operator.AccessRevoked && last.Token == id && last.By == "otto" && last.Reason == "left the team",
		"the log has %+v, %v", last, err)
	problem(t, api.ErrMalformed)(send(t, http.DefaultClient, "GET", h.URL+"/v1/access?ended=yes", "", otto...))
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
		must.Need(t, answer.StatusCode == http.StatusOK, "%v %v", answer.Status, page)
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
	must.Hold(t, strings.Count(page, `href="/access/sha256:`) == len(h.tokens)+1 && strings.Contains(page, now.Format("2006-01-02")), "the list: %s", page)
	_, next := send(t, http.DefaultClient, "GET", h.URL+"/access?page=9223372036854775807", "", otto...)
	must.Hold(t, !strings.Contains(next, `href="/access/sha256:`), "a page after the last has tokens")
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
			must.Hold(t, !seen[id], "%s is listed twice", id)
			if seen[id] = true; strings.HasPrefix(id, "sha256:") {
				want--
			}
		}
		must.Hold(t, want == 0 && strings.Contains(page, `rel="next"`) == (path == "/access"), "%s: %d tokens are missing", path, want)
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
		answers(t, http.StatusUnauthorized, http.DefaultClient, "GET", r.URL+"/v1/records", "", bearer(token)...)
	}
	must.Hold(t, !browsertest.Eval[bool](b, hasScript), "the page has loaded its script")
	scripted := browsertest.Open(t, browsertest.Options{})
	if scripted.Visit(r.URL + "/sign-in"); !browsertest.Eval[bool](scripted, hasScript) {
		t.Error("hasScript does not see a script")
	}
	// Without the tick, the form comes back with what was typed.
	token := r.token(t, "ben", access.Reviewer)
	b.Visit(r.URL + "/access/" + access.IDOf(token).String() + "?lang=en")
	key := browsertest.Eval[string](b, `document.querySelector('form.decide input[name=form]').value`)
	must.Need(t, key != "", "the form has no key")
	otto := r.token(t, "otto", access.Operator)
	answer, page := send(t, http.DefaultClient, "POST", r.URL+"/access/"+access.IDOf(token).String(), url.Values{"reason": {"left & gone"}}.Encode(),
		append(bearer(otto), "Content-Type", "application/x-www-form-urlencoded")...)
	must.Hold(t, answer.StatusCode == http.StatusUnprocessableEntity && strings.Contains(page, "left &amp; gone") && strings.Contains(page, `role="alert"`),
		"%s: %s", answer.Status, page)
	answers(t, http.StatusOK, http.DefaultClient, "GET", r.URL+"/v1/records", "", bearer(token)...)
}
