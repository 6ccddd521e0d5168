package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"jurat/api"
)

// TestTellsOfCases: a server tells a webhook of the case that needs a person, though its trial ended before the server began; not of one
// that the jury decided; and nothing again after a restart. The message links to the page of the decision.
func TestTellsOfCases(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	var mu sync.Mutex
	var heard []string
	desk := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		by, failed := standardwebhooks.NewWebhook(hookSecret)
		if err != nil || failed != nil || by.Verify(body, r.Header) != nil {
			t.Errorf("a message that is not signed: %s, %v", body, err)
		}
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, string(body))
	}))
	defer desk.Close()
	doing(t, exitUndecided, "--data", data, "trial", "--jurors", "offline", filepath.Join("..", "..", "examples", "pharmacy-refill"))
	doing(t, 0, "--data", data, "trial", "--jurors", "offline", filepath.Join("..", "..", "examples", "kitchen-return"))
	token := strings.TrimSpace(doing(t, 0, "--data", data, "access", "grant", "ada", "auditor", "--reason", "a test", "--by", "tester"))
	settings := write(t, filepath.Join(folder, "arrivals.yaml"), `continuous:
  arrivals: true
  webhooks: [{id: desk, url: '`+desk.URL+`', inward: true, secret: {file: '`+write(t, filepath.Join(folder, "desk.secret"), hookSecret+"\n")+`'}}]
`)
	for range 2 {
		url, _, stop := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0", "--jurors", "offline", "--continuous", settings)
		awaitStatus(t, url+"/v1/continuous-trial", token, "the desk was told", func(s *api.ContinuousTrial) bool {
			mu.Lock()
			defer mu.Unlock()
			return len(heard) > 0 && len(s.Webhooks) == 1 && s.Webhooks[0].Waiting == 0 && len(s.Faults) == 0
		})
		stop()
	}
	var m struct {
		Type string `json:"type"`
		Data struct {
			RecordID string `json:"record_id"`
			Page     string `json:"page"`
			Arrival  struct {
				Trial    string   `json:"trial"`
				Position string   `json:"position"`
				Why      []string `json:"why"`
			} `json:"arrival"`
		} `json:"data"`
	}
	if len(heard) != 1 {
		t.Fatalf("heard %q", heard)
	}
	if err := json.Unmarshal([]byte(heard[0]), &m); err != nil || m.Type != "review.arrived" || !strings.HasSuffix(m.Data.Page, "/reviews/"+m.Data.RecordID) ||
		m.Data.Arrival.Position != "needs_review" || !slices.Contains(m.Data.Arrival.Why, "needs_review") || strings.Contains(heard[0], "pharmacist") {
		t.Errorf("%s: %v", heard[0], err)
	}
	if out := doing(t, 0, "--data", data, "log", "fsck"); out == "" {
		t.Error("fsck says nothing")
	}
}
