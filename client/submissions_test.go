package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"jurat/client"
)

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
