package schedule_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/court/schedule"
	"jurat/internal/court/trial"
	"jurat/internal/log/ledger"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
)

// tableIn opens the table in a file, as one of several processes.
func tableIn(t testing.TB, path string) *schedule.Table {
	t.Helper()
	table := must.Get(schedule.OpenTable(t.Context(), nil, path))(t)
	t.Cleanup(func() {
		must.Want(t, table.Close(), nil)
	})
	return table
}

// two opens two schedulers on one log, as two processes would.
func two(t *testing.T, h *jurattest.House, b *bench) (one, other *schedule.Scheduler) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "work.db")
	c := config(h, b)
	c.Locks, c.Lease = newLocks(), time.Minute // neither process dies, however slow the machine is
	c.Table = tableIn(t, path)
	one = open(t, c)
	c.Table = tableIn(t, path)
	return one, open(t, c)
}

// TestSharedOut: a trial is conducted once, by whichever process has room, and every process shows its state.
func TestSharedOut(t *testing.T) {
	h, b := jurattest.New(t), &bench{delay: time.Millisecond}
	one, other := two(t, h, b)
	var ids []string
	for i := range 8 {
		ids = append(ids, submit(t, []*schedule.Scheduler{one, other}[i%2]))
	}
	for i, id := range ids {
		e := entry(t, other, id)
		must.Hold(t, e.State == api.Queued && e.Ahead == i, "%+v", e)
	}
	run(t, one)
	run(t, other)
	for _, id := range ids {
		frames := watched(t, other, id, 0)
		must.Hold(t, len(frames) == 15, "%d events", len(frames))
	}
	must.Equal(t, b.asked.Load(), 8*7)
}

// TestQueueIsLost: opening a scheduler queues every trial that is missing.
func TestQueueIsLost(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	first := open(t, config(h, b))
	var ids []string
	for range 3 {
		ids = append(ids, submit(t, first))
	}
	must.Do(t, first.Cancel(t.Context(), ids[1], "somebody", "a mistake"))
	d := open(t, config(h, b)) // its table is another one
	run(t, d)
	awaitState(t, d, ids[0], api.Over)
	awaitState(t, d, ids[2], api.Over)
	e := entry(t, d, ids[1])
	must.Hold(t, e.State == api.Cancelled && e.Acts == 1, "%+v", e)
}

// TestOrphan: a submission is tried even if the submitting process died before it queued it.
func TestOrphan(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	run(t, d)
	c := b.sit(nil, 0)
	c.Ledger, c.Keys, c.Now = h.Ledger, h.Keys, h.Now
	id := must.Get(trial.Submit(t.Context(), c, jurattest.Case(t)))(t)
	awaitState(t, d, id, api.Over)
}

// TestTriedAgain: after a temporary error, a trial is retried automatically, up to a limit. Its state shows when.
func TestTriedAgain(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	keys := &lost{Keys: h.Keys}
	c := config(h, b)
	c.Keys, c.Backoff, c.Attempts, c.Lease = keys, time.Hour, 3, time.Minute
	keys.now.Store(true)
	d := open(t, c)
	run(t, d)
	id := submit(t, d)
	e := awaitState(t, d, id, api.BrokenOff)
	must.Hold(t, strings.Contains(e.Reason, errLost.Error()) && time.Until(e.Next) >= 50*time.Minute, "%+v", e)
	keys.now.Store(false)
	must.Do(t, d.Retry(t.Context(), id, "somebody", "the key is back"))
	awaitState(t, d, id, api.Over)

	c.Backoff = time.Millisecond
	keys.now.Store(true)
	d = open(t, c)
	run(t, d)
	id = submit(t, d)
	for {
		if e = awaitState(t, d, id, api.BrokenOff); e.Next.IsZero() {
			break
		}
	}
	must.Contain(t, e.Reason, errLost.Error())
}

// changes returns the acts of the operator on trials.
func changes(t *testing.T, h *jurattest.House) (list []operator.TrialEventBody) {
	t.Helper()
	chain := must.Get(h.Ledger.Chain(t.Context(), operator.TrialsChain))(t)
	for _, r := range chain {
		e := must.Get(operator.ReadTrialEvent(&r.Payload))(t)
		list = append(list, *e)
	}
	return list
}

// TestCancelWaiting: a trial that is cancelled before its turn never begins, the others do, and it can be resumed.
func TestCancelWaiting(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	one, other := two(t, h, b)
	id, next := submit(t, one), submit(t, one)
	must.Do(t, other.Cancel(t.Context(), id, "Reika Mori", "submitted by mistake"))
	e := entry(t, one, id)
	must.Hold(t, e.State == api.Cancelled && e.Reason == "submitted by mistake" && e.Cancelled.By == "Reika Mori", "%+v", e)
	must.Equal(t, entry(t, one, next).Ahead, 0)
	must.Want(t, one.Cancel(t.Context(), id, "somebody", "again"), schedule.ErrOver)
	must.Want(t, one.Cancel(t.Context(), "trial-none", "somebody", "why"), trial.ErrUnknown)
	must.Say(t, one.Cancel(t.Context(), next, "somebody", ""), "", "cancelled without a reason")
	list, err := trial.ListUnfinished(t.Context(), h.Ledger)
	must.Hold(t, err == nil && len(list) == 2 && list[0].Cancelled.Reason == "submitted by mistake" && list[1].Cancelled == nil, "%+v, %v", list, err)
	run(t, one)
	awaitState(t, one, next, api.Over)
	must.Want(t, one.Cancel(t.Context(), next, "somebody", "too late"), schedule.ErrOver)
	e = entry(t, one, id)
	must.Hold(t, e.State == api.Cancelled && e.Acts == 1, "%+v", e)
	must.Do(t, other.Retry(t.Context(), id, "Ivan", "it was none"))
	e = awaitState(t, one, id, api.Over)
	must.Hold(t, e.Cancelled == nil, "%+v", e)
	want := []operator.TrialEventBody{{By: "Reika Mori", Event: operator.TrialCancelled, Reason: "submitted by mistake", Trial: id},
		{By: "Ivan", Event: operator.TrialResumed, Reason: "it was none", Trial: id}}
	got := changes(t, h)
	must.Hold(t, slices.Equal(got, want), "%+v", got)
}

// TestCancelUnderWay: when a trial is cancelled, jurors who were asked still answer and are recorded, and no other is
// asked, whichever process conducts it. When it is resumed, no juror is asked again.
func TestCancelUnderWay(t *testing.T) {
	h, b := jurattest.New(t), &bench{gate: make(chan struct{})}
	one, other := two(t, h, b)
	run(t, one)
	id := submit(t, one)
	for len(recorded(t, h, id)) < 2 { // the submission and the opening
		time.Sleep(time.Millisecond)
	}
	must.Do(t, other.Cancel(t.Context(), id, "Reika Mori", "enough"))
	awaitStopping(one, id)
	close(b.gate)
	e := awaitState(t, other, id, api.Cancelled)
	r, err := trial.Reopen(t.Context(), h.Ledger, id)
	must.Need(t, err == nil && len(r.Waiting()) <= 0 && !r.Over && e.Acts == 6, "%v, %+v", err, e)
	must.Equal(t, b.asked.Load(), 3)
	must.Do(t, other.Retry(t.Context(), id, "Reika Mori", "not enough"))
	awaitState(t, other, id, api.Over)
	must.Equal(t, b.asked.Load(), 7)
}

// TestResumedAtOnce: a cancellation can be taken back while the trial is still stopping.
func TestResumedAtOnce(t *testing.T) {
	h, b := jurattest.New(t), &bench{delay: 20 * time.Millisecond, gate: make(chan struct{})}
	one, other := two(t, h, b)
	run(t, one)
	id := submit(t, one)
	for len(recorded(t, h, id)) < 2 {
		time.Sleep(time.Millisecond)
	}
	for i := range 5 {
		err := other.Cancel(t.Context(), id, "somebody", "enough")
		must.Need(t, err == nil || i != 0 && errors.Is(err, schedule.ErrOver), "%v", err)
		if i == 0 {
			close(b.gate)
		}
		for {
			err := other.Retry(t.Context(), id, "somebody", "not enough")
			if err == nil || entry(t, other, id).State == api.Over {
				break
			}
			must.Need(t, errors.Is(err, schedule.ErrNotBrokenOff), "%v", err)
		}
	}
	awaitState(t, other, id, api.Over)
	must.Equal(t, b.asked.Load(), 7)
}

// blindLocks are locks that look free while blind is set.
type blindLocks struct {
	*locks
	blind *atomic.Bool
}

func (l blindLocks) Locked(ctx context.Context, id string) (bool, error) {
	if l.blind.Load() {
		return false, nil
	}
	return l.locks.Locked(ctx, id)
}

// TestBelievedDead: a trial that is taken from a process that still conducts it, again and again, goes on, and ends once.
func TestBelievedDead(t *testing.T) {
	h, b := jurattest.New(t), &bench{delay: 50 * time.Millisecond}
	path := filepath.Join(t.TempDir(), "work.db")
	locks := newLocks()
	var blind atomic.Bool // the second does not see which lock is taken, until it tries
	c := config(h, b)
	c.Locks, c.Table = locks, tableIn(t, path)
	one := open(t, c)
	run(t, one)
	id := submit(t, one)
	for len(recorded(t, h, id)) < 2 {
		time.Sleep(time.Millisecond)
	}
	c.Locks = blindLocks{locks, &blind}
	c.Table, c.Lease, c.Backoff = tableIn(t, path), time.Millisecond, time.Millisecond
	blind.Store(true)
	stop := run(t, open(t, c))
	time.Sleep(100 * time.Millisecond)
	stop()
	awaitState(t, one, id, api.Over)
	must.Equal(t, len(recorded(t, h, id)), 15)
}

// undecided seats jurors who pass the agent, of whom one does not answer: a person must decide, and can also leave it open.
func undecided(c *trial.Config) {
	pass := &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}
	c.Jurors, c.Judge = []jury.Juror{pass, pass, &jurattest.Juror{Err: errors.New("away")}}, pass
}

// holder returns who has a trial, by a scheduler; "": nobody.
func holder(t *testing.T, d *schedule.Scheduler, id string) string {
	t.Helper()
	if now := entry(t, d, id).Taken(); now != nil {
		return now.Reviewer
	}
	return ""
}

// judged seals a person's decision on a trial's verdict, which leaves it open or not.
func judged(t *testing.T, h *jurattest.House, id string, status evidence.ApprovalStatus) {
	t.Helper()
	for _, r := range recorded(t, h, id) {
		if r.Payload.ActionType != evidence.FinalJudgment {
			continue
		}
		h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: r.Payload.Timestamp, OriginalResponseID: r.Payload.RecordID,
			ApprovalStatus: status, Changes: []byte(`"because"`), ChainID: id, Saw: []evidence.Digest{r.Digest}, Case: r.Payload.Case})
	}
}

func anybody(trial.Change) error { return nil }

// TestTakeACase: a reviewer has a case until it is given back or decided. Every process sees that, and one that starts later.
func TestTakeACase(t *testing.T) {
	h, b := jurattest.New(t), &bench{spoil: undecided}
	one, other := two(t, h, b)
	id := submit(t, one)
	must.Want(t, one.Take(t.Context(), id, "mia", "mia", ""), schedule.ErrNotWaiting)
	run(t, one)
	awaitState(t, one, id, api.Over)
	must.Want(t, one.Take(t.Context(), "trial-none", "mia", "mia", ""), trial.ErrUnknown)
	must.Want(t, one.GiveBack(t.Context(), id, "mia", "", anybody), schedule.ErrNotTaken)
	for range 2 { // the second time it changes nothing
		must.Do(t, one.Take(t.Context(), id, "mia", "otto", "she knows parcels"))
	}
	err := other.Take(t.Context(), id, "ben", "ben", "")
	must.Hold(t, errors.Is(err, schedule.ErrTaken) && strings.Contains(err.Error(), `"mia" has had it since 20`), "taken by a second reviewer: %v", err)
	refused := errors.New("not yours")
	if err := other.GiveBack(t.Context(), id, "ben", "", func(now trial.Change) error {
		must.Hold(t, now.Reviewer == "mia" && now.By == "otto" && now.Reason == "she knows parcels" && !now.At.IsZero(), "%+v", now)
		return refused
	}); !errors.Is(err, refused) {
		t.Errorf("given back by another: %v", err)
	}
	must.Do(t, other.GiveBack(t.Context(), id, "mia", "on leave", anybody))
	must.Equal(t, holder(t, one, id), "")
	must.Do(t, one.Take(t.Context(), id, "ben", "ben", ""))
	later := func() *schedule.Scheduler { return open(t, config(h, b)) }
	for _, d := range []*schedule.Scheduler{one, other, later()} {
		must.Equal(t, holder(t, d, id), "ben")
	}
	judged(t, h, id, evidence.Rejected) // it still waits
	for _, d := range []*schedule.Scheduler{one, other, later()} {
		got := holder(t, d, id)
		must.Hold(t, got == "" && entry(t, d, id).NeedsPerson(), "after a decision %q has it", got)
	}
	must.Do(t, other.Take(t.Context(), id, "mia", "mia", ""))
	for _, d := range []*schedule.Scheduler{one, other, later()} {
		must.Equal(t, holder(t, d, id), "mia")
	}
	judged(t, h, id, evidence.Approved)
	must.Want(t, one.Take(t.Context(), id, "ben", "ben", ""), schedule.ErrNotWaiting)
	var events []string
	for _, c := range changes(t, h) {
		events = append(events, string(c.Event)+" "+c.Reviewer+" "+c.By+" "+c.Reason)
	}
	want := []string{"taken mia otto she knows parcels", "left mia mia on leave", "taken ben ben ", "taken mia mia "}
	must.Hold(t, slices.Equal(events, want), "the log has %q", events)
}

// TestActsThatComeTooLate: of two reviewers who take a case at the same moment the first in the log has it, and acts about a holder who
// has given it back, or about what was decided since, say nothing.
func TestActsThatComeTooLate(t *testing.T) {
	h, b := jurattest.New(t), &bench{spoil: undecided}
	d := open(t, config(h, b))
	run(t, d)
	id := submit(t, d)
	verdict := awaitState(t, d, id, api.Over).Waits()
	say := func(event operator.TrialChange, who, record string) {
		t.Helper()
		p := must.Get(ledger.OperatorAct(evidence.Payload{ActionType: evidence.TrialEvent, ChainID: operator.TrialsChain, Timestamp: "2026-01-01T00:00:00Z"},
			operator.TrialEventBody{By: who, Event: event, Trial: id, Reviewer: who, Record: record}))(t)
		must.Get((ledger.Operator{Ledger: h.Ledger, Keys: h.Keys}).Seal(t.Context(), p))(t)
	}
	has := func(want string) {
		t.Helper()
		for _, d := range []*schedule.Scheduler{d, open(t, config(h, b))} {
			must.Equal(t, holder(t, d, id), want)
		}
	}
	say(operator.TrialTaken, "mia", verdict)
	say(operator.TrialTaken, "ben", verdict)
	has("mia")
	say(operator.TrialLeft, "ben", verdict)
	has("mia")
	say(operator.TrialLeft, "mia", verdict)
	has("")
	judged(t, h, id, evidence.Rejected)
	say(operator.TrialTaken, "ben", verdict)
	has("")
	decision := entry(t, d, id).Waits()
	must.Need(t, decision != verdict, "the decision is not what waits")
	say(operator.TrialTaken, "noa", decision)
	say(operator.TrialTaken, "ben", verdict)
	say(operator.TrialLeft, "noa", verdict)
	has("noa")
}
