package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/client"
	"jurat/evidence"
	"jurat/jurattest"
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

// TestResumeAndCancel: each asks for the trial by its id, and a cancellation says why.
func TestResumeAndCancel(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+" "+string(must(io.ReadAll(r.Body))))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"trial-1"}`)
	}))
	defer s.Close()
	c := connect(t, client.Config{URL: s.URL})
	if got := must(c.Resume(t.Context(), "a/b")).ID; got != "trial-1" {
		t.Error(got)
	}
	if got := must(c.Cancel(t.Context(), "a/b", "by mistake")).ID; got != "trial-1" {
		t.Error(got)
	}
	want := []string{"POST /v1/submissions/a%2Fb/resume ", `POST /v1/submissions/a%2Fb/cancel {"reason":"by mistake"}`}
	if !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
}

// telling is a server that sends the events of a trial in parts, one part for each connection. It records the requests.
func telling(t *testing.T, pieces ...string) (url string, asked *[]string) {
	t.Helper()
	asked = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Query().Get("after"))
		piece := pieces[min(len(*asked), len(pieces))-1]
		if piece == "over" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fmt.Fprint(w, "retry: 1000\n\n:\n\n"+piece)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func event(seq int, kind string) string {
	return fmt.Sprintf("id: %d\nevent: %s\ndata: {\"type\":%q,\"seq\":%d,\"at\":\"2026-01-01T00:00:00Z\",\"submissionId\":\"trial-x\",\"more\":1}\n\n", seq, kind, kind, seq)
}

func heard(t *testing.T, c *client.Client, after int64) (seqs []int64, err error) {
	t.Helper()
	for e, err := range c.Watch(t.Context(), "trial-x", after) {
		if err != nil {
			return seqs, err
		}
		if e.SubmissionID != "trial-x" || !strings.Contains(string(e.JSON), `"more":1`) {
			t.Errorf("%+v", e)
		}
		seqs = append(seqs, e.Seq)
	}
	return seqs, nil
}

// TestWatchGoesOn: Watch delivers each event once, however often the connection ends.
func TestWatchGoesOn(t *testing.T) {
	url, asked := telling(t, event(3, "a")+event(4, "b"), event(5, "c"), "", event(6, "d")[:20], event(6, "d")+event(7, api.LastEvent))
	c := connect(t, client.Config{URL: url})
	seqs, err := heard(t, c, 2)
	if err != nil || !slices.Equal(seqs, []int64{3, 4, 5, 6, 7}) || !slices.Equal(*asked, []string{"2", "4", "5", "5", "5"}) {
		t.Errorf("%v, %v, asked for %v", err, seqs, *asked)
	}
	url, _ = telling(t, "over")
	if seqs, err := heard(t, connect(t, client.Config{URL: url}), 7); err != nil || len(seqs) > 0 {
		t.Errorf("%v, %v", err, seqs)
	}
}

// TestWatchGivesUp: Watch returns an error after several failed attempts, at once if the server refuses, and at once if
// an event is missing.
func TestWatchGivesUp(t *testing.T) {
	url, asked := telling(t, event(1, "a"), "")
	if seqs, err := heard(t, connect(t, client.Config{URL: url, Attempts: 2}), 0); err == nil || len(seqs) != 1 || len(*asked) != 3 {
		t.Errorf("%v, %v, asked for %v", err, seqs, *asked)
	}
	url, asked = telling(t, event(1, "a")+event(3, "b"))
	if seqs, err := heard(t, connect(t, client.Config{URL: url}), 0); err == nil || len(seqs) != 1 || len(*asked) != 1 {
		t.Errorf("%v, %v, asked for %v", err, seqs, *asked)
	}
	url, count := answering(t, http.StatusForbidden, api.ProblemMediaType, `{"type":"urn:jurat:problem:forbidden","title":"x","status":403,"detail":"x"}`)
	if _, err := heard(t, connect(t, client.Config{URL: url}), 0); !errors.Is(err, api.ErrForbidden) || count.Load() != 1 {
		t.Errorf("%v, asked %d times", err, count.Load())
	}
	url, _ = telling(t, event(1, strings.Repeat("a", 1000)))
	if _, err := heard(t, connect(t, client.Config{URL: url, MaxAnswer: 500}), 0); err == nil || !strings.Contains(err.Error(), "500 bytes") {
		t.Error(err)
	}
	url, asked = telling(t, event(1, "a")+event(2, "b"))
	for range connect(t, client.Config{URL: url}).Watch(t.Context(), "trial-x", 0) {
		break
	}
	if len(*asked) != 1 {
		t.Errorf("the requests were %v, want none after the caller stopped", *asked)
	}
}

// TestConduct: bundles come one by one, in order. An answer that breaks off, or is no bundle, or too long, is an error after what came before.
func TestConduct(t *testing.T) {
	h := jurattest.New(t)
	var files [2]string
	for i := range files {
		record := h.Seal(t, evidence.Payload{AgentID: "agent", RequestID: fmt.Sprint(i), Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
			Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(`"r"`), Parameters: jsontext.Value(`{}`)})
		doc := must(h.Bundle(t, record).Marshal())
		files[i] = string(doc)
	}
	for _, c := range []struct {
		name, body, wrong string
		length, files     int
	}{
		{"two files", files[0] + files[1], "", 0, 2},
		{"none", "", "", 0, 0},
		{"without a line feed at its end", files[0] + strings.TrimSpace(files[1]), "", 0, 2},
		{"it breaks off in a file", files[0] + files[1][:len(files[1])/2], "unexpected EOF", len(files[0]) + len(files[1]), 1},
		{"it breaks off after a file", files[0], "unexpected EOF", len(files[0]) + len(files[1]), 1},
		{"half a file", files[0] + files[1][:len(files[1])/2], "file 2: ", 0, 1},
		{"no bundle", "{}\n" + files[0], "file 1: ", 0, 0},
		{"an empty line", files[0] + "\n" + files[1], "file 2: ", 0, 1},
		{"too long", files[0] + files[0][:2000] + strings.Repeat(" ", 100_000), "more than 90000 bytes", 0, 1},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.EscapedPath() != "/v1/agents/a%2Fb%20c/conduct" || r.URL.RawQuery != "size=7" {
				t.Error(r.URL)
			}
			if c.length > 0 {
				w.Header().Set("Content-Length", fmt.Sprint(c.length))
			}
			_, _ = io.WriteString(w, c.body)
		}))
		n, failed := 0, error(nil)
		for b, err := range connect(t, client.Config{URL: s.URL, MaxAnswer: 90_000}).Conduct(t.Context(), "a/b c", 7) {
			if failed = err; err == nil {
				n += len(b.Records)
			}
		}
		s.Close()
		if n != c.files || (failed == nil) != (c.wrong == "") || failed != nil && !strings.Contains(failed.Error(), c.wrong) {
			t.Errorf("%s: %d files, %v", c.name, n, failed)
		}
	}
	url, _ := answering(t, http.StatusNoContent, "text/plain", "")
	for _, err := range connect(t, client.Config{URL: url}).Conduct(t.Context(), "a", 7) {
		if err == nil {
			t.Error("no answer is taken for no files")
		}
	}
	url, _ = answering(t, http.StatusNotFound, api.ProblemMediaType, `{"type":"urn:jurat:problem:not-found","title":"x","status":404}`)
	for _, err := range connect(t, client.Config{URL: url}).Conduct(t.Context(), "a", 7) {
		var p *api.Problem
		if !errors.As(err, &p) {
			t.Error(err)
		}
	}
}
