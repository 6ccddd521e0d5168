package server_test

import (
	"fmt"
	"strings"
	"testing"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/browsertest"
	"jurat/jurattest"
	"jurat/jury"
)

// TestReviewerDecidesByKeyboard decides twenty waiting cases by keyboard alone, each with a reason, without leaving the
// queue. Keys that are typed in the reason choose nothing, and nothing is sent without a choice.
func TestReviewerDecidesByKeyboard(t *testing.T) {
	const cases = 20
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
			if text := b.Text(".chosen"); text == "" || browsertest.Eval[string](b, "location.pathname") != at {
				t.Fatalf("without a choice it says %q at %s", text, at)
			}
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
		if is := browsertest.Eval[string](b, `document.querySelector('[aria-pressed="true"]').value + document.querySelector("#reason").value`); is != fmt.Sprintf("%sjfpno %d", want, n) {
			t.Fatalf("case %d: %s", n, is)
		}
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
	if passed != cases/2 {
		t.Errorf("%d passed", passed)
	}
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
		if got := browsertest.Eval[string](b, `document.querySelector(".message.here").id.slice(8) + " " + document.querySelector(".find [role=status]").textContent`); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
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
