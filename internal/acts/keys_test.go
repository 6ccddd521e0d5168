package acts_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/acts"
	"jurat/internal/installation"
	"jurat/internal/keys"
)

// TestKeysChangedElsewhere: a process that has sealed with an actor's key seals with the next one after another process has rotated it, and says that there is
// none after another process has retired it. The log has each act once.
func TestKeysChangedElsewhere(t *testing.T) {
	config := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	if err := installation.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	open := func() *installation.Installation {
		i, err := installation.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := i.Close(); err != nil {
				t.Error(err)
			}
		})
		return i
	}
	here, there := open(), open()
	on := acts.New(acts.Config{Ledger: here.Ledger, Keys: here.Keys, Disclose: here.Apart.Disclose, Now: time.Now})
	seal := func() (*evidence.Record, error) {
		draft, err := evidence.ParseDraft([]byte(`{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		done, err := on.Seal(t.Context(), acts.Order{By: acts.Operator, Apart: []string{"/prompt"}}, draft)
		if err != nil {
			return nil, err
		}
		return done.Record, nil
	}
	why := keys.Why{By: "me", Reason: "test"}
	before, err := seal()
	if err != nil {
		t.Fatal(err)
	}
	if err := there.Registrar.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, why); err != nil {
		t.Fatal(err)
	}
	after, err := seal()
	if err != nil {
		t.Fatal(err)
	}
	if after.Payload.Signers[0] == before.Payload.Signers[0] {
		t.Error("the key that was rotated elsewhere still signs")
	}
	if err := there.Registrar.Retire(t.Context(), after.Payload.Signers[0].KeyID, why); err != nil {
		t.Fatal(err)
	}
	if _, err := seal(); !errors.Is(err, keys.ErrNoKey) {
		t.Errorf("after its only key was retired elsewhere: %v", err)
	}
	for _, r := range []*evidence.Record{before, after} {
		logged, err := there.Ledger.Record(t.Context(), r.Payload.RecordID)
		if err != nil || logged.Digest != r.Digest {
			t.Errorf("record %s: %v", r.Payload.RecordID, err)
		}
	}
	events, err := there.Ledger.KeyEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	head, err := there.Ledger.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if size, err := there.Ledger.SizeAt(t.Context(), head); err != nil || size != int64(2+len(events)) {
		t.Errorf("the log has %d records, %d of them about keys: %v", size, len(events), err)
	}
}

// stale knows of no keys to seal with, until the log is read.
type stale struct {
	acts.Keys
	err error
}

func (s stale) ToSeal(context.Context, evidence.Role, string) ([]evidence.Signer, error) {
	return nil, s.err
}

// TestKeysMadeElsewhere: what this process knows of an actor's keys may be too old to seal with. Then the log is asked, once, before the act is refused.
func TestKeysMadeElsewhere(t *testing.T) {
	config := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	if err := installation.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	i, err := installation.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, problem := range []error{keys.ErrNoKey, keys.ErrEnded, keys.ErrLost, keys.ErrSecondKey, keys.ErrOwner} {
		on := acts.New(acts.Config{Ledger: i.Ledger, Keys: stale{i.Keys, fmt.Errorf("key: %w", problem)}, Disclose: i.Apart.Disclose, Now: time.Now})
		draft, err := evidence.ParseDraft([]byte(`{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		want := error(nil)
		if problem == keys.ErrOwner {
			want = problem
		}
		if _, err := on.Seal(t.Context(), acts.Order{By: acts.Operator}, draft); !errors.Is(err, want) {
			t.Errorf("%v: %v", problem, err)
		}
	}
}
