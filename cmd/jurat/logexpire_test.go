package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/expiry"
	"jurat/internal/installation"
	"jurat/internal/ledger"
)

// TestExpireLeavesTrials: a trial that is open stays, with the records that it is about; what no trial needs goes.
func TestExpireLeavesTrials(t *testing.T) {
	then := time.Now().AddDate(-1, 0, 0)
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return then }}
	i, _, err := installation.OpenOrCreate(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	seal := func(role evidence.Role, name, doc string) *evidence.Record {
		t.Helper()
		d, err := evidence.ParseDraft([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		signers, err := i.Keys.Signers(t.Context(), role, name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := i.Ledger.Seal(t.Context(), d, signers)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	output := func(n int) *evidence.Record {
		return seal(evidence.RoleAgent, "courier", fmt.Sprintf(`{"agent_id":"courier","request_id":"r-%d","timestamp":"2024-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`, n))
	}
	tried, other := output(1), output(2)
	submission := seal(evidence.RoleSubmitter, "store", fmt.Sprintf(`{"action_type":"submission","agent_id":"store","timestamp":%q,"chain_id":"trial-0199aabb-0000-7000-8000-000000000000","chain_position":1,"case":%q,"response":{},"saw":[%q]}`,
		evidence.FormatTime(then), evidence.DigestOf([]byte("{}")), tried.Digest))
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	c.Now = nil
	if i, err = installation.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	output(3)
	done, err := i.Expirer.Expire(t.Context(), expiry.Order{Before: time.Now().AddDate(0, -7, 0), Reason: "r", By: "b",
		Stays: func(ctx context.Context) (*expiry.Staying, error) { return stays(ctx, i.Ledger) }})
	if err != nil || done.Records != 1 || done.Needed != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, r := range []*evidence.Record{tried, submission} {
		if _, err := i.Ledger.Record(t.Context(), r.Payload.RecordID); err != nil {
			t.Errorf("%s: %v", r.Payload.ActionType, err)
		}
	}
	if _, err := i.Ledger.Record(t.Context(), other.Payload.RecordID); !errors.Is(err, ledger.ErrExpired) {
		t.Errorf("what no trial needs: %v", err)
	}
}

// TestWhatWaitsForAPersonStays: a verdict that a person must decide on keeps its trial, and another one does not.
func TestWhatWaitsForAPersonStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	ran(t, exitUndecided, "--data", dir, "trial", "--jurors", "offline", "../../examples/pharmacy-refill", "--out", filepath.Join(t.TempDir(), "case.jurat"))
	ran(t, exitBad, "--data", dir, "trial", "--jurors", "offline", "../../examples/invoice-inbox", "--out", filepath.Join(t.TempDir(), "case.jurat"))
	i, err := installation.Open(t.Context(), installation.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	s, err := stays(t.Context(), i.Ledger)
	if err != nil || len(s.Chains) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
