package server_test

import (
	"database/sql"
	"math"
	"net/http"
	"testing"
	"time"

	"jurat/internal/access"
	"jurat/internal/limits"
	"jurat/internal/server"
)

// TestProbesAreNotLimited: what watches over a server hears how it is, however often everybody else at its address has asked, who are told
// when to come again.
func TestProbesAreNotLimited(t *testing.T) {
	r := start(t, func(c *server.Config) { c.Limits = limits.Rate{PerSecond: math.SmallestNonzeroFloat64, Burst: 1} })
	for range 20 {
		for _, path := range []string{"/healthz", "/readyz"} {
			if answer, body := send(t, http.DefaultClient, "GET", r.URL+path, ""); answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s %s", path, answer.Status, body)
			}
		}
	}
	send(t, http.DefaultClient, "GET", r.URL+"/v1/trust", "")
	answer, body := send(t, http.DefaultClient, "GET", r.URL+"/v1/trust", "")
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		t.Errorf("%s, Retry-After %q: %s", answer.Status, answer.Header.Get("Retry-After"), body)
	}
	r.ready(t, http.StatusOK)
	if err := r.Installation.Ledger.Close(); err != nil {
		t.Fatal(err)
	}
	r.ready(t, http.StatusServiceUnavailable)
}

// TestReadyWhileTheLogIsHeld: a server that cannot write, because another process holds the log, says that it is not ready, and answers
// otherwise.
func TestReadyWhileTheLogIsHeld(t *testing.T) {
	dir := t.TempDir() + "/data"
	r := startIn(t, dir, nil)
	r.ready(t, http.StatusOK)
	other, err := sql.Open("sqlite", dir+"/jurat.db")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	held, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	r.ready(t, http.StatusServiceUnavailable)
	if answer, body := send(t, http.DefaultClient, "GET", r.URL+"/v1/trust", ""); answer.StatusCode != http.StatusOK {
		t.Error(answer.Status, body)
	}
	if _, err := held.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	r.ready(t, http.StatusOK)
}

// ready asks whether the server is, until it says what is wanted: what it has just found out it says for a second.
func (r *running) ready(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, body := send(t, http.DefaultClient, "GET", r.URL+"/readyz", "")
		if answer.StatusCode == want {
			if pause := answer.Header.Get("Retry-After"); (pause != "") != (want == http.StatusServiceUnavailable) {
				t.Errorf("%s, Retry-After %q", answer.Status, pause)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz: %s %s, want %d", answer.Status, body, want)
		}
	}
}

// TestNoLimit: a limit below 0 is none.
func TestNoLimit(t *testing.T) {
	r := start(t, func(c *server.Config) { c.Limits = limits.Rate{PerSecond: -1, Burst: 1} })
	token := r.token(t, "ada", access.Auditor)
	for range 250 { // more than are let through at once by default
		for _, header := range [][]string{nil, bearer(token)} {
			if answer, body := send(t, http.DefaultClient, "GET", r.URL+"/v1/trust", "", header...); answer.StatusCode != http.StatusOK {
				t.Fatal(answer.Status, body)
			}
		}
	}
}
