package server_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/browsertest"
	"jurat/internal/must"
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
	if shown := browsertest.Eval[int](b, fmt.Sprintf(shownOfResult, 3)); shown > 1000 {
		t.Fatalf("at first the page carries %d characters of a result", shown)
	}
	b.Click("#message-3 .rest a")
	b.Wait(fmt.Sprintf(shownOfResult, 3) + " > 8000")
	if got, at := b.Text("#message-3 div.said"), browsertest.Eval[string](b, "location.href"); !strings.Contains(got, "needle 0.") || at != court || len(got) < whole/2 {
		t.Errorf("opened, it has %d characters, at %s", len(got), at)
	}
	if !browsertest.Eval[bool](b, `document.activeElement === document.querySelector("#message-3 div.said") && document.querySelector("#message-3 .cut > .rest") === null`) {
		t.Error("what was fetched has no focus, or is still called a beginning")
	}
	browsertest.Eval[bool](b, `fetch(location.href).then(r => r.text()).then(text => { update(document.getElementById("main"), new DOMParser().parseFromString(text, "text/html").getElementById("main")); return true })`)
	if shown := browsertest.Eval[int](b, fmt.Sprintf(shownOfResult, 3)); shown < 8000 {
		t.Errorf("after an update the page has %d characters of what was opened", shown)
	}
	b.Type("#find", "NEEDLE 7")
	b.Click(`.find [data-go="found"]`)
	b.Wait(`document.querySelector(".message.here") !== null`)
	if got := browsertest.Eval[string](b, `document.querySelector(".message.here").id + " " + document.querySelector(".find [role=status]").textContent`); got != "message-31 1 / 1" {
		t.Errorf("found %q", got)
	}
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
	answer, page := v.get(t, "/submissions/"+id)
	shows(t, answer, page, 200, `href="/submissions/`+id+`/messages/3#text"`, `action="/submissions/`+id+`/messages"`, "Only the beginning.")
	if strings.Contains(page, "needle") {
		t.Error("the page carries a long result whole")
	}
	answer, page = v.get(t, "/submissions/"+id+"/messages/3")
	shows(t, answer, page, 200, "needle 0.", "/submissions/"+id+"#message-3")
	answer, page = v.get(t, "/submissions/"+id+"/messages?find="+url.QueryEscape("  NEEDLE\t7"))
	shows(t, answer, page, 200, "Messages with this text: 1", "/submissions/"+id+"#message-31", "needle 7.")
	answer, page = v.get(t, "/submissions/"+id+"/messages?find=haystack")
	shows(t, answer, page, 200, "Messages with this text: 0")
	answer, page = v.get(t, "/submissions/"+id+"/messages?find=+")
	shows(t, answer, page, 400, "give what to look for")
	for _, number := range []string{"0", "41", "x", "-1", "3x"} {
		answer, page := v.get(t, "/submissions/"+id+"/messages/"+number, "Accept", "text/html")
		shows(t, answer, page, 404, "none has this number")
	}
	other := r.visit(t, "another", access.Submitter)
	for _, path := range []string{"/messages/3", "/messages?find=needle"} {
		if answer, page := other.get(t, "/submissions/"+id+path); answer.StatusCode != http.StatusForbidden || strings.Contains(page, "needle 0") {
			t.Errorf("another submitter gets %s: %s", path, answer.Status)
		}
	}
	_, list := send(t, http.DefaultClient, "GET", r.URL+"/v1/search?action=submission&chain="+id, "", bearer(r.token(t, "vera", access.Auditor))...)
	first := regexp.MustCompile(`"record": ?"([^"]*)"`).FindStringSubmatch(list)
	if first == nil {
		t.Fatal(list)
	}
	submission := "/records/" + first[1]
	answer, page = v.get(t, submission)
	shows(t, answer, page, 200, `data-whole="`+submission+`/member?name=response#text"`)
	if strings.Contains(page, "needle") {
		t.Error("the page of the submission carries it whole")
	}
	answer, page = v.get(t, submission+"/member?name=response")
	shows(t, answer, page, 200, "needle 9.")
	answer, page = v.get(t, submission+"/member?name=nothing", "Accept", "text/html")
	shows(t, answer, page, 404, "no member of this name")
	if answer, page := other.get(t, submission+"/member?name=response"); answer.StatusCode != http.StatusForbidden || strings.Contains(page, "needle") {
		t.Errorf("another submitter gets the record: %s", answer.Status)
	}
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
	if err != nil || answer.StatusCode != 200 || answer.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal(answer.Status, answer.Header, err)
	}
	unpack := must.Get(gzip.NewReader(strings.NewReader(string(packed))))(t)
	page, err := io.ReadAll(unpack)
	if err != nil || len(packed) > 100_000 || !strings.Contains(string(page), `id="message-500"`) {
		t.Errorf("the page takes %d bytes on the wire: %v", len(packed), err)
	}
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
		if len(tasks) == 0 {
			t.Fatalf("%s was not watched", what)
		}
		t.Logf("%s: %d tasks, the longest by processor time %v", what, len(tasks), tasks[:min(len(tasks), 5)])
	}
}
