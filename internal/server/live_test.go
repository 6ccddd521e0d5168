package server_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/access"
	"jurat/internal/browsertest"
	"jurat/jurattest"
	"jurat/jury"
)

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
		if !browsertest.Eval[bool](b, `document.getElementById("main").dataset.events !== undefined`) {
			t.Fatalf("%s: the trial is already over", state.name)
		}
		over := `document.getElementById("main").dataset.events === undefined`
		if state.name == "stopped" {
			b.Wait(`document.querySelector("#progress").textContent.includes("Waiting for")`)
			if answer, doc := send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions/"+id+"/cancel", `{"reason":"submitted by mistake"}`, bearer(ines)...); answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusAccepted {
				t.Fatal(answer.Status, doc)
			}
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
