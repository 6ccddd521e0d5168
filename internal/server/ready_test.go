package server_test

import (
	"database/sql"
	"math"
	"net/http"
	"testing"
	"time"

	"jurat/internal/access"
	"jurat/internal/limits"
	"jurat/internal/must"
	"jurat/internal/server"
)

// TestProbesAreNotLimited: health probes are always answered, however many requests come from their address. Other
// requests get Retry-After.
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

// ready asks for readiness until the status is as wanted. The server caches its answer for a second.
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

// TestNoLimit: a limit below 0 means no limit.
func TestNoLimit(t *testing.T) {
	r := start(t, func(c *server.Config) { c.Limits = limits.Rate{PerSecond: -1, Burst: 1} })
	token := r.token(t, "ada", access.Auditor)
	for range 250 { // more than the default limit allows at once
		for _, header := range [][]string{nil, bearer(token)} {
			if answer, body := send(t, http.DefaultClient, "GET", r.URL+"/v1/trust", "", header...); answer.StatusCode != http.StatusOK {
				t.Fatal(answer.Status, body)
			}
		}
	}
}
