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

	"jurat/api"
	"jurat/evidence/operator"
	"jurat/internal/must"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/jurattest"
)

// tableIn opens the table in a file, as one of several processes.
func tableIn(t testing.TB, path string) *schedule.Table {
	t.Helper()
	table := must.Get(schedule.OpenTable(t.Context(), nil, path))(t)
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
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
		if e := entry(t, other, id); e.State != api.Queued || e.Ahead != i {
			t.Errorf("%+v", e)
		}
	}
	run(t, one)
	run(t, other)
	for _, id := range ids {
		if frames := watched(t, other, id, 0); len(frames) != 15 {
			t.Errorf("%d events", len(frames))
		}
	}
	if asked := b.asked.Load(); asked != 8*7 {
		t.Errorf("asked %d times", asked)
	}
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
	if e := entry(t, d, ids[1]); e.State != api.Cancelled || e.Acts != 1 {
		t.Errorf("%+v", e)
	}
}

// TestOrphan: a submission is tried even if the submitting process died before it queued it.
func TestOrphan(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	run(t, d)
	c, _ := b.sit("", 0)
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
	if !strings.Contains(e.Reason, errLost.Error()) || time.Until(e.Next) < 50*time.Minute {
		t.Errorf("%+v", e)
	}
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
	if !strings.Contains(e.Reason, errLost.Error()) {
		t.Errorf("%+v", e)
	}
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
	if e := entry(t, one, id); e.State != api.Cancelled || e.Reason != "submitted by mistake" || e.Cancelled.By != "Reika Mori" {
		t.Errorf("%+v", e)
	}
	if e := entry(t, one, next); e.Ahead != 0 {
		t.Errorf("%+v", e)
	}
	if err := one.Cancel(t.Context(), id, "somebody", "again"); !errors.Is(err, schedule.ErrOver) {
		t.Errorf("cancelled twice: %v", err)
	}
	if err := one.Cancel(t.Context(), "trial-none", "somebody", "why"); !errors.Is(err, trial.ErrUnknown) {
		t.Errorf("cancelled a trial that does not exist: %v", err)
	}
	if err := one.Cancel(t.Context(), next, "somebody", ""); err == nil {
		t.Error("cancelled without a reason")
	}
	list, err := trial.ListUnfinished(t.Context(), h.Ledger)
	if err != nil || len(list) != 2 || list[0].Cancelled.Reason != "submitted by mistake" || list[1].Cancelled != nil {
		t.Errorf("%+v, %v", list, err)
	}
	run(t, one)
	awaitState(t, one, next, api.Over)
	if err := one.Cancel(t.Context(), next, "somebody", "too late"); !errors.Is(err, schedule.ErrOver) {
		t.Errorf("cancelled what is over: %v", err)
	}
	if e := entry(t, one, id); e.State != api.Cancelled || e.Acts != 1 {
		t.Errorf("%+v", e)
	}
	must.Do(t, other.Retry(t.Context(), id, "Ivan", "it was none"))
	if e := awaitState(t, one, id, api.Over); e.Cancelled != nil {
		t.Errorf("%+v", e)
	}
	want := []operator.TrialEventBody{{By: "Reika Mori", Event: operator.TrialCancelled, Reason: "submitted by mistake", Trial: id},
		{By: "Ivan", Event: operator.TrialResumed, Reason: "it was none", Trial: id}}
	if got := changes(t, h); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
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
	if err != nil || len(r.State.Waiting) > 0 || r.State.Finished || e.Acts != 6 {
		t.Fatalf("%v, %+v", err, e)
	}
	if asked := b.asked.Load(); asked != 3 {
		t.Errorf("asked %d times", asked)
	}
	must.Do(t, other.Retry(t.Context(), id, "Reika Mori", "not enough"))
	awaitState(t, other, id, api.Over)
	if asked := b.asked.Load(); asked != 7 {
		t.Errorf("asked %d times", asked)
	}
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
		if err := other.Cancel(t.Context(), id, "somebody", "enough"); err != nil && (i == 0 || !errors.Is(err, schedule.ErrOver)) {
			t.Fatal(err)
		}
		if i == 0 {
			close(b.gate)
		}
		for {
			err := other.Retry(t.Context(), id, "somebody", "not enough")
			if err == nil || entry(t, other, id).State == api.Over {
				break
			}
			if !errors.Is(err, schedule.ErrNotBrokenOff) {
				t.Fatal(err)
			}
		}
	}
	awaitState(t, other, id, api.Over)
	if asked := b.asked.Load(); asked != 7 {
		t.Errorf("asked %d times", asked)
	}
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
	if n := len(recorded(t, h, id)); n != 15 {
		t.Errorf("%d acts", n)
	}
}
