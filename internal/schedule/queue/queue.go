// Package queue keeps the jobs of trials: which trials are to be held, and which process holds each of them.
//
// # The queue is River, and the log decides
//
// A [Queue] keeps a durable job for every trial that is to be held, in a database that the processes of one or many
// machines share. It is River (riverqueue.com), with these rules: one job for each trial, in the order of submission;
// a bounded number of attempts; other processes take over the jobs of a dead process within seconds. The queue is in a
// file (SQLite), or in tables that machines share (postgres.Jobs).
//
// The log decides whether a trial is to be held, how far it is and whether it is over; the lock decides which
// process acts in it. A lost job is made again from the log. A job that is worked twice does nothing the second time.
// A late or missing state is corrected when the job is worked next.
//
// Every method that asks the database returns ErrBusy, wrapped, if there was no answer in time, ErrNoSpace, wrapped, if
// the disk is full, and the database's other errors as they are.
//
// # On SQLite the queue is a file of its own
//
// On SQLite the queue is a separate file, `jobs.db`. River writes to it every few seconds, for leader election. In
// the ledger's file these writes and the appends would wait for each other. The file is not synced like the ledger,
// and backups leave it out. SQLite does not notify other processes: the submitting process knows a new job at once,
// others look once a second.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"crypto/rand"

	"github.com/go-json-experiment/json"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"jurat/internal/lock"
)

// ErrRunning means that this or another process is working on the job.
var ErrRunning = errors.New("the job is being worked at this moment")

// ErrNoSpace means that there is no room for more jobs. Nothing was changed.
var ErrNoSpace = errors.New("no space left for the jobs")

// ErrBusy means that the jobs could not be read or written in time, because another process holds their file. Nothing
// was changed.
var ErrBusy = errors.New("another process holds the file of jobs")

// Later is an error for Config.Work: the job is tried again after a pause, perhaps by another process. It does
// not count as a failure or an attempt. Neither does an attempt during which the process ended, or could not store how the attempt ended.
func Later(in time.Duration) error { return river.JobSnooze(in) }

// Permanent is an error for Config.Work: the job has failed and is not tried again.
func Permanent(err error) error { return river.JobCancel(err) }

// Config is what a Queue works with.
type Config struct {
	Database *Database // required

	// Work works on the job of a trial. nil means success, Later and Permanent mean what they say, and after any
	// other error the job is tried again. Within this process it is never called twice at a time for one trial.
	// Another process may work on the same job.
	Work func(ctx context.Context, trial string) error
	// Locks say whether a process has the lock on a trial. Its job is then not taken over, however long it runs. nil:
	// no process has.
	Locks lock.Locks

	Parallel int           // how many jobs this process works on at a time; 0: 4
	Attempts int           // how often a job is tried; 0: 6
	Backoff  time.Duration // pause after the first failure; each further one is four times as long; 0: 10 s
	Lease    time.Duration // how long a running job's trial may be without a lock before others take the job over; 0: 10 s
	Rescue   time.Duration // time after which River itself offers a running job again, even if its trial is locked; 0: an hour

	Log *slog.Logger // nil: no logging
}

const (
	inQueue       = river.QueueDefault
	pollInterval  = time.Second           // how often a process looks for jobs without a notification
	fetchPause    = 20 * time.Millisecond // least time between two looks
	startLease    = time.Second           // the lease at Start: the process that died may be this one's predecessor
	kept          = time.Hour             // how long completed jobs are kept
	keptFailed    = 90 * 24 * time.Hour   // and failed ones: their errors are stored nowhere else
	farewell      = 20 * time.Second      // how long River may take to stop
	farewellTicks = 40
	storing       = 5 * time.Second // how long River may take to store how a job ended that was worked here
	atOnce        = 10_000          // jobs in one list
	mostStopped   = 100             // processes that stop during a job, before the job itself may be the cause
)

func (c Config) complete() Config {
	c.Parallel = cmp.Or(c.Parallel, 4)
	c.Attempts = cmp.Or(c.Attempts, 6)
	c.Backoff = cmp.Or(c.Backoff, 10*time.Second)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Rescue = cmp.Or(c.Rescue, time.Hour)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Locks == nil {
		c.Locks = lock.Alone{}
	}
	return c
}

// A Queue contains the jobs of one log. It is safe for concurrent use.
type Queue struct {
	config Config
	db     *Database
	id     string // of this process, in its running jobs
	client client

	starting sync.RWMutex // held for reading while jobs are added, for writing by Start: on SQLite, River notifies listeners that are still starting

	mu   sync.Mutex // guards the members below
	here map[string]bool
	left map[string]time.Time // when the work on a job ended here, for the last ones
	idle map[run]time.Time    // when a running job was first seen that no process works
}

// A run is a job since a process began to work on it.
type run struct {
	id    int64
	begun time.Time
}

func runOf(row *rivertype.JobRow) run {
	if row.AttemptedAt == nil {
		return run{id: row.ID}
	}
	return run{row.ID, row.AttemptedAt.UTC()}
}

// job is the arguments of a job, in River's terms.
type job struct {
	Trial string `json:"trial"`
}

func (job) Kind() string { return "trial" }

// New makes a Queue. It works on no job before Start. It returns an error if River refuses the settings.
func New(c Config) (*Queue, error) {
	q := &Queue{config: c.complete(), db: c.Database, id: rand.Text(), here: map[string]bool{}, left: map[string]time.Time{}}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{q: q}); err != nil {
		return nil, err
	}
	var err error
	q.client, err = q.db.client(&river.Config{ID: q.id, Schema: q.db.dialect.Schema, Workers: workers, Logger: slog.New(grave{q.config.Log.Handler()}),
		Queues:      map[string]river.QueueConfig{inQueue: {MaxWorkers: q.config.Parallel}},
		MaxAttempts: q.config.Attempts, JobTimeout: -1, RescueStuckJobsAfter: q.config.Rescue,
		FetchCooldown: fetchPause, FetchPollInterval: pollInterval,
		CompletedJobRetentionPeriod: kept, CancelledJobRetentionPeriod: keptFailed, DiscardedJobRetentionPeriod: keptFailed})
	if err != nil {
		return nil, fmt.Errorf("opening the queue of jobs: %w", err)
	}
	return q, nil
}

// grave passes on errors only: River logs much else.
type grave struct{ slog.Handler }

func (h grave) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

// worker is called by River for each job.
type worker struct {
	river.WorkerDefaults[job]
	q *Queue
}

// Timeout implements river.Worker. A trial has no time limit here.
func (w *worker) Timeout(*river.Job[job]) time.Duration { return -1 }

// NextRetry implements river.Worker.
func (w *worker) NextRetry(j *river.Job[job]) time.Time {
	pause := w.q.config.Backoff
	for range min(j.Attempt, 10) - 1 {
		pause *= 4
	}
	return time.Now().Add(pause)
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, j *river.Job[job]) error {
	if !w.q.enter(j.Args.Trial) {
		return Later(w.q.config.Lease) // River has offered a job again that still runs here
	}
	defer w.q.leave(j.Args.Trial)
	return w.q.config.Work(ctx, j.Args.Trial)
}

func (q *Queue) enter(trial string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.here[trial] {
		return false
	}
	q.here[trial] = true
	return true
}

func (q *Queue) leave(trial string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.here, trial)
	maps.DeleteFunc(q.left, func(_ string, at time.Time) bool { return time.Since(at) > q.storing() })
	q.left[trial] = time.Now()
}

// storing is how long a job that was worked here may still be stored as running.
func (q *Queue) storing() time.Duration { return max(storing, q.config.Lease) }

// isStored reports whether River has had the time to store how a job ended, if it was worked here.
func (q *Queue) isStored(trial string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at, was := q.left[trial]
	return !was || time.Since(at) > q.storing()
}

func (q *Queue) isHere(trial string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.here[trial]
}

// Start takes over abandoned jobs, without waiting for the whole lease, and works on jobs until Stop. The end of the
// context does not stop it. It passes on the errors of the database.
func (q *Queue) Start(ctx context.Context) error {
	if err := q.takeOver(ctx, min(q.config.Lease, startLease), 0); err != nil {
		return fmt.Errorf("starting to work jobs: %w", err)
	}
	q.starting.Lock()
	defer q.starting.Unlock()
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("starting to work jobs: %w", err)
	}
	return nil
}

// Stop takes no further jobs, and waits until the running ones are done. After that River may take the time farewell
// to stop. Then Stop returns an error: River can hang if one of its parts misses a message of another.
func (q *Queue) Stop(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- q.client.Stop(ctx) }()
	tick := time.NewTicker(farewell / farewellTicks)
	defer tick.Stop()
	for idle := 0; idle < farewellTicks; { // the ticks pause while the machine is stopped
		select {
		case err := <-stopped:
			return err
		case <-tick.C:
		}
		if idle++; q.works() {
			idle = 0
		}
	}
	return fmt.Errorf("stopping the work on jobs: all jobs are done, but River has not stopped %v later", farewell)
}

func (q *Queue) works() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.here) > 0
}

// once makes River refuse a second job for a trial, whatever the state of the first one.
var once = river.UniqueOpts{ByArgs: true, ByState: rivertype.JobStates()}

// Add makes jobs for the trials that have none, in this order. If a trial's job failed or was completed, although the
// trial is not over, the job is tried again.
func (q *Queue) Add(ctx context.Context, trials ...string) error {
	return q.add(ctx, trials, func(*rivertype.JobRow) bool { return true })
}

// AddMissing is like Add, but a job that failed stays as it is: a trial that had no job a moment ago may have got one
// since, which has failed and says why.
func (q *Queue) AddMissing(ctx context.Context, trials ...string) error {
	return q.add(ctx, trials, func(row *rivertype.JobRow) bool { return row.State == rivertype.JobStateCompleted })
}

func (q *Queue) add(ctx context.Context, trials []string, again func(ended *rivertype.JobRow) bool) error {
	for part := range slices.Chunk(trials, 1000) {
		var params []river.InsertManyParams
		for _, trial := range part {
			params = append(params, river.InsertManyParams{Args: job{trial}, InsertOpts: &river.InsertOpts{UniqueOpts: once}})
		}
		added, err := q.insert(ctx, params)
		if err != nil {
			return fmt.Errorf("adding jobs: %w", err)
		}
		for i, a := range added {
			if !a.UniqueSkippedAsDuplicate || a.Job.FinalizedAt == nil || !again(a.Job) {
				continue
			}
			if err := q.Again(ctx, part[i]); err != nil && !errors.Is(err, ErrRunning) {
				return err
			}
		}
	}
	return nil
}

// Again makes a trial's job run as soon as there is room, as if it had never been tried. It returns ErrRunning,
// wrapped, if the job runs now.
func (q *Queue) Again(ctx context.Context, trial string) error {
	if err := q.Drop(ctx, trial); err != nil {
		return err
	}
	// A crash here leaves a trial without a job. The next Add makes it.
	if _, err := q.insert(ctx, []river.InsertManyParams{{Args: job{trial}, InsertOpts: &river.InsertOpts{UniqueOpts: once}}}); err != nil {
		return fmt.Errorf("adding a job: %w", err)
	}
	return nil
}

func (q *Queue) insert(ctx context.Context, params []river.InsertManyParams) ([]*rivertype.JobInsertResult, error) {
	q.starting.RLock()
	defer q.starting.RUnlock()
	ctx, cancel := bounded(ctx)
	defer cancel()
	inserted, err := q.client.InsertMany(ctx, params)
	return inserted, q.db.translate(err)
}

// Drop deletes a trial's job, if it has one. It returns ErrRunning, wrapped, if the job runs now.
func (q *Queue) Drop(ctx context.Context, trial string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	found, err := q.list(ctx, q.of(trial))
	if err != nil {
		return err
	}
	for _, row := range found {
		_, err := q.client.JobDelete(ctx, row.ID)
		switch {
		case errors.Is(err, rivertype.ErrJobRunning):
			return fmt.Errorf("%w: %s", ErrRunning, trial)
		case err != nil && !errors.Is(err, rivertype.ErrNotFound):
			return fmt.Errorf("removing a job: %w", q.db.translate(err))
		}
	}
	return nil
}

// A State is the state of a job.
type State string

const (
	Waiting State = "waiting" // for room
	Running State = "running" // a process works on it, or died while it did
	Retried State = "retried" // it failed, and will be tried again
	Failed  State = "failed"  // for good
	Done    State = "done"
)

// A Job is the state of a trial's job.
type Job struct {
	State  State
	Here   bool      // if running: this process works on it
	Reason string    // if failed or retried: the last error
	Next   time.Time // if retried: when

	id int64
}

// Find returns the jobs of those trials that have one. It passes on the errors of the database, and refuses a job
// without a readable trial.
func (q *Queue) Find(ctx context.Context, trials ...string) (map[string]Job, error) {
	found := map[string]Job{}
	for part := range slices.Chunk(trials, 500) {
		rows, err := q.list(ctx, q.of(part...))
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			var j job
			if err := json.Unmarshal(row.EncodedArgs, &j); err != nil {
				return nil, fmt.Errorf("reading job %d: %w", row.ID, err)
			}
			found[j.Trial] = q.read(row, j.Trial)
		}
	}
	return found, nil
}

func (q *Queue) read(row *rivertype.JobRow, trial string) Job {
	j := Job{id: row.ID}
	switch row.State {
	case rivertype.JobStateRunning:
		j.State, j.Here = Running, q.isHere(trial)
		return j
	case rivertype.JobStateRetryable:
		j.State, j.Next = Retried, row.ScheduledAt
	case rivertype.JobStateCancelled, rivertype.JobStateDiscarded:
		j.State = Failed
	case rivertype.JobStateCompleted:
		j.State = Done
		return j
	default:
		if j.State = Waiting; len(row.Errors) == 0 || !row.ScheduledAt.After(time.Now()) {
			return j
		}
		j.State, j.Next = Retried, row.ScheduledAt // River lists jobs that are retried soon among the waiting ones
	}
	if n := len(row.Errors); n > 0 {
		j.Reason = row.Errors[n-1].Error
	}
	return j
}

// of selects the jobs of trials.
func (q *Queue) of(trials ...string) *river.JobListParams {
	names, args := "", river.NamedArgs{}
	for i, trial := range trials {
		name := fmt.Sprintf("trial%d_", i)
		args[name] = trial
		if i > 0 {
			names += ", "
		}
		names += "@" + name
	}
	return river.NewJobListParams().Where(q.db.dialect.Trial+" IN ("+names+")", args)
}

func (q *Queue) list(ctx context.Context, what *river.JobListParams) ([]*rivertype.JobRow, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	found, err := q.client.JobList(ctx, what.First(atOnce))
	if err != nil {
		return nil, fmt.Errorf("looking for jobs: %w", q.db.translate(err))
	}
	return found.Jobs, nil
}

// Ahead returns how many jobs come before one that is waiting. It passes on the errors of the database.
func (q *Queue) Ahead(ctx context.Context, j Job) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	table := "river_job"
	if q.db.dialect.Schema != "" {
		table = q.db.dialect.Schema + "." + table
	}
	n, err := q.db.dialect.Number(ctx, `SELECT count(*) FROM `+table+` AS before, `+table+` AS own WHERE own.id = $1 AND before.state = 'available'
		AND (before.scheduled_at < own.scheduled_at OR before.scheduled_at = own.scheduled_at AND before.id < own.id)`, j.id)
	if err != nil {
		return 0, fmt.Errorf("counting jobs: %w", q.db.translate(err))
	}
	return int(n), nil
}

// Waiting returns how many jobs wait for room, in all processes together. It passes on the errors of the database.
func (q *Queue) Waiting(ctx context.Context) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	counts, err := q.db.exec.JobCountByQueueAndState(ctx, &riverdriver.JobCountByQueueAndStateParams{QueueNames: []string{inQueue}, Schema: q.db.dialect.Schema})
	if err != nil {
		return 0, fmt.Errorf("counting jobs: %w", q.db.translate(err))
	}
	n := 0
	for _, c := range counts {
		n += int(c.CountAvailable)
	}
	return n, nil
}
