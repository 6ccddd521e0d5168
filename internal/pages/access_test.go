package pages

import (
	"strings"
	"testing"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/words"
	"jurat/jurattest"
)

func granted(t testing.TB, state api.GrantState, session bool) Granted {
	t.Helper()
	g, err := NewGranted(api.Grant{Token: evidence.DigestOf([]byte("x")), Name: "mia \u202e<b>", Roles: []string{"agent", "auditor", "operator", "reviewer", "submitter"},
		Since: "2026-01-01T00:00:00Z", NotAfter: "2026-03-01T00:00:00Z", State: state, Session: session, By: "otto", Reason: "she reviews"})
	check(t, err)
	return g
}

// everyAccess makes the pages of who may do what.
func everyAccess(t testing.TB) map[string]Page {
	t.Helper()
	good, expired, revoked := granted(t, api.GrantGood, false), granted(t, api.GrantExpired, true), granted(t, api.GrantRevoked, false)
	good.Used, good.Acted = jurattest.Start, jurattest.Start
	acts := []Act{{ID: "a", Action: evidence.HumanReview, At: jurattest.Start}, {ID: "b"}}
	return map[string]Page{
		"access":       &Access{Grants: []Granted{good, expired, revoked}, Began: jurattest.Start, Next: 2, Ended: true},
		"access-empty": &Access{Began: jurattest.Start},
		"token":        &Token{Granted: good, Acts: acts, Began: jurattest.Start, Own: true, Problem: "reason: want 1 to 1000 bytes", Typed: "because <script>"},
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
