package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/client"
)

func connect(t *testing.T, c client.Config) *client.Client {
	t.Helper()
	return must(client.NewClient(c))
}

// answering is a server that always gives the same answer.
func answering(t *testing.T, status int, media, body string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		if _, err := w.Write([]byte(body)); err != nil {
			t.Log(err) // a client that reads no further
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// sentinels maps the names of problems to the errors of package api.
var sentinels = map[string]error{"malformed": api.ErrMalformed, "sign-in": api.ErrSignIn, "expired": api.ErrExpired, "revoked": api.ErrRevoked,
	"forbidden": api.ErrForbidden, "cross-origin": api.ErrCrossOrigin, "plain-http": api.ErrPlainHTTP, "form": api.ErrForm, "own-work": api.ErrOwnWork, "not-found": api.ErrNotFound, "gone": api.ErrGone,
	"method": api.ErrMethod, "conflict": api.ErrConflict, "owner-key": api.ErrOwnerKey, "precondition": api.ErrPrecondition, "too-large": api.ErrTooLarge,
	"media-type": api.ErrMediaType, "invalid": api.ErrInvalid, "key-reused": api.ErrKeyReused, "too-many": api.ErrTooMany, "internal": api.ErrInternal,
	"unavailable": api.ErrUnavailable}

// TestProblemsAreTheSameErrors sends each problem over HTTP. The client must return the same error, and no other.
func TestProblemsAreTheSameErrors(t *testing.T) {
	problems := api.Problems()
	if len(problems) != len(sentinels) {
		t.Fatalf("%d problems and %d errors", len(problems), len(sentinels))
	}
	for _, p := range problems {
		doc, err := json.Marshal(api.NewProblem(errors.Join(errors.New("this time"), sentinels[p.Name()])))
		if err != nil {
			t.Fatal(err)
		}
		url, _ := answering(t, p.Status, api.ProblemMediaType, string(doc))
		_, err = connect(t, client.Config{URL: url, Attempts: 1}).Record(t.Context(), "x")
		for name, sentinel := range sentinels {
			if errors.Is(err, sentinel) != (name == p.Name()) {
				t.Errorf("%s is %q: %v", p.Name(), name, err)
			}
		}
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		status      int
		media, body string
	}{
		"a page of a proxy":       {502, "text/html", "<h1>Bad Gateway</h1>"},
		"a problem of another":    {404, "application/json", `{"type":"urn:jurat:problem:not-found","status":404}`},
		"a status that is not so": {404, api.ProblemMediaType, `{"type":"urn:jurat:problem:forbidden","status":403}`},
		"no record":               {200, "application/json", `{}`},
		"too much":                {200, "application/json", strings.Repeat(" ", 2000)},
	} {
		url, _ := answering(t, c.status, c.media, c.body)
		_, err := connect(t, client.Config{URL: url, MaxAnswer: 1000}).Record(t.Context(), "x")
		if err == nil || errors.Is(err, api.ErrNotFound) || errors.Is(err, api.ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTokensGoNowhereInTheClear(t *testing.T) {
	for url, good := range map[string]bool{"http://jurat.example": false, "https://jurat.example": true, "http://127.0.0.1:1": true, "http://[::1]:1": true,
		"http://localhost": true, "ftp://127.0.0.1": false, "jurat.example": false, "": false, "https://": false, ":": false} {
		if _, err := client.NewClient(client.Config{URL: url, Token: "t"}); (err == nil) != good {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := client.NewClient(client.Config{URL: "http://jurat.example"}); err != nil {
		t.Errorf("without a token: %v", err)
	}
}

// A transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTriesAgain: the client sends a request again if the server could not answer now, with the same idempotency key.
func TestTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		away := transport(func(r *http.Request) (*http.Response, error) {
			keys = append(keys, r.Header.Get(api.IdempotencyKey))
			return nil, errors.New("connection reset")
		})
		c := connect(t, client.Config{URL: "https://jurat.example", HTTP: &http.Client{Transport: away}})
		began := time.Now()
		if _, err := c.Seal(t.Context(), []byte("{}")); err == nil {
			t.Error("Seal succeeded although no server answered")
		}
		if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
			t.Errorf("keys %q", keys)
		}
		if waited := time.Since(began); waited != 600*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		keys = nil
		if _, err := c.WithKey("mine").Seal(t.Context(), []byte("{}")); err == nil || keys[0] != "mine" {
			t.Errorf("keys %q, %v", keys, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		keys = nil
		if _, err := c.Seal(ctx, []byte("{}")); !errors.Is(err, context.DeadlineExceeded) || len(keys) != 1 {
			t.Errorf("%d attempts, %v", len(keys), err)
		}
	})
	url, asked := answering(t, 422, api.ProblemMediaType, `{"type":"urn:jurat:problem:invalid","title":"t","status":422,"detail":"d"}`)
	if _, err := connect(t, client.Config{URL: url}).Seal(t.Context(), []byte("{}")); !errors.Is(err, api.ErrInvalid) || asked.Load() != 1 {
		t.Errorf("asked %d times, %v", asked.Load(), err)
	}
}

// TestRedirectsAreNotFollowed: the client follows no redirect, because another host must not get the token or the text
// to be sealed.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere, asked := answering(t, http.StatusOK, "application/json", "{}")
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		s := httptest.NewServer(http.RedirectHandler(elsewhere, status))
		c := connect(t, client.Config{URL: s.URL, Token: "jurat_x"})
		if _, err := c.Seal(t.Context(), []byte(`{"secret":1}`)); err == nil {
			t.Errorf("%d: no error", status)
		}
		if _, err := c.Record(t.Context(), "x"); err == nil {
			t.Errorf("%d: no error", status)
		}
		for _, err := range c.Watch(t.Context(), "trial-x", 0) {
			if err == nil {
				t.Errorf("%d: no error", status)
			}
		}
		s.Close()
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the other host got %d requests", n)
	}
}
