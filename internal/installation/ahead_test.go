package installation_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/verify"
)

// begin makes an installation and opens it.
func begin(t *testing.T, c installation.Config) (*installation.Installation, error) {
	t.Helper()
	i, _, err := installation.OpenOrCreate(t.Context(), c)
	if err == nil {
		t.Cleanup(func() { _ = i.Close() }) // a test may already have closed it
	}
	return i, err
}

func draftAt(t *testing.T, at time.Time) *evidence.Draft {
	t.Helper()
	draft, err := evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":"a","request_id":"1","timestamp":%q,"model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`,
		at.UTC().Format(time.RFC3339Nano)))
	if err != nil {
		t.Fatal(err)
	}
	return draft
}

func sealAt(t *testing.T, i *installation.Installation, at time.Time) (*evidence.Record, error) {
	t.Helper()
	signers := must(i.Keys.Signers(t.Context(), evidence.RoleAgent, "a"))
	return i.Ledger.Seal(t.Context(), draftAt(t, at), signers)
}

// TestSealRefusesTheFuture: sealing refuses a payload that claims a time further ahead than readers allow, and stores nothing.
func TestSealRefusesTheFuture(t *testing.T) {
	i := must(begin(t, installation.Config{Dir: filepath.Join(t.TempDir(), "data")}))
	size, _ := i.Ledger.Size(t.Context())
	var field *evidence.FieldError
	if _, err := sealAt(t, i, time.Now().Add(6*time.Minute)); !errors.As(err, &field) || field.Field != "timestamp" {
		t.Errorf("six minutes ahead: %v, want a refusal of the field timestamp", err)
	}
	if after, _ := i.Ledger.Size(t.Context()); after > size+1 { // a new key is logged as an act of its own
		t.Errorf("the log has %d records, and had %d", after, size)
	}
	if _, err := sealAt(t, i, time.Now().Add(4*time.Minute)); err != nil {
		t.Errorf("four minutes ahead: %v", err)
	}
}

// TestMostAheadIsProved: a payload with the latest accepted time is proved, even if the clock stands still between the
// check and the stamp.
func TestMostAheadIsProved(t *testing.T) {
	still := time.Now().Truncate(time.Second).Add(999_999_999)
	i := must(begin(t, installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return still }}))
	refused := 0
	for back := time.Duration(0); back < 3*time.Second; back += 100 * time.Millisecond {
		r, err := sealAt(t, i, still.Add(5*time.Minute+time.Second-back))
		if err != nil {
			refused++
			continue
		}
		trust := must(i.Trust(t.Context()))
		if f := verify.Record(r, verify.Options{Trust: trust}).Of(verify.Time); f.Status != verify.Proved {
			t.Errorf("it was sealed %v before the limit, and its time is %s: %s", back-time.Second, f.Status, f.Reason)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestSkewIsNoDamage: earlier programs sealed records that claim a time in the future. A log with such a record is not
// damaged: it can be examined, backed up and restored.
func TestSkewIsNoDamage(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	i := must(begin(t, c))
	must(sealAt(t, i, time.Now()))
	succeeds(t, i.Close())
	ahead := must(installation.OpenAhead(t.Context(), c, func() time.Time { return time.Now().Add(time.Hour) }))
	r := must(sealAt(t, ahead, time.Now().Add(time.Hour)))
	must(ahead.Ledger.Checkpoint(t.Context()))
	trust := must(ahead.Trust(t.Context()))
	if f := verify.Record(r, verify.Options{Trust: trust}).Of(verify.Time); f.Rule != "skew" {
		t.Fatalf("its time is %s (%s): the test has no skewed record", f.Status, f.Rule)
	}
	if f := verify.Sealed(r, verify.Options{Trust: trust}); f.Status != verify.Proved || f.Rule != "skew" {
		t.Errorf("that it was sealed is %s by the rule %q: %s", f.Status, f.Rule, f.Reason)
	}
	succeeds(t, ahead.Close())
	damages, _, err := installation.Fsck(t.Context(), c, nil)
	if err != nil || len(damages) > 0 {
		t.Errorf("fsck: %v, %v", damages, err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	must(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: to}))
	restored := installation.Config{Dir: filepath.Join(t.TempDir(), "restored")}
	if _, err := installation.Restore(t.Context(), restored, installation.RestoreOrder{From: to, NoneLater: true}); err != nil {
		t.Errorf("restore: %v", err)
	}
	if _, err := os.Stat(restored.Dir); err != nil {
		t.Error(err)
	}
}
