package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/client/api"
	"jurat/internal/log/access"
	"jurat/internal/test/browsertest"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/portal"
	"jurat/jury"
)

// enter signs a browser in with the link that the server prints.
func (r *running) enter(t *testing.T, b *browsertest.Browser, name string) {
	b.Visit(r.URL + r.link(t, name, access.PeopleRoles()...))
	b.Click("main button")
	b.Wait(`location.pathname === "/" && document.readyState === "complete"`)
}

// atLength returns a whole list in the long form of a test, and its first few elements in the short one.
func atLength[T any](list []T, few int) []T {
	if os.Getenv("JURAT_TEST_LONG") != "" {
		return list
	}
	return list[:few]
}

// TestPagesFit opens every page in every language, on a light phone and a dark desktop screen; in the short form, every page in two languages on the phone, and
// in the third on the desktop screen. Nothing may be wider than the screen, nothing may come from another server, and no policy may be violated.
func TestPagesFit(t *testing.T) {
	r := start(t, withJury(t))
	token := r.token(t, "sam", access.Submitter)
	id := r.tried(t, token)
	judgment := r.submission(t, token, id).Verdict.Record
	const onTrial = "logistics-agent-v1"
	post(t, r.URL+"/v1/records", action, bearer(r.token(t, onTrial, access.Agent))...)
	languages := []string{"en", "ja", "ru", "en", "ja"}
	for i, o := range []browsertest.Options{{Width: 360, Height: 740}, {Width: 1280, Height: 900, Dark: true}} {
		b := browsertest.Open(t, o)
		r.enter(t, b, "mia")
		for page, at := range [][2]string{{"home", "/"}, {"court", "/submissions/" + id}, {"desk", "/reviews"}, {"review", "/reviews/" + judgment}, {"record", "/records/" + judgment},
			{"chain", "/chains/" + id}, {"agent", "/agents/" + url.PathEscape(onTrial)}, {"sign-in", "/sign-in"}, {"missing", "/records/nothing"}} {
			for _, lang := range atLength(languages[(page+2*i)%3:][:3], 2-i) {
				name := at[0]
				b.Visit(r.URL + at[1] + "?lang=" + lang)
				got := browsertest.Eval[string](b, `document.documentElement.lang + (document.styleSheets[0].cssRules.length > 100)`)
				must.Hold(t, got == lang+"true", "%s in %s: language and style: %s", name, lang, got)
				wide := browsertest.Eval[int](b, `document.documentElement.scrollWidth`)
				must.Hold(t, wide <= o.Width, "%s in %s is %d wide on a screen of %d", name, lang, wide, o.Width)
				b.Screenshot(fmt.Sprintf("%s-%s-%d", name, lang, o.Width))
			}
		}
		for _, address := range b.Requests() {
			u, err := url.Parse(address)
			must.Hold(t, err == nil && (u.Scheme != "http" || strings.HasPrefix(address, r.URL)), "the pages asked for %s", address)
		}
		for _, problem := range b.Problems() {
			must.Hold(t, strings.Contains(problem, "404"), "in the console: %s", problem) // from the page that does not exist
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
	must.Need(t, browsertest.Eval[bool](b, live), "the trial is already over")
	const keep = `document.querySelector(".card details").open = true, document.querySelector("#message-1 .gutter a").focus(), window.before = document.getElementById("message-1"), true`
	browsertest.Eval[bool](b, keep)
	b.Wait("!(" + live + ")")
	for _, kept := range []string{`document.querySelector(".card details").open`, `document.activeElement === document.querySelector("#message-1 .gutter a")`,
		`window.before === document.getElementById("message-1")`} {
		must.Hold(t, browsertest.Eval[bool](b, kept), "not so any more: %s", kept)
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
		must.Need(t, browsertest.Eval[bool](b, fmt.Sprintf(`(() => {
			const all = new DataTransfer(); all.items.add(new File([%q], %q)); document.getElementById("bundle").files = all.files; return true })()`, content, name)),
			"the form has no field for records")
		b.Click(".upload button")
	}
	must.Need(t, strings.HasSuffix(record, "\n"), "the record's file does not end with a line feed")
	upload("record.json", record)
	b.Wait(`location.pathname.startsWith("/submissions/trial-")`)
	upload(id+".jurat", trial)
	b.Wait(`document.readyState === "complete" && document.querySelector('[role="alert"]') !== null`)
	const seen = `(() => { const at = document.querySelector('[role="alert"]').getBoundingClientRect(); return at.top >= 0 && at.bottom <= innerHeight })()`
	must.Hold(t, browsertest.Eval[bool](b, seen), "the error message is outside the visible part of the page")
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
	must.Equal(t, browsertest.Eval[int](b, `document.querySelectorAll("li.entry").length`), 1)
}

// TestLivePageInEveryState opens trials in progress that end in each way. When a trial has ended, or a person has stopped it, the page must equal the
// same page after a reload.
func TestLivePageInEveryState(t *testing.T) {
	juror := func(position jury.Position, percent int, err error) *jurattest.Juror {
		return &jurattest.Juror{Opinion: jurattest.Opine(position, percent), Err: err, Delay: 400 * time.Millisecond}
	}
	fails, passes, open := juror(jury.UnsafeFail, 10, nil), juror(jury.SafePass, 90, nil), juror(jury.NeedsReview, 60, nil)
	absent, dear := juror(jury.SafePass, 90, errors.New("no answer")), juror(jury.SafePass, 90, jury.ErrCeiling)
	slow := &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90), Delay: 4 * time.Second}
	states := []struct {
		name   string
		jurors []jury.Juror
		judge  jury.Juror
		says   string
	}{
		{"failed", []jury.Juror{fails, fails, passes}, fails, "unsafe, fails"},
		{"waiting for a person", []jury.Juror{open, open, passes}, open, "A person must decide"},
		{"absent juror", []jury.Juror{passes, absent, passes}, passes, "Degraded"},
		{"no judge", []jury.Juror{passes, fails, passes}, absent, "Degraded"},
		{"inconclusive", []jury.Juror{dear, dear, passes}, dear, "Inconclusive"},
		{"stopped", []jury.Juror{slow, slow, slow}, slow, "submitted by mistake"},
	}
	var at atomic.Int32
	r := start(t, withPanel(t, 0, func() ([]jury.Juror, jury.Juror) { return states[at.Load()].jurors, states[at.Load()].judge }))
	b := browsertest.Open(t, browsertest.Options{})
	r.enter(t, b, "ines")
	ines := r.token(t, "ines", access.Submitter)
	for i, state := range states {
		at.Store(int32(i))
		id := r.submit(t, ines, parcelCase).ID
		court := r.URL + "/submissions/" + id
		b.Visit(court)
		must.Need(t, browsertest.Eval[bool](b, `document.getElementById("main").dataset.events !== undefined`), "%s: the trial is already over", state.name)
		over := `document.getElementById("main").dataset.events === undefined`
		if state.name == "stopped" {
			b.Wait(`document.querySelector("#progress").textContent.includes("Waiting for")`)
			answer, doc := send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions/"+id+"/cancel", `{"reason":"submitted by mistake"}`, bearer(ines)...)
			must.Need(t, answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusAccepted, "%v %v", answer.Status, doc)
			over = `document.querySelector("#progress").textContent.includes("submitted by mistake")`
		}
		b.Wait(over)
		const whole = `document.querySelectorAll(".clock").forEach((c) => { c.textContent = "" }), document.querySelectorAll(".follow").forEach((f) => { f.hidden = true; f.removeAttribute("aria-pressed") }), document.title + document.getElementById("main").outerHTML`
		grown := browsertest.Eval[string](b, whole)
		b.Screenshot("live-" + state.name)
		b.Visit(court)
		reloaded := browsertest.Eval[string](b, whole)
		if grown != reloaded || !strings.Contains(grown, state.says) {
			t.Errorf("%s (-after a reload +live)\n%s", state.name, cmp.Diff(strings.Split(reloaded, "\n"), strings.Split(grown, "\n")))
		}
	}
}

// TestReviewerDecidesByKeyboard decides six waiting cases, at length twenty, by keyboard alone, each with a reason, without leaving the
// queue. Keys that are typed in the reason choose nothing, and nothing is sent without a choice.
func TestReviewerDecidesByKeyboard(t *testing.T) {
	cases := len(atLength(make([]int, 20), 6))
	b := browsertest.Open(t, browsertest.Options{Width: 1280, Height: 900})
	r := start(t, withPanel(t, cases, func() ([]jury.Juror, jury.Juror) {
		open := &jurattest.Juror{Opinion: jurattest.Opine(jury.NeedsReview, 60)}
		return []jury.Juror{open, open, open}, open
	}))
	sam := r.token(t, "sam", access.Submitter)
	var ids []string
	for range cases {
		ids = append(ids, r.tried(t, sam))
	}
	r.enter(t, b, "mia")
	b.Visit(r.URL + "/reviews")
	b.Press("j")
	for n := range cases {
		b.Wait(`location.pathname.startsWith("/reviews/") && document.readyState === "complete" && document.querySelector("#reason") !== null && document.querySelector("#reason").value === ""`)
		at := browsertest.Eval[string](b, "location.pathname")
		if n == 0 {
			ctrlEnter(b, "#reason") // nothing is chosen
			text := b.Text(".chosen")
			must.Need(t, text != "" && browsertest.Eval[string](b, "location.pathname") == at, "without a choice it says %q at %s", text, at)
			browsertest.Eval[bool](b, `document.activeElement.blur(), true`)
		}
		key, want := "f", "unsafe_fail"
		if n%2 == 0 {
			key, want = "p", "safe_pass"
		}
		b.Press(key)
		for _, letter := range fmt.Sprintf("jfpno %d", n) {
			b.Press(string(letter))
		}
		is := browsertest.Eval[string](b, `document.querySelector('[aria-pressed="true"]').value + document.querySelector("#reason").value`)
		must.Need(t, is == fmt.Sprintf("%sjfpno %d", want, n), "case %d: %s", n, is)
		if n == 1 {
			b.Screenshot("queue-deciding")
		}
		ctrlEnter(b, "#reason")
		if n < cases-1 {
			b.Wait(fmt.Sprintf(`location.pathname.startsWith("/reviews/") && location.pathname !== %q`, at))
		}
	}
	b.Wait(`document.querySelector("#before-title") !== null && document.querySelector('a[rel="next"]') === null`)
	passed := 0
	for _, id := range ids {
		s := r.submission(t, sam, id)
		if s.State != api.Over || s.Outcome == nil || s.Outcome.Open || s.Outcome.Decision == nil || s.Outcome.Decision.Reviewer != "mia" {
			t.Errorf("%s: %+v", id, s.Outcome)
			continue
		}
		if s.Outcome.Passed() {
			passed++
		}
	}
	must.Equal(t, passed, cases/2)
}

// ctrlEnter presses Ctrl+Enter in an element.
func ctrlEnter(b *browsertest.Browser, css string) {
	browsertest.Eval[bool](b, fmt.Sprintf(`document.querySelector(%q).dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", ctrlKey: true, bubbles: true, cancelable: true})), true`, css))
}

// TestFindInAConversation finds a text in a conversation of 500 messages, goes on to the next place, and opens what is
// folded there.
func TestFindInAConversation(t *testing.T) {
	b := browsertest.Open(t, browsertest.Options{Width: 1280, Height: 900})
	r := start(t, withJury(t))
	var talk []string
	for n := range 250 {
		text := fmt.Sprintf("It is in Kassel, %d.", n)
		if n%100 == 50 {
			text = "The Needle is here."
		}
		talk = append(talk, fmt.Sprintf(`{"role":"user","content":"Where is parcel %d?"},{"role":"assistant","content":%q}`, n, text))
	}
	body := parcelCase[:strings.Index(parcelCase, `"conversation"`)] + `"conversation":[` + strings.Join(talk, ",") + "]}"
	ines := r.token(t, "ines", access.Submitter)
	id := r.submit(t, ines, body).ID
	r.await(t, ines, id, api.Over)
	r.enter(t, b, "ines")
	b.Visit(r.URL + "/submissions/" + id)
	b.Type("#find", "needle")
	for _, want := range []string{"102 1 / 2", "302 2 / 2", "102 1 / 2"} {
		settled(b)
		b.Click(`.find [data-go="found"]`)
		got := browsertest.Eval[string](b, `document.querySelector(".message.here").id.slice(8) + " " + document.querySelector(".find [role=status]").textContent`)
		must.Hold(t, got == want, "found %q, want %q", got, want)
	}
	settled(b)
	if !browsertest.Eval[bool](b, `(() => { const at = document.querySelector(".message.here").getBoundingClientRect(); return at.bottom > 0 && at.top < innerHeight })()`) {
		t.Error("what is found is not in view")
	}
	b.Screenshot("find")
}

// settled waits until the page has stopped scrolling: a click goes to a place on the screen.
func settled(b *browsertest.Browser) {
	browsertest.Eval[bool](b, `new Promise((done) => {
		let at = scrollY, still = 0;
		const look = () => {
			still = scrollY === at ? still + 1 : 0;
			at = scrollY;
			still > 9 ? done(true) : requestAnimationFrame(look);
		};
		look();
	})`)
}

func TestPortalIsServed(t *testing.T) {
	r := start(t, nil)
	page, body := send(t, http.DefaultClient, "GET", r.URL+"/verify", "")
	must.Equal(t, page.Header.Get("Content-Security-Policy"), portal.Policy)
	for _, name := range []string{portal.ScriptName(), portal.StyleName()} {
		must.Hold(t, bytes.Contains([]byte(body), []byte("/static/portal/"+name)), "the page does not name %s", name)
		answer, _ := send(t, http.DefaultClient, "GET", r.URL+"/static/portal/"+name, "")
		must.Hold(t, strings.Contains(answer.Header.Get("Cache-Control"), "immutable"), "%s: %v", name, answer.Header)
	}
	again, _ := send(t, http.DefaultClient, "GET", r.URL+"/verify", "", "If-None-Match", page.Header.Get("ETag"))
	must.Equal(t, again.StatusCode, http.StatusNotModified)
	answer, file := send(t, http.DefaultClient, "GET", r.URL+"/verify.html", "")
	must.Hold(t, file == string(portal.File()) && strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment"),
		"the file to download has %d bytes, %v", len(file), answer.Header)
	answers(t, http.StatusNotFound, http.DefaultClient, "GET", r.URL+"/static/portal/nothing.js", "")
}

// TestServedPortalInABrowser: the portal uses the server's own trust file only if the reader chooses it, and after it
// has said what that means.
func TestServedPortalInABrowser(t *testing.T) {
	browsertest.Find(t)
	r := start(t, nil)
	record := post(t, r.URL+"/v1/records", action, bearer(r.token(t, "logistics-agent-v1", access.Agent))...)
	doc := must.Get(record.Marshal())(t)
	file := filepath.Join(t.TempDir(), "record.json")
	must.Do(t, os.WriteFile(file, doc, 0o600))
	b := browsertest.Open(t, browsertest.Options{})
	b.Visit(r.URL + "/verify")
	check := func() string {
		t.Helper()
		b.Click("#check")
		b.Wait("document.querySelector('#answers article') && !document.querySelector('#check').disabled")
		return browsertest.Eval[string](b, "document.querySelector('#answers article').dataset.outcome")
	}
	must.Contain(t, b.Text("#served"), "It runs the program of whoever operates that server.")
	b.Choose("#files", file)
	must.Equal(t, check(), "not proved")
	b.Click("#use-servers")
	b.Wait("document.querySelector('#fingerprint')")
	must.Contain(t, b.Text("#trusted"), "not that the operator is honest")
	trust := must.Get(r.Installation.Trust(t.Context()))(t)
	if want, err := trust.Fingerprint(); err != nil || b.Text("#fingerprint") != want.String() {
		t.Errorf("fingerprint %q, want %v (%v)", b.Text("#fingerprint"), want, err)
	}
	must.Equal(t, check(), "proved")
	b.Screenshot("portal-served")
	for _, url := range b.Requests() { // and the page sent nothing
		if path, own := strings.CutPrefix(url, r.URL); own && path != "/verify" && !strings.HasPrefix(path, "/static/portal/") && path != "/favicon.ico" || !own && !strings.HasPrefix(url, "blob:") {
			t.Errorf("the page asked for %s", url)
		}
	}
	problems := b.Problems()
	must.Hold(t, len(problems) <= 0, "problems: %q", problems)
}
