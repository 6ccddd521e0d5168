// Package schedule decides which process conducts which trial of a log, conducts trials, and tells watchers what
// happens in them.
//
// A Scheduler conducts several trials at a time; the others wait in the order of submission. The state of a trial comes
// from the log, from the queue and from its lock. A stream reads the records of a watched trial once into a trial.View,
// and encodes each event once. A Delivery sends the events over WebSocket or as server-sent events.
//
// # The log says which trials are to be held, a table by which process
//
// A trial without a closing is to be held, unless an act in the log cancels it. The queue is one table, `work`: beside
// the log in PostgreSQL, or in a file of its own for the processes of one machine, so that its writers and the appends
// do not wait for each other. A process takes the first row that it may take, gives it the number of its hold, and says
// every second that it lives. The table proves nothing: Open makes the missing rows. Temporary errors are tried six
// times in all, with growing delays; permanent ones are not. A log or a database that is away is no attempt.
//
// # Who was not heard of has died
//
// Every process looks for rows whose holder was not heard of for ten seconds, and whose trial has no lock, and ends
// those holds. A holder that finds another number in its row ends its work, and what it would store has no effect. If a
// look is wrong, two processes work on one trial for a moment: the second finds it locked. Should both believe that they
// have the lock, only one of their acts enters the log at each place (package trial), and the other stops.
//
// # Cancelling is an act
//
// Who stopped a trial, and why, can matter more than the trial. So it is in the log (`trial_event`), outside the trial's
// chain: it is the operator's decision. The process that conducts the trial follows the log and stops between two acts.
//
// # Who has a case is in the log
//
// Taking a case that waits for a person, and giving it back, are acts of the operator that name what waits: the verdict,
// or the last decision on it. So the next decision ends it without another act, and an act that comes too late says
// nothing. Of two reviewers, the first in the log has the case. Nobody is hindered from deciding: a reviewer on leave
// must not block a case.
//
// # Lists of trials are read once and then followed
//
// An Index reads the briefs of all trials once, and then what any process appends. A file with the list was refused: it
// had to be versioned, compared with the log, and removed when records expire.
//
// # Each event has a number, and a reconnecting reader asks for the rest
//
// WebSocket and server-sent events carry the same JSON. So disconnecting a reader loses nothing, and the server
// disconnects readers that are too slow.
//
// # A reader that is too slow is told so while there is room
//
// A WebSocket reader gets at most Delivery.Window bytes before it must answer a ping: less than the buffers between the
// systems hold, so a close code with a reason can still be sent. Only an event that is larger by itself can fill them.
//
// # Watchers read a list that the trial writes
//
// The list of encoded events only grows, and each watcher reads it at its own pace: no queue can overflow, and no
// watcher delays the trial. Watchers are woken together, after a short delay. Before a thousand WebSocket connections, on
// two busy cores, the trial took 1.2 to 1.5 times as long when they were woken at once, and 1.00 to 1.03 times 20 ms
// later (BenchmarkWatch of internal/test/bench).
package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/fault"
	"jurat/internal/log/ledger"
	"jurat/internal/log/lock"
)

var (
	ErrFull         = errors.New("the queue of trials is full")
	ErrClosing      = errors.New("trials are being stopped, because the program is about to end")
	ErrNotBrokenOff = errors.New("only a trial that was broken off or cancelled can be continued")
	ErrOver         = errors.New("the trial is over or cancelled already, so it cannot be cancelled")
	ErrNotWaiting   = errors.New("the trial does not wait for a person")
	ErrTaken        = errors.New("another reviewer has taken this case")
	ErrNotTaken     = errors.New("no reviewer has taken this case")
	ErrAhead        = errors.New("no such event yet")
)

type Config struct {
	Ledger *ledger.Ledger
	Keys   ledger.Keys

	// Sit seats the jury for a trial of a case that has already spent an amount, in millionths of a US dollar. nil: no jury sits here, and no case is taken.
	Sit func(on *subject.Case, spent int64) trial.Config
	// Locks keep other processes from acting in a trial that is conducted here, and tell of theirs. nil: only this scheduler uses the log.
	Locks lock.Locks
	// Vouch returns an error for records that this installation's keys have not signed. It is a function because this
	// is the only question that goes to the whole installation. nil: all records are accepted.
	Vouch func(context.Context, ...*evidence.Record) error

	// Reading is called while Open reads the log. nil: progress is not reported.
	Reading func(done, total int64)

	// Table is the queue, which all processes share that hold trials of this log. nil: in memory, for this scheduler alone.
	Table *Table

	Parallel int           // how many trials this process holds at a time; 0: 4
	Memory   int64         // bytes that they may use together, by an estimate; 0: no limit
	Waiting  int           // how many may wait for their turn, over all processes; 0: 1000
	Attempts int           // attempts for a trial that breaks off; 0: 6
	Backoff  time.Duration // delay after it broke off first; each further one is four times as long; 0: 10 s
	Lease    time.Duration // how long a process may be silent before others continue its trials; 0: 10 s
	Grace    time.Duration // time for answers that are under way when trials are being stopped; 0: 20 s
	Poll     time.Duration // time until a log that could not be read is read again; 0: half a second
	Gather   time.Duration // time for gathering frames before watchers are woken; 0: 20 ms

	// Listen makes the listener of a trial, which gets its events, the recorded ones first. nil: only watchers get events.
	Listen func() func(trial.Event)

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: no log
}

// A Scheduler conducts the trials of one log. It is safe for concurrent use.
type Scheduler struct {
	cfg    Config
	index  *trial.Index
	queue  *queue
	closed chan struct{}       // closed when no trial is under way and none will begin
	memory *semaphore.Weighted // of Config.Memory; nil: no limit
	reads  chan struct{}       // holds an element for each trial that is being read for watchers, or for its size

	mu      sync.Mutex // held while the fields below are read or written, and only briefly
	working bool       // trials are conducted here
	streams map[string]*stream
	ignore  context.CancelFunc // ends following the log; nil: the log is not followed
}

// Open reads the trials of the log, and queues those that are to be held. Its errors are those of the log and of the queue.
func Open(ctx context.Context, cfg Config) (d *Scheduler, err error) {
	defer fault.While(&err, "opening scheduler")
	d = &Scheduler{cfg: cfg.complete(), closed: make(chan struct{}), reads: make(chan struct{}, readsAtOnce), streams: map[string]*stream{}}
	if cfg.Memory > 0 {
		d.memory = semaphore.NewWeighted(cfg.Memory)
	}
	d.index = trial.NewIndex(d.cfg.Ledger, d.heard)
	d.index.Progress = cfg.Reading
	if err := cmp.Or(d.index.Renew(ctx), d.index.Follow(ctx)); err != nil {
		return nil, err
	}
	d.index.Progress = nil
	if d.cfg.Table == nil {
		if d.cfg.Table, err = OpenTable(ctx, nil, ""); err != nil {
			return nil, err
		}
	}
	d.queue = newQueue(d.cfg, d.work)
	return d, d.queue.put(ctx, failed, d.toHold()...)
}

func (d *Scheduler) toHold() (ids []string) {
	for _, s := range d.index.List(func(s *trial.Summary) bool { return !s.Over && s.Cancelled == nil }) {
		ids = append(ids, s.ID)
	}
	return ids
}

func (c Config) complete() Config {
	if c.Locks == nil {
		c.Locks = lock.Alone{}
	}
	if c.Vouch == nil {
		c.Vouch = func(context.Context, ...*evidence.Record) error { return nil }
	}
	if c.Listen == nil {
		c.Listen = func() func(trial.Event) { return func(trial.Event) {} }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Parallel = cmp.Or(c.Parallel, 4)
	c.Waiting = cmp.Or(c.Waiting, 1000)
	c.Attempts = cmp.Or(c.Attempts, 6)
	c.Backoff = cmp.Or(c.Backoff, 10*time.Second)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Grace = cmp.Or(c.Grace, 20*time.Second)
	c.Poll = cmp.Or(c.Poll, 500*time.Millisecond)
	c.Gather = cmp.Or(c.Gather, 20*time.Millisecond)
	return c
}

type Order struct {
	Case      *subject.Case
	Submitter string // the name that the submission is sealed under; "": "submitter"
	ID        string // see trial.Config; "": a new one
}

// Submit seals a case and queues its trial. When it returns without an error, the submission is in the log and the
// trial will be held, at the latest after the next start. Submit returns the trial's id, also with
// ledger.ErrDuplicate, which says that an earlier order has the same ID. It returns ErrFull or ErrClosing if it takes
// no orders now.
func (d *Scheduler) Submit(ctx context.Context, o Order) (id string, err error) {
	if err := cmp.Or(d.queueable(ctx), d.noJury()); err != nil {
		return "", err
	}
	if id, err = trial.Submit(ctx, d.furnish(trial.Config{Submitter: o.Submitter, ID: o.ID}), o.Case); err != nil {
		return id, err
	}
	// After a crash or an error here the trial is not in the queue. A process that twice sees it in that state puts it there.
	if err := d.queue.put(context.WithoutCancel(ctx), none, id); err != nil {
		d.cfg.Log.Error("a trial is not in the queue yet", "trial", id, "error", err)
	}
	return id, nil
}

// How long, and how often, a submission waits for another with the same key that is being sealed. A browser whose
// button was pressed twice shows the answer to the second request.
const (
	twinWait  = 5 * time.Second
	twinPause = 20 * time.Millisecond
)

// SubmitOnce submits a case. If a case was already submitted with the same idempotency key, it returns that trial,
// even while the trial is under way or the queue is full. It returns api.ErrKeyReused if that was another case, and otherwise the errors of Submit.
func (d *Scheduler) SubmitOnce(ctx context.Context, o Order) (string, error) {
	id := evidence.TrialPrefix + o.ID
	for until := time.Now().Add(twinWait); ; {
		if o.ID != "" {
			if err := d.submittedBefore(ctx, id, o.Case); !errors.Is(err, trial.ErrUnknown) {
				return id, err
			}
		}
		made, err := d.Submit(ctx, o)
		switch {
		case errors.Is(err, ledger.ErrDuplicate): // another request with the same key was faster, or another record has this id
			if err = d.submittedBefore(ctx, id, o.Case); errors.Is(err, trial.ErrUnknown) {
				err = fmt.Errorf("%w: it made another record", api.ErrKeyReused)
			}
			return id, err
		case !errors.Is(err, lock.ErrTaken):
			return made, err
		case !time.Now().Before(until):
			return id, fmt.Errorf("%w: the same submission is being sealed at this moment: try again", api.ErrUnavailable)
		}
		select { // another request with the same key is being sealed
		case <-ctx.Done():
			return id, ctx.Err()
		case <-time.After(twinPause):
		}
	}
}

// submittedBefore returns nil if the same evidence was submitted as this trial, and trial.ErrUnknown if there is no such trial.
func (d *Scheduler) submittedBefore(ctx context.Context, id string, on *subject.Case) error {
	e, err := d.Entry(ctx, id)
	if err == nil && e.Case != on.Digest() {
		err = fmt.Errorf("%w: it made %s, which is about other evidence", api.ErrKeyReused, id)
	}
	return err
}

// queueable refuses an order while nothing is sealed yet. Concurrent orders can exceed the limit a little.
func (d *Scheduler) queueable(ctx context.Context) error {
	if d.queue.isStopping() {
		return ErrClosing
	}
	waiting, err := d.Waiting(ctx)
	if err == nil && waiting >= d.cfg.Waiting {
		err = ErrFull
	}
	return err
}

func (d *Scheduler) noJury() error {
	if d.cfg.Sit == nil {
		return fmt.Errorf("%w: no jury sits on this server", api.ErrUnavailable)
	}
	return nil
}

func (d *Scheduler) furnish(config trial.Config) trial.Config {
	config.Ledger, config.Keys, config.Locks, config.Now = d.cfg.Ledger, d.cfg.Keys, d.cfg.Locks, d.cfg.Now
	return config
}

// Retry queues a broken-off or cancelled trial again, at the end. For a cancelled one, by and reason go into an act
// of the operator. Retry returns ErrUnknown, ErrNotBrokenOff or ErrClosing.
func (d *Scheduler) Retry(ctx context.Context, id, by, reason string) error {
	e, err := d.Entry(ctx, id)
	if err != nil {
		return err
	}
	if e.State != api.BrokenOff && e.State != api.Cancelled {
		return fmt.Errorf("%w: this one is %s", ErrNotBrokenOff, e.State)
	}
	if err := d.queueable(ctx); err != nil {
		return err
	}
	if e.State == api.Cancelled {
		if err := d.seal(ctx, operator.TrialEventBody{By: by, Event: operator.TrialResumed, Reason: reason, Trial: id}); err != nil {
			return err
		}
	}
	// If a process holds it already, that checks again whether it is cancelled before it ends the hold.
	return d.queue.put(ctx, free, id)
}

// Cancel stops a trial that waits, is under way in any process, or was broken off. It seals an act of the operator.
// The process that conducts the trial sees the act, asks no further juror, and records the answers that are under
// way. Cancel returns ErrUnknown or ErrOver.
func (d *Scheduler) Cancel(ctx context.Context, id, by, reason string) error {
	e, err := d.Entry(ctx, id)
	if err != nil {
		return err
	}
	if e.Over || e.Cancelled != nil {
		return fmt.Errorf("%w: this one is %s", ErrOver, e.State)
	}
	if err := d.seal(ctx, operator.TrialEventBody{By: by, Event: operator.TrialCancelled, Reason: reason, Trial: id}); err != nil {
		return err
	}
	// After a crash or an error here the trial stays in the queue, and nothing is done when its turn comes.
	if err := d.queue.drop(context.WithoutCancel(ctx), id); err != nil {
		d.cfg.Log.Error("a cancelled trial stays in the queue", "trial", id, "error", err)
	}
	return nil
}

// Take says in the log that a reviewer means to decide on a trial that waits for a person. by is the reviewer, or who assigns the trial
// to the reviewer; reason may be "". It changes nothing if the reviewer has the trial. It returns ErrUnknown, ErrNotWaiting, or
// ErrTaken if another reviewer has it.
func (d *Scheduler) Take(ctx context.Context, id, reviewer, by, reason string) error {
	e, err := d.waiting(ctx, id)
	if err != nil {
		return err
	}
	if e.Taken() == nil {
		if err := d.seal(ctx, operator.TrialEventBody{By: by, Event: operator.TrialTaken, Reason: reason, Trial: id, Reviewer: reviewer, Record: e.Waits()}); err != nil {
			return err
		}
		if e, err = d.waiting(ctx, id); err != nil { // another process may have been faster, and the log says which
			return err
		}
	}
	switch now := e.Taken(); {
	case now == nil:
		return fmt.Errorf("%w: somebody gave it back at the same moment", ErrNotTaken)
	case now.Reviewer != reviewer:
		return fmt.Errorf("%w: %q has had it since %s", ErrTaken, now.Reviewer, evidence.FormatTime(now.At))
	}
	return nil
}

// GiveBack says in the log that the reviewer who has a trial does not mean to decide on it any more. Its errors
// are ErrUnknown, ErrNotWaiting and ErrNotTaken, and what may returns, which is asked first.
func (d *Scheduler) GiveBack(ctx context.Context, id, by, reason string, may func(trial.Change) error) error {
	e, err := d.waiting(ctx, id)
	if err != nil {
		return err
	}
	now := e.Taken()
	if now == nil {
		return ErrNotTaken
	}
	if err := may(*now); err != nil {
		return err
	}
	return d.seal(ctx, operator.TrialEventBody{By: by, Event: operator.TrialLeft, Reason: reason, Trial: id, Reviewer: now.Reviewer, Record: e.Waits()})
}

func (d *Scheduler) waiting(ctx context.Context, id string) (Entry, error) {
	e, err := d.Entry(ctx, id)
	if err == nil && e.Waits() == "" {
		err = ErrNotWaiting
	}
	return e, err
}

func (d *Scheduler) seal(ctx context.Context, e operator.TrialEventBody) error {
	p, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.TrialEvent, ChainID: operator.TrialsChain,
		Timestamp: evidence.FormatTime(d.cfg.Now())}, e)
	if err != nil {
		return err
	}
	if _, err := (ledger.Operator{Ledger: d.cfg.Ledger, Keys: d.cfg.Keys}).Seal(ctx, p); err != nil {
		return fmt.Errorf("recording that %s is %s: %w", e.Trial, e.Event, err)
	}
	return nil
}

type Entry struct {
	trial.Summary
	State     api.State
	Reason    string    // why the trial was broken off or cancelled
	Next      time.Time // of a broken-off trial: the next automatic attempt; zero: none
	Elsewhere bool      // of a trial under way: another process conducts it
	Ahead     int       // of a queued trial: how many wait before it
}

// Entry returns a trial's state. It returns ErrUnknown for an unknown trial.
func (d *Scheduler) Entry(ctx context.Context, id string) (Entry, error) {
	if err := d.index.Follow(ctx); err != nil {
		return Entry{}, err
	}
	s, ok := d.index.Get(id)
	if !ok {
		return Entry{}, fmt.Errorf("trial %q: %w", id, trial.ErrUnknown)
	}
	list, err := d.place(ctx, []trial.Summary{s})
	if err != nil {
		return Entry{}, err
	}
	return list[0], nil
}

// Entries lists at most n trials that match (nil: all match), the newest first, of those submitted before a given one
// ("": of all). It reports whether there are more. It returns ErrUnknown if the given trial does not exist.
func (d *Scheduler) Entries(ctx context.Context, before string, n int, match func(*trial.Summary) bool) (list []Entry, more bool, err error) {
	if err := d.index.Follow(ctx); err != nil {
		return nil, false, err
	}
	summaries, more, err := d.index.Before(before, n, match)
	if err != nil {
		return nil, false, err
	}
	list, err = d.place(ctx, summaries)
	return list, more, err
}

// Oldest lists at most n trials that match, the oldest first, so that newer ones cannot push out an old one. Its errors are the log's and the queue's.
func (d *Scheduler) Oldest(ctx context.Context, n int, match func(*trial.Summary) bool) ([]Entry, error) {
	if err := d.index.Follow(ctx); err != nil {
		return nil, err
	}
	left := n
	return d.place(ctx, d.index.List(func(s *trial.Summary) bool { // one after the other, under its lock
		is := left > 0 && match(s)
		if is {
			left--
		}
		return is
	}))
}

// Open returns when the trials were submitted that need a person, the oldest first. Its errors are those of reading the log.
func (d *Scheduler) Open(ctx context.Context) (since []time.Time, err error) {
	if err := d.index.Follow(ctx); err != nil {
		return nil, err
	}
	for _, s := range d.index.List((*trial.Summary).NeedsPerson) {
		since = append(since, s.Submitted)
	}
	return since, nil
}

// place adds the state of queue and locks to what the log says of trials. For an idle trial it reads the log again after
// that: a process appends all its acts before it releases the trial, and may have done so meanwhile.
func (d *Scheduler) place(ctx context.Context, summaries []trial.Summary) ([]Entry, error) {
	for {
		list, err := d.placeAsRead(ctx, summaries)
		if err != nil || !slices.ContainsFunc(list, Entry.isIdle) {
			return list, err
		}
		if err := d.index.Follow(ctx); err != nil {
			return nil, err
		}
		changed := false
		for i, e := range list {
			if now, _ := d.index.Get(e.ID); e.isIdle() && now != summaries[i] {
				summaries[i], changed = now, true
			}
		}
		if !changed {
			return list, nil
		}
	}
}

// isIdle reports whether the trial is not over and no process works on it.
func (e Entry) isIdle() bool { return e.State != api.Over && e.State != api.UnderWay }

func (d *Scheduler) placeAsRead(ctx context.Context, summaries []trial.Summary) ([]Entry, error) {
	var list []Entry
	var unfinished []string
	for _, s := range summaries {
		if list = append(list, Entry{Summary: s, State: api.Over}); !s.Over {
			unfinished = append(unfinished, s.ID)
		}
	}
	found, err := d.queue.find(ctx, unfinished...)
	for i := range list {
		if e := &list[i]; err == nil && !e.Over {
			turn, has := found[e.ID]
			err = d.placeOne(ctx, e, turn, has)
		}
	}
	return list, err
}

func (d *Scheduler) placeOne(ctx context.Context, e *Entry, turn turn, has bool) (err error) {
	if d.queue.isHere(e.ID) {
		e.State = api.UnderWay
		return nil
	}
	// A process may work on the trial whatever the queue says: a user resumed it by hand, or it was taken over too soon.
	locked, err := d.cfg.Locks.Locked(ctx, e.ID)
	switch {
	case err != nil:
		return err
	case locked:
		e.State, e.Elsewhere = api.UnderWay, true
	case e.Cancelled != nil:
		e.State, e.Reason = api.Cancelled, e.Cancelled.Reason
	case !has:
		// It was submitted or tried again a moment ago, or the queue was lost. A process puts it at the end of the queue.
		// No one has failed, so there is no reason to show.
		e.State = api.Queued
		e.Ahead, err = d.Waiting(ctx)
	case turn.held:
		e.State, e.Elsewhere = api.UnderWay, true
	case turn.failed || turn.reason != "" && !turn.next.IsZero():
		e.State, e.Reason, e.Next = api.BrokenOff, turn.reason, turn.next
	default:
		e.State = api.Queued
		e.Ahead, err = d.queue.waiting(ctx, turn.place)
	}
	return err
}

// Waiting returns how many trials wait for their turn, over all processes. Its errors are those of the queue.
func (d *Scheduler) Waiting(ctx context.Context) (int, error) {
	return d.queue.waiting(ctx, math.MaxInt64)
}

func (d *Scheduler) UnderWay() int { return d.queue.underWay() }

// Trials returns the index of trials, brought up to date. Its errors are those of reading the log.
func (d *Scheduler) Trials(ctx context.Context) (*trial.Index, error) {
	return d.index, d.index.Follow(ctx)
}

// States returns the states of trials, in their order. Its errors are those of reading the log and of the queue.
func (d *Scheduler) States(ctx context.Context, summaries []trial.Summary) ([]api.State, error) {
	list, err := d.place(ctx, slices.Clone(summaries))
	states := make([]api.State, 0, len(list))
	for _, e := range list {
		states = append(states, e.State)
	}
	return states, err
}

func (e *Entry) Described() api.Submission {
	out := api.Submission{ID: e.ID, State: e.State, Reason: e.Reason, Ahead: e.Ahead, Submitter: e.Submitter, Agent: e.Agent, Case: e.Case.String(),
		Submitted: evidence.FormatTime(e.Submitted), Last: evidence.FormatTime(e.Last), Acts: e.Acts, Offline: e.Offline, Degraded: e.Degraded,
		Reviews: e.Reviews, Outcome: e.Outcome, Delivered: e.Delivered}
	if now := e.Taken(); now != nil {
		out.Taken = &api.Taken{Reviewer: now.Reviewer, Since: evidence.FormatTime(now.At), By: now.By, Reason: now.Reason}
	}
	if e.Cancelled != nil {
		out.CancelledBy = e.Cancelled.By
	}
	if !e.Next.IsZero() {
		out.Next = evidence.FormatTime(e.Next)
	}
	if o := e.Outcome; o != nil {
		out.Verdict = &api.Verdict{Record: o.Verdict.Record, Position: o.Verdict.Position, Score: o.Verdict.Score, Inconclusive: o.Verdict.Inconclusive}
		if o.Decision != nil {
			out.Reviewed = string(o.Decision.Status)
		}
	}
	return out
}
