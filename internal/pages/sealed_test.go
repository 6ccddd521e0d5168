package pages

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// texts returns the text of every element of a class or, if the class is "", of a kind, each in one line.
func texts(doc *html.Node, kind, class string) (list []string) {
	for _, n := range elements(doc) {
		if n.Data == kind && (class == "" || hasClass(n, class)) {
			list = append(list, strings.Join(strings.Fields(content(n)), " "))
		}
	}
	return list
}

// TestPagesOfRecordsSayOnWhoseWord: beside the outcome, each page of records says in its own language on whose word the
// proof rests, and each answer has its reason in that language. So does an answer that refutes.
func TestPagesOfRecordsSayOnWhoseWord(t *testing.T) {
	h := jurattest.New(t)
	records := h.Try(t, jury.MajorityVote).Records
	chain, whole := proved(t, h, records...)
	_, cut := proved(t, h, slices.Delete(slices.Clone(records), 2, 3)...)
	equal(t, []verify.Status{whole.Outcome, cut.Outcome}, []verify.Status{verify.Proved, verify.Refuted})
	for _, report := range []*verify.Report{whole, cut} {
		for _, lang := range words.Langs() {
			for name, page := range map[string]Page{"record": NewSealed(chain[0], report, lang, ""), "chain": NewChain("trial", chain, report, 1, lang)} {
				doc := parse(t, write(t, Frame{Lang: lang}, page))
				rests := strings.Join(texts(doc, "p", "whose"), "")
				want := words.Of(lang)["status."+string(report.Outcome)] + " " + words.RestsOn(lang, report)
				if !strings.HasPrefix(rests, strings.Join(strings.Fields(want), " ")) {
					t.Errorf("%s in %s: %q does not begin with %q", name, lang, rests, want)
				}
				all := strings.Join(texts(doc, "dd", ""), "\n")
				for _, f := range report.Guarantees {
					if name == "record" {
						f = report.For(f.Guarantee, chain[0].Payload.RecordID)
					}
					if said := strings.Join(strings.Fields(words.Reason(lang, f)), " "); !strings.Contains(all, said) {
						t.Errorf("%s in %s does not say of %s: %s", name, lang, f.Guarantee, said)
					}
				}
				if lists := strings.Join(texts(doc, "li", ""), "\n"); name == "chain" {
					for _, f := range report.Details {
						if said := words.Reason(lang, f); !strings.Contains(lists, said) {
							t.Errorf("the doubts in %s do not say: %s", lang, said)
						}
					}
				}
			}
		}
	}
}

func granted(state api.GrantState, session bool) Granted {
	return Granted{Grant: api.Grant{Token: evidence.DigestOf([]byte("x")), Name: "mia \u202e<b>", Roles: []string{"agent", "auditor", "operator", "reviewer", "submitter"},
		State: state, Session: session, By: "otto", Reason: "she reviews"}, From: jurattest.Start, Until: jurattest.Start.AddDate(0, 2, 0)}
}

// everyAccess makes the pages of who may do what.
func everyAccess(t testing.TB) map[string]Page {
	t.Helper()
	good, expired, revoked := granted(api.GrantGood, false), granted(api.GrantExpired, true), granted(api.GrantRevoked, false)
	good.Used, good.Acted = jurattest.Start, jurattest.Start
	acts := []Act{{ID: "a", Action: evidence.HumanReview, At: jurattest.Start}, {ID: "b"}}
	return map[string]Page{
		"access":       &Access{Grants: []Granted{good, expired, revoked}, Began: jurattest.Start, Next: 2, Ended: true},
		"access-empty": &Access{Began: jurattest.Start},
		"token":        &Token{Granted: good, Acts: acts, Began: jurattest.Start, Own: true, Refusal: Refusal{Problem: "reason: want 1 to 1000 bytes"}, Typed: "because <script>"},
		"token-ended":  &Token{Granted: revoked, Began: jurattest.Start},
	}
}

// TestTokenPage: only a valid token has a form, and that asks whether this is wanted.
func TestTokenPage(t *testing.T) {
	for _, lang := range words.Langs() {
		all := everyAccess(t)
		page := write(t, Frame{Lang: lang, Path: "/access/x", Viewer: viewer}, all["token"])
		for _, want := range []string{`name="sure" value="yes" required`, `name="form" value="form-key"`, `because &lt;script&gt;`, `href="/records/a"`} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page has no %s", lang, want)
			}
		}
		if ended := write(t, Frame{Lang: lang, Path: "/access/x", Viewer: viewer}, all["token-ended"]); strings.Contains(ended, `name="sure"`) {
			t.Errorf("%s: a token that has ended can be ended", lang)
		}
	}
}
