// Package schedule says which trials of a log are to be held, conducts them, and tells watchers what happens in them.
//
// A Scheduler conducts some trials at a time. The others wait, in the order in which they were submitted, and each goes to the process that has
// room. A submission is sealed before its turn comes, so the log says which trials are to be held: Open makes sure that every trial without a
// closing has a job in the Queue. What a Scheduler says of a trial is read from the log, from its job and from its claim.
//
// A stream follows each trial that is watched in the log, reads each record once into a trial.View, and encodes each event once. Watchers read
// the events at their own pace, and courtroom pages the View (Look). A Delivery sends the events over WebSocket or as server-sent events.
//
// # The log says what is to be held, a queue says by whom
//
// A submission is sealed before its trial waits for its turn, and a trial without a closing is to be held, unless an act says that
// somebody has cancelled it. Which process holds it when is left to River, a queue of jobs over the database that is there anyway:
// one job for each trial, taken by whoever has room, in the order in which they came. It is trusted with nothing else. Whoever opens
// a scheduler makes the jobs that are missing, so a queue that is lost loses nothing but why a trial broke off; a job of a trial that
// is over, or cancelled, ends at once; a job that two have at the same time comes to one trial all the same, since the second finds
// it claimed and puts it off, which is no attempt. What went wrong and may pass (the database, the disk) is tried again, six times,
// later each time; what will not pass (the jury sits differently, records that are not vouched for, a mistake in the program) is
// not.
//
// # Whose process has died is asked of the claims, not of a clock
//
// River's own rescuer offers every job again that was begun long ago, so it would have to wait longer than the longest trial takes.
// Here every process looks, every few seconds, for jobs whose trial nobody has claimed. It may err; then two have a job.
//
// # Cancelling is an act
//
// That a trial was stopped, by whom and why, may matter more than the trial: so it is in the log (`trial_event`), and not in the
// state of a job, which anybody could have changed and nobody keeps. It stands beside the trial and not in its chain: whether it is
// held is decided by whoever runs the house, and changes nothing in what was said. Whoever conducts the trial follows the log and
// stops between two acts; no second way of telling him could fail by itself.
//
// # What is listed of trials is read once and then followed
//
// What is listed of trials is read once and then followed, brief by brief, whoever appends. The database has an index of what
// stands in trials' chains, so a start takes as long as there are trials, not as long as the log is.
//
// # The queue is River, and nothing in it is truth
//
// A Queue keeps a durable job for every trial that is to be held, in a database that the processes of one machine or of many share.
// It is River (riverqueue.com) with what jurat asks of it: one job for each trial, in the order in which they came; a bounded number of
// attempts; and jobs of processes that have died are taken over by others within seconds.
//
// Nothing here is truth. That a trial is to be held, how far it is and that it is over stands in the log; who may act in it, its claim
// says. A job that is lost is made anew from the log, one that is worked twice does nothing the second time, and a state that came too
// late or not at all is put right by whoever works the job next.
//
// # On SQLite the queue is a file of its own
//
// On SQLite the queue is a file of its own, `jobs.db`. It is written every few seconds even where nothing happens, for leader
// election, and in the ledger's file each of these would have to wait for who appends, and be waited for. It is not synced as the
// ledger is, and in no backup. SQLite tells no process what another one wrote: who submits is told at once, other processes look
// once a second.
//
// # Each event has a number, and a disconnected reader asks for the rest
//
// Both carry the same events in the same JSON. Each event has a number, and whoever was disconnected asks for what comes after the
// last one that it has. So disconnecting somebody costs nobody anything, and it is what happens to readers who are too slow.
//
// A reader is sent no more than Delivery.Window bytes without having to answer a ping. That is less than the operating systems on the
// way hold, so a WebSocket reader who has stopped reading is found out while there is still room to tell it so: it finds the close
// code when it goes on. Only an event that is larger by itself can fill the way up, and then the connection is cut without a word.
//
// # Watchers read a list, and the trial writes it
//
// An event is encoded once, and added to a list that only grows; whoever watches goes through it at a pace of its own, so no queue
// can overflow and nobody can hold up the trial. Watchers are woken a moment later than they could be, all together: answers come in
// bursts with the clerk's acts behind them, and a thousand wake-ups between two of these would compete with the trial for the
// processor. That the log has grown, in whatever process, each process hears once (`Ledger.Grown`), and reads what is new once, for
// all who watch here. `BenchmarkWatchers` holds a trial before a thousand WebSocket connections: woken at once they made it 1.2 to
// 1.5 times as long on two busy cores, woken 20 ms later, all together, 1.00 to 1.03 times.
//
// # A reader who is too slow is told so while there is room
//
// A WebSocket reader is sent no more than 32 KiB without having to answer a ping, which is less than systems on the way hold. So
// whoever has stopped reading is found out before the way is full, and finds a close code with words in it; waiting until a write
// blocks would leave nothing but a cut connection.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/subject"
	"jurat/internal/trial"
)

var (
	// ErrFull says that as many trials wait as may.
	ErrFull = errors.New("as many trials wait for their turn as may wait")
	// ErrClosing says that trials are being stopped, and none is begun.
	ErrClosing = errors.New("trials are being stopped: the program is about to end")
	// ErrNotBrokenOff says that a trial cannot be tried again, since it is over, waits or is under way.
	ErrNotBrokenOff = errors.New("only a trial that was broken off or cancelled is gone on with")
	// ErrOver says that a trial cannot be cancelled, since it has its verdict, or was cancelled.
	ErrOver = errors.New("only a trial that is to be held is cancelled")
	// ErrAhead says that somebody wants to hear what comes after an event that has not come.
	ErrAhead = errors.New("no such event yet")
)

// Config is what a scheduler needs.
type Config struct {
	Ledger *ledger.Ledger
	Keys   ledger.Keys

	// Sit seats the jury for a trial in which so much was spent before, in millionths of a US dollar.
	Sit func(spent int64) (trial.Config, error)
	// Claim keeps everybody else from acting in a trial, and Claimed says whether anybody does. nil: only this scheduler knows the log.
	Claim   func(ctx context.Context, id string) (held context.Context, release func(), err error)
	Claimed func(ctx context.Context, id string) (bool, error)
	// Vouch refuses records that this installation's keys have not signed. nil: all are believed.
	Vouch func(context.Context, ...*evidence.Record) error

	// Jobs is where it is kept which trials are to be held, for all processes that hold trials of this log. nil: in memory, as only this
	// scheduler holds any.
	Jobs *Database

	Parallel int           // how many trials are under way here at a time; 0: 4
	Memory   int64         // bytes that they may hold together, as far as that can be told before; 0: as many as they take
	Waiting  int           // how many may wait for their turn, in all processes together; 0: 1000
	Attempts int           // how often a trial is tried that breaks off; 0: see QueueConfig, as the next three
	Backoff  time.Duration // how long after it broke off
	Lease    time.Duration // how soon a trial is gone on with whose process has died
	Rescue   time.Duration // after how long a trial is offered again whatever is known of it
	Grace    time.Duration // how long those who were asked have for their answers when trials are being stopped; 0: 20 s
	Poll     time.Duration // how soon a log that could not be read is read again; 0: half a second
	Gather   time.Duration // how long frames are gathered before watchers are woken; 0: 20 ms

	Now    func() time.Time         // nil: time.Now
	Log    *slog.Logger             // nil: nobody reads it
	Listen func() func(trial.Event) // makes somebody for each trial who hears its events, the recorded ones first; nil: only watchers do
}

// A Scheduler conducts the trials of one log. It is safe for concurrent use.
type Scheduler struct {
	cfg    Config
	index  *trial.Index
	jobs   *Queue
	closed chan struct{}       // closed when no trial is under way any more and none will be
	memory *semaphore.Weighted // of Config.Memory; nil: it is not counted
	reads  chan struct{}       // holds an element for each trial that is being read for watchers, or to find out how large it is

	mu      sync.Mutex          // held while what follows is read or written, and for nothing that takes long
	working context.Context     // of trials; nil: none is conducted here
	here    map[string]*sitting // trials that are under way here
	streams map[string]*stream
	ignore  context.CancelFunc // ends following the log; nil: nobody does
	closing bool
}

// Open reads of the log what was said in trials, and makes sure that every trial that is to be held has a job. Run conducts them.
func Open(ctx context.Context, cfg Config) (*Scheduler, error) {
	d, err := open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("opening scheduler: %w", err)
	}
	return d, nil
}

// unread logs that trials are missing. They come back when the archive is restored and the server restarted.
func (d *Scheduler) unread(e *ledger.UnreadableError) error {
	d.cfg.Log.Error("trials in an archive that cannot be read are not listed; put it back, and start again", "archive", e.In.File, "error", e.Err)
	return nil
}

func open(ctx context.Context, cfg Config) (*Scheduler, error) {
	d := &Scheduler{cfg: cfg.complete(), closed: make(chan struct{}), reads: make(chan struct{}, readsAtOnce),
		here: map[string]*sitting{}, streams: map[string]*stream{}}
	if cfg.Memory > 0 {
		d.memory = semaphore.NewWeighted(cfg.Memory)
	}
	d.index = trial.NewIndex(d.cfg.Ledger, d.heard, d.unread)
	if err := d.index.Follow(ctx); err != nil {
		return nil, err
	}
	if d.cfg.Jobs == nil {
		var err error
		if d.cfg.Jobs, err = SQLite(ctx, ""); err != nil {
			return nil, err
		}
	}
	var err error
	d.jobs, err = NewQueue(QueueConfig{Database: d.cfg.Jobs, Work: d.work, Claimed: d.cfg.Claimed, Parallel: d.cfg.Parallel, Attempts: d.cfg.Attempts,
		Backoff: d.cfg.Backoff, Lease: d.cfg.Lease, Rescue: d.cfg.Rescue, Log: d.cfg.Log})
	if err != nil {
		return nil, err
	}
	return d, d.jobs.Add(ctx, d.toHold()...)
}

// toHold lists the trials that are still to be held, in the order in which they were submitted.
func (d *Scheduler) toHold() (ids []string) {
	for _, s := range d.index.Unfinished() {
		if s.Cancelled == nil {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func (c Config) complete() Config {
	if c.Claim == nil {
		c.Claim = func(ctx context.Context, _ string) (context.Context, func(), error) { return ctx, func() {}, nil }
	}
	if c.Claimed == nil {
		c.Claimed = func(context.Context, string) (bool, error) { return false, nil }
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
	set(&c.Parallel, 4)
	set(&c.Waiting, 1000)
	set(&c.Lease, 10*time.Second)
	set(&c.Grace, 20*time.Second)
	set(&c.Poll, 500*time.Millisecond)
	set(&c.Gather, 20*time.Millisecond)
	return c
}

func set[T comparable](value *T, byDefault T) {
	if *value == *new(T) {
		*value = byDefault
	}
}

// An Order is what somebody wants tried.
type Order struct {
	Case      *subject.Case
	Submitter string // in whose name it is sealed; "": "submitter"
	ID        string // see trial.Config; "": a new one
}

// Submit seals a case and has it wait for its turn. When it returns, the submission is in the log; whatever happens then, the trial is
// held, here or after the next start. The id is that of the trial; it comes also with ledger.ErrDuplicate, which says that the order
// has the id of an earlier one.
func (d *Scheduler) Submit(ctx context.Context, o Order) (id string, err error) {
	if err := d.queueable(ctx); err != nil {
		return "", err
	}
	config, err := d.cfg.Sit(0)
	if err != nil {
		return "", fmt.Errorf("seating the jury: %w", err)
	}
	config.Submitter, config.ID = o.Submitter, o.ID
	if id, err = trial.Submit(ctx, d.furnish(config), o.Case); err != nil {
		return id, err
	}
	// A crash here leaves a trial without a job, which any process makes that sees it twice in that state. So does an error.
	if err := d.jobs.Add(context.WithoutCancel(ctx), id); err != nil {
		d.cfg.Log.Error("a trial waits for nobody yet", "trial", id, "error", err)
	}
	return id, nil
}

// queueable refuses what nothing has been sealed of yet. Those who pass at the same time can make the queue a little longer than it may be.
func (d *Scheduler) queueable(ctx context.Context) error {
	if d.isClosing() {
		return ErrClosing
	}
	waiting, err := d.jobs.Waiting(ctx)
	if err == nil && waiting >= d.cfg.Waiting {
		err = ErrFull
	}
	return err
}

func (d *Scheduler) isClosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// furnish gives a trial what all trials of this scheduler have.
func (d *Scheduler) furnish(config trial.Config) trial.Config {
	config.Ledger, config.Keys, config.Claim, config.Now = d.cfg.Ledger, d.cfg.Keys, d.cfg.Claim, d.cfg.Now
	return config
}

// Retry has a trial that was broken off, or was cancelled, wait for its turn again, at the end. by and reason say of one that was cancelled
// who wants that, and why: it is an act of the operator.
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
	err = d.jobs.Again(ctx, id)
	if errors.Is(err, ErrRunning) {
		return nil // somebody has it already, and looks once more whether it is cancelled before he lets go of it
	}
	return err
}

// Cancel stops a trial that waits, is under way in any process, or was broken off. It is an act of the operator; whoever conducts the trial
// hears of it, asks nobody any more, and records the answers of those who were asked.
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
	// A crash here, or an error, leaves a job that comes to nothing when its turn comes.
	if err := d.jobs.Drop(context.WithoutCancel(ctx), id); err != nil && !errors.Is(err, ErrRunning) {
		d.cfg.Log.Error("the job of a cancelled trial stays in the queue", "trial", id, "error", err)
	}
	return nil
}

// seal has the log told what becomes of a trial.
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
