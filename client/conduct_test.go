package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/client"
	"jurat/evidence"
	"jurat/jurattest"
)

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
