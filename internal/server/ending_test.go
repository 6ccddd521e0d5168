package server_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"jurat/internal/access"
	"jurat/internal/must"
	"jurat/internal/server"
)

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
	if err := r.stop(); err != nil {
		t.Errorf("the server does not end as it should: %v", err)
	}
}

// TestSignInWhileTheLogIsAway: if the log cannot be read, the server does not say that a token is invalid.
func TestSignInWhileTheLogIsAway(t *testing.T) {
	r := start(t, nil)
	token := r.token(t, "mia", access.Auditor)
	must.Do(t, r.Installation.Ledger.Close())
	answer, page := send(t, browser(t), "POST", r.URL+"/sign-in", url.Values{"token": {token}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || strings.Contains(page, "opens nothing") {
		t.Errorf("%s %s", answer.Status, page)
	}
}

// TestOpenWhileTheLogIsAway: public pages need nothing from the log, also for a caller whose token cannot be looked up.
func TestOpenWhileTheLogIsAway(t *testing.T) {
	r := start(t, nil)
	token := r.token(t, "mia", access.Auditor)
	must.Do(t, r.Installation.Ledger.Close())
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/openapi.json": http.StatusOK, "/verify.html": http.StatusOK, "/v1/records/r": http.StatusServiceUnavailable} {
		if answer, body := send(t, http.DefaultClient, "GET", r.URL+path, "", "Authorization", "Bearer "+token); answer.StatusCode != want {
			t.Errorf("%s: %s, want %d\n%.200s", path, answer.Status, want, body)
		}
	}
}

// TestStrictTransport: the server sends Strict-Transport-Security if browsers reach it over https, and not otherwise.
func TestStrictTransport(t *testing.T) {
	for _, secure := range []bool{false, true} {
		r := start(t, func(c *server.Config) { c.Secure = secure })
		for _, path := range []string{"/", "/v1/trust", "/nothing"} {
			answer, _ := send(t, http.DefaultClient, "GET", r.URL+path, "")
			if got := answer.Header.Get("Strict-Transport-Security"); (got != "") != secure {
				t.Errorf("secure %v, %s: %q", secure, path, got)
			}
		}
	}
}

// TestDoubleClick: a form that is sent twice makes one trial. The same form, loaded again, makes another one.
func TestDoubleClick(t *testing.T) {
	r, b := start(t, withJury(t)), browser(t)
	sign := url.Values{"token": {r.token(t, "sam", access.Submitter)}}.Encode()
	typed := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if answer, page := send(t, b, "POST", r.URL+"/sign-in", sign, typed...); answer.StatusCode != http.StatusSeeOther {
		t.Fatal(answer.Status, page)
	}
	load := func() string {
		_, page := send(t, b, "GET", r.URL+"/", "")
		form := url.Values{"example": {"kitchen-return"}}
		for _, name := range []string{"form", "key"} {
			match := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(page)
			if match == nil {
				t.Fatalf("the form has no field %s: %s", name, page)
			}
			form.Set(name, match[1])
		}
		return form.Encode()
	}
	form := load()
	made := map[string]bool{}
	for _, form := range []string{form, form, load()} {
		answer, page := send(t, b, "POST", r.URL+"/submissions", form, typed...)
		if answer.StatusCode != http.StatusSeeOther {
			t.Fatal(answer.Status, page)
		}
		made[answer.Header.Get("Location")] = true
	}
	if len(made) != 2 {
		t.Errorf("%d trials were made, want 2: %v", len(made), made)
	}
}
