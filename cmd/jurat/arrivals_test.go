package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"jurat/internal/must"
)

// TestTellsOfCases: a server tells a webhook of the case that needs a person, though its trial ended before the server began; not of one
// that the jury decided; and of nothing again after a restart. The message links to the page of the decision, and has nothing that was said.
func TestTellsOfCases(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	heard := make(chan string, 10)
	desk := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		by, failed := standardwebhooks.NewWebhook(hookSecret)
		if err != nil || failed != nil || by.Verify(body, r.Header) != nil {
			t.Errorf("a message that is not signed: %s, %v", body, err)
		}
		heard <- string(body)
	}))
	defer desk.Close()
	settings := hookFile(t, "inward: true, ", desk.URL)
	doing(t, 0, "--data", data, "trial", "--jurors", "offline", filepath.Join("..", "..", "examples", "kitchen-return"))
	token := strings.TrimSpace(doing(t, 0, "--data", data, "access", "grant", "ada", "auditor", "--reason", "a test", "--by", "tester"))
	told := map[string]bool{}
	for range 2 { // each time, one case more needs a person
		doing(t, exitUndecided, "--data", data, "trial", "--jurors", "offline", filepath.Join("..", "..", "examples", "pharmacy-refill"))
		url, _, stop := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0", "--jurors", "offline", "--config", settings)
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
		body := <-heard
		if err := json.Unmarshal([]byte(body), &m); err != nil || m.Type != "review.arrived" || m.Data.Page != url+"/reviews/"+m.Data.RecordID ||
			m.Data.Arrival.Position != "needs_review" || !slices.Contains(m.Data.Arrival.Why, "needs_review") || strings.Contains(body, "pharmacist") || told[m.Data.Arrival.Trial] {
			t.Errorf("%s: %v", body, err)
		}
		told[m.Data.Arrival.Trial] = true
		for end := time.Now().Add(time.Minute); !strings.Contains(readAs(t, token, url+"/metrics"), "\njurat_webhook_messages_waiting 0\n"); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("messages wait")
			}
		}
		stop()
	}
	select {
	case body := <-heard:
		t.Errorf("told again: %s", body)
	default:
	}
	doing(t, 0, "--data", data, "log", "fsck")
}

func readAs(t *testing.T, token, url string) string {
	t.Helper()
	ask := must.Get(http.NewRequestWithContext(t.Context(), "GET", url, nil))(t)
	ask.Header.Set("Authorization", "Bearer "+token)
	answer := must.Get(http.DefaultClient.Do(ask))(t)
	defer answer.Body.Close()
	return string(must.Get(io.ReadAll(answer.Body))(t))
}
