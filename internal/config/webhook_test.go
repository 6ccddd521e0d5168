package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
)

const hooked = `rounds: 1
webhook: {url: 'https://hooks.example/x', secret: {env: PAGER}, old_secret: {env: OLD_PAGER}}
`

// TestRefusedWebhook: an error about the section gives the place of the mistake. The key continuous, which earlier programs had, is refused with what to use instead.
func TestRefusedWebhook(t *testing.T) {
	if f, err := Parse([]byte(hooked)); err != nil || f.Webhook.URL != "https://hooks.example/x" {
		t.Fatalf("%+v, %v", f, err)
	}
	for change, want := range map[string]string{
		"url: 'https=url: 'http":                        "line 2, column 16: webhook.url: want https",
		"https://hooks.example/x=https://127.0.0.1/x":   "webhook.url: the address is not one of the public Internet",
		"secret: {env: PAGER}=secret: {env: whsec_abc}": "never the key itself",
		", secret: {env: PAGER}=":                       "webhook: want secret:",
		"url:=id: pager, url:":                          "webhook.id: unknown key",
		"rounds: 1=continuous: {sampled: 1}":            "line 1, column 1: continuous: unknown key: write webhook, which is told when a case needs a person; 'jurat trial --recorded CHAIN' tries records",
	} {
		from, to, _ := strings.Cut(change, "=")
		doc := strings.Replace(hooked, from, to, 1)
		if doc == hooked {
			t.Fatalf("%s changes nothing", change)
		}
		if _, err := Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
}

// TestReceiver: a webhook's secrets are found where the file says, and stay out of errors.
func TestReceiver(t *testing.T) {
	f := must.Get(Parse([]byte(hooked)))(t)
	const good = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	if _, err := f.Webhook.Receiver(env("PAGER", good, "OLD_PAGER", good)); err != nil {
		t.Error(err)
	}
	if _, err := f.Webhook.Receiver(env("PAGER", good)); !errors.Is(err, ErrNoKey) {
		t.Errorf("without the old secret: %v", err)
	}
	if _, err := f.Webhook.Receiver(env("PAGER", "not-a-secret", "OLD_PAGER", good)); err == nil || strings.Contains(err.Error(), "not-a-secret") {
		t.Errorf("a malformed secret: %v", err)
	}
	file := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(file, []byte(good+"\n"), 0o600))
	f.Webhook.Secret, f.Webhook.Old = &Key{File: file}, nil
	if _, err := f.Webhook.Receiver(env()); err != nil {
		t.Error(err)
	}
}
