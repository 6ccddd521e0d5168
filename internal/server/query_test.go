package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/limits"
	"jurat/internal/server"
)

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
	h := furnishWith(t, func(c *server.Config) { c.Limits = limits.Rate{PerSecond: -1} })
	asked := 0
	for _, route := range h.Routes() {
		if route.Doc.AnyQuery {
			continue
		}
		asked++
		path, _, _ := strings.Cut(h.goodRequests()[route.Name()][0], "?")
		if path == "" {
			path = wildcards.ReplaceAllString(strings.TrimSuffix(route.Pattern, "{$}"), "nothing")
		}
		queries := map[string]string{"agent_id=x": "agent_id", "%zz": "query", "a;b": "query"}
		for _, p := range route.Doc.Query {
			queries[p.Name+"=1&"+p.Name+"=2"] = p.Name
		}
		for query, named := range queries {
			answer, body := send(t, browser(t), route.Method, h.URL+path+"?"+query, "", bearer(h.tokens[oneOf(route.Who.Roles)])...)
			if answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, named) {
				t.Errorf("%s?%s: %s, want 400 and %q named: %s", route.Name(), query, answer.Status, named, body)
			}
		}
	}
	if asked < 30 {
		t.Errorf("%d routes were asked", asked)
	}
	answer, body := send(t, http.DefaultClient, "GET", h.URL+"/v1/records?agent_id=x", "", bearer(h.tokens[access.Auditor])...)
	problem(t, answer, body, api.ErrMalformed)
	if !strings.Contains(body, "after, limit, chain") {
		t.Errorf("the error does not name the known parameters: %s", body)
	}
	// Pages accept the parameter lang beside their own.
	for _, path := range []string{"/?lang=ja", "/sign-in?link=x&next=%2F&lang=ru", "/chains/order-17?page=1&lang=en", "/?" + url.Values{"before": {h.trial}}.Encode()} {
		if answer, body := send(t, browser(t), "GET", h.URL+path, "", bearer(h.tokens[access.Auditor])...); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, answer.Status, body)
		}
	}
}
