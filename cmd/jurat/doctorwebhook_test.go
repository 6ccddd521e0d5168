package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"jurat/internal/config"
	"jurat/internal/must"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hookFile writes a configuration with a webhook at this address.
func hookFile(t *testing.T, inward, address string) string {
	t.Helper()
	folder := t.TempDir()
	secret := write(t, filepath.Join(folder, "secret"), hookSecret+"\n")
	return write(t, filepath.Join(folder, "webhook.yaml"), "webhook: {url: '"+address+"', "+inward+"secret: {file: '"+secret+"'}}\n")
}

// TestWebhookTest: a receiver that checks signatures takes the message; the command says what was sent and what came back, and needs no installation. Of
// a receiver that does not take it, it says what to do.
func TestWebhookTest(t *testing.T) {
	t.Parallel()
	var heard []string
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		by, failed := standardwebhooks.NewWebhook(hookSecret)
		if err != nil || failed != nil || by.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		heard = append(heard, r.Header.Get("webhook-id")+" "+string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer good.Close()
	status := 0
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", good.URL)
		w.WriteHeader(status)
	}))
	defer bad.Close()
	data := filepath.Join(t.TempDir(), "none")
	refusing := hookFile(t, "inward: true, ", bad.URL)
	out := doing(t, 0, "--data", data, "doctor", "--webhook", "--config", hookFile(t, "inward: true, ", good.URL+"/hook?token=of-the-receiver"))
	if len(heard) != 1 || !strings.Contains(heard[0], `"type":"webhook.test"`) {
		t.Fatalf("heard %q", heard)
	}
	id, body, _ := strings.Cut(heard[0], " ")
	for _, want := range []string{"sent to " + good.URL, "webhook-id " + id, "taken, with status 202", "webhook.test"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "of-the-receiver") || strings.Contains(out, hookSecret) || strings.Contains(body, "of-the-receiver") {
		t.Errorf("a secret is printed:\n%s", out)
	}
	for code, want := range map[int]string{401: "the secret that this file names", 404: "Correct the url", 302: "Redirects are not followed", 410: "Subscribe anew", 429: "busy", 500: "Look for the message's id"} {
		status = code
		var got hookTest
		must.Do(t, json.Unmarshal([]byte(doing(t, exitBad, "doctor", "--webhook", "--config", refusing, "--json")), &got))
		if got.Taken || got.Status != code || got.Why == "" || !strings.Contains(got.Do, want) {
			t.Errorf("status %d: %+v", code, got)
		}
	}
	bad.Close()
	if out := doing(t, exitBad, "doctor", "--webhook", "--config", refusing); !strings.Contains(out, "not taken") || !strings.Contains(out, "Nothing listens there") {
		t.Errorf("of a receiver that is down it says:\n%s", out)
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	if out := doing(t, exitBad, "doctor", "--webhook", "--config", hookFile(t, "inward: true, ", secure.URL)); !strings.Contains(out, "certificate is not good") {
		t.Errorf("of a certificate that nobody vouches for it says:\n%s", out)
	}
	local := strings.Replace(secure.URL, "127.0.0.1", "localhost", 1)
	if out := doing(t, exitBad, "doctor", "--webhook", "--config", hookFile(t, "", local)); !strings.Contains(out, "inward: true") {
		t.Errorf("of a name that leads inward it says:\n%s", out)
	}
	for want, err := range map[string]error{"does not find the name": &net.DNSError{Err: "no such host", IsNotFound: true}, "within 20 s": context.DeadlineExceeded, "broke": io.ErrUnexpectedEOF} {
		if do := hookAdvice(&config.Webhook{}, 0, fmt.Errorf("sending: %w", err)); !strings.Contains(do, want) {
			t.Errorf("after %v: %s", err, do)
		}
	}
}

// TestWebhookTestRefuses: what is wrong with the file is named, and nothing is sent.
func TestWebhookTestRefuses(t *testing.T) {
	t.Parallel()
	none := write(t, filepath.Join(t.TempDir(), "none.yaml"), "jurors: offline\n")
	noSecret := write(t, filepath.Join(t.TempDir(), "secret.yaml"), "webhook: {url: 'https://hooks.example/', secret: {env: JURAT_TEST_NO_SUCH_SECRET}}\n")
	for want, args := range map[string][]string{
		"it names no webhook":       {"--config", none},
		"JURAT_TEST_NO_SUCH_SECRET": {"--config", noSecret},
		"no such file":              {"--config", filepath.Join(t.TempDir(), "missing.yaml")},
		"jurat.yaml":                {},
	} {
		code, out, errs := jurat(t, append([]string{"doctor", "--webhook"}, args...)...)
		if code != exitCannot || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: exit code %d, %s%s", args, code, out, errs)
		}
	}
}

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
