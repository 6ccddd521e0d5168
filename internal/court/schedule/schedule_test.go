package schedule_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/ledger"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
)

// a bench seats jurattest's panel, with this delay before each answer.
type bench struct {
	delay time.Duration
	gate  chan struct{}       // nil: none. Jurors answer only after it is closed
	spoil func(*trial.Config) // nil: no change
	asked atomic.Int64
	busy  atomic.Int64 // answers that are being thought about
	most  atomic.Int64 // of busy
}

type seated struct {
	jury.Juror
	*bench
}

func (s seated) think(ctx context.Context) func() {
	s.asked.Add(1)
	now := s.busy.Add(1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	time.Sleep(s.delay)
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
		}
	}
	return func() { s.busy.Add(-1) }
}

func (s seated) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	defer s.think(ctx)()
	return s.Juror.Answer(ctx, b)
}

func (b *bench) sit(*subject.Case, int64) trial.Config {
	jurors, judge := jurattest.Panel()
	for i, j := range jurors {
		jurors[i] = seated{j, b}
	}
	c := trial.Config{Settings: jurattest.Settings(jury.FinalJudge), Jurors: jurors, Judge: seated{judge, b}}
	if b.spoil != nil {
		b.spoil(&c)
	}
	return c
}

func config(h *jurattest.House, b *bench) schedule.Config {
	return schedule.Config{Ledger: h.Ledger, Keys: h.Keys, Sit: b.sit, Now: h.Now, Poll: 5 * time.Millisecond, Gather: time.Microsecond,
		Lease: 100 * time.Millisecond}
}

func open(t testing.TB, c schedule.Config) *schedule.Scheduler {
	t.Helper()
	return must.Get(schedule.Open(t.Context(), c))(t)
}

// run conducts trials until stop is called or the test ends.
func run(t testing.TB, d *schedule.Scheduler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func submit(t testing.TB, d *schedule.Scheduler) string {
	t.Helper()
	return must.Get(d.Submit(t.Context(), schedule.Order{Case: jurattest.Case(t)}))(t)
}

func entry(t testing.TB, d *schedule.Scheduler, id string) schedule.Entry {
	t.Helper()
	return must.Get(d.Entry(t.Context(), id))(t)
}

// watched returns the events of a trial to its end.
func watched(t testing.TB, d *schedule.Scheduler, id string, after int64) (frames []schedule.Frame) {
	t.Helper()
	events := must.Get(d.Watch(t.Context(), id, after))(t)
	for f, err := range events.Frames {
		must.Do(t, err)
		frames = append(frames, f)
	}
	return frames
}

// awaitState waits until a trial has this state.
func awaitState(t testing.TB, d *schedule.Scheduler, id string, want api.State) schedule.Entry {
	t.Helper()
	for {
		e := entry(t, d, id)
		if e.State == want {
			return e
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s is %s, want %s", id, e.State, want)
		case <-time.After(time.Millisecond):
		}
	}
}

// awaitStopping waits until a trial that is conducted here asks no more jurors.
func awaitStopping(d *schedule.Scheduler, id string) {
	for !d.Stops(id) {
		time.Sleep(time.Millisecond)
	}
}

// TestTrialsWaitTheirTurn: a submission is in the log at once. A limited number of trials run at a time, and they begin
// in the order of submission.
func TestTrialsWaitTheirTurn(t *testing.T) {
	h, b := jurattest.New(t), &bench{delay: 2 * time.Millisecond}
	c := config(h, b)
	c.Parallel = 2
	d := open(t, c)
	var ids []string
	for range 7 {
		id := submit(t, d)
		chain, err := h.Ledger.Chain(t.Context(), id)
		must.Need(t, err == nil && len(chain) == 1, "after submission: %v, %d records", err, len(chain))
		ids = append(ids, id)
	}
	for i, id := range ids {
		e := entry(t, d, id)
		must.Hold(t, e.State == api.Queued && e.Ahead == i && e.Submitter == "submitter" && e.Agent != "", "%+v", e)
	}
	run(t, d)
	for _, id := range ids {
		frames := watched(t, d, id, 0)
		must.Hold(t, frames[len(frames)-1].Last, "%s ends with %+v", id, frames[len(frames)-1])
	}
	most := b.most.Load()
	must.Hold(t, most <= 2*3, "%d answers at a time in two trials of three jurors", most)
	opened := map[string]int{}
	var order []string
	for r, err := range h.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		if r.Payload.ActionType == evidence.PhaseOpening && opened[r.Payload.ChainID] == 0 {
			order = append(order, r.Payload.ChainID)
		}
		opened[r.Payload.ChainID]++
	}
	for i, id := range order { // two trials begin at a time, in either order
		at, before := slices.Index(ids, id), 0
		for _, earlier := range ids[:at] {
			if slices.Index(order, earlier) > i {
				before++
			}
		}
		must.Hold(t, before <= 1, "trial %d began as number %d, before %d earlier submissions", at, i, before)
	}
	e := awaitState(t, d, ids[3], api.Over)
	must.Hold(t, e.Outcome != nil && e.Outcome.Position == jury.SafePass && !e.Degraded && !e.Offline && e.Acts == 15 && e.Fault == "", "%+v", e)
}

// TestQueueIsTheLog: a new scheduler continues the unfinished trials in their order, and asks no juror again who has
// answered.
func TestQueueIsTheLog(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	var ids []string
	first := open(t, config(h, b))
	for range 3 {
		ids = append(ids, submit(t, first)) // the scheduler never runs
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	half := b.sit(nil, 0)
	half.Ledger, half.Keys, half.Now = h.Ledger, h.Keys, h.Now
	half.OnEvent = func(e trial.Event) {
		if e.Head().Seq == 6 { // phase 1 is over, and no juror was asked to discuss
			cancel()
		}
	}
	broken, err := trial.Run(ctx, half, jurattest.Case(t))
	must.Want(t, err, context.Canceled)
	before := b.asked.Load()
	d := open(t, config(h, b))
	must.Give(d.Waiting(t.Context()))(t, 4, "trials wait")
	run(t, d)
	for _, id := range append(ids, broken.ID) {
		awaitState(t, d, id, api.Over)
	}
	must.Equal(t, b.asked.Load()-before, 3*7+4)
}

// TestOtherSettings: a trial that was opened with other settings is not resumed. Its state says why. With its own
// settings it is resumed.
func TestOtherSettings(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := b.sit(nil, 0)
	c.Ledger, c.Keys, c.Now = h.Ledger, h.Keys, h.Now
	c.OnEvent = func(e trial.Event) {
		if e.Head().Seq == 4 {
			cancel()
		}
	}
	broken, err := trial.Run(ctx, c, jurattest.Case(t))
	must.Want(t, err, context.Canceled)
	var other atomic.Bool
	other.Store(true)
	b.spoil = func(c *trial.Config) {
		if other.Load() {
			c.Settings.MaxRounds++
		}
	}
	d := open(t, config(h, b))
	run(t, d)
	e := awaitState(t, d, broken.ID, api.BrokenOff)
	must.Hold(t, strings.Contains(e.Reason, trial.ErrSettings.Error()) && e.Acts == len(broken.Records), "%+v", e)
	other.Store(false)
	must.Do(t, d.Retry(t.Context(), broken.ID, "somebody", "again"))
	awaitState(t, d, broken.ID, api.Over)
	must.Want(t, d.Retry(t.Context(), broken.ID, "somebody", "again"), schedule.ErrNotBrokenOff)
	must.Want(t, d.Retry(t.Context(), "trial-none", "somebody", "again"), trial.ErrUnknown)
}

// TestPanic: a trial in which a juror panics is broken off. Other trials and the program go on.
func TestPanic(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	var panics atomic.Bool
	c := config(h, b)
	c.Memory = 1 << 20 // so that the next trial needs what the one that panicked had
	c.Vouch = func(context.Context, ...*evidence.Record) error {
		if panics.Load() {
			panic("a mistake")
		}
		return nil
	}
	panics.Store(true)
	d := open(t, c)
	run(t, d)
	id := submit(t, d)
	e := awaitState(t, d, id, api.BrokenOff)
	must.Hold(t, strings.Contains(e.Reason, "a mistake"), "%+v", e)
	panics.Store(false)
	awaitState(t, d, submit(t, d), api.Over)
	must.Do(t, d.Retry(t.Context(), id, "somebody", "again"))
	awaitState(t, d, id, api.Over)
}

// TestTriedAgainWhileSubmitted: a trial that is sealed and has no job yet waits for its turn: no one reads that it was
// broken off. A caller who knows the id beforehand and retries it then is told so. It is conducted once.
func TestTriedAgainWhileSubmitted(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	c := config(h, b)
	const id = "01890000-0000-7000-8000-000000000001"
	var d *schedule.Scheduler
	tried := make(chan error, 1)
	var once sync.Once // only at the submission: the later releases come from the trials, which may end after the test
	c.Locks = &locks{all: map[string]bool{}, released: func(trial string) {
		once.Do(func() { // it is sealed then
			e := entry(t, d, trial)
			must.Hold(t, trial == evidence.TrialPrefix+id && !e.Over && e.State == api.Queued && e.Ahead == 0 && e.Reason == "", "%s: %+v", trial, e)
			tried <- d.Retry(t.Context(), trial, "somebody", "again")
		})
	}}
	d = open(t, c)
	must.Get(d.Submit(t.Context(), schedule.Order{Case: jurattest.Case(t), ID: id}))(t)
	must.Want(t, <-tried, schedule.ErrNotBrokenOff)
	last := submit(t, d)
	must.Equal(t, entry(t, d, last).Ahead, 1)
	run(t, d)
	for _, one := range []string{evidence.TrialPrefix + id, last} {
		awaitState(t, d, one, api.Over)
	}
	must.Equal(t, b.asked.Load(), 14)
}

// lost is a keyring that can lose the clerk's key.
type lost struct {
	ledger.Keys
	now atomic.Bool
}

var errLost = errors.New("the key is lost")

func (l *lost) Signers(ctx context.Context, role evidence.Role, name string) ([]evidence.Signer, error) {
	if l.now.Load() && role == evidence.RoleClerk {
		return nil, errLost
	}
	return l.Keys.Signers(ctx, role, name)
}

// TestFailure: a failed trial says why, others go on, and it can be retried. The same holds for a trial for which no
// jury can be seated.
func TestFailure(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	c := config(h, b)
	keys := &lost{Keys: h.Keys}
	keys.now.Store(true)
	c.Keys, c.Backoff = keys, time.Hour // only a process that is asked to tries it again
	d := open(t, c)
	run(t, d)
	id := submit(t, d)
	e := awaitState(t, d, id, api.BrokenOff)
	must.Hold(t, strings.Contains(e.Reason, errLost.Error()), "%+v", e)
	keys.now.Store(false)
	other := submit(t, d)
	awaitState(t, d, other, api.Over)
	must.Equal(t, entry(t, d, id).State, api.BrokenOff)
	events := must.Get(d.Watch(t.Context(), id, 1))(t)
	must.Do(t, d.Retry(t.Context(), id, "somebody", "again"))
	seq := int64(1)
	for f, err := range events.Frames { // a watcher who waited while the trial was broken off gets the rest
		must.Need(t, err == nil && f.Seq == seq+1, "%v, event %d after %d", err, f.Seq, seq)
		seq = f.Seq
	}
	e = entry(t, d, id)
	must.Hold(t, e.State == api.Over && e.Reason == "", "%+v", e)

	c.Sit = nil
	must.Fail(t, api.ErrUnavailable)(open(t, c).Submit(t.Context(), schedule.Order{Case: jurattest.Case(t)}))
}

// TestFull: the queue has a limit, and a submission beyond it is refused and is not in the log.
func TestFull(t *testing.T) {
	h := jurattest.New(t)
	c := config(h, &bench{})
	c.Waiting = 2
	d := open(t, c)
	submit(t, d)
	submit(t, d)
	size := must.Get(h.Ledger.Size(t.Context()))(t)
	must.Fail(t, schedule.ErrFull)(d.Submit(t.Context(), schedule.Order{Case: jurattest.Case(t)}))
	now, err := h.Ledger.Size(t.Context())
	must.Hold(t, err == nil && now == size, "%v, %d records instead of %d", err, now, size)
}

// TestDrain: when a scheduler stops, jurors who were asked still answer and are recorded, and no other is asked.
// Watchers are told, and the next scheduler resumes the trial.
func TestDrain(t *testing.T) {
	h, b := jurattest.New(t), &bench{gate: make(chan struct{})}
	d := open(t, config(h, b))
	stop := run(t, d)
	id := submit(t, d)
	events := must.Get(d.Watch(t.Context(), id, 0))(t)
	var heard int64
	var ended error
	for f, err := range events.Frames {
		if ended = err; err != nil {
			break
		}
		heard = f.Seq
		if f.Type == "phase_started" {
			go stop()
			awaitStopping(d, id)
			close(b.gate)
		}
	}
	must.Need(t, errors.Is(ended, schedule.ErrClosing), "heard %d events, then %v", heard, ended)
	stop()
	must.Fail(t, schedule.ErrClosing)(d.Submit(t.Context(), schedule.Order{Case: jurattest.Case(t)}))
	r, err := trial.Reopen(t.Context(), h.Ledger, id)
	must.Need(t, err == nil && len(r.Waiting()) <= 0 && !r.Over && int64(len(r.Records)) == heard, "%v, heard %d, %+v", err, heard, r)
	e := entry(t, d, id)
	must.Hold(t, e.State == api.Queued && e.Reason == "", "%+v", e) // queued for the next scheduler
	next := open(t, config(h, b))
	run(t, next)
	frames := watched(t, next, id, heard)
	must.Hold(t, frames[0].Seq == heard+1 && frames[len(frames)-1].Last, "goes on with %d", frames[0].Seq)
	must.Equal(t, b.asked.Load(), 3+3+1)
}

// TestDrainHasAnEnd: a juror who takes longer than the grace period is interrupted, and its act is not in the log.
func TestDrainHasAnEnd(t *testing.T) {
	h := jurattest.New(t)
	b := &bench{spoil: func(c *trial.Config) {
		c.Jurors[2] = &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90), Delay: time.Hour}
	}}
	c := config(h, b)
	c.Grace = time.Millisecond
	d := open(t, c)
	stop := run(t, d)
	id := submit(t, d)
	for len(recorded(t, h, id)) < 4 { // the submission, the opening and two answers
		time.Sleep(time.Millisecond)
	}
	stop()
	e := entry(t, d, id)
	must.Hold(t, e.State == api.Queued && e.Acts == 4 && !e.Degraded, "%+v", e)
}

func recorded(t *testing.T, h *jurattest.House, id string) []*evidence.Record {
	t.Helper()
	return must.Get(h.Ledger.Chain(t.Context(), id))(t)
}

// locks are the locks of several processes.
type locks struct {
	mu       sync.Mutex
	all      map[string]bool
	released func(id string)
}

func newLocks() *locks { return &locks{all: map[string]bool{}, released: func(string) {}} }

func (l *locks) Locked(_ context.Context, id string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[id], nil
}

func (l *locks) Lock(ctx context.Context, id string) (context.Context, func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[id] {
		return nil, nil, errors.New("locked")
	}
	l.all[id] = true
	return ctx, func() { l.release(id) }, nil
}

func (l *locks) release(id string) {
	l.mu.Lock()
	delete(l.all, id)
	l.mu.Unlock()
	l.released(id)
}

func (l *locks) Close() error { return nil }

// TestElsewhere: a trial that another process conducts is shown as under way, is not started here, and can be watched.
func TestElsewhere(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	locks := newLocks()
	c := config(h, b)
	c.Locks = locks
	d := open(t, c)
	run(t, d)

	begun, goOn := make(chan string), make(chan struct{})
	over := make(chan error)
	go func() { // in the other process
		own := b.sit(nil, 0)
		own.Ledger, own.Keys, own.Now, own.Locks = h.Ledger, h.Keys, h.Now, locks
		own.OnEvent = func(e trial.Event) {
			if e.Head().Seq == 3 {
				begun <- e.Head().SubmissionID
				<-goOn
			}
		}
		_, err := trial.Run(context.Background(), own, jurattest.Case(t))
		over <- err
	}()
	id := <-begun
	e := entry(t, d, id)
	must.Hold(t, e.State == api.UnderWay && e.Elsewhere, "%+v", e)
	must.Want(t, d.Retry(t.Context(), id, "somebody", "again"), schedule.ErrNotBrokenOff)
	// A second scheduler finds the trial unfinished, and leaves it to the process that has it.
	second := open(t, c)
	run(t, second)
	must.Equal(t, awaitState(t, second, id, api.UnderWay).Reason, "")
	events := must.Get(d.Watch(t.Context(), id, 2))(t)
	close(goOn)
	seq := int64(2)
	for f, err := range events.Frames {
		must.Need(t, err == nil && f.Seq == seq+1, "%v, event %d after %d", err, f.Seq, seq)
		seq = f.Seq
	}
	must.Do(t, <-over)
	must.Equal(t, seq, 15)
	awaitState(t, second, id, api.Over)
}

// TestEntries reads the list page by page.
func TestEntries(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	var ids []string
	for i := range 5 {
		id := must.Get(d.Submit(t.Context(), schedule.Order{Submitter: fmt.Sprintf("person-%d", i%2), Case: jurattest.Case(t)}))(t)
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	var got []string
	before := ""
	for {
		page, more, err := d.Entries(t.Context(), before, 2, nil)
		must.Do(t, err)
		for _, e := range page {
			got = append(got, e.ID)
		}
		if !more {
			break
		}
		before = page[len(page)-1].ID
	}
	must.Hold(t, slices.Equal(got, ids), "%v, want %v", got, ids)
	own, more, err := d.Entries(t.Context(), "", 2, func(s *trial.Summary) bool { return s.Submitter == "person-0" })
	must.Hold(t, err == nil && more && len(own) == 2 && own[0].Submitter == "person-0", "%v, %t, %+v", err, more, own)
	if _, _, err := d.Entries(t.Context(), "trial-none", 2, nil); !errors.Is(err, trial.ErrUnknown) {
		t.Errorf("%v", err)
	}
	oldest, err := d.Oldest(t.Context(), 2, func(s *trial.Summary) bool { return s.Submitter == "person-0" })
	must.Hold(t, err == nil && len(oldest) == 2 && oldest[0].ID == ids[4] && oldest[1].ID == ids[2] && oldest[0].State == api.Queued, "%v, %+v", err, oldest)
}

// TestDecisions: a person's decision on the verdict becomes the outcome, and an event after the closing. A decision on
// another record becomes neither.
func TestDecisions(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	done := h.Try(t, jury.FinalJudge)
	judgment, evaluation := done.Records[len(done.Records)-2], done.Records[2]
	decide := func(on *evidence.Record, status evidence.ApprovalStatus, modified jsontext.Value) {
		t.Helper()
		h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "reviewer", OriginalResponseID: on.Payload.RecordID,
			ApprovalStatus: status, ModifiedResponse: modified, ChainID: done.ID, Saw: []evidence.Digest{on.Digest}, Timestamp: evidence.FormatTime(h.Now())})
	}
	d := open(t, config(h, b))
	whole := watched(t, d, done.ID, 0)
	decide(evaluation, evidence.Rejected, nil)
	if e := entry(t, d, done.ID); e.Reviews != 1 || e.Outcome.Decision != nil || e.Outcome.Position != jury.SafePass {
		t.Errorf("a review of an evaluation: %+v", e.Outcome)
	}
	wantSame(t, watched(t, d, done.ID, 0), whole)
	decide(judgment, evidence.Rejected, nil)
	e := entry(t, d, done.ID)
	if o := e.Outcome; e.State != api.Over || e.Reviews != 2 || e.Acts != len(done.Records) || !o.Open || o.Position != jury.NeedsReview || o.Decision.Status != evidence.Rejected || o.Verdict.Record != judgment.Payload.RecordID {
		t.Errorf("%+v, %+v", e, e.Outcome)
	}
	decide(judgment, evidence.ApprovedWithModifications, jury.ModifiedVerdict(jury.UnsafeFail))
	o := entry(t, d, done.ID).Outcome
	must.Hold(t, !o.Open && o.Position == jury.UnsafeFail && o.By == jury.ByPerson && o.Decisions == 2 && o.Verdict.Position == jury.SafePass, "%+v", o)
	frames := watched(t, d, done.ID, 0)
	must.Need(t, len(frames) == len(whole)+2, "%d events, want two more than %d", len(frames), len(whole))
	wantSame(t, frames[:len(whole)], whole)
	last := frames[len(whole)+1]
	must.Hold(t, last.Type == "person_decided" && last.Seq == int64(len(whole)+2) && bytes.Contains(last.JSON, []byte(`"position":"unsafe_fail"`)),
		"%+v: %s", last, last.JSON)
	wantSame(t, watched(t, d, done.ID, int64(len(whole))), frames[len(whole):])
	w, err := d.Watch(t.Context(), done.ID, int64(len(frames)))
	must.Hold(t, err == nil && w.Over, "after the last decision: %+v, %v", w, err)
}

// TestDecisionBeforeTheClosing: the event of a decision between judgment and closing comes after the closing, so that no
// event changes its number.
func TestDecisionBeforeTheClosing(t *testing.T) {
	h := jurattest.New(t)
	done := h.Try(t, jury.FinalJudge)
	n := len(done.Records)
	judgment := done.Records[n-2]
	review := h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "reviewer", OriginalResponseID: judgment.Payload.RecordID,
		ApprovalStatus: evidence.Approved, ChainID: done.ID, Saw: []evidence.Digest{judgment.Digest}, Timestamp: evidence.FormatTime(h.Now())})
	chain := slices.Concat(done.Records[:n-1], []*evidence.Record{review}, done.Records[n-1:])
	p := trial.NewView(nil)
	var types []string
	for _, r := range chain {
		events := must.Get(p.Add(r))(t)
		for i, e := range events {
			types = append(types, e.Head().Type)
			must.Hold(t, e.Head().Seq == int64(len(types)), "event %d of %s has number %d", i, r.Payload.ActionType, e.Head().Seq)
		}
	}
	got := types[len(types)-3:]
	must.Hold(t, slices.Equal(got, []string{"final_judgment", "trial_closed", "person_decided"}), "%q", got)
}

// TestRunningSchedulerReadsAgain: when briefs of old records were replaced, as by expiry, a scheduler that runs reads its list again.
func TestRunningSchedulerReadsAgain(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	run(t, d)
	id := submit(t, d)
	awaitState(t, d, id, api.Over)
	before := must.Get(d.Entry(t.Context(), id))(t).Outcome
	must.Do(t, h.Ledger.Briefs().Reindex(t.Context(), nil))
	for must.Get(d.Entry(t.Context(), id))(t).Outcome == before {
		time.Sleep(time.Millisecond)
	}
}
