package installation_test

import (
	"errors"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/stamping"
	"jurat/jurattest"
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

// TestRenew: stamped checkpoints whose authority ends tomorrow are renewed, each once. Their records still prove their first times when that
// authority is no longer trusted.
func TestRenew(t *testing.T) {
	c, _ := withOutside(t)
	c.TSA = []string{stamping.BuiltIn} // records
	first := seal(t, open(t, c))
	c.TSA = nil
	i := open(t, c)
	if r := renew(t, i, stamping.RenewConfig{}); r != (stamping.Renewed{Authority: "outside"}) {
		t.Errorf("without a stamped checkpoint: %+v", r)
	}
	anchored(t, i)
	second := seal(t, i)
	anchored(t, i)
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn, Before: time.Now().AddDate(-1, 0, 0)}); r.Renewed != 0 {
		t.Errorf("what ends later: %+v", r)
	}
	trust, err := i.Trust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	trust.Authorities[1].NotAfter = time.Now().Add(time.Minute)
	by := func(r *evidence.Record) string {
		t.Helper()
		proved, err := i.Ledger.ProveOne(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		proved.Timestamps = nil
		at, _ := verify.Record(proved, verify.Options{Trust: trust, At: time.Now().Add(time.Hour)}).TimeOf(r.Payload.RecordID)
		return at.Authority
	}
	if by(first)+by(second) != "" {
		t.Error("a lost authority is believed without a renewal")
	}
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn}); r.Renewed != 2 || r.Foreign != 0 || r.Authority != stamping.BuiltIn {
		t.Errorf("%+v", r)
	}
	for n, r := range []*evidence.Record{first, second} {
		if got := by(r); got != trust.Authorities[1].Name {
			t.Errorf("record %d: by %q", n, got)
		}
	}
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn}); r.Renewed != 0 {
		t.Errorf("again: %+v", r)
	}
	if stamped, missing := anchored(t, i); stamped != 0 || missing != 0 {
		t.Errorf("acts about renewals are stamped: %d and %d", stamped, missing)
	}
	wantWhole(t, c)
}

// TestRenewRefuses: an authority that ends too soon, does not exist or gives invalid answers renews nothing.
func TestRenewRefuses(t *testing.T) {
	c, authority := withOutside(t)
	i := open(t, c)
	seal(t, i)
	anchored(t, i)
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
	if size, err := i.Ledger.Size(t.Context()); size != 2 || err != nil {
		t.Errorf("%d records, %v, although nothing was renewed", size, err)
	}
	if _, err := i.Timekeeper.Remove(t.Context(), "outside", false); err != nil {
		t.Fatal(err)
	}
	i = open(t, c)
	if r := renew(t, i, stamping.RenewConfig{}); r.Foreign != 1 || r.Renewed != 0 {
		t.Errorf("of an authority that is no longer configured: %+v", r)
	}
}
