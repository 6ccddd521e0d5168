package server_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/log/access"
	"jurat/internal/log/erasure"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/internal/web/openid"
	"jurat/internal/web/portal"
	"jurat/internal/web/server"
)

// columns of the table in docs/api.md. The first is for callers without a token.
var columns = []access.Role{"", access.Agent, access.Submitter, access.Reviewer, access.Auditor, access.Operator}

// A house is a server with everything that the requests of the table need.
type house struct {
	*running
	tokens map[access.Role]string
	said   *evidence.Record // by the agent
	review *evidence.Record // of it
	trial  string           // submitted by sam, and finished
}

// names of callers with one role each.
var names = map[access.Role]string{access.Agent: "logistics-agent-v1", access.Submitter: "sam", access.Reviewer: "mia", access.Auditor: "ada", access.Operator: "otto"}

func furnish(t *testing.T) *house { return furnishWith(t, func(*server.Config) {}) }

func furnishWith(t *testing.T, change func(*server.Config)) *house {
	t.Helper()
	jurors := withJury(t)
	h := &house{running: start(t, func(c *server.Config) { jurors(c); change(c) }), tokens: map[access.Role]string{}}
	for role, name := range names {
		h.tokens[role] = h.token(t, name, role)
	}
	must.Do(t, h.Installation.Apart.Set(t.Context(), erasure.Setting{Actor: names[access.Agent], Provable: map[string]property.Kind{"/metadata/amount": property.Integer}}))
	h.said = post(t, h.URL+"/v1/records", strings.Replace(action, "{", `{"chain_id":"order-17","metadata":{"amount":5},`, 1), bearer(h.tokens[access.Agent])...)
	h.record(t, "recorded/courier/1", spokenCall(t, 1, "Where is my parcel?", "In Kassel."))
	h.trial = h.tried(t, h.tokens[access.Submitter])
	h.review = post(t, h.URL+"/v1/records/"+h.said.Payload.RecordID+"/reviews", `{"approval_status":"approved"}`, bearer(h.tokens[access.Reviewer])...)
	return h
}

// goodRequests returns path and body of a good request to a route. Any other route gets a request without a body to its
// pattern, with "nothing" in the place of each wildcard.
func (h *house) goodRequests() map[string][2]string {
	return map[string][2]string{
		"GET /log/tile/{level}/{index...}":        {"/log/tile/0/000.p/1", ""},
		"GET /log/tile/entries/{index...}":        {"/log/tile/entries/000.p/1", ""},
		"POST /v1/records":                        {"", action},
		"GET /v1/records/{id}":                    {"/v1/records/" + h.said.Payload.RecordID, ""},
		"POST /v1/records/{id}/reviews":           {"/v1/records/" + h.said.Payload.RecordID + "/reviews", `{"approval_status":"approved"}`},
		"POST /v1/records/{id}/properties":        {"/v1/records/" + h.said.Payload.RecordID + "/properties", `{"form":"range","pointer":"/metadata/amount","lo":0,"hi":50}`},
		"POST /v1/records/{id}/deliveries":        {"/v1/records/" + h.said.Payload.RecordID + "/deliveries", fmt.Sprintf(`{"review":%q}`, h.review.Payload.RecordID)},
		"POST /v1/submissions":                    {"", parcelCase},
		"GET /v1/submissions/{id}":                {"/v1/submissions/" + h.trial, ""},
		"POST /v1/submissions/{id}/resume":        {"/v1/submissions/" + h.trial + "/resume", ""},
		"POST /v1/submissions/{id}/cancel":        {"/v1/submissions/" + h.trial + "/cancel", `{"reason":"enough"}`},
		"POST /v1/submissions/{id}/take":          {"/v1/submissions/" + h.trial + "/take", `{"reviewer":"mia"}`},
		"POST /v1/submissions/{id}/give-back":     {"/v1/submissions/" + h.trial + "/give-back", `{}`},
		"GET /v1/submissions/{id}/case":           {"/v1/submissions/" + h.trial + "/case", ""},
		"GET /v1/submissions/{id}/events":         {"/v1/submissions/" + h.trial + "/events", ""},
		"GET /ws/submissions/{id}/judge":          {"/ws/submissions/" + h.trial + "/judge", ""},
		"GET /v1/chains/{chain_id}":               {"/v1/chains/order-17", ""},
		"GET /static/portal/{name}":               {"/static/portal/" + portal.ScriptName(), ""},
		"POST /submissions":                       {"", url.Values{"example": {"kitchen-return"}}.Encode()},
		"GET /submissions/{id}":                   {"/submissions/" + h.trial, ""},
		"POST /submissions/{id}/resume":           {"/submissions/" + h.trial + "/resume", ""},
		"POST /submissions/{id}/cancel":           {"/submissions/" + h.trial + "/cancel", url.Values{"reason": {"enough"}}.Encode()},
		"GET /reviews/{id}":                       {"/reviews/" + h.said.Payload.RecordID, ""},
		"POST /reviews":                           {"/reviews", url.Values{"case": {"nothing"}, "decision": {"safe_pass"}, "key": {"k"}, "reason": {"right"}}.Encode()},
		"POST /reviews/{id}":                      {"/reviews/" + h.said.Payload.RecordID, url.Values{"decision": {"compare"}}.Encode()},
		"GET /records/{id}":                       {"/records/" + h.said.Payload.RecordID, ""},
		"GET /records/{id}/bundle":                {"/records/" + h.said.Payload.RecordID + "/bundle", ""},
		"GET /records/{id}/openssl":               {"/records/" + h.said.Payload.RecordID + "/openssl", ""},
		"GET /chains/{chain_id}":                  {"/chains/order-17", ""},
		"GET /agents/{name}":                      {"/agents/logistics-agent-v1", ""},
		"GET /v1/agents/{name}/reputation":        {"/v1/agents/logistics-agent-v1/reputation", ""},
		"GET /v1/agents/{name}/conduct":           {"/v1/agents/logistics-agent-v1/conduct", ""},
		"POST /v1/access/{token}/revoke":          {"", `{"reason":"left"}`},
		"GET /access/{token}":                     {"/access/" + access.IDOf(h.tokens[access.Auditor]).String(), ""},
		"POST /access/{token}":                    {"/access/" + access.IDOf(h.tokens[access.Auditor]).String(), url.Values{"reason": {"left"}}.Encode()},
		"POST /sign-in":                           {"", url.Values{"token": {h.tokens[access.Auditor]}}.Encode()},
		"GET /v1/trials/{id}/compare/{other}":     {"/v1/trials/" + h.trial + "/compare/" + h.trial, ""},
		"GET /submissions/{id}/messages":          {"/submissions/" + h.trial + "/messages?find=parcel", ""},
		"GET /submissions/{id}/messages/{number}": {"/submissions/" + h.trial + "/messages/1", ""},
		"GET /records/{id}/member":                {"/records/" + h.said.Payload.RecordID + "/member?name=response", ""},
		"GET /v1/recordings/{chain}":              {"/v1/recordings/recorded%2Fcourier%2F1", ""},
		"GET /recordings/{chain}":                 {"/recordings/recorded%2Fcourier%2F1", ""},
		"GET /recordings/{chain}/acts/{number}":   {"/recordings/recorded%2Fcourier%2F1/acts/1", ""},
		"POST /recordings/{chain}/trial":          {"/recordings/recorded%2Fcourier%2F1/trial", url.Values{"key": {"k"}}.Encode()},
		"GET /trials/{id}/compare/{other}":        {"/trials/" + h.trial + "/compare/" + h.trial, ""},
	}
}

var wildcards = regexp.MustCompile(`\{[a-z_]+(\.\.\.)?\}`)

// ask sends the good request to a route.
func (h *house) ask(t *testing.T, client *http.Client, route server.Route, header ...string) *http.Response {
	t.Helper()
	request := h.goodRequests()[route.Name]
	if request[0] == "" {
		request[0] = wildcards.ReplaceAllString(strings.TrimSuffix(route.Pattern(), "{$}"), "nothing")
	}
	if strings.Contains(request[1], "=") && !strings.Contains(request[1], "{") {
		header = append(header, "Content-Type", "application/x-www-form-urlencoded")
	}
	method := route.Method()
	if route.Pattern() == "/v1/recording-events" { // it has no end
		method = "HEAD"
	}
	answer, _ := send(t, client, method, h.URL+request[0], request[1], header...)
	return answer
}

// documented reads the table in docs/api.md. Requests with the same answers share a row.
func documented(t *testing.T) map[string][]int {
	t.Helper()
	doc := must.Get(os.ReadFile("../../../docs/api.md"))(t)
	rows := map[string][]int{}
	for _, match := range regexp.MustCompile("(?m)^\\| (`(?:GET|POST|PUT|DELETE) [^|]+`) \\|(.*)\\|$").FindAllStringSubmatch(string(doc), -1) {
		var statuses []int
		for cell := range strings.SplitSeq(match[2], "|") {
			status, err := strconv.Atoi(strings.TrimSpace(cell))
			if err != nil {
				t.Fatalf("%s: %v", match[1], err)
			}
			statuses = append(statuses, status)
		}
		if len(statuses) != len(columns) {
			t.Fatalf("%s: %d cells", match[1], len(statuses))
		}
		for request := range strings.SplitSeq(match[1], ", ") {
			name := strings.Trim(request, "`")
			must.Need(t, rows[name] == nil, "docs/api.md has %s twice", name)
			rows[name] = statuses
		}
	}
	must.Need(t, len(rows) >= 10, "found %d rows", len(rows))
	return rows
}

// TestWhoMayDoWhat sends a request to every route in every role, and compares the answers with docs/api.md.
func TestWhoMayDoWhat(t *testing.T) {
	h, rows := furnish(t), documented(t)
	noRedirect := browser(t)
	noRedirect.Jar = nil
	for _, route := range h.Routes() {
		want, there := rows[route.Name]
		if !there {
			t.Errorf("%s is not in the table of docs/api.md", route.Name)
			continue
		}
		delete(rows, route.Name)
		var got []int
		for _, role := range columns {
			var header []string
			if role != "" {
				header = bearer(h.tokens[role])
			}
			got = append(got, h.ask(t, noRedirect, route, header...).StatusCode)
		}
		diff := cmp.Diff(want, got)
		must.Hold(t, diff == "", "%s, by %q (-docs/api.md +server):\n%s", route.Name, columns, diff)
	}
	for name := range rows {
		t.Errorf("docs/api.md has %s, which is not in the table", name)
	}
}

// TestEndedTokens: a token that has expired, was revoked or never existed allows no more than no token.
func TestEndedTokens(t *testing.T) {
	h, rows := furnish(t), documented(t)
	noRedirect := browser(t)
	noRedirect.Jar = nil
	ended := map[string]error{"jurat_" + strings.Repeat("A", 43): api.ErrSignIn, h.expired(t): api.ErrExpired, h.revoked(t): api.ErrRevoked}
	for token, want := range ended {
		for _, route := range h.Routes() {
			status := http.StatusUnauthorized
			if route.Who.Strangers == server.Everything {
				status = rows[route.Name][0]
			}
			answer := h.ask(t, noRedirect, route, bearer(token)...)
			must.Hold(t, answer.StatusCode == status, "%s with a token that gives %v: %s", route.Name, want, answer.Status)
		}
		problem(t, want)(send(t, http.DefaultClient, "GET", h.URL+"/v1/records", "", bearer(token)...))
	}
}

func (h *house) expired(t *testing.T) string {
	t.Helper()
	register := access.New(access.Config{Ledger: h.Installation.Ledger, Keys: h.Installation.Keys, Now: func() time.Time { return time.Now().Add(-2 * time.Hour) }})
	token, _, err := register.Grant(t.Context(), access.Order{Name: "old", Roles: access.PeopleRoles(), For: time.Hour, Reason: "r", By: "b"})
	must.Do(t, err)
	return token
}

// revoked returns a token that another register has revoked, as another process would.
func (h *house) revoked(t *testing.T) string {
	t.Helper()
	token := h.token(t, "gone", access.PeopleRoles()...)
	other := access.New(access.Config{Ledger: h.Installation.Ledger, Keys: h.Installation.Keys})
	must.Do(t, other.Revoke(t.Context(), access.IDOf(token), "left", "tester"))
	return token
}

// signedIn returns a browser with a session that has every role of people.
func (h *house) signedIn(t *testing.T) *http.Client {
	t.Helper()
	b := browser(t)
	form := url.Values{"token": {h.token(t, "eve", access.PeopleRoles()...)}}.Encode()
	answers(t, http.StatusSeeOther, b, "POST", h.URL+"/sign-in", form, "Content-Type", "application/x-www-form-urlencoded")
	return b
}

// TestOtherSites: the server refuses requests that another site makes a browser send, and forms without this session's
// key.
func TestOtherSites(t *testing.T) {
	h := furnish(t)
	b := h.signedIn(t)
	tried := 0
	for _, route := range h.Routes() {
		if route.Method() == "GET" {
			continue
		}
		tried++
		for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://elsewhere.example"}, {"Origin", "null"},
			{"Sec-Fetch-Site", "same-origin"}, // from the same site, but without the form's key
			{"Sec-Fetch-Site", "same-origin", server.FormHeader, "x"}} {
			answer := h.ask(t, b, route, header...)
			must.Hold(t, answer.StatusCode == http.StatusForbidden, "%s with %v: %s", route.Name, header, answer.Status)
		}
	}
	must.Hold(t, tried >= 3, "tried %d routes", tried)
	// With the key, the request is accepted.
	_, page := send(t, b, "GET", h.URL+"/sign-in", "")
	_, key, _ := strings.Cut(page, `name="form" value="`)
	key, _, _ = strings.Cut(key, `"`)
	answers(t, http.StatusCreated, b, "POST", h.URL+"/v1/records/"+h.said.Payload.RecordID+"/reviews", `{"approval_status":"approved"}`, server.FormHeader, key)
}

// TestPathsLeadNowhereElse: no path leads outside of what the server serves.
func TestPathsLeadNowhereElse(t *testing.T) {
	h := furnish(t)
	for _, path := range []string{"/v1/records/../../log.key", "/v1/records/..%2f..%2flog.key", "/v1/records/%2e%2e/%2e%2e/log.key", "/v1/chains/..%5c..%5clog.key",
		"//log.key", "/../log.key", "/v1/records/%00", "/v1/chains/" + strings.Repeat("a", 5000)} {
		answer, body := send(t, browser(t), "GET", h.URL+path, "", bearer(h.tokens[access.Operator])...)
		must.Hold(t, answer.StatusCode == http.StatusNotFound && !strings.Contains(body, "PRIVATE KEY"), "%s: %s: %s", path, answer.Status, body)
	}
}

// TestRefusalsAreTold: nobody makes the sealed log grow by being refused. The program log says who was refused what, how often and why, the metrics what and why.
func TestRefusalsAreTold(t *testing.T) {
	h := furnish(t)
	gone := bearer(h.revoked(t))
	before := h.size(t)
	for range 3 {
		send(t, http.DefaultClient, "GET", h.URL+"/metrics", "")
	}
	send(t, http.DefaultClient, "GET", h.URL+"/metrics", "", bearer(h.tokens[access.Agent])...)
	for range 50 {
		send(t, http.DefaultClient, "GET", h.URL+"/v1/records", "", gone...)
	}
	must.Equal(t, h.size(t)-before, 0)
	_, metrics := send(t, http.DefaultClient, "GET", h.URL+"/metrics", "", bearer(h.tokens[access.Operator])...)
	want := `jurat_requests_refused_total{problem="sign-in",route="GET /metrics"} 3`
	must.Hold(t, strings.Contains(metrics, want), "the metrics lack %s:\n%s", want, metrics)
	must.Do(t, h.stop())
	for _, want := range []string{
		`msg="requests refused" route="GET /metrics" problem=sign-in count=3` + "\n",
		`msg="requests refused" route="GET /metrics" problem=forbidden count=1 name=logistics-agent-v1 token=` + access.IDOf(h.tokens[access.Agent]).String(),
		`msg="requests refused" route="GET /v1/records" problem=revoked count=50 name=gone token=`,
	} {
		must.Contain(t, h.log.String(), want)
	}
}

func TestTooManyRequests(t *testing.T) {
	h := start(t, func(c *server.Config) { c.Limits = server.Rate{PerSecond: 0.001, Burst: 3} })
	token := h.token(t, "ada", access.Auditor)
	for range 3 {
		answers(t, 200, http.DefaultClient, "GET", h.URL+"/v1/trust", "")
	}
	problem(t, api.ErrTooMany)(send(t, http.DefaultClient, "GET", h.URL+"/v1/trust", ""))
	// Other callers are not affected.
	answers(t, 200, http.DefaultClient, "GET", h.URL+"/v1/records", "", bearer(token)...)
}

// TestManySessionsAskNoMore: several sessions of one person share one limit.
func TestManySessionsAskNoMore(t *testing.T) {
	h := start(t, func(c *server.Config) { c.Limits = server.Rate{PerSecond: 0.001, Burst: 3} })
	form := url.Values{"token": {h.token(t, "ada", access.Auditor)}}.Encode()
	var got []int
	for range 2 {
		b := browser(t)
		answers(t, http.StatusSeeOther, b, "POST", h.URL+"/sign-in", form, "Content-Type", "application/x-www-form-urlencoded")
		for range 2 {
			answer, _ := send(t, b, "GET", h.URL+"/v1/records", "")
			got = append(got, answer.StatusCode)
		}
	}
	must.Equal(t, cmp.Diff([]int{200, 200, 200, 429}, got), "")
}

// TestLogsHaveNoContent: the server's own log contains no content of records and no tokens.
func TestLogsHaveNoContent(t *testing.T) {
	h := furnish(t)
	send(t, http.DefaultClient, "GET", h.URL+"/v1/records/"+h.said.Payload.RecordID+"?secret=1", "", bearer(h.tokens[access.Agent])...)
	must.Do(t, h.stop())
	log := h.log.String()
	must.Contain(t, log, "GET /v1/records/{id}")
	for _, secret := range []string{"Take the A9", h.tokens[access.Agent], "secret", h.said.Payload.RecordID} {
		must.Hold(t, !strings.Contains(log, secret), "the log has %q", secret)
	}
}

func TestMetrics(t *testing.T) {
	h := furnish(t)
	_, text := send(t, http.DefaultClient, "GET", h.URL+"/metrics", "", bearer(h.tokens[access.Operator])...)
	for _, want := range []string{`jurat_http_requests_total{route="POST /v1/records",status="201"} 1`, `jurat_records_sealed_total{action_type="human_review"} 1`,
		`jurat_http_request_seconds_count{route="POST /v1/records"} 1`, fmt.Sprintf("jurat_ledger_records %d", h.size(t))} {
		must.Contain(t, text, want+"\n")
	}
}

// TestProblemsAreDocumented compares the table in docs/api.md with package api in both directions.
func TestProblemsAreDocumented(t *testing.T) {
	doc := must.Get(os.ReadFile("../../../docs/api.md"))(t)
	rows := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (\\d+) \\| (.*) \\|$").FindAllStringSubmatch(string(doc), -1) {
		rows[strings.Join(match[1:], " ")] = true
	}
	for _, p := range api.Problems() {
		row := fmt.Sprintf("%s %d %s", p.Name(), p.Status, p.Title)
		must.Hold(t, rows[row], "docs/api.md does not contain: %s", row)
		delete(rows, row)
	}
	for row := range rows {
		t.Errorf("there is no such problem: %s", row)
	}
}

// TestNamesOfOthers: if a foreign name resolves to this server, pages under that name can read nothing.
func TestNamesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*server.Config)
		hosts  map[string]int
	}{
		"on this machine": {nil, map[string]int{"localhost": 200, "LOCALHOST:80": 200, "127.0.0.1:1": 200, "[::1]:8417": 200, "elsewhere.example": 403, "elsewhere.example:8417": 403,
			"localhost.elsewhere.example": 403, "192.168.1.7": 403, "127.0.0.1.elsewhere.example": 403}},
		"behind a proxy on this machine": {func(c *server.Config) { c.Secure, c.Local, c.Origins = true, true, []string{"https://jurat.example"} },
			map[string]int{"localhost:8417": 200, "jurat.example": 200, "elsewhere.example": 403}},
		"for others": {func(c *server.Config) { c.Secure = true }, map[string]int{"jurat.example": 200}},
	} {
		r := start(t, c.change)
		for host, want := range c.hosts {
			request := must.Get(http.NewRequestWithContext(t.Context(), "GET", r.URL+"/v1/trust", nil))(t)
			request.Host = host
			answer := must.Get(http.DefaultClient.Do(request))(t)
			answer.Body.Close()
			must.Hold(t, answer.StatusCode == want, "%s, as %q: %s", name, host, answer.Status)
		}
	}
}

// TestSignInByProvider signs in through the provider, as a browser does.
func TestSignInByProvider(t *testing.T) {
	issuer := rig.NewIssuer(t)
	asked := must.Get(openid.New(t.Context(), openid.Config{Issuer: issuer.URL, ClientID: rig.ClientID, ClientSecret: rig.ClientSecret,
		Roles: map[string][]access.Role{"reviewers": {access.Reviewer}}}))(t)
	r := start(t, func(c *server.Config) { c.Provider = asked })
	jar := must.Get(cookiejar.New(nil))(t)
	visited := []string{}
	b := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error { visited = append(visited, r.URL.Path); return nil }}

	answer, page := send(t, b, "GET", r.URL+"/sign-in/provider?next=/reviews", "")
	if answer.StatusCode != http.StatusOK || !strings.Contains(page, `content="0; url=/reviews"`) || strings.Join(visited, " ") != "/authorize /sign-in/callback" {
		t.Fatalf("%s, by %q: %s", answer.Status, visited, page)
	}
	answers(t, http.StatusOK, b, "GET", r.URL+"/v1/records", "")
	grants, err := r.Access().Grants(t.Context())
	must.Hold(t, err == nil && len(grants) == 1 && grants[0].Name == "mia@example.com" && grants[0].Session && grants[0].By == issuer.URL,
		"%+v, %v", grants, err)
	// The same callback address in another browser is refused.
	answers(t, http.StatusUnauthorized, browser(t), "GET", answer.Request.URL.String(), "")
	issuer.Claims = map[string]any{"groups": []string{"others"}}
	answers(t, http.StatusForbidden, browserThatFollows(t), "GET", r.URL+"/sign-in/provider", "")
}

func browserThatFollows(t *testing.T) *http.Client {
	t.Helper()
	b := browser(t)
	b.CheckRedirect = nil
	return b
}

// TestSignInOverPlainHTTP: over http from another machine, a browser does not send where its request is from. The error
// says so, and does not call the browser outdated. A request from another site is refused as such.
func TestSignInOverPlainHTTP(t *testing.T) {
	r := start(t, func(c *server.Config) { c.Secure = true })
	form := url.Values{"token": {r.token(t, "mia", access.Reviewer)}}.Encode()
	for origin, wants := range map[string]string{"null": "plain-http", "http://jurat.lan:8417": "plain-http", "http://elsewhere.example": "cross-origin", "https://elsewhere.example": "cross-origin"} {
		request := httptest.NewRequest("POST", "http://jurat.lan:8417/sign-in", strings.NewReader(form))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", origin)
		answer := httptest.NewRecorder()
		r.ServeHTTP(answer, request)
		body := answer.Body.String()
		if answer.Code != http.StatusForbidden || strings.Contains(body, "came over http") != (wants == "plain-http") || strings.Contains(body, "another site") == (wants == "plain-http") {
			t.Errorf("%s: %d %s", origin, answer.Code, body)
		}
	}
}
