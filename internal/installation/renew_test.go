package installation_test

import (
	"crypto"
	"errors"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/stamping"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
)

// inBatches makes an installation with an authority that stamps in batches.
func inBatches(t *testing.T) (installation.Config, *jurattest.TSA) {
	t.Helper()
	c := installation.Config{Dir: t.TempDir() + "/data"}
	if err := installation.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	description, authority := outside(t, "outside")
	description.Batch = true
	if err := installation.AddOutside(t.Context(), c, description, false); err != nil {
		t.Fatal(err)
	}
	authority.Asked()
	return c, authority
}

// TestBatch: sealing does not ask the authority. One later request stamps all waiting records.
func TestBatch(t *testing.T) {
	c, authority := inBatches(t)
	i := open(t, c)
	const n = 7
	for range n {
		if r := seal(t, i); len(r.Timestamps) != 1 {
			t.Fatalf("%d time stamps, want the operator's alone", len(r.Timestamps))
		}
	}
	if outcomes, err := i.Timekeeper.Stamp(t.Context(), stamping.Order{CatchUp: true}); err != nil || len(outcomes) != 1 || outcomes[0].Stamped != 0 {
		t.Errorf("in passing: %+v, %v", outcomes, err)
	}
	if asked := authority.Asked(); asked != 0 {
		t.Fatalf("asked %d times before", asked)
	}
	be(t, authority, jurattest.Refuses)
	if o := stampWaiting(t, i, stamping.Order{}); o.Stamped != 0 || o.Records != n || o.Reason == nil {
		t.Errorf("refused: %+v", o)
	}
	be(t, authority, jurattest.Good)
	authority.Asked()
	told := 0
	o := stampWaiting(t, i, stamping.Order{Progress: func(_ string, done, total int64) { told++ }})
	if o.Stamped != n || o.Records != 0 || o.Reason != nil || told != n {
		t.Errorf("%+v, told %d times", o, told)
	}
	if asked := authority.Asked(); asked != 1 {
		t.Errorf("asked %d times for %d records", asked, n)
	}
	if records, acts := wantEvidence(t, i); records != n || acts != 1 {
		t.Errorf("%d records with evidence records, %d acts", records, acts)
	}
	wantWhole(t, c)
}

// wantEvidence checks that every record except acts about stamps has an evidence record by an independent clock.
func wantEvidence(t *testing.T, i *installation.Installation) (records, acts int) {
	t.Helper()
	trust, err := i.Trust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Payload.ActionType == evidence.LateStamp {
			acts++
			continue
		}
		report := verify.Record(r.Record, verify.Options{Trust: trust})
		at, ok := report.TimeOf(r.Payload.RecordID)
		if !ok || at.Independent == nil || r.Timestamps[len(r.Timestamps)-1].Kind != evidence.RFC4998 {
			t.Errorf("record %s: %+v, %+v", r.Payload.RecordID, at, report.Of(verify.Time))
		}
		records++
	}
	return records, acts
}

// TestBatchesOfBoundedSize: more records than one tree may hold are stamped with further trees.
func TestBatchesOfBoundedSize(t *testing.T) {
	c, authority := inBatches(t)
	i := open(t, c)
	i.Timekeeper.Most = 3
	for range 8 {
		seal(t, i)
	}
	if o := stampWaiting(t, i, stamping.Order{}); o.Stamped != 8 || o.Records != 0 {
		t.Errorf("%+v", o)
	}
	if asked := authority.Asked(); asked != 3 {
		t.Errorf("asked %d times", asked)
	}
	wantEvidence(t, i)
	wantWhole(t, c)
}

func renew(t *testing.T, i *installation.Installation, config stamping.RenewConfig) stamping.Renewed {
	t.Helper()
	if config.Before.IsZero() {
		config.Before = time.Now().AddDate(1, 0, 0)
	}
	r, err := i.Timekeeper.Renew(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantOutlived checks that records still prove their first time when the old authority is no longer trusted. That
// authority's certificates end within a day.
func wantOutlived(t *testing.T, i *installation.Installation, hash crypto.Hash) {
	t.Helper()
	trust, err := i.Trust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	trust.Authorities[1].NotAfter = time.Now().Add(time.Minute)
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Payload.ActionType == evidence.LateStamp {
			continue
		}
		// Only the stamps of the outside authority, and their renewals.
		r.Timestamps = r.Timestamps[1:]
		report := verify.Record(r.Record, verify.Options{Trust: trust, At: time.Now().Add(time.Hour)})
		at, ok := report.TimeOf(r.Payload.RecordID)
		if !ok || at.Authority != trust.Authorities[1].Name {
			t.Errorf("record %s: %+v, %+v", r.Payload.RecordID, at, report.Of(verify.Time))
		}
		e, err := timestamp.ParseEvidenceRecord(r.Timestamps[len(r.Timestamps)-1].Token)
		if err != nil || e.Hash() != hash {
			t.Errorf("record %s: %v", r.Payload.RecordID, err)
		}
	}
}

// TestRenewPlainTokens: tokens of an authority whose certificates end tomorrow are renewed, all together, and once.
func TestRenewPlainTokens(t *testing.T) {
	c, _ := withOutside(t)
	i := open(t, c)
	for range 5 {
		seal(t, i)
	}
	// Of each record, only the outside authority's token is due.
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn}); r.Records != 5 || r.Requests != 1 || r.Foreign != 0 || r.Authority != stamping.BuiltIn {
		t.Errorf("%+v", r)
	}
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn}); r.Records != 0 || r.Requests != 0 {
		t.Errorf("again: %+v", r)
	}
	wantWhole(t, c)
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Payload.ActionType == evidence.LateStamp && len(r.Payload.Saw) != 5 {
			t.Errorf("the act names %d records", len(r.Payload.Saw))
		}
	}
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn, Before: time.Now().AddDate(-1, 0, 0)}); r.Records != 0 {
		t.Errorf("what ends later: %+v", r)
	}
}

// TestRenewEvidenceRecords: the evidence records of a batch are renewed by one leaf of a tree, and later with another
// hash algorithm.
func TestRenewEvidenceRecords(t *testing.T) {
	c, _ := inBatches(t)
	i := open(t, c)
	for range 5 {
		seal(t, i)
	}
	if r := renew(t, i, stamping.RenewConfig{}); r.Waiting != 5 || r.Records != 0 {
		t.Errorf("while they wait: %+v", r)
	}
	stampWaiting(t, i, stamping.Order{})
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn}); r.Records != 5 || r.Requests != 1 {
		t.Errorf("%+v", r)
	}
	wantOutlived(t, i, crypto.SHA256)
	wantWhole(t, c)
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn}); r.Records != 0 {
		t.Errorf("again: %+v", r)
	}
	sha512 := stamping.RenewConfig{TSA: stamping.BuiltIn, Hash: crypto.SHA512}
	if r := renew(t, i, sha512); r.Records != 10 || r.Requests != 1 { // also the operator's plain tokens, which no evidence record covers
		t.Errorf("with SHA-512: %+v", r)
	}
	wantWhole(t, c)
	if r := renew(t, i, sha512); r.Records != 0 {
		t.Errorf("with SHA-512 again: %+v", r)
	}
}

// TestRenewRefuses: an authority that ends too soon, does not exist or gives invalid answers renews nothing.
func TestRenewRefuses(t *testing.T) {
	c, authority := withOutside(t)
	i := open(t, c)
	seal(t, i)
	year := time.Now().AddDate(1, 0, 0)
	if _, err := i.Timekeeper.Renew(t.Context(), stamping.RenewConfig{Before: year}); !errors.Is(err, stamping.ErrEndsTooEarly) {
		t.Errorf("by an authority that ends tomorrow: %v", err)
	}
	if _, err := i.Timekeeper.Renew(t.Context(), stamping.RenewConfig{Before: year, TSA: "nobody"}); !errors.Is(err, stamping.ErrNotConfigured) {
		t.Errorf("by an authority that is not configured: %v", err)
	}
	for _, mood := range []jurattest.Mood{jurattest.Garbage, jurattest.WrongNonce, jurattest.Refuses} {
		be(t, authority, mood)
		if _, err := i.Timekeeper.Renew(t.Context(), stamping.RenewConfig{Before: year}); err == nil || errors.Is(err, stamping.ErrEndsTooEarly) {
			t.Errorf("%s: %v", mood, err)
		}
	}
	if _, size := onlyRecord(t, i); size != 2 {
		t.Errorf("%d time stamps, although nothing was renewed", size)
	}
	// An authority that is no longer configured.
	if _, err := i.Timekeeper.Remove(t.Context(), "outside", false); err != nil {
		t.Fatal(err)
	}
	i = open(t, c)
	if r := renew(t, i, stamping.RenewConfig{}); r.Foreign != 1 || r.Records != 0 {
		t.Errorf("%+v", r)
	}
}

func onlyRecord(t *testing.T, i *installation.Installation) (*evidence.Record, int) {
	t.Helper()
	var only *evidence.Record
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		if err != nil || only != nil {
			t.Fatalf("want one record: %v", err)
		}
		only = r.Record
	}
	return only, len(only.Timestamps)
}

// TestRenewInterrupted: stored renewals stay, and the rest is renewed in the next run.
func TestRenewInterrupted(t *testing.T) {
	c, _ := withOutside(t)
	i := open(t, c)
	i.Timekeeper.Most = 2
	for range 5 {
		seal(t, i)
	}
	year := time.Now().AddDate(1, 0, 0)
	stop := errors.New("stop")
	func() {
		defer func() {
			if got := recover(); got != stop {
				t.Errorf("recovered %v", got)
			}
		}()
		_, _ = i.Timekeeper.Renew(t.Context(), stamping.RenewConfig{Before: year, TSA: stamping.BuiltIn, Progress: func(int, int) { panic(stop) }})
	}()
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	i = open(t, c)
	i.Timekeeper.Most = 2
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn}); r.Records != 3 || r.Requests != 2 {
		t.Errorf("after two of five: %+v", r)
	}
	wantWhole(t, c)
}
