package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"jurat/api"
	"jurat/internal/access"
)

// oneOf is one of the roles that may use a route, an agent only where nobody else may.
func oneOf(route []access.Role) access.Role {
	for _, role := range route {
		if role != access.Agent {
			return role
		}
	}
	return access.Agent
}

// TestUnknownParameters: a parameter that a route does not know is refused by name on every route, and so is one that is given twice. Left
// alone it would answer another question than the caller asked: every record instead of one agent's.
func TestUnknownParameters(t *testing.T) {
	h := furnish(t)
	asked := 0
	for _, route := range h.Routes() {
		if route.Doc.AnyQuery {
			continue
		}
		asked++
		path := h.goodRequests()[route.Name()][0]
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
		t.Errorf("it does not say which there are: %s", body)
	}
	// Pages know the language, and what is asked of them is answered.
	for _, path := range []string{"/?lang=ja", "/sign-in?link=x&next=%2F&lang=ru", "/chains/order-17?page=1&lang=en", "/?" + url.Values{"before": {h.trial}}.Encode()} {
		if answer, body := send(t, browser(t), "GET", h.URL+path, "", bearer(h.tokens[access.Auditor])...); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, answer.Status, body)
		}
	}
}
