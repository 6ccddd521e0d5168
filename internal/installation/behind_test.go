package installation_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/access"
	sealing "jurat/internal/acts"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/ledger/fsck"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// twoClocks opens a new installation twice, as two processes or machines do: one whose clock is an hour ahead, and one whose clock is right and has
// been used before.
func twoClocks(t *testing.T, open func() installation.Config) (ahead, right *installation.Installation) {
	t.Helper()
	c := open()
	succeeds(t, installation.Create(t.Context(), c))
	right, err := begin(t, c)
	if err != nil {
		t.Fatal(err)
	}
	proved(t, right, sealAs(t, right, "first", time.Now()))
	c = open()
	c.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if ahead, err = begin(t, c); err != nil {
		t.Fatal(err)
	}
	return ahead, right
}

// inTime expects that it is proved when each record was sealed, and by whom.
func inTime(t *testing.T, i *installation.Installation, records ...*evidence.Record) {
	t.Helper()
	trust := must(i.Trust(t.Context()))
	for _, r := range records {
		report := verify.Record(r, verify.Options{Trust: trust})
		for _, g := range []verify.Guarantee{verify.Authentication, verify.Time} {
			if f := report.Of(g); f.Status != verify.Proved {
				t.Errorf("%s %s: %s", g, f.Status, f.Reason)
			}
		}
	}
}

// onBoth runs a test on a folder, and on a database that machines share.
func onBoth(t *testing.T, test func(t *testing.T, place func(t *testing.T) func() installation.Config)) {
	t.Run("folder", func(t *testing.T) {
		test(t, func(t *testing.T) func() installation.Config {
			dir := filepath.Join(t.TempDir(), "data")
			return func() installation.Config { return installation.Config{Dir: dir} }
		})
	})
	t.Run("database", func(t *testing.T) { test(t, machines) })
}

// TestKeysOfAClockAhead: a clock was an hour ahead, and was put right. What keys of that hour sign afterwards, in a process whose own clock never was
// ahead, is proved; and so are records that follow others of that hour. Nothing waits for the clock.
func TestKeysOfAClockAhead(t *testing.T) {
	onBoth(t, func(t *testing.T, place func(t *testing.T) func() installation.Config) {
		for name, c := range map[string]func(t *testing.T, ahead, right *installation.Installation){
			"the first act of a key": func(t *testing.T, ahead, right *installation.Installation) {
				if _, err := ahead.Keys.Signers(t.Context(), evidence.RoleAgent, "fresh"); err != nil { // it makes the key, and seals nothing
					t.Fatal(err)
				}
				proved(t, right, sealAs(t, right, "fresh", time.Now()))
			},
			"a later act of a key": func(t *testing.T, ahead, right *installation.Installation) {
				proved(t, right, sealAs(t, ahead, "later", time.Now()), sealAs(t, right, "later", time.Now()))
			},
			"a rotated key": func(t *testing.T, ahead, right *installation.Installation) {
				sealAs(t, right, "rotating", time.Now())
				succeeds(t, ahead.Registrar.Rotate(t.Context(), evidence.RoleAgent, "rotating", evidence.ES256, nil, keys.Why{Reason: "a test", By: "tester"}))
				proved(t, right, sealAs(t, right, "rotating", time.Now()))
			},
			"a recorder that starts again": func(t *testing.T, ahead, right *installation.Installation) {
				for _, i := range []*installation.Installation{ahead, right} {
					at := time.Now()
					if i == ahead {
						at = at.Add(time.Hour)
					}
					log := sealing.New(sealing.Config{Ledger: i.Ledger, Keys: i.Keys, Disclose: i.Apart.Disclose, Now: time.Now}).Observations()
					if _, last, err := log.Last(t.Context(), "recorder/gate"); err != nil {
						t.Fatal(err)
					} else if last.After(at) { // as a recorder does
						at = last
					}
					p := must((&observed.Event{Event: observed.Stop, Reason: "a test"}).Payload("gate", evidence.FormatTime(at), "recorder/gate"))
					draft := must(evidence.NewDraft(p))
					must(log.Seal(t.Context(), draft))
				}
				chain, err := right.Ledger.Chain(t.Context(), "recorder/gate")
				if err != nil || len(chain) != 2 {
					t.Fatal(len(chain), err)
				}
				inTime(t, right, chain...)
			},
			"a person's decision": func(t *testing.T, ahead, right *installation.Installation) {
				said := sealAs(t, ahead, "reviewed", time.Now().Add(time.Hour))
				decide := sealing.New(sealing.Config{Ledger: right.Ledger, Keys: right.Keys, Disclose: right.Apart.Disclose, Now: time.Now})
				done := must(decide.Review(t.Context(), sealing.Order{By: reviewer{}}, said, api.Review{ApprovalStatus: "approved"}))
				inTime(t, right, said, done.Record)
			},
			"a trial that goes on": func(t *testing.T, ahead, right *installation.Installation) {
				config := func(i *installation.Installation) trial.Config {
					jurors, judge := jurattest.Panel()
					return trial.Config{Ledger: i.Ledger, Keys: i.Keys, Now: time.Now, Settings: jurattest.Settings(jury.FinalJudge), Jurors: jurors, Judge: judge}
				}
				begun := config(ahead)
				begun.Now = func() time.Time { return time.Now().Add(time.Hour) }
				id := must(trial.Submit(t.Context(), begun, jurattest.Case(t)))
				r := must(trial.Reopen(t.Context(), right.Ledger, id))
				must(trial.Resume(t.Context(), config(right), r))
				chain := must(right.Ledger.Chain(t.Context(), id))
				inTime(t, right, chain...)
			},
		} {
			t.Run(name, func(t *testing.T) {
				ahead, right := twoClocks(t, place(t))
				c(t, ahead, right)
			})
		}
	})
}

// reviewer is a person who decides.
type reviewer struct{}

func (reviewer) Name() string              { return "mia" }
func (reviewer) Has(role access.Role) bool { return role == access.Reviewer }

// TestBehindIsNoDamage: earlier programs sealed records whose key begins later than their clock said. fsck says what they are, and the log is backed up
// and restored. A key that begins more than a day later is damage.
func TestBehindIsNoDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, later := range []time.Duration{time.Hour, 30 * time.Hour} {
		c := installation.Config{Dir: dir}
		right, err := begin(t, c)
		if errors.Is(err, installation.ErrNone) || right == nil {
			t.Fatal(err)
		}
		sealAs(t, right, "first", time.Now())
		c.Now = func() time.Time { return time.Now().Add(later) }
		ahead := must(begin(t, c))
		signers := must(ahead.Keys.Signers(t.Context(), evidence.RoleAgent, later.String()))
		draft, err := evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"1","timestamp":%q,"model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`,
			later.String(), evidence.FormatTime(time.Now())))
		if err != nil {
			t.Fatal(err)
		}
		bad := must(right.Ledger.Seal(t.Context(), draft, signers)) // with signers of another ring, as no program does
		must(right.Ledger.Checkpoint(t.Context()))
		succeeds(t, errors.Join(ahead.Close(), right.Close()))
		damages, _, err := installation.Fsck(t.Context(), installation.Config{Dir: dir}, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := damages[len(damages)-1]
		if harmless := later == time.Hour; last.Kind.Harmless() != harmless || last.RecordID != bad.Payload.RecordID {
			t.Errorf("%v later: %v", later, damages)
		}
		if later > time.Hour {
			continue
		}
		if len(damages) != 1 || damages[0].Kind != fsck.DamageClock {
			t.Errorf("%v", damages)
		}
		to := filepath.Join(t.TempDir(), "copy")
		must(installation.MakeBackup(t.Context(), installation.Config{Dir: dir}, installation.BackupOrder{To: to}))
		if _, err := installation.Restore(t.Context(), installation.Config{Dir: filepath.Join(t.TempDir(), "restored")}, installation.RestoreOrder{From: to, NoneLater: true}); err != nil {
			t.Errorf("restore: %v", err)
		}
	}
}
