package installation_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	sealing "jurat/internal/court/acts"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/test/jurattest"
	"jurat/jury"
	"jurat/timestamp"
	"jurat/verify"
)

// A settable clock is ahead of the true time.
type settable struct{ ahead atomic.Int64 }

func (s *settable) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

func (s *settable) set(ahead time.Duration) { s.ahead.Store(int64(ahead)) }

// proved verifies records with the installation's own trust file, and expects that everything is proved.
func proved(t *testing.T, i *installation.Installation, records ...*evidence.Record) {
	t.Helper()
	trust := must(i.Trust(t.Context()))
	bundle := must(i.Ledger.Prove(t.Context(), records...))
	if report := verify.Bundle(bundle, verify.Options{Trust: trust}); report.Outcome != verify.Proved {
		for _, f := range report.Guarantees {
			if f.Status != verify.Proved {
				t.Errorf("%s %s: %s", f.Guarantee, f.Status, f.Reason)
			}
		}
	}
}

func sealAs(t *testing.T, i *installation.Installation, agent string, at time.Time) *evidence.Record {
	t.Helper()
	signers := must(i.Keys.Signers(t.Context(), evidence.RoleAgent, agent))
	draft, err := evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"1","timestamp":%q,"model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`,
		agent, evidence.FormatTime(at)))
	succeeds(t, err)
	return must(i.Ledger.Seal(t.Context(), draft, signers))
}

func stampedAt(t *testing.T, r *evidence.Record) time.Time {
	t.Helper()
	token := must(timestamp.Parse(r.Timestamps[0].Token))
	return token.UnverifiedInfo().GenTime
}

// TestClockSetBack sets the clock back an hour in the middle of a trial. Nothing waits for the clock, no time stamp is
// earlier than the one before it, the ids are new, and everything verifies: records from before, in between and after,
// also after a restart.
func TestClockSetBack(t *testing.T) {
	clock := new(settable)
	c := installation.Config{Dir: t.TempDir() + "/data", Now: clock.now}
	succeeds(t, installation.Create(t.Context(), c))
	clock.set(2 * time.Hour)
	i := must(installation.Open(t.Context(), c))
	before := sealAs(t, i, "a", clock.now())
	checkpoint := must(i.Ledger.Checkpoint(t.Context()))
	jurors, judge := jurattest.Panel()
	held, err := trial.Run(t.Context(), trial.Config{Ledger: i.Ledger, Keys: i.Keys, Now: clock.now, Settings: jurattest.Settings(jury.FinalJudge),
		Jurors: jurors, Judge: judge, OnEvent: func(e trial.Event) {
			if e.Head().Seq == 4 {
				clock.set(time.Hour)
			}
		}}, jurattest.Case(t))
	succeeds(t, err)
	after := sealAs(t, i, "a", clock.now())
	fresh := sealAs(t, i, "b", clock.now()) // with a key that is made now
	succeeds(t, i.Close())
	if i, err = installation.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	defer func() { wantError(t, "error", nil, i.Close()) }()
	restarted := sealAs(t, i, "a", clock.now())
	last := time.Time{}
	all := append(append([]*evidence.Record{before}, held.Records...), after, fresh, restarted)
	for _, r := range all {
		at := stampedAt(t, r)
		if at.Before(last) {
			t.Errorf("%s is stamped at %s, and the one before it at %s", r.Payload.RecordID, at, last)
		}
		last = at
	}
	proved(t, i, held.Records...)
	for _, r := range []*evidence.Record{before, after, fresh, restarted} {
		proved(t, i, r)
	}
	if next, err := i.Ledger.Checkpoint(t.Context()); err != nil || next == checkpoint {
		t.Errorf("the next checkpoint: %v", err)
	}
	if damages, _, err := installation.Fsck(t.Context(), c, nil); err != nil || len(damages) > 0 {
		t.Errorf("%v, %v", damages, err)
	}
}

// TestClockOfAnotherDay: a clock that was set back by more than a day is used as it is. Otherwise the log's time would
// stand still for that long. A key that was made meanwhile is refused until then, because what it signs would be refuted for ever.
func TestClockOfAnotherDay(t *testing.T) {
	clock := new(settable)
	c := installation.Config{Dir: t.TempDir() + "/data", Now: clock.now}
	i := created(t, c)
	sealAs(t, i, "a", clock.now())
	clock.set(48 * time.Hour)
	defer func() { wantError(t, "error", nil, i.Close()) }()
	sealAs(t, i, "a", clock.now())
	sealAs(t, i, "made meanwhile", clock.now())
	clock.set(10 * time.Hour)
	if at := stampedAt(t, sealAs(t, i, "a", clock.now())); at.Sub(clock.now()).Abs() > time.Minute {
		t.Errorf("stamped at %s; the clock says %s", at, clock.now())
	}
	wantError(t, "a key that begins in 38 hours", keys.ErrNotYet, errorOf(i.Keys.Signers(t.Context(), evidence.RoleAgent, "made meanwhile")))
}

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
	succeeds(t, err)
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

// twoClocks opens a new installation twice, as two processes or machines do: one whose clock is an hour ahead, and one whose clock is right and has
// been used before.
func twoClocks(t *testing.T, open func() installation.Config) (ahead, right *installation.Installation) {
	t.Helper()
	c := open()
	succeeds(t, installation.Create(t.Context(), c))
	right, err := begin(t, c)
	succeeds(t, err)
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
				succeeds(t, ahead.Keys.Rotate(t.Context(), evidence.RoleAgent, "rotating", evidence.ES256, nil, keys.Why{Reason: "a test", By: "tester"}))
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
				must(trial.Resume(t.Context(), config(right), r.ID, nil))
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
		succeeds(t, err)
		bad := must(right.Ledger.Seal(t.Context(), draft, signers)) // with signers of another ring, as no program does
		must(right.Ledger.Checkpoint(t.Context()))
		succeeds(t, errors.Join(ahead.Close(), right.Close()))
		damages, _, err := installation.Fsck(t.Context(), installation.Config{Dir: dir}, nil)
		succeeds(t, err)
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
