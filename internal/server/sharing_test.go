package server_test

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/internal/access"
	"jurat/internal/must"
	"jurat/internal/server"
)

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
	must.Do(t, h.Access().SetPublic(t.Context(), "order-17", true, "a test", "tester"))
	for _, chain := range []string{h.trial, "recorded/courier/1"} {
		must.Do(t, h.Access().SetPublic(t.Context(), chain, true, "a test", "tester"))
	}
	must.Do(t, h.Access().SetPublicAgent(t.Context(), "logistics-agent-v1", true, "a test", "tester"))
	shared := 0
	for _, route := range h.Routes() {
		// Sec-Fetch-Site says that a browser asks over https; the test itself speaks http.
		foreign := []string{"Origin", otherSite, "Sec-Fetch-Site", "cross-site"}
		answer := h.ask(t, browser(t), route, foreign...)
		want := route.Shared && answer.StatusCode < 300
		if mayRead(answer) != want || want && (answer.Header.Get("Access-Control-Allow-Origin") != "*" || answer.Header.Get("Access-Control-Allow-Credentials") != "") {
			t.Errorf("%s: %s %v", route.Name(), answer.Status, answer.Header)
		}
		if route.Shared {
			if shared++; answer.StatusCode != http.StatusOK || route.Method != "GET" || route.Who.Strangers == server.Nothing {
				t.Errorf("%s is shared, and a stranger gets %s", route.Name(), answer.Status)
			}
			if !slices.Contains(answer.Header.Values("Vary"), "Origin") {
				t.Errorf("%s: Vary %q", route.Name(), answer.Header.Values("Vary"))
			}
			if own := h.ask(t, browser(t), route); mayRead(own) || !slices.Contains(own.Header.Values("Vary"), "Origin") {
				t.Errorf("%s without Origin: %v", route.Name(), own.Header)
			}
		}
		for _, with := range [][]string{bearer(h.tokens[access.Auditor]), {"Cookie", "__Host-jurat=" + h.tokens[access.Auditor]}} {
			if answer := h.ask(t, browser(t), route, append(with, foreign...)...); mayRead(answer) {
				t.Errorf("%s with %s: another site may read %s", route.Name(), with[0], answer.Status)
			}
		}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodOptions, h.URL+strings.TrimSuffix(wildcards.ReplaceAllString(route.Pattern, "x"), "{$}"), nil)
		request.Header.Set("Origin", otherSite)
		request.Header.Set("Access-Control-Request-Method", route.Method)
		preflight := must.Get(http.DefaultClient.Do(request))(t)
		preflight.Body.Close()
		if mayRead(preflight) || preflight.StatusCode < 400 {
			t.Errorf("OPTIONS %s: %s %v", route.Pattern, preflight.Status, preflight.Header)
		}
	}
	if shared < 12 {
		t.Errorf("%d routes are shared", shared)
	}
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
		if answer := h.ask(t, browser(t), route, "Origin", otherSite, "Sec-Fetch-Site", "cross-site"); mayRead(answer) || answer.StatusCode < 400 {
			t.Errorf("%s: %s %v", route.Name(), answer.Status, answer.Header)
		}
	}
	if asked < 5 {
		t.Errorf("%d routes were asked", asked)
	}
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
		if answer, _ := send(t, http.DefaultClient, "GET", r.URL+"/v1/trust", "", "Origin", otherSite, "Sec-Fetch-Site", "cross-site"); mayRead(answer) != c.want || answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %v", name, answer.Status, answer.Header)
		}
	}
}

// TestSharedRoutesAreDocumented compares the list in docs/api.md with the table.
func TestSharedRoutesAreDocumented(t *testing.T) {
	doc := must.Get(os.ReadFile("../../docs/api.md"))(t)
	_, section, _ := strings.Cut(string(doc), "\n## Pages of other sites\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed, want []string
	for _, match := range regexp.MustCompile("`(/[^`]*)`").FindAllStringSubmatch(section, -1) {
		listed = append(listed, match[1])
	}
	for _, route := range start(t, func(c *server.Config) { c.PublicEntries = true }).Routes() {
		if route.Shared {
			want = append(want, route.Pattern)
		}
	}
	slices.Sort(listed)
	if slices.Sort(want); !slices.Equal(listed, want) {
		t.Errorf("docs/api.md lists %q, want %q", listed, want)
	}
}
