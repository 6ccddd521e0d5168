package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"jurat/internal/access"
	"jurat/internal/server"
)

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
