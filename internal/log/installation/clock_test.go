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
	"jurat/internal/test/must"
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
	trust := get(i.Trust(t.Context()))
	bundle := get(i.Ledger.Prove(t.Context(), records...))
	if report := verify.Bundle(bundle, verify.Options{Trust: trust}); report.Outcome != verify.Proved {
		for _, f := range report.Guarantees {
			must.Hold(t, f.Status == verify.Proved, "%s %s: %s", f.Guarantee, f.Status, f.Reason)
		}
	}
}

func sealAs(t *testing.T, i *installation.Installation, agent string, at time.Time) *evidence.Record {
	t.Helper()
	signers := get(i.Keys.Signers(t.Context(), evidence.RoleAgent, agent))
	draft, err := evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"1","timestamp":%q,"model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`,
		agent, evidence.FormatTime(at)))
	must.Do(t, err)
	return get(i.Ledger.Seal(t.Context(), draft, signers))
}

func stampedAt(t *testing.T, r *evidence.Record) time.Time {
	t.Helper()
	token := get(timestamp.Parse(r.Timestamps[0].Token))
	return token.UnverifiedInfo().GenTime
}

// TestClockSetBack sets the clock back an hour in the middle of a trial. Nothing waits for the clock, no time stamp is
// earlier than the one before it, the ids are new, and everything verifies: records from before, in between and after,
// also after a restart.
func TestClockSetBack(t *testing.T) {
	clock := new(settable)
	c := installation.Config{Dir: t.TempDir() + "/data", Now: clock.now}
	must.Do(t, installation.Create(t.Context(), c))
	clock.set(2 * time.Hour)
	i := get(installation.Open(t.Context(), c))
	before := sealAs(t, i, "a", clock.now())
	checkpoint := get(i.Ledger.Checkpoint(t.Context()))
	jurors, judge := jurattest.Panel()
	held, err := trial.Run(t.Context(), trial.Config{Ledger: i.Ledger, Keys: i.Keys, Now: clock.now, Settings: jurattest.Settings(jury.FinalJudge),
		Jurors: jurors, Judge: judge, OnEvent: func(e trial.Event) {
			if e.Head().Seq == 4 {
				clock.set(time.Hour)
			}
		}}, jurattest.Case(t))
	must.Do(t, err)
	after := sealAs(t, i, "a", clock.now())
	fresh := sealAs(t, i, "b", clock.now()) // with a key that is made now
	must.Do(t, i.Close())
	i, err = installation.Open(t.Context(), c)
	must.Need(t, err == nil, "%v", err)
	defer func() { wantError(t, "error", nil, i.Close()) }()
	restarted := sealAs(t, i, "a", clock.now())
	last := time.Time{}
	all := append(append([]*evidence.Record{before}, held.Records...), after, fresh, restarted)
	for _, r := range all {
		at := stampedAt(t, r)
		must.Hold(t, !at.Before(last), "%s is stamped at %s, and the one before it at %s", r.Payload.RecordID, at, last)
		last = at
	}
	proved(t, i, held.Records...)
	for _, r := range []*evidence.Record{before, after, fresh, restarted} {
		proved(t, i, r)
	}
	next, err := i.Ledger.Checkpoint(t.Context())
	must.Hold(t, err == nil && next != checkpoint, "the next checkpoint: %v", err)
	damages, _, err := installation.Fsck(t.Context(), c, nil)
	must.Hold(t, err == nil && len(damages) == 0, "%v, %v", damages, err)
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
	at := stampedAt(t, sealAs(t, i, "a", clock.now()))
	must.Hold(t, at.Sub(clock.now()).Abs() <= time.Minute, "stamped at %s; the clock says %s", at, clock.now())
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
	must.Do(t, err)
	return draft
}

func sealAt(t *testing.T, i *installation.Installation, at time.Time) (*evidence.Record, error) {
	t.Helper()
	signers := get(i.Keys.Signers(t.Context(), evidence.RoleAgent, "a"))
	return i.Ledger.Seal(t.Context(), draftAt(t, at), signers)
}

// TestSealRefusesTheFuture: sealing refuses a payload that claims a time further ahead than readers allow, and stores nothing.
func TestSealRefusesTheFuture(t *testing.T) {
	i := get(begin(t, installation.Config{Dir: filepath.Join(t.TempDir(), "data")}))
	size, _ := i.Ledger.Size(t.Context())
	var field *evidence.FieldError
	_, err := sealAt(t, i, time.Now().Add(6*time.Minute))
	must.Hold(t, errors.As(err, &field) && field.Field == "timestamp", "six minutes ahead: %v, want a refusal of the field timestamp", err)
	after, _ := i.Ledger.Size(t.Context())
	must.Hold(t, after <= size+1, "the log has %d records, and had %d", after, size) // a new key is logged as an act of its own
	must.Fail(t, nil, "four minutes ahead")(sealAt(t, i, time.Now().Add(4*time.Minute)))
}

// TestMostAheadIsProved: a payload with the latest accepted time is proved, even if the clock stands still between the
// check and the stamp.
func TestMostAheadIsProved(t *testing.T) {
	still := time.Now().Truncate(time.Second).Add(999_999_999)
	i := get(begin(t, installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return still }}))
	refused := 0
	for back := time.Duration(0); back < 3*time.Second; back += 100 * time.Millisecond {
		r, err := sealAt(t, i, still.Add(5*time.Minute+time.Second-back))
		if err != nil {
			refused++
			continue
		}
		trust := get(i.Trust(t.Context()))
		f := verify.Record(r, verify.Options{Trust: trust}).Of(verify.Time)
		must.Hold(t, f.Status == verify.Proved, "it was sealed %v before the limit, and its time is %s: %s", back-time.Second, f.Status, f.Reason)
	}
	must.Hold(t, refused != 0, "nothing was refused")
}

// TestSkewIsNoDamage: earlier programs sealed records that claim a time in the future. A log with such a record is not
// damaged: it can be examined, backed up and restored.
func TestSkewIsNoDamage(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	i := get(begin(t, c))
	get(sealAt(t, i, time.Now()))
	must.Do(t, i.Close())
	ahead := get(installation.OpenAhead(t.Context(), c, func() time.Time { return time.Now().Add(time.Hour) }))
	r := get(sealAt(t, ahead, time.Now().Add(time.Hour)))
	get(ahead.Ledger.Checkpoint(t.Context()))
	trust := get(ahead.Trust(t.Context()))
	f := verify.Record(r, verify.Options{Trust: trust}).Of(verify.Time)
	must.Need(t, f.Rule == "skew", "its time is %s (%s): the test has no skewed record", f.Status, f.Rule)
	must.Do(t, ahead.Close())
	damages, _, err := installation.Fsck(t.Context(), c, nil)
	must.Hold(t, err == nil && len(damages) == 0, "fsck: %v, %v", damages, err)
	to := filepath.Join(t.TempDir(), "copy")
	get(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: to}))
	restored := installation.Config{Dir: filepath.Join(t.TempDir(), "restored")}
	must.Fail(t, nil, "restore")(installation.Restore(t.Context(), restored, installation.RestoreOrder{From: to, NoneLater: true}))
	must.Fail(t, nil)(os.Stat(restored.Dir))
}

// twoClocks opens a new installation twice, as two processes or machines do: one whose clock is an hour ahead, and one whose clock is right and has
// been used before.
func twoClocks(t *testing.T, open func() installation.Config) (ahead, right *installation.Installation) {
	t.Helper()
	c := open()
	must.Do(t, installation.Create(t.Context(), c))
	right, err := begin(t, c)
	must.Do(t, err)
	proved(t, right, sealAs(t, right, "first", time.Now()))
	c = open()
	c.Now = func() time.Time { return time.Now().Add(time.Hour) }
	ahead, err = begin(t, c)
	must.Need(t, err == nil, "%v", err)
	return ahead, right
}

// inTime expects that it is proved when each record was sealed, and by whom.
func inTime(t *testing.T, i *installation.Installation, records ...*evidence.Record) {
	t.Helper()
	trust := get(i.Trust(t.Context()))
	for _, r := range records {
		report := verify.Record(r, verify.Options{Trust: trust})
		for _, g := range []verify.Guarantee{verify.Authentication, verify.Time} {
			f := report.Of(g)
			must.Hold(t, f.Status == verify.Proved, "%s %s: %s", g, f.Status, f.Reason)
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
				_, err := ahead.Keys.Signers(t.Context(), evidence.RoleAgent, "fresh")
				must.Need(t, err == nil, "%v", err) // it makes the key, and seals nothing
				proved(t, right, sealAs(t, right, "fresh", time.Now()))
			},
			"a later act of a key": func(t *testing.T, ahead, right *installation.Installation) {
				proved(t, right, sealAs(t, ahead, "later", time.Now()), sealAs(t, right, "later", time.Now()))
			},
			"a rotated key": func(t *testing.T, ahead, right *installation.Installation) {
				sealAs(t, right, "rotating", time.Now())
				must.Do(t, ahead.Keys.Rotate(t.Context(), evidence.RoleAgent, "rotating", evidence.ES256, nil, keys.Why{Reason: "a test", By: "tester"}))
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
					p := get((&observed.Event{Event: observed.Stop, Reason: "a test"}).Payload("gate", evidence.FormatTime(at), "recorder/gate"))
					draft := get(evidence.NewDraft(p))
					get(log.Seal(t.Context(), draft))
				}
				chain, err := right.Ledger.Chain(t.Context(), "recorder/gate")
				must.Need(t, err == nil && len(chain) == 2, "%v %v", len(chain), err)
				inTime(t, right, chain...)
			},
			"a person's decision": func(t *testing.T, ahead, right *installation.Installation) {
				said := sealAs(t, ahead, "reviewed", time.Now().Add(time.Hour))
				decide := sealing.New(sealing.Config{Ledger: right.Ledger, Keys: right.Keys, Disclose: right.Apart.Disclose, Now: time.Now})
				done := get(decide.Review(t.Context(), sealing.Order{By: reviewer{}}, said, api.Review{ApprovalStatus: "approved"}))
				inTime(t, right, said, done.Record)
			},
			"a trial that goes on": func(t *testing.T, ahead, right *installation.Installation) {
				config := func(i *installation.Installation) trial.Config {
					jurors, judge := jurattest.Panel()
					return trial.Config{Ledger: i.Ledger, Keys: i.Keys, Now: time.Now, Settings: jurattest.Settings(jury.FinalJudge), Jurors: jurors, Judge: judge}
				}
				begun := config(ahead)
				begun.Now = func() time.Time { return time.Now().Add(time.Hour) }
				id := get(trial.Submit(t.Context(), begun, jurattest.Case(t)))
				r := get(trial.Reopen(t.Context(), right.Ledger, id))
				get(trial.Resume(t.Context(), config(right), r.ID, nil))
				chain := get(right.Ledger.Chain(t.Context(), id))
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
		must.Need(t, !errors.Is(err, installation.ErrNone) && right != nil, "%v", err)
		sealAs(t, right, "first", time.Now())
		c.Now = func() time.Time { return time.Now().Add(later) }
		ahead := get(begin(t, c))
		signers := get(ahead.Keys.Signers(t.Context(), evidence.RoleAgent, later.String()))
		draft, err := evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"1","timestamp":%q,"model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`,
			later.String(), evidence.FormatTime(time.Now())))
		must.Do(t, err)
		bad := get(right.Ledger.Seal(t.Context(), draft, signers)) // with signers of another ring, as no program does
		get(right.Ledger.Checkpoint(t.Context()))
		must.Do(t, errors.Join(ahead.Close(), right.Close()))
		damages, _, err := installation.Fsck(t.Context(), installation.Config{Dir: dir}, nil)
		must.Do(t, err)
		last := damages[len(damages)-1]
		harmless := later == time.Hour
		must.Hold(t, last.Kind.Harmless() == harmless && last.RecordID == bad.Payload.RecordID, "%v later: %v", later, damages)
		if later > time.Hour {
			continue
		}
		must.Hold(t, len(damages) == 1 && damages[0].Kind == fsck.DamageClock, "%v", damages)
		to := filepath.Join(t.TempDir(), "copy")
		get(installation.MakeBackup(t.Context(), installation.Config{Dir: dir}, installation.BackupOrder{To: to}))
		if _, err := installation.Restore(t.Context(), installation.Config{Dir: filepath.Join(t.TempDir(), "restored")}, installation.RestoreOrder{From: to, NoneLater: true}); err != nil {
			t.Errorf("restore: %v", err)
		}
	}
}
