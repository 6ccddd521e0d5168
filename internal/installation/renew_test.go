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

func renew(t *testing.T, i *installation.Installation, config stamping.RenewConfig) stamping.Renewed {
	t.Helper()
	if config.Before.IsZero() {
		config.Before = time.Now().AddDate(1, 0, 0)
	}
	return must(i.Timekeeper.Renew(t.Context(), config))
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
	trust := must(i.Trust(t.Context()))
	trust.Authorities[1].NotAfter = time.Now().Add(time.Minute)
	by := func(r *evidence.Record) string {
		t.Helper()
		proved := must(i.Ledger.ProveOne(t.Context(), r))
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
	must(i.Timekeeper.Remove(t.Context(), "outside", false))
	i = open(t, c)
	if r := renew(t, i, stamping.RenewConfig{}); r.Foreign != 1 || r.Renewed != 0 {
		t.Errorf("of an authority that is no longer configured: %+v", r)
	}
}
