package server

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/ledger"
	"jurat/internal/must"
)

// FuzzBody: a body with a canonical form is read whole. A body that is nested too deeply is refused before its end.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"a":[1,"]\"[",{"b":null}]}`))
	f.Add([]byte(strings.Repeat("[", 200) + strings.Repeat("]", 200)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := readBody(httptest.NewRequest("POST", "/", bytes.NewReader(doc)))
		if err == nil && !bytes.Equal(got, doc) {
			t.Fatalf("read %q of %q", got, doc)
		}
		if _, refused := evidence.Canonical(doc); refused == nil && err != nil {
			t.Fatalf("%q has a canonical form: %v", doc, err)
		}
		if err != nil && !errors.Is(err, api.ErrInvalid) && !errors.Is(err, api.ErrMalformed) {
			t.Fatal(err)
		}
	})
}

// TestDeepestBody: the maximum nesting is that of payloads. Brackets in strings do not count.
func TestDeepestBody(t *testing.T) {
	for text, good := range map[string]bool{
		strings.Repeat("[", evidence.MaxDepth) + strings.Repeat("]", evidence.MaxDepth):     true,
		strings.Repeat("[", evidence.MaxDepth+1) + strings.Repeat("]", evidence.MaxDepth+1): false,
		`"` + strings.Repeat(`[\"`, 1000) + `"`:                                             true,
		`"\\"` + strings.Repeat("[", evidence.MaxDepth+1):                                   false,
	} {
		_, err := io.ReadAll(shallowReader(strings.NewReader(text)))
		if (err == nil) != good {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}

// TestCompressed: pages, styles and scripts are compressed for who takes it, and nothing else: a stream arrives event by
// event, and bytes that are hashed are as they were.
func TestCompressed(t *testing.T) {
	long := strings.Repeat("A conversation of five hundred messages. ", 2000)
	for kind, packed := range map[string]bool{"text/html; charset=utf-8": true, "text/css; charset=utf-8": true, "text/javascript; charset=utf-8": true,
		"application/json": false, "application/octet-stream": false, "text/event-stream": false, "text/csv": false} {
		h := must.Get(compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, long)
		})))(t)
		for _, takes := range []string{"gzip, deflate, br", "", "br"} {
			r := httptest.NewRequest("GET", "/", nil)
			if takes != "" {
				r.Header.Set("Accept-Encoding", takes)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			body := w.Body.Bytes()
			want := packed && strings.Contains(takes, "gzip")
			if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
				t.Errorf("%s for a client that takes %q: compressed is %v, want %v", kind, takes, got, want)
				continue
			}
			if want {
				if len(body) > len(long)/20 {
					t.Errorf("%s: %d bytes of %d", kind, len(body), len(long))
				}
				z := must.Get(gzip.NewReader(bytes.NewReader(body)))(t)
				body = must.Get(io.ReadAll(z))(t)
			}
			if string(body) != long {
				t.Errorf("%s for a client that takes %q: another body", kind, takes)
			}
			if packed && !strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Accept-Encoding") {
				t.Errorf("%s: caches are not told that the body depends on Accept-Encoding", kind)
			}
		}
	}
}

// TestCompressedStreams: an event passes when it is flushed.
func TestCompressedStreams(t *testing.T) {
	next := make(chan bool)
	h := must.Get(compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		must.Want(t, http.NewResponseController(w).Flush(), nil)
		<-next
	})))(t)
	s := httptest.NewServer(h)
	defer s.Close()
	defer close(next)
	r := must.Get(http.NewRequestWithContext(t.Context(), "GET", s.URL, nil))(t)
	r.Header.Set("Accept-Encoding", "gzip")
	answer := must.Get(http.DefaultTransport.RoundTrip(r))(t)
	defer answer.Body.Close()
	first := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(answer.Body, first); err != nil || string(first) != "data: 1\n\n" {
		t.Errorf("%q, %v", first, err)
	}
}

// TestCrowdsOfStrangers: callers without a token, from many addresses, do not shut out a caller with a token. Their
// addresses are forgotten as soon as they have their full allowance again.
func TestCrowdsOfStrangers(t *testing.T) {
	now := time.Now()
	l := newRateLimiter(Rate{PerSecond: 1, Burst: 2}, func() time.Time { return now })
	for i := range maxStrangers {
		if err := l.Allow(fmt.Sprint("address ", i), true); err != nil {
			t.Fatal(i, err)
		}
	}
	must.Want(t, l.Allow("one address more", true), api.ErrTooMany)
	must.Want(t, l.Allow("a token", false), nil)
	now = now.Add(2 * time.Second)
	if err := l.Allow("one address more", true); err != nil || len(l.callers) != 1 {
		t.Errorf("%v, %d are remembered", err, len(l.callers))
	}
	// Pauses between many requests do not help.
	for range 5 {
		_ = l.Allow("one address more", true)
	}
	now = now.Add(time.Second)
	l.sweep(now)
	if l.callers["one address more"] == nil {
		t.Error("an address was forgotten before its allowance was full again")
	}
	now = now.Add(-time.Hour)
	must.Want(t, l.Allow("a clock that went back", true), nil)
}

// TestProblemsOfExpired: a deleted record gives another status than a missing one.
func TestProblemsOfExpired(t *testing.T) {
	for err, want := range map[error]int{ledger.ErrExpired: http.StatusGone, ledger.ErrNotFound: http.StatusNotFound} {
		if p := problemOf(fmt.Errorf("reading record r: %w", err)); p.Status != want || p.Detail == "" {
			t.Errorf("%v: %+v, want %d", err, p, want)
		}
	}
}

// TestOwnPath: the sign-in page never sends a browser to another site.
func TestOwnPath(t *testing.T) {
	for next, want := range map[string]string{"": "/", "/reviews": "/reviews", "/records/x?lang=ja": "/records/x?lang=ja", "https://elsewhere.example": "/",
		"//elsewhere.example": "/", `/\elsewhere.example`: "/", "javascript:alert(1)": "/", "reviews": "/", "/\t/elsewhere.example": "/", "/%": "/"} {
		if got := ownPath(next); got != want {
			t.Errorf("ownPath(%q) = %q, want %q", next, got, want)
		}
	}
}

// TestHeld: what a page of a chain holds does not grow with what is before it, beyond the window of bodies, whatever records state.
func TestHeld(t *testing.T) {
	r := &evidence.Record{Payload: evidence.Payload{Observed: &evidence.Observed{Request: &evidence.ObservedBody{Bytes: 400 << 10}, Response: &evidence.ObservedBody{Bytes: 1 << 10}}}}
	h, sum := held{}, int64(0)
	for range 10_000 {
		sum += h.more(r, false)
	}
	if most := int64(observed.MaxWindow + 4*401<<10); sum != most {
		t.Errorf("10,000 calls take %d bytes, want %d", sum, most)
	}
	r.Payload.Observed.Request.Bytes = 1 << 50
	if more := (&held{}).more(r, true); more > observed.MaxWindow+8*observed.MaxKept {
		t.Errorf("a call that states very many bytes takes %d", more)
	}
	must.Equal(t, (&held{}).more(&evidence.Record{}, true), 0)
}
