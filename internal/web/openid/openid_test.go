package openid_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/internal/log/access"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/internal/web/openid"
)

const redirect = "http://127.0.0.1:1/sign-in/callback"

func open(t *testing.T, i *rig.Issuer, change func(*openid.Config)) *openid.Provider {
	t.Helper()
	c := openid.Config{Issuer: i.URL, ClientID: rig.ClientID, ClientSecret: rig.ClientSecret,
		Roles: map[string][]access.Role{"reviewers": {access.Reviewer}, "auditors": {access.Auditor}}}
	if change != nil {
		change(&c)
	}
	return must.Get(openid.New(t.Context(), c))(t)
}

// authorize sends the browser to the provider, and returns the query with which it comes back.
func authorize(t *testing.T, address string) url.Values {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer := must.Get(browser.Get(address))(t)
	defer answer.Body.Close()
	back, err := answer.Location()
	must.Need(t, err == nil && strings.HasPrefix(back.String(), redirect+"?"), "%v %v", answer.Status, err)
	return back.Query()
}

func signIn(t *testing.T, p *openid.Provider) (*openid.Person, string, error) {
	t.Helper()
	address, state, err := p.Begin(redirect, "/reviews")
	must.Do(t, err)
	return p.Finish(t.Context(), authorize(t, address), state)
}

func TestSignIn(t *testing.T) {
	person, next, err := signIn(t, open(t, rig.NewIssuer(t), nil))
	if err != nil || person.Name != "mia@example.com" || !slices.Equal(person.Roles, []access.Role{access.Reviewer}) || person.Subject != "248289761001" || next != "/reviews" {
		t.Errorf("%+v, %q, %v", person, next, err)
	}
}

// TestTokensThatAreRefused changes one claim of an ID token at a time. Each must be refused.
func TestTokensThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		claims map[string]any
		want   error
	}{
		"another nonce":             {map[string]any{"nonce": "x"}, openid.ErrRefused},
		"no nonce":                  {map[string]any{"nonce": nil}, openid.ErrRefused},
		"another audience":          {map[string]any{"aud": "somebody-else"}, openid.ErrRefused},
		"another issuer":            {map[string]any{"iss": "https://elsewhere.example"}, openid.ErrRefused},
		"expired":                   {map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, openid.ErrRefused},
		"no end":                    {map[string]any{"exp": nil}, openid.ErrRefused},
		"an end that is a text":     {map[string]any{"exp": fmt.Sprint(time.Now().Add(time.Minute).Unix())}, openid.ErrRefused},
		"issued in the future":      {map[string]any{"iat": time.Now().Add(time.Hour).Unix()}, openid.ErrRefused},
		"issued at a text":          {map[string]any{"iat": fmt.Sprint(time.Now().Unix())}, openid.ErrRefused},
		"not issued":                {map[string]any{"iat": nil}, openid.ErrRefused},
		"issued to another":         {map[string]any{"azp": "somebody-else"}, openid.ErrRefused},
		"issued to no text":         {map[string]any{"azp": 7}, openid.ErrRefused},
		"for two, issued to none":   {map[string]any{"aud": []string{rig.ClientID, "other"}}, openid.ErrRefused},
		"not yet valid":             {map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, openid.ErrRefused},
		"an address not verified":   {map[string]any{"email_verified": false}, openid.ErrRefused},
		"verified by a word":        {map[string]any{"email_verified": "true"}, openid.ErrRefused},
		"no name":                   {map[string]any{"email": nil}, openid.ErrRefused},
		"a name with a line break":  {map[string]any{"email": "mia\n@example.com"}, openid.ErrRefused},
		"no groups":                 {map[string]any{"groups": nil}, openid.ErrNobody},
		"groups without a role":     {map[string]any{"groups": []string{"everybody"}}, openid.ErrNobody},
		"a group that is no string": {map[string]any{"groups": []any{7, map[string]any{"reviewers": true}}}, openid.ErrNobody},
	} {
		i := rig.NewIssuer(t)
		i.Claims = c.claims
		person, _, err := signIn(t, open(t, i, nil))
		must.Hold(t, errors.Is(err, c.want) && person == nil, "%s: %+v, %v", name, person, err)
	}
	right := rig.NewIssuer(t)
	right.Claims = map[string]any{"aud": []string{rig.ClientID, "other"}, "azp": rig.ClientID, "iat": time.Now().Add(time.Minute).Unix()}
	_, _, err := signIn(t, open(t, right, nil))
	must.Hold(t, err == nil, "for two, issued to this one: %v", err)
	i := rig.NewIssuer(t)
	i.Sign = rig.NewIssuerKey(t)
	_, _, err = signIn(t, open(t, i, nil))
	must.Hold(t, errors.Is(err, openid.ErrRefused), "another key: %v", err)
	_, _, err = signIn(t, open(t, rig.NewIssuer(t), func(c *openid.Config) { c.ClientSecret = "x" }))
	must.Hold(t, errors.Is(err, openid.ErrRefused) && !strings.Contains(err.Error(), rig.ClientSecret), "another secret: %v", err)
}

// TestTokenEndpointThatLeadsElsewhere: the code and the secret go only to the configured endpoint, even if it redirects.
func TestTokenEndpointThatLeadsElsewhere(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer elsewhere.Close()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		i := rig.NewIssuer(t)
		handler := i.Config.Handler
		i.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				http.Redirect(w, r, elsewhere.URL, status)
				return
			}
			handler.ServeHTTP(w, r)
		})
		person, _, err := signIn(t, open(t, i, nil))
		must.Hold(t, errors.Is(err, openid.ErrRefused) && person == nil, "%d: %+v, %v", status, person, err)
	}
	must.Hold(t, asked <= 0, "the other server got %d requests", asked)
}

// TestAnswersOfOtherSignIns: an answer counts once, in the browser that asked, and for a limited time.
func TestAnswersOfOtherSignIns(t *testing.T) {
	now := time.Now()
	p := open(t, rig.NewIssuer(t), func(c *openid.Config) { c.Now = func() time.Time { return now } })
	begin := func() (string, string) {
		t.Helper()
		address, kept, err := p.Begin(redirect, "/")
		must.Do(t, err)
		return address, kept
	}
	stale := func(name string, query url.Values, state string) {
		t.Helper()
		_, _, err := p.Finish(t.Context(), query, state)
		must.Hold(t, errors.Is(err, openid.ErrStale), "%s: %v", name, err)
	}
	address, state := begin()
	query := authorize(t, address)
	stale("without the browser's state", query, "")
	_, other := begin()
	stale("in another browser", query, other)
	_, _, err := p.Finish(t.Context(), query, state)
	must.Hold(t, err == nil, "in the right one: %v", err)
	stale("a second time", query, state)

	// A code of another sign-in under this one's state does not match its PKCE verifier.
	address, _ = begin()
	foreign := authorize(t, address)
	address, state = begin()
	query = authorize(t, address)
	query.Set("code", foreign.Get("code"))
	_, _, err = p.Finish(t.Context(), query, state)
	must.Hold(t, errors.Is(err, openid.ErrRefused), "another sign-in's code: %v", err)
	address, state = begin()
	_, _, err = p.Finish(t.Context(), url.Values{"state": authorize(t, address)["state"], "error": {"access_denied"}}, state)
	must.Hold(t, errors.Is(err, openid.ErrRefused), "denied: %v", err)
	address, state = begin()
	query = authorize(t, address)
	now = now.Add(10 * time.Minute)
	stale("too late", query, state)
}

// TestManySignIns: sign-ins that strangers begin do not keep people from signing in.
func TestManySignIns(t *testing.T) {
	p := open(t, rig.NewIssuer(t), nil)
	address, kept, err := p.Begin(redirect, "/")
	must.Do(t, err)
	for range 5000 {
		_, _, err := p.Begin(redirect, "/")
		must.Do(t, err)
	}
	person, _, err := p.Finish(t.Context(), authorize(t, address), kept)
	must.Hold(t, err == nil && person.Name == "mia@example.com", "%+v, %v", person, err)
	_, _, err = p.Begin(redirect, "/"+strings.Repeat("x", 1000))
	must.Hold(t, err != nil, "Begin made a cookie that is too long for browsers")
}

// TestProviderIsAway: a provider that does not answer has not refused the person. It is a problem for the operator.
func TestProviderIsAway(t *testing.T) {
	p := open(t, rig.NewIssuer(t), func(c *openid.Config) { c.HTTP = &http.Client{Transport: &away{}} })
	person, _, err := signIn(t, p)
	must.Hold(t, err != nil && !errors.Is(err, openid.ErrRefused) && !errors.Is(err, openid.ErrStale) && person == nil, "%+v, %v", person, err)
}

// away answers only the first requests.
type away struct{ asked bool }

func (a *away) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.asked {
		return nil, errors.New("nobody answers at 10.0.0.5")
	}
	a.asked = true
	return http.DefaultTransport.RoundTrip(r)
}

// TestForgedSignIns: the server accepts only a kept text that a server with its key has encrypted.
func TestForgedSignIns(t *testing.T) {
	i := rig.NewIssuer(t)
	p, other := open(t, i, nil), open(t, i, nil)
	address, kept, err := other.Begin(redirect, "/")
	must.Do(t, err)
	query := authorize(t, address)
	for name, kept := range map[string]string{"of another process": kept, "no base64": "%", "short": "AAAA", "empty": ""} {
		_, _, err := p.Finish(t.Context(), query, kept)
		must.Hold(t, errors.Is(err, openid.ErrStale), "%s: %v", name, err)
	}
	address, kept, err = p.Begin(redirect, "/")
	must.Do(t, err)
	changed := []byte(kept)
	changed[len(changed)/2] ^= 1
	_, _, err = p.Finish(t.Context(), authorize(t, address), string(changed))
	must.Hold(t, errors.Is(err, openid.ErrStale), "changed: %v", err)
}

func TestConfigs(t *testing.T) {
	i := rig.NewIssuer(t)
	for name, change := range map[string]func(*openid.Config){
		"http":           func(c *openid.Config) { c.Issuer = "http://issuer.example" },
		"no issuer":      func(c *openid.Config) { c.Issuer = "" },
		"no client":      func(c *openid.Config) { c.ClientID = "" },
		"no roles":       func(c *openid.Config) { c.Roles = nil },
		"an agent":       func(c *openid.Config) { c.Roles = map[string][]access.Role{"bots": {access.Agent}} },
		"another issuer": func(c *openid.Config) { c.Issuer += "/other" },
	} {
		c := openid.Config{Issuer: i.URL, ClientID: rig.ClientID, Roles: map[string][]access.Role{"reviewers": {access.Reviewer}}}
		change(&c)
		_, err := openid.New(t.Context(), c)
		must.Hold(t, err != nil, "%s: accepted", name)
	}
}

// TestSignInEndsOnAnotherServer: a browser may come back to another server than it left. A server with the shared key
// completes the sign-in. One with another key refuses it as not its own.
func TestSignInEndsOnAnotherServer(t *testing.T) {
	issuer := rig.NewIssuer(t)
	with := func(shared []byte) *openid.Provider {
		return open(t, issuer, func(c *openid.Config) { c.Shared = shared })
	}
	shared := bytes.Repeat([]byte{7}, 32)
	one, other := with(shared), with(shared)
	address, state, err := one.Begin(redirect, "/reviews")
	must.Do(t, err)
	query := authorize(t, address)
	for name, stranger := range map[string]*openid.Provider{"alone": with(nil), "another's": with(bytes.Repeat([]byte{8}, 32))} {
		_, _, err := stranger.Finish(t.Context(), query, state)
		must.Hold(t, errors.Is(err, openid.ErrStale), "%s: %v", name, err)
	}
	person, next, err := other.Finish(t.Context(), query, state)
	must.Hold(t, err == nil && person.Name == "mia@example.com" && next == "/reviews", "%+v, %q, %v", person, next, err)
	for _, p := range []*openid.Provider{one, other} { // the provider accepts a code once
		_, _, err := p.Finish(t.Context(), query, state)
		must.Hold(t, err != nil, "a sign-in was accepted a second time")
	}
}
