package recording

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/internal/relay"
)

// report is what telemetry may tell of an act.
func report(body, dialogue string) Report {
	at := time.Date(2026, 11, 27, 15, 0, 0, 0, time.UTC)
	return Report{Agent: "shop-bot", Chain: dialogue, ID: evidence.RecordIDFor("", "span-1"), OtherID: evidence.RecordIDFor("", "span-1", body), Act: observed.Act{RequestID: "span-1", Type: evidence.ObservedSpan, At: at, Began: at,
		Vantage: evidence.Telemetry, Fidelity: evidence.ByAttributes, Protocol: "otlp", Ended: evidence.Complete,
		Request: &observed.Body{Bytes: int64(len(body)), SHA256: evidence.DigestOf([]byte(body)), Type: "application/json", Kept: []byte(body)}}}
}

// TestReport: what is told twice is sealed once; another account of the same act is sealed, too, and names the first.
func TestReport(t *testing.T) {
	log := new(shelf)
	r, err := Open(t.Context(), Config{Log: log, Name: "listener", Folder: t.TempDir(), Mode: relay.Closed, Vantage: evidence.Telemetry, Version: "test", Configuration: evidence.DigestOf(nil)})
	if err != nil {
		t.Fatal(err)
	}
	first, other := report(`{"a":1}`, "dialogue"), report(`{"a":2}`, "dialogue")
	for i, step := range []struct {
		told Report
		want Account
	}{{first, New}, {first, Known}, {other, Another}, {other, Known}, {first, Known}} {
		if got, err := r.Report(t.Context(), step.told); got != step.want || err != nil {
			t.Errorf("report %d: %s, %v: want %s", i, got, err, step.want)
		}
	}
	acts := log.acts(evidence.ObservedSpan)
	if len(acts) != 2 || log.tried != 2 {
		t.Fatalf("%d records, %d tried: want 2", len(acts), log.tried)
	}
	if p := acts[1]; !strings.Contains(strings.Join(p.Observed.Missing, "\n"), first.ID) || p.ChainID != "recorded/shop-bot/dialogue" || p.AgentID != "listener" || p.Observed.Agent != "shop-bot" || len(p.Saw) != 1 {
		t.Errorf("the other account: %+v", p.Payload)
	}
	log.expired = true
	if got, err := r.Report(t.Context(), report(`{"a":4}`, "dialogue")); got != Known || err != nil || len(log.acts(evidence.ObservedSpan)) != 2 {
		t.Errorf("an act whose record has expired: %s, %v", got, err)
	}
	log.fail(errors.New("the disk is full"))
	if _, err := r.Report(t.Context(), report(`{"a":3}`, "dialogue")); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("a log that is out of order: %v", err)
	}
	log.fail(nil)
	must.Do(t, r.Close(context.Background(), "the test ended"))
	if n := len(log.acts(evidence.ObservedSpan)); n != 2 {
		t.Errorf("%d records: what the caller was told to send again is not sealed behind its back", n)
	}
}

// TestUnknownMode: neither the recorder nor what passes its calls on takes a mode that is none for the open one.
func TestUnknownMode(t *testing.T) {
	_, err := Open(t.Context(), Config{Log: new(shelf), Name: "listener", Folder: t.TempDir(), Mode: "Closed", Vantage: evidence.Telemetry, Version: "test", Configuration: evidence.DigestOf(nil)})
	if err == nil || !strings.Contains(err.Error(), "unknown mode") {
		t.Error(err)
	}
	_, err = relay.New(new(Recorder), relay.Options{Mode: "Closed", Upstreams: map[string]relay.Upstream{"api": {Base: &url.URL{Scheme: "http", Host: "127.0.0.1"}}}, Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32)})
	if err == nil || !strings.Contains(err.Error(), "unknown mode") {
		t.Error(err)
	}
}
