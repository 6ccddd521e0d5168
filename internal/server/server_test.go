package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/installation"
	"jurat/internal/limits"
	"jurat/internal/must"
	"jurat/internal/server"
)

// A running server, on a free port of this machine.
type running struct {
	*server.Server
	Installation *installation.Installation
	URL          string

	log   *strings.Builder
	stop  func() error
	spare []string // tokens to revoke
}

func start(t testing.TB, change func(*server.Config)) *running {
	t.Helper()
	return startIn(t, t.TempDir()+"/data", change)
}

// startIn starts a server on the installation in a folder, and creates it if there is none.
func startIn(t testing.TB, dir string, change func(*server.Config)) *running {
	t.Helper()
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: dir})
	must.Do(t, err)
	r := &running{Installation: i, log: new(strings.Builder)}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.URL = "http://" + l.Addr().String()
	c := server.Config{Installation: i, URL: r.URL, Log: slog.New(slog.NewTextHandler(r.log, nil))}
	if change != nil {
		change(&c)
	}
	r.Server = must.Get(server.New(t.Context(), c))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, l) }()
	var outcome error
	stopped := false
	r.stop = func() error {
		if !stopped {
			stopped = true
			cancel()
			outcome = <-ended
		}
		return outcome
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("serving: %v", err)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *running) token(t testing.TB, name string, roles ...access.Role) string {
	t.Helper()
	token, _, err := r.Access().Grant(t.Context(), access.Order{Name: name, Roles: roles, For: time.Hour, Reason: "a test", By: "tester"})
	must.Do(t, err)
	return token
}

// browser returns a client that keeps cookies and follows no redirect.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar := must.Get(cookiejar.New(nil))(t)
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// send makes a request, and returns the answer and its body.
func send(t testing.TB, client *http.Client, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := must.Get(client.Do(r))(t)
	defer answer.Body.Close()
	doc := must.Get(io.ReadAll(answer.Body))(t)
	return answer, string(doc)
}

func problem(t *testing.T, answer *http.Response, body string, want error) {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || answer.Header.Get("Content-Type") != api.ProblemMediaType {
		t.Fatalf("%s: %s: %v", answer.Status, body, err)
	}
	if w := api.NewProblem(want); p.Type != w.Type || p.Status != answer.StatusCode || p.Status != w.Status || p.Title != w.Title {
		t.Errorf("%s: %+v, want %v", answer.Status, p, want)
	}
}

// link returns a link with which a person can sign in once.
func (r *running) link(t *testing.T, name string, roles ...access.Role) string {
	t.Helper()
	return must.Get(r.SignInLink(t.Context(), name, roles...))(t)
}

func TestSignInByLink(t *testing.T) {
	r, b := start(t, nil), browser(t)
	link := r.link(t, "mia", access.Auditor)
	// Opening the link does not use it up.
	for range 2 {
		if answer, page := send(t, b, "GET", r.URL+link, ""); answer.StatusCode != 200 || !strings.Contains(page, "<form") {
			t.Fatal(answer.Status, page)
		}
	}
	u := must.Get(url.Parse(link))(t)
	form := url.Values{"link": {u.Query().Get("link")}, "next": {"/v1/trust"}}.Encode()
	typed := []string{"Content-Type", "application/x-www-form-urlencoded"}
	answer, _ := send(t, b, "POST", r.URL+"/sign-in", form, typed...)
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/v1/trust" {
		t.Fatal(answer.Status, answer.Header)
	}
	for _, c := range answer.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure {
			t.Errorf("cookie %v", c)
		}
	}
	if answer, _ := send(t, browser(t), "POST", r.URL+"/sign-in", form, typed...); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("used a second time: %s", answer.Status)
	}
	answer, body := send(t, b, "GET", r.URL+"/v1/records/nothing", "")
	problem(t, answer, body, api.ErrNotFound)

	// Signing out needs the session's form key from the page.
	if answer, _ := send(t, b, "POST", r.URL+"/sign-out", "", typed...); answer.StatusCode != http.StatusForbidden {
		t.Errorf("signed out without the form key: %s", answer.Status)
	}
	_, page := send(t, b, "GET", r.URL+"/sign-in", "")
	_, key, _ := strings.Cut(page, `name="form" value="`)
	key, _, _ = strings.Cut(key, `"`)
	if answer, _ := send(t, b, "POST", r.URL+"/sign-out", url.Values{server.FormField: {key}}.Encode(), typed...); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("signing out: %s", answer.Status)
	}
	answer, body = send(t, b, "GET", r.URL+"/v1/records/nothing", "")
	problem(t, answer, body, api.ErrSignIn)
}

func TestSecureCookies(t *testing.T) {
	r, b := start(t, func(c *server.Config) { c.Secure = true }), browser(t)
	token := r.token(t, "mia", access.Reviewer)
	answer, _ := send(t, b, "POST", r.URL+"/sign-in", url.Values{"token": {token}, "next": {"//elsewhere.example"}}.Encode(),
		"Content-Type", "application/x-www-form-urlencoded")
	if answer.Header.Get("Location") != "/" {
		t.Errorf("sent to %q", answer.Header.Get("Location"))
	}
	cookies := answer.Cookies()
	if len(cookies) != 1 || !cookies[0].Secure || cookies[0].Name != "__Host-jurat" || strings.Contains(answer.Header.Get("Set-Cookie"), token) {
		t.Errorf("cookies %v", cookies)
	}
}

// TestAnswersCarrySecurityHeaders checks existing and missing pages.
func TestAnswersCarrySecurityHeaders(t *testing.T) {
	r := start(t, nil)
	for _, path := range []string{"/healthz", "/sign-in", "/nowhere", "/v1/records/x"} {
		answer, _ := send(t, http.DefaultClient, "GET", r.URL+path, "")
		if policy := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") ||
			answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, answer.Header)
		}
	}
}

func TestNowhere(t *testing.T) {
	r := start(t, nil)
	answer, body := send(t, http.DefaultClient, "GET", r.URL+"/nowhere", "")
	problem(t, answer, body, api.ErrNotFound)
	answer, body = send(t, http.DefaultClient, "DELETE", r.URL+"/v1/trust", "")
	problem(t, answer, body, api.ErrMethod)
	if allow := answer.Header.Values("Allow"); len(allow) != 2 {
		t.Errorf("Allow: %v", allow)
	}
}

// TestNowhereIsGuarded: requests to unknown paths count towards the limit, and their page links to no other site.
func TestNowhereIsGuarded(t *testing.T) {
	r := start(t, func(c *server.Config) { c.Limits = limits.Rate{PerSecond: 0.001, Burst: 3} })
	for path, kind := range map[string]string{"/nowhere": "text/html", "////elsewhere.example": "text/html", "/v1/trust/": "application/json"} {
		answer, body := send(t, http.DefaultClient, "GET", r.URL+path, "", "Accept", kind)
		if answer.StatusCode != http.StatusNotFound || strings.Contains(body, `href="//`) {
			t.Errorf("%s: %s: %s", path, answer.Status, body)
		}
	}
	for _, path := range []string{"/nowhere", "/v1/trust"} {
		if answer, _ := send(t, http.DefaultClient, "GET", r.URL+path, ""); answer.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: %s", path, answer.Status)
		}
	}
	// A request from another site's page counts as well.
	if answer, _ := send(t, http.DefaultClient, "POST", r.URL+"/sign-in", "", "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusTooManyRequests {
		t.Error(answer.Status)
	}
	must.Do(t, r.stop())
	if log := r.log.String(); !strings.Contains(log, `route="ANY (none)"`) || strings.Contains(log, "elsewhere.example") {
		t.Error(log)
	}
}

// newRequest calls the server directly, without a connection.
func newRequest(t *testing.T, s *server.Server, token string, body io.Reader, length int64) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/records", body)
	r.Host, r.ContentLength = "localhost", length
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}
