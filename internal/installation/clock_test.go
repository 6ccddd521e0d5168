package installation_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/trial"
	"jurat/jurattest"
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	after := sealAs(t, i, "a", clock.now())
	fresh := sealAs(t, i, "b", clock.now()) // with a key that is made now
	succeeds(t, i.Close())
	if i, err = installation.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
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
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	sealAs(t, i, "a", clock.now())
	sealAs(t, i, "made meanwhile", clock.now())
	clock.set(10 * time.Hour)
	if at := stampedAt(t, sealAs(t, i, "a", clock.now())); at.Sub(clock.now()).Abs() > time.Minute {
		t.Errorf("stamped at %s; the clock says %s", at, clock.now())
	}
	wantError(t, "a key that begins in 38 hours", keys.ErrNotYet, errorOf(i.Keys.Signers(t.Context(), evidence.RoleAgent, "made meanwhile")))
}
