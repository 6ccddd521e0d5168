package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const continuously = `continuous:
  agents: [Orders desk]
  drawn: 100
  sampled: 1000
  trials_a_day: 20
  dollars_a_day: 2.5
  wait: 1h
  records: 7
  thresholds: [{agent: Orders desk, percent: 87.65}]
  webhooks: [{id: pager, url: 'https://hooks.example/x', secret: {env: PAGER}, old_secret: {env: OLD_PAGER}}]
`

// TestContinuous: the section is read, with its defaults.
func TestContinuous(t *testing.T) {
	f, err := Parse([]byte(continuously))
	if err != nil {
		t.Fatal(err)
	}
	c := f.Continuous
	if c.Drawn != 100 || c.Sampled != 1000 || c.TrialsADay != 20 || c.MicroDollars() != 2_500_000 || c.WaitTime() != time.Hour || c.MaxRecords() != 7 ||
		c.Thresholds[0].Parts() != 8765 || c.Webhooks[0].ID != "pager" {
		t.Errorf("%+v", c)
	}
	if f, err := Parse([]byte("continuous: {sampled: 1, trials_a_day: 1, recorded: true}")); err != nil || !f.Continuous.Recorded || c.Recorded {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err = Parse([]byte("continuous: {sampled: 1, trials_a_day: 1}")); err != nil || f.Continuous.WaitTime() != 10*time.Minute || f.Continuous.MaxRecords() != 50 || f.Continuous.MicroDollars() != 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestRefusedContinuous: an error about the section gives the place of the mistake.
func TestRefusedContinuous(t *testing.T) {
	for change, want := range map[string]string{
		"drawn: 100=drawn: -1":                                    "line 3, column 10: continuous.drawn: one of so many records",
		"sampled: 1000=sampled: 4294967297":                       "continuous.sampled: one of so many",
		"trials_a_day: 20=trials_a_day: 0":                        "continuous: want trials_a_day",
		"dollars_a_day: 2.5=dollars_a_day: 0":                     "continuous.dollars_a_day: want US dollars",
		"dollars_a_day: 2.5=dollars_a_day: -1":                    "continuous.dollars_a_day: want US dollars",
		"wait: 1h=wait: soon":                                     "continuous.wait: want a duration",
		"records: 7=records: 1001":                                "continuous.records: want 1 to 1000",
		"[Orders desk]=['a', 'a']":                                `continuous.agents[1]: "a" is there twice`,
		"[Orders desk]=['']":                                      "continuous.agents[0]: ",
		"percent: 87.65=percent: 87.655":                          "continuous.thresholds[0].percent: want a per cent number",
		"percent: 87.65=percent: 0":                               "thresholds[0].percent",
		"percent: 87.65=percent: 100.01":                          "thresholds[0].percent",
		"87.65}]=87.65}, {agent: Orders desk, percent: 87.65}]":   "thresholds[1]: this threshold is there twice",
		"url: 'https=url: 'http":                                  "line 10, column 31: continuous.webhooks[0].url: want https",
		"https://hooks.example/x=https://127.0.0.1/x":             "webhooks[0].url: the address is not one of the public Internet",
		"id: pager=id: \"\"":                                      "webhooks[0].id",
		"secret: {env: PAGER}=secret: {env: whsec_abc}":           "never the key itself",
		", secret: {env: PAGER}=":                                 "webhooks[0]: want secret:",
		"  thresholds: [{agent: Orders desk, percent: 87.65}]\n=": "continuous.webhooks: there are no thresholds",
		"drawn: 100=often: 100":                                   "continuous.often: unknown key",
	} {
		from, to, _ := strings.Cut(change, "=")
		doc := strings.Replace(continuously, from, to, 1)
		if doc == continuously {
			t.Fatalf("%s changes nothing", change)
		}
		if _, err := Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	if _, err := Parse([]byte("continuous: {arrivals: true}")); err == nil || !strings.Contains(err.Error(), "continuous.arrivals: there are no webhooks") {
		t.Error(err)
	}
	const told = "continuous: {arrivals: true, webhooks: [{id: pager, url: 'https://hooks.example/', secret: {env: PAGER}}]}"
	if f, err := Parse([]byte(told)); err != nil || !f.Continuous.Arrivals || f.Continuous.Tries() {
		t.Errorf("arrivals alone: %v", err)
	}
	for _, nothing := range []string{"continuous: {}", "continuous: {trials_a_day: 3}"} {
		if _, err := Parse([]byte(nothing)); err == nil || !strings.Contains(err.Error(), "want drawn or sampled") {
			t.Errorf("%s: %v", nothing, err)
		}
	}
}

// TestReceiver: a webhook's secrets are found where the file says, and stay out of errors.
func TestReceiver(t *testing.T) {
	f, err := Parse([]byte(continuously))
	if err != nil {
		t.Fatal(err)
	}
	const good = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	w := &f.Continuous.Webhooks[0]
	if _, err := w.Receiver(env("PAGER", good, "OLD_PAGER", good)); err != nil {
		t.Error(err)
	}
	if _, err := w.Receiver(env("PAGER", good)); !errors.Is(err, ErrNoKey) {
		t.Errorf("without the old secret: %v", err)
	}
	if _, err := w.Receiver(env("PAGER", "not-a-secret", "OLD_PAGER", good)); err == nil || strings.Contains(err.Error(), "not-a-secret") {
		t.Errorf("a malformed secret: %v", err)
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(good+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Secret, w.Old = &Key{File: file}, nil
	if _, err := w.Receiver(env()); err != nil {
		t.Error(err)
	}
}
