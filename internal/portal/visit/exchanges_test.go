package visit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/internal/portal/visit"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/verify/trust"
)

// TestExchanges: the files of two owners who recorded one exchange say so of each other, in every language, and a file alone does not.
func TestExchanges(t *testing.T) {
	a, b := jurattest.NewForStrangers(t), jurattest.NewNeighbour(t)
	sees := func(h *jurattest.House, side evidence.Side) visit.Source {
		body := func(text string) *observed.Body {
			return &observed.Body{Bytes: int64(len(text)), SHA256: evidence.DigestOf([]byte(text)), Kept: []byte(text)}
		}
		p := must.Get(observed.Payload(observed.Act{Recorder: "gate", RequestID: "r", Type: evidence.ObservedMessage, Side: side, At: jurattest.Start, Agent: "agent-" + string(side), Vantage: evidence.Proxy,
			Fidelity: evidence.ByBytes, Protocol: "http", Ended: evidence.Complete, Began: jurattest.Start, Elapsed: new(time.Second), Request: body("a question"), Response: body("an answer")}))(t)
		return source(t, string(side), h.Bundle(t, h.Seal(t, p)))
	}
	asked, answered := sees(a, evidence.Asked), sees(b, evidence.Answered)
	both := must.Get(trust.Join(a.Trust(t), b.Trust(t)))(t)
	sources := []visit.Source{asked, answered, source(t, "trust", both)}
	for files, want := range map[string]bool{`[0,1]`: true, `[0]`: false} {
		v := &visit.Visit{Now: clock}
		if _, err := v.Verify([]byte(`{"trust":2,"files":`+files+`}`), sources); err != nil {
			t.Fatal(err)
		}
		for _, lang := range words.Langs() {
			view := must.Get(v.View(0, lang))(t)
			begins, _, _ := strings.Cut(words.Of(lang)["trust.exchange.open"], "{")
			if said := slices.ContainsFunc(view.Identities, func(line string) bool { return strings.HasPrefix(line, begins) }); said != want {
				t.Errorf("%s of %s: %q", lang, files, view.Identities)
			}
		}
	}
}
