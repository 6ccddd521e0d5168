package server_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/client/api"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/test/must"
	"jurat/internal/web/server"
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
		must.Want(t, r.stop(), nil)
		must.Want(t, i.Close(), nil)
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

// answers reports an answer with another status than the wanted one.
func answers(t testing.TB, want int, client *http.Client, method, url, body string, header ...string) {
	t.Helper()
	answer, text := send(t, client, method, url, body, header...)
	must.Hold(t, answer.StatusCode == want, "%s %s: %s, want %d\n%.300s", method, url, answer.Status, want, text)
}

// problem returns a check that an answer refuses for a reason, which returns the answer's body.
func problem(t *testing.T, want error) func(*http.Response, string) string {
	return func(answer *http.Response, body string) string {
		t.Helper()
		var p api.Problem
		err := json.Unmarshal([]byte(body), &p)
		must.Need(t, err == nil && answer.Header.Get("Content-Type") == api.ProblemMediaType, "%s: %s: %v", answer.Status, body, err)
		w := api.NewProblem(want)
		must.Hold(t, p.Type == w.Type && p.Status == answer.StatusCode && p.Status == w.Status && p.Title == w.Title, "%s: %+v, want %v", answer.Status, p, want)
		return body
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
		answer, page := send(t, b, "GET", r.URL+link, "")
		must.Need(t, answer.StatusCode == 200 && strings.Contains(page, "<form"), "%v %v", answer.Status, page)
	}
	u := must.Get(url.Parse(link))(t)
	form := url.Values{"link": {u.Query().Get("link")}, "next": {"/v1/trust"}}.Encode()
	typed := []string{"Content-Type", "application/x-www-form-urlencoded"}
	answer, _ := send(t, b, "POST", r.URL+"/sign-in", form, typed...)
	must.Need(t, answer.StatusCode == http.StatusSeeOther && answer.Header.Get("Location") == "/v1/trust", "%v %v", answer.Status, answer.Header)
	for _, c := range answer.Cookies() {
		must.Hold(t, c.HttpOnly && c.SameSite == http.SameSiteStrictMode && !c.Secure, "cookie %v", c)
	}
	answers(t, http.StatusUnauthorized, browser(t), "POST", r.URL+"/sign-in", form, typed...)
	problem(t, api.ErrNotFound)(send(t, b, "GET", r.URL+"/v1/records/nothing", ""))

	// Signing out needs the session's form key from the page.
	answers(t, http.StatusForbidden, b, "POST", r.URL+"/sign-out", "", typed...)
	_, page := send(t, b, "GET", r.URL+"/sign-in", "")
	_, key, _ := strings.Cut(page, `name="form" value="`)
	key, _, _ = strings.Cut(key, `"`)
	answers(t, http.StatusSeeOther, b, "POST", r.URL+"/sign-out", url.Values{server.FormField: {key}}.Encode(), typed...)
	problem(t, api.ErrSignIn)(send(t, b, "GET", r.URL+"/v1/records/nothing", ""))
}

func TestSecureCookies(t *testing.T) {
	r, b := start(t, func(c *server.Config) { c.Secure = true }), browser(t)
	token := r.token(t, "mia", access.Reviewer)
	answer, _ := send(t, b, "POST", r.URL+"/sign-in", url.Values{"token": {token}, "next": {"//elsewhere.example"}}.Encode(),
		"Content-Type", "application/x-www-form-urlencoded")
	must.Equal(t, answer.Header.Get("Location"), "/")
	cookies := answer.Cookies()
	must.Hold(t, len(cookies) == 1 && cookies[0].Secure && cookies[0].Name == "__Host-jurat" && !strings.Contains(answer.Header.Get("Set-Cookie"), token),
		"cookies %v", cookies)
}

// TestAnswersCarrySecurityHeaders checks existing and missing pages.
func TestAnswersCarrySecurityHeaders(t *testing.T) {
	r := start(t, nil)
	for _, path := range []string{"/healthz", "/sign-in", "/nowhere", "/v1/records/x"} {
		answer, _ := send(t, http.DefaultClient, "GET", r.URL+path, "")
		policy := answer.Header.Get("Content-Security-Policy")
		must.Hold(t, strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") && answer.Header.Get("X-Content-Type-Options") == "nosniff",
			"%s: %v", path, answer.Header)
	}
}

func TestNowhere(t *testing.T) {
	r := start(t, nil)
	problem(t, api.ErrNotFound)(send(t, http.DefaultClient, "GET", r.URL+"/nowhere", ""))
	answer, body := send(t, http.DefaultClient, "DELETE", r.URL+"/v1/trust", "")
	problem(t, api.ErrMethod)(answer, body)
	allow := answer.Header.Values("Allow")
	must.Hold(t, len(allow) == 2, "Allow: %v", allow)
}

// TestNowhereIsGuarded: requests to unknown paths count towards the limit, and their page links to no other site.
func TestNowhereIsGuarded(t *testing.T) {
	r := start(t, func(c *server.Config) { c.Limits = server.Rate{PerSecond: 0.001, Burst: 3} })
	for path, kind := range map[string]string{"/nowhere": "text/html", "////elsewhere.example": "text/html", "/v1/trust/": "application/json"} {
		answer, body := send(t, http.DefaultClient, "GET", r.URL+path, "", "Accept", kind)
		must.Hold(t, answer.StatusCode == http.StatusNotFound && !strings.Contains(body, `href="//`), "%s: %s: %s", path, answer.Status, body)
	}
	for _, path := range []string{"/nowhere", "/v1/trust"} {
		answers(t, http.StatusTooManyRequests, http.DefaultClient, "GET", r.URL+path, "")
	}
	// A request from another site's page counts as well.
	answers(t, http.StatusTooManyRequests, http.DefaultClient, "POST", r.URL+"/sign-in", "", "Sec-Fetch-Site", "cross-site")
	must.Do(t, r.stop())
	log := r.log.String()
	must.Hold(t, strings.Contains(log, `route="ANY (none)"`) && !strings.Contains(log, "elsewhere.example"), "%v", log)
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

// TestProbesAreNotLimited: health probes are always answered, however many requests come from their address. Other
// requests get Retry-After.
func TestProbesAreNotLimited(t *testing.T) {
	r := start(t, func(c *server.Config) { c.Limits = server.Rate{PerSecond: math.SmallestNonzeroFloat64, Burst: 1} })
	for range 20 {
		for _, path := range []string{"/healthz", "/readyz"} {
			answers(t, http.StatusOK, http.DefaultClient, "GET", r.URL+path, "")
		}
	}
	send(t, http.DefaultClient, "GET", r.URL+"/v1/trust", "")
	answer, body := send(t, http.DefaultClient, "GET", r.URL+"/v1/trust", "")
	must.Hold(t, answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") != "",
		"%s, Retry-After %q: %s", answer.Status, answer.Header.Get("Retry-After"), body)
	r.ready(t, http.StatusOK)
	must.Do(t, r.Installation.Ledger.Close())
	r.ready(t, http.StatusServiceUnavailable)
}

// TestReadyWhileTheLogIsHeld: while another process holds the log, the server reports that it is not ready, and still
// answers other requests.
func TestReadyWhileTheLogIsHeld(t *testing.T) {
	dir := t.TempDir() + "/data"
	r := startIn(t, dir, nil)
	r.ready(t, http.StatusOK)
	other := must.Get(sql.Open("sqlite", dir+"/jurat.db"))(t)
	defer other.Close()
	held := must.Get(other.Conn(t.Context()))(t)
	must.Get(held.ExecContext(t.Context(), `BEGIN IMMEDIATE`))(t)
	r.ready(t, http.StatusServiceUnavailable)
	answers(t, http.StatusOK, http.DefaultClient, "GET", r.URL+"/v1/trust", "")
	must.Get(held.ExecContext(t.Context(), `ROLLBACK`))(t)
	r.ready(t, http.StatusOK)
}

// TestFormsWhileTheLogTakesNothing: the answer says when to come again, and the program log why. The form of a decision keeps what was typed.
func TestFormsWhileTheLogTakesNothing(t *testing.T) {
	h := furnish(t)
	otto, mia := h.visit(t, "otto", access.Operator), h.visit(t, "mia", access.Reviewer)
	token, review := "/access/"+access.IDOf(h.tokens[access.Auditor]).String(), "/reviews/"+h.said.Payload.RecordID
	must.Do(t, h.stop())
	must.Do(t, os.WriteFile(filepath.Join(h.Installation.Dir, installation.CheckpointFile), nil, 0o600))
	r := startIn(t, h.Installation.Dir, nil)
	r.ready(t, http.StatusServiceUnavailable)
	otto.running, mia.running = r, r
	for path, c := range map[string]struct {
		by    *visitor
		form  url.Values
		keeps string
	}{
		token:  {otto, url.Values{"reason": {"left"}, "sure": {"yes"}}, ""},
		review: {mia, url.Values{"decision": {"rejected"}, "reason": {"never before noon"}, "text": {said(h)}}, "never before noon"},
	} {
		answer, page := c.by.fill(t, path, path, c.form)
		shows(t, answer, page, http.StatusServiceUnavailable, c.keeps)
		must.Hold(t, answer.Header.Get("Retry-After") != "", "%s: 503 without Retry-After", path)
	}
	must.Do(t, r.stop())
	must.Contain(t, r.log.String(), `msg="request failed" route="POST /access/{token}" error=`, `msg="a case failed" route="POST /reviews/{id}" record=`)
}

// ready asks for readiness until the status is as wanted. The server caches its answer for a second.
func (r *running) ready(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, body := send(t, http.DefaultClient, "GET", r.URL+"/readyz", "")
		if answer.StatusCode == want {
			pause := answer.Header.Get("Retry-After")
			must.Hold(t, (pause != "") == (want == http.StatusServiceUnavailable), "%s, Retry-After %q", answer.Status, pause)
			return
		}
		must.Need(t, !time.Now().After(deadline), "/readyz: %s %s, want %d", answer.Status, body, want)
	}
}

// TestNoLimit: a limit below 0 means no limit.
func TestNoLimit(t *testing.T) {
	r := start(t, func(c *server.Config) { c.Limits = server.Rate{PerSecond: -1, Burst: 1} })
	token := r.token(t, "ada", access.Auditor)
	for range 250 { // more than the default limit allows at once
		for _, header := range [][]string{nil, bearer(token)} {
			answers(t, http.StatusOK, http.DefaultClient, "GET", r.URL+"/v1/trust", "", header...)
		}
	}
}

// oneOf returns one of the roles that may use a route; the agent role only if there is no other.
func oneOf(route []access.Role) access.Role {
	for _, role := range route {
		if role != access.Agent {
			return role
		}
	}
	return access.Agent
}

// TestUnknownParameters: every route refuses a parameter that it does not know, and one that is given twice, and names
// it. Ignoring it would answer another question: all records, for example, in the place of one agent's.
func TestUnknownParameters(t *testing.T) {
	h := furnishWith(t, func(c *server.Config) { c.Limits = server.Rate{PerSecond: -1} })
	asked := 0
	for _, route := range h.Routes() {
		if route.AnyQuery {
			continue
		}
		asked++
		path, _, _ := strings.Cut(h.goodRequests()[route.Name][0], "?")
		if path == "" {
			path = wildcards.ReplaceAllString(strings.TrimSuffix(route.Pattern(), "{$}"), "nothing")
		}
		queries := map[string]string{"agent_id=x": "agent_id", "%zz": "query", "a;b": "query"}
		for _, p := range route.Query {
			queries[p.Name+"=1&"+p.Name+"=2"] = p.Name
		}
		for query, named := range queries {
			answer, body := send(t, browser(t), route.Method(), h.URL+path+"?"+query, "", bearer(h.tokens[oneOf(route.Who.Roles)])...)
			must.Hold(t, answer.StatusCode == http.StatusBadRequest && strings.Contains(body, named),
				"%s?%s: %s, want 400 and %q named: %s", route.Name, query, answer.Status, named, body)
		}
	}
	must.Hold(t, asked >= 30, "%d routes were asked", asked)
	body := problem(t, api.ErrMalformed)(send(t, http.DefaultClient, "GET", h.URL+"/v1/records?agent_id=x", "", bearer(h.tokens[access.Auditor])...))
	must.Contain(t, body, "after, limit, chain")
	// Pages accept the parameter lang beside their own.
	for _, path := range []string{"/?lang=ja", "/sign-in?link=x&next=%2F&lang=ru", "/chains/order-17?page=1&lang=en", "/?" + url.Values{"before": {h.trial}}.Encode()} {
		answers(t, http.StatusOK, browser(t), "GET", h.URL+path, "", bearer(h.tokens[access.Auditor])...)
	}
}

// TestABodyThatNeverComes: a caller announces a body and does not send it. The server must still end within its grace
// period.
func TestABodyThatNeverComes(t *testing.T) {
	r := start(t, nil)
	token := r.token(t, "fleet", access.Agent)
	conn := must.Get(net.Dial("tcp", strings.TrimPrefix(r.URL, "http://")))(t)
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /v1/records HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", strings.TrimPrefix(r.URL, "http://"), token); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // so that the server waits for the rest
	must.Want(t, r.stop(), nil)
}

// TestSignInWhileTheLogIsAway: if the log cannot be read, the server does not say that a token is invalid.
func TestSignInWhileTheLogIsAway(t *testing.T) {
	r := start(t, nil)
	token := r.token(t, "mia", access.Auditor)
	must.Do(t, r.Installation.Ledger.Close())
	answer, page := send(t, browser(t), "POST", r.URL+"/sign-in", url.Values{"token": {token}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	must.Hold(t, answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != "" && !strings.Contains(page, "opens nothing"),
		"%s %s", answer.Status, page)
}

// TestOpenWhileTheLogIsAway: public pages need nothing from the log, also for a caller whose token cannot be looked up.
func TestOpenWhileTheLogIsAway(t *testing.T) {
	r := start(t, nil)
	token := r.token(t, "mia", access.Auditor)
	must.Do(t, r.Installation.Ledger.Close())
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/openapi.json": http.StatusOK, "/verify.html": http.StatusOK, "/v1/records/r": http.StatusServiceUnavailable} {
		answers(t, want, http.DefaultClient, "GET", r.URL+path, "", "Authorization", "Bearer "+token)
	}
}

// TestStrictTransport: the server sends Strict-Transport-Security if browsers reach it over https, and not otherwise.
func TestStrictTransport(t *testing.T) {
	for _, secure := range []bool{false, true} {
		r := start(t, func(c *server.Config) { c.Secure = secure })
		for _, path := range []string{"/", "/v1/trust", "/nothing"} {
			answer, _ := send(t, http.DefaultClient, "GET", r.URL+path, "")
			got := answer.Header.Get("Strict-Transport-Security")
			must.Hold(t, (got != "") == secure, "secure %v, %s: %q", secure, path, got)
		}
	}
}

// TestDoubleClick: a form that is sent twice makes one trial. The same form, loaded again, makes another one.
func TestDoubleClick(t *testing.T) {
	r, b := start(t, withJury(t)), browser(t)
	sign := url.Values{"token": {r.token(t, "sam", access.Submitter)}}.Encode()
	typed := []string{"Content-Type", "application/x-www-form-urlencoded"}
	answers(t, http.StatusSeeOther, b, "POST", r.URL+"/sign-in", sign, typed...)
	load := func() string {
		_, page := send(t, b, "GET", r.URL+"/", "")
		form := url.Values{"example": {"kitchen-return"}}
		for _, name := range []string{"form", "key"} {
			match := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(page)
			must.Need(t, match != nil, "the form has no field %s: %s", name, page)
			form.Set(name, match[1])
		}
		return form.Encode()
	}
	form := load()
	made := map[string]bool{}
	for _, form := range []string{form, form, load()} {
		answer, page := send(t, b, "POST", r.URL+"/submissions", form, typed...)
		must.Need(t, answer.StatusCode == http.StatusSeeOther, "%v %v", answer.Status, page)
		made[answer.Header.Get("Location")] = true
	}
	must.Equal(t, len(made), 2)
}

// reached makes a server that browsers reach by https from elsewhere.
func reached(c *server.Config) { c.Secure = true }

const otherSite = "https://shop.example"

// mayRead reports whether a page of another site may read an answer.
func mayRead(answer *http.Response) bool {
	return answer.Header.Get("Access-Control-Allow-Origin") != ""
}

// TestOtherSitesReadWhatIsPublic asks every route for a page of another site: as a stranger, and with a token.
func TestOtherSitesReadWhatIsPublic(t *testing.T) {
	h := furnishWith(t, reached)
	must.Do(t, h.Access().Publish(t.Context(), access.What{Chain: "order-17"}, true, "a test", "tester"))
	for _, chain := range []string{h.trial, "recorded/courier/1"} {
		must.Do(t, h.Access().Publish(t.Context(), access.What{Chain: chain}, true, "a test", "tester"))
	}
	must.Do(t, h.Access().Publish(t.Context(), access.What{Agent: "logistics-agent-v1"}, true, "a test", "tester"))
	shared := 0
	for _, route := range h.Routes() {
		// Sec-Fetch-Site says that a browser asks over https; the test itself speaks http.
		foreign := []string{"Origin", otherSite, "Sec-Fetch-Site", "cross-site"}
		answer := h.ask(t, browser(t), route, foreign...)
		want := route.Shared && answer.StatusCode < 300
		if mayRead(answer) != want || want && (answer.Header.Get("Access-Control-Allow-Origin") != "*" || answer.Header.Get("Access-Control-Allow-Credentials") != "") {
			t.Errorf("%s: %s %v", route.Name, answer.Status, answer.Header)
		}
		if route.Shared {
			if shared++; answer.StatusCode != http.StatusOK || route.Method() != "GET" || route.Who.Strangers == server.Nothing {
				t.Errorf("%s is shared, and a stranger gets %s", route.Name, answer.Status)
			}
			must.Hold(t, slices.Contains(answer.Header.Values("Vary"), "Origin"), "%s: Vary %q", route.Name, answer.Header.Values("Vary"))
			own := h.ask(t, browser(t), route)
			must.Hold(t, !mayRead(own) && slices.Contains(own.Header.Values("Vary"), "Origin"), "%s without Origin: %v", route.Name, own.Header)
		}
		for _, with := range [][]string{bearer(h.tokens[access.Auditor]), {"Cookie", "__Host-jurat=" + h.tokens[access.Auditor]}} {
			if answer := h.ask(t, browser(t), route, append(with, foreign...)...); mayRead(answer) {
				t.Errorf("%s with %s: another site may read %s", route.Name, with[0], answer.Status)
			}
		}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodOptions, h.URL+strings.TrimSuffix(wildcards.ReplaceAllString(route.Pattern(), "x"), "{$}"), nil)
		request.Header.Set("Origin", otherSite)
		request.Header.Set("Access-Control-Request-Method", route.Method())
		preflight := must.Get(http.DefaultClient.Do(request))(t)
		preflight.Body.Close()
		if mayRead(preflight) || preflight.StatusCode < 400 {
			t.Errorf("OPTIONS %s: %s %v", route.Pattern(), preflight.Status, preflight.Header)
		}
	}
	must.Hold(t, shared >= 12, "%d routes are shared", shared)
}

// TestOtherSitesDoNotReadWhatIsPrivate: a record, a chain, a trial and a reputation that are not public.
func TestOtherSitesDoNotReadWhatIsPrivate(t *testing.T) {
	h := furnishWith(t, reached)
	asked := 0
	for _, route := range h.Routes() {
		if !route.Shared || route.Who.Strangers != server.WhatPublic {
			continue
		}
		asked++
		if answer := h.ask(t, browser(t), route, "Origin", otherSite, "Sec-Fetch-Site", "cross-site"); mayRead(answer) || answer.StatusCode < 400 || !slices.Contains(answer.Header.Values("Vary"), "Origin") {
			t.Errorf("%s: %s %v", route.Name, answer.Status, answer.Header)
		}
	}
	must.Hold(t, asked >= 5, "%d routes were asked", asked)
}

// TestOtherSitesDoNotReadThisMachine: nobody else reaches a server on this machine, so pages of other sites do not either.
func TestOtherSitesDoNotReadThisMachine(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*server.Config)
		want   bool
	}{
		"http on this machine":     {func(*server.Config) {}, false},
		"https on this machine":    {func(c *server.Config) { c.Secure, c.Local = true, true }, false},
		"behind a proxy":           {func(c *server.Config) { c.Secure, c.Local, c.Origins = true, true, []string{"https://jurat.example"} }, true},
		"https for other machines": {reached, true},
	} {
		r := start(t, c.change)
		answer, _ := send(t, http.DefaultClient, "GET", r.URL+"/v1/trust", "", "Origin", otherSite, "Sec-Fetch-Site", "cross-site")
		must.Hold(t, mayRead(answer) == c.want && answer.StatusCode == http.StatusOK, "%s: %s %v", name, answer.Status, answer.Header)
	}
}

// TestSharedRoutesAreDocumented compares the list in docs/api.md with the table.
func TestSharedRoutesAreDocumented(t *testing.T) {
	doc := must.Get(os.ReadFile("../../../docs/api.md"))(t)
	_, section, _ := strings.Cut(string(doc), "\n## Pages of other sites\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed, want []string
	for _, match := range regexp.MustCompile("`(/[^`]*)`").FindAllStringSubmatch(section, -1) {
		listed = append(listed, match[1])
	}
	for _, route := range start(t, func(c *server.Config) { c.PublicEntries = true }).Routes() {
		if route.Shared {
			want = append(want, route.Pattern())
		}
	}
	slices.Sort(listed)
	if slices.Sort(want); !slices.Equal(listed, want) {
		t.Errorf("docs/api.md lists %q, want %q", listed, want)
	}
}
