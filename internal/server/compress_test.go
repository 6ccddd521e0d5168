package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"jurat/internal/must"
)

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
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
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
