package server_test

import (
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"jurat/internal/access"
	"jurat/internal/must"
	"jurat/internal/openid"
	"jurat/internal/openid/openidtest"
	"jurat/internal/server"
)

// TestSignInByProvider signs in through the provider, as a browser does.
func TestSignInByProvider(t *testing.T) {
	issuer := openidtest.New(t)
	asked := must.Get(openid.New(t.Context(), openid.Config{Issuer: issuer.URL, ClientID: openidtest.ClientID, ClientSecret: openidtest.ClientSecret,
		Roles: map[string][]access.Role{"reviewers": {access.Reviewer}}}))(t)
	r := start(t, func(c *server.Config) { c.Provider = asked })
	jar := must.Get(cookiejar.New(nil))(t)
	visited := []string{}
	b := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error { visited = append(visited, r.URL.Path); return nil }}

	answer, page := send(t, b, "GET", r.URL+"/sign-in/provider?next=/reviews", "")
	if answer.StatusCode != http.StatusOK || !strings.Contains(page, `content="0; url=/reviews"`) || strings.Join(visited, " ") != "/authorize /sign-in/callback" {
		t.Fatalf("%s, by %q: %s", answer.Status, visited, page)
	}
	if answer, _ := send(t, b, "GET", r.URL+"/v1/records", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("signed in: %s", answer.Status)
	}
	grants, err := r.Access().Grants(t.Context())
	if err != nil || len(grants) != 1 || grants[0].Name != "mia@example.com" || !grants[0].Session || grants[0].By != issuer.URL {
		t.Errorf("%+v, %v", grants, err)
	}
	// The same callback address in another browser is refused.
	if answer, _ := send(t, browser(t), "GET", answer.Request.URL.String(), ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("in another browser: %s", answer.Status)
	}
	issuer.Claims = map[string]any{"groups": []string{"others"}}
	if answer, _ := send(t, browserThatFollows(t), "GET", r.URL+"/sign-in/provider", ""); answer.StatusCode != http.StatusForbidden {
		t.Errorf("without a role: %s", answer.Status)
	}
}

func browserThatFollows(t *testing.T) *http.Client {
	t.Helper()
	b := browser(t)
	b.CheckRedirect = nil
	return b
}
