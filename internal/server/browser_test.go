package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/access"
	"jurat/internal/browsertest"
)

// enter signs a browser in with the link that the server prints.
func (r *running) enter(t *testing.T, b *browsertest.Browser, name string) {
	b.Visit(r.URL + r.link(t, name, access.PeopleRoles()...))
	b.Click("main button")
	b.Wait(`location.pathname === "/" && document.readyState === "complete"`)
}

// TestPagesFit opens every page in every language, on a light phone and a dark desktop screen. Nothing may be wider than
// the screen, nothing may come from another server, and no policy may be violated.
func TestPagesFit(t *testing.T) {
	for _, o := range []browsertest.Options{{Width: 360, Height: 740}, {Width: 1280, Height: 900, Dark: true}} {
		b := browsertest.Open(t, o)
		r := start(t, withJury(t))
		r.enter(t, b, "mia")
		token := r.token(t, "sam", access.Submitter)
		id := r.tried(t, token)
		judgment := r.submission(t, token, id).Verdict.Record
		const onTrial = "logistics-agent-v1"
		post(t, r.URL+"/v1/records", action, bearer(r.token(t, onTrial, access.Agent))...)
		for _, lang := range []string{"en", "ja", "ru"} {
			for name, path := range map[string]string{"home": "/", "court": "/submissions/" + id, "desk": "/reviews", "review": "/reviews/" + judgment,
				"record": "/records/" + judgment, "chain": "/chains/" + id, "agent": "/agents/" + url.PathEscape(onTrial), "sign-in": "/sign-in", "missing": "/records/nothing"} {
				b.Visit(r.URL + path + "?lang=" + lang)
				if got := browsertest.Eval[string](b, `document.documentElement.lang + (document.styleSheets[0].cssRules.length > 100)`); got != lang+"true" {
					t.Errorf("%s in %s: language and style: %s", name, lang, got)
				}
				if wide := browsertest.Eval[int](b, `document.documentElement.scrollWidth`); wide > o.Width {
					t.Errorf("%s in %s is %d wide on a screen of %d", name, lang, wide, o.Width)
				}
				b.Screenshot(fmt.Sprintf("%s-%s-%d", name, lang, o.Width))
			}
		}
		for _, address := range b.Requests() {
			if u, err := url.Parse(address); err != nil || u.Scheme == "http" && !strings.HasPrefix(address, r.URL) {
				t.Errorf("the pages asked for %s", address)
			}
		}
		for _, problem := range b.Problems() {
			if !strings.Contains(problem, "404") { // from the page that does not exist
				t.Errorf("in the console: %s", problem)
			}
		}
	}
}

// TestLivePageIsThePageAfterReload opens a trial in progress. When the trial is over, the page must equal the same page
// after a reload. Meanwhile, what the reader has opened and focused stays so.
func TestLivePageIsThePageAfterReload(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{})
	r := start(t, withJurors(t, 500*time.Millisecond, 0))
	r.enter(t, b, "ines")
	court := r.URL + "/submissions/" + r.submit(t, r.token(t, "ines", access.Submitter), parcelCase).ID
	b.Visit(court)
	const live = `document.getElementById("main").dataset.events !== undefined`
	if !browsertest.Eval[bool](b, live) {
		t.Fatal("the trial is already over")
	}
	const keep = `document.querySelector(".card details").open = true, document.querySelector("#message-1 .gutter a").focus(), window.before = document.getElementById("message-1"), true`
	browsertest.Eval[bool](b, keep)
	b.Wait("!(" + live + ")")
	for _, kept := range []string{`document.querySelector(".card details").open`, `document.activeElement === document.querySelector("#message-1 .gutter a")`,
		`window.before === document.getElementById("message-1")`} {
		if !browsertest.Eval[bool](b, kept) {
			t.Errorf("not so any more: %s", kept)
		}
	}
	b.Screenshot("court-live")
	const whole = `document.querySelector(".card details").open = false, document.title + document.getElementById("main").outerHTML`
	grown := browsertest.Eval[string](b, whole)
	b.Visit(court)
	reloaded := browsertest.Eval[string](b, whole)
	if grown != reloaded || !strings.Contains(grown, "position changed") {
		t.Errorf("(-after a reload +live)\n%s", cmp.Diff(strings.Split(reloaded, "\n"), strings.Split(grown, "\n")))
	}
}

// TestUploadOfRecords gives sealed records to the form as a browser sends them, with the line feed at the end of the
// file. An error message must be visible without scrolling.
func TestUploadOfRecords(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{})
	r := start(t, withJury(t))
	agent := bearer(r.token(t, "logistics-agent-v1", access.Agent))
	said := post(t, r.URL+"/v1/records", action, agent...)
	_, record := send(t, http.DefaultClient, "GET", r.URL+"/v1/records/"+said.Payload.RecordID, "", agent...)
	sam := r.token(t, "sam", access.Submitter)
	for range trialsInTheWay {
		r.submit(t, sam, parcelCase)
	}
	id := r.tried(t, sam)
	_, trial := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions/"+id+"/case", "", bearer(sam)...)
	r.enter(t, b, "ines")
	upload := func(name, content string) {
		t.Helper()
		b.Visit(r.URL + "/")
		if !browsertest.Eval[bool](b, fmt.Sprintf(`(() => {
			const all = new DataTransfer(); all.items.add(new File([%q], %q)); document.getElementById("bundle").files = all.files; return true })()`, content, name)) {
			t.Fatal("the form has no field for records")
		}
		b.Click(".upload button")
	}
	if !strings.HasSuffix(record, "\n") {
		t.Fatal("the record's file does not end with a line feed")
	}
	upload("record.json", record)
	b.Wait(`location.pathname.startsWith("/submissions/trial-")`)
	upload(id+".jurat", trial)
	b.Wait(`document.readyState === "complete" && document.querySelector('[role="alert"]') !== null`)
	const seen = `(() => { const at = document.querySelector('[role="alert"]').getBoundingClientRect(); return at.top >= 0 && at.bottom <= innerHeight })()`
	if !browsertest.Eval[bool](b, seen) {
		t.Error("the error message is outside the visible part of the page")
	}
	b.Screenshot("upload-refused")
}

// trialsInTheWay make the list so long that what is below it is not visible.
const trialsInTheWay = 12

// TestButtonsPressedTwice presses buttons twice. The reader must see the result of the first press, and no error of the
// second.
func TestButtonsPressedTwice(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{})
	r := start(t, withJury(t))
	const twice = `(() => { const b = document.querySelector(%q); b.click(); setTimeout(() => b.click(), 20); return true })()`
	b.Visit(r.URL + r.link(t, "mia", access.PeopleRoles()...))
	browsertest.Eval[bool](b, fmt.Sprintf(twice, "main button"))
	b.Wait(`location.pathname === "/" && document.readyState === "complete"`)
	browsertest.Eval[bool](b, fmt.Sprintf(twice, ".examples button"))
	b.Wait(`location.pathname.startsWith("/submissions/trial-") && document.readyState === "complete"`)
	b.Visit(r.URL + "/")
	if n := browsertest.Eval[int](b, `document.querySelectorAll("li.entry").length`); n != 1 {
		t.Errorf("two presses of a button made %d trials", n)
	}
}
