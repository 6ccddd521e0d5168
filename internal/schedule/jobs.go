package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"crypto/rand"

	"github.com/go-json-experiment/json"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// ErrRunning says that a job is being worked, here or elsewhere.
var ErrRunning = errors.New("the job is being worked at this moment")

// ErrNoSpace says that there is no room for more jobs: nothing was changed.
var ErrNoSpace = errors.New("no space left for the jobs")

// ErrBusy says that the jobs could not be reached in time, because another process holds their file: nothing was changed.
var ErrBusy = errors.New("another process holds the file of jobs")

// Later is for QueueConfig.Work to return where a job is to be worked at another time, or by somebody else: it is no failure, and no attempt.
func Later(in time.Duration) error { return river.JobSnooze(in) }

// Permanent is for QueueConfig.Work to return where a job has failed so that to try again would be of no use.
func Permanent(err error) error { return river.JobCancel(err) }

// QueueConfig is what a Queue works with.
type QueueConfig struct {
	Database *Database // required

	// Work works the job of a trial. nil is success, Later and Permanent are what they say, and with any other error the job is tried
	// again. It is not called for two jobs of one trial at a time in this process, but others may have one that this process has, too.
	Work func(ctx context.Context, trial string) error
	// Claimed says whether anybody acts in a trial: then its job is not taken over, however long it is worked. nil: nobody does.
	Claimed func(ctx context.Context, trial string) (bool, error)

	Parallel int           // how many jobs are worked here at a time; 0: 4
	Attempts int           // how often a job is tried; 0: 6
	Backoff  time.Duration // after the first failure; four times as long after each further one; 0: 10 s
	Lease    time.Duration // how long nobody may act in a trial whose job is worked before others take the job over; 0: 10 s
	Rescue   time.Duration // after which River itself offers a job again that is worked, whoever acts in its trial; 0: an hour

	Log *slog.Logger // nil: nobody reads it
}

const (
	queue         = river.QueueDefault
	pollInterval  = time.Second           // how often a process looks for jobs of which nobody has told it
	fetchPause    = 20 * time.Millisecond // between two looks, at least
	startLease    = time.Second           // the lease that is enough for whoever starts: he may be the one who has died
	kept          = time.Hour             // how long jobs are kept that are done
	keptFailed    = 90 * 24 * time.Hour   // and those that have failed: why they have stands nowhere else
	farewell      = 20 * time.Second      // how long River may take to end
	farewellTicks = 40
	atOnce        = 10_000 // jobs that are listed at a time
)

func (c QueueConfig) complete() QueueConfig {
	set(&c.Parallel, 4)
	set(&c.Attempts, 6)
	set(&c.Backoff, 10*time.Second)
	set(&c.Lease, 10*time.Second)
	set(&c.Rescue, time.Hour)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Claimed == nil {
		c.Claimed = func(context.Context, string) (bool, error) { return false, nil }
	}
	return c
}

// A Queue has the jobs of one log. It is safe for concurrent use.
type Queue struct {
	config QueueConfig
	db     *Database
	id     string // of this process, in jobs that it works
	client client

	starting sync.RWMutex // while it is held for writing nobody adds a job: on SQLite, River wakes who is only beginning to look for jobs

	mu   sync.Mutex // held while what follows is read or written
	here map[string]bool
}

// job is what River calls the arguments of a job.
type job struct {
	Trial string `json:"trial"`
}

func (job) Kind() string { return "trial" }

// NewQueue makes a Queue. Nothing is worked before Start.
func NewQueue(c QueueConfig) (*Queue, error) {
	q := &Queue{config: c.complete(), db: c.Database, id: rand.Text(), here: map[string]bool{}}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{q: q}); err != nil {
		return nil, err
	}
	var err error
	q.client, err = q.db.client(&river.Config{ID: q.id, Schema: q.db.schema, Workers: workers, Logger: slog.New(grave{q.config.Log.Handler()}),
		Queues:      map[string]river.QueueConfig{queue: {MaxWorkers: q.config.Parallel}},
		MaxAttempts: q.config.Attempts, JobTimeout: -1, RescueStuckJobsAfter: q.config.Rescue,
		FetchCooldown: fetchPause, FetchPollInterval: pollInterval,
		CompletedJobRetentionPeriod: kept, CancelledJobRetentionPeriod: keptFailed, DiscardedJobRetentionPeriod: keptFailed})
	if err != nil {
		return nil, fmt.Errorf("opening the queue of jobs: %w", err)
	}
	return q, nil
}

// grave passes on what somebody should do something about: River tells much of its own life.
type grave struct{ slog.Handler }

func (h grave) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

// worker is what River calls for a job.
type worker struct {
	river.WorkerDefaults[job]
	q *Queue
}

// Timeout implements river.Worker: a trial takes as long as it takes.
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
		return Later(w.q.config.Lease) // River has given out again what is still worked here
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
}

func (q *Queue) isHere(trial string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.here[trial]
}

// Start takes over the jobs that nobody works, without waiting for the lease, and works jobs until Stop. A context that ends later stops nothing.
func (q *Queue) Start(ctx context.Context) error {
	if err := q.takeOver(ctx, min(q.config.Lease, startLease)); err != nil {
		return fmt.Errorf("starting to work jobs: %w", err)
	}
	q.starting.Lock()
	defer q.starting.Unlock()
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("starting to work jobs: %w", err)
	}
	return nil
}

// Stop takes no further job, and waits until those that are worked here are done. River itself may take so long after that, and no longer:
// a part of it that was too slow to hear from another can wait for it for ever.
func (q *Queue) Stop(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- q.client.Stop(ctx) }()
	tick := time.NewTicker(farewell / farewellTicks)
	defer tick.Stop()
	for idle := 0; idle < farewellTicks; { // ticks, of which there are none while the machine stands still
		select {
		case err := <-stopped:
			return err
		case <-tick.C:
		}
		if idle++; q.works() {
			idle = 0
		}
	}
	return fmt.Errorf("stopping to work jobs: all of them are done, and River has not ended %v later", farewell)
}

func (q *Queue) works() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.here) > 0
}

// once is how River knows that a trial has a job already: whatever state that is in.
var once = river.UniqueOpts{ByArgs: true, ByState: rivertype.JobStates()}

// Add makes jobs for the trials that have none, in this order. A job that failed, or was done, though its trial is not over, is tried
// again, unless it is about to be anyway.
func (q *Queue) Add(ctx context.Context, trials ...string) error {
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
			if !a.UniqueSkippedAsDuplicate || a.Job.FinalizedAt == nil {
				continue
			}
			if err := q.Again(ctx, part[i]); err != nil && !errors.Is(err, ErrRunning) {
				return err
			}
		}
	}
	return nil
}

// Again has a trial's job worked as soon as there is room, as if it had never been tried; or returns ErrRunning.
func (q *Queue) Again(ctx context.Context, trial string) error {
	if err := q.Drop(ctx, trial); err != nil {
		return err
	}
	// A crash here leaves a trial without a job, which whoever looks next makes.
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
	return inserted, translate(err)
}

// Drop takes away a trial's job, where it has one, or returns ErrRunning.
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
			return fmt.Errorf("removing a job: %w", translate(err))
		}
	}
	return nil
}

// A State is where a job is.
type State string

const (
	Waiting State = "waiting" // for room
	Running State = "running" // somebody works it, or has died over it
	Retried State = "retried" // it failed, and is tried again
	Failed  State = "failed"  // for good
	Done    State = "done"
)

// A Job is what is known of a trial's job.
type Job struct {
	State  State
	Here   bool      // of one that is running: this process works it
	Reason string    // of one that failed: why
	Next   time.Time // of one that is retried: when

	id int64
}

// Find returns the jobs of trials, as far as they have any.
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
		j.State, j.Next = Retried, row.ScheduledAt // River lets what is to be tried again soon wait with the others
	}
	if n := len(row.Errors); n > 0 {
		j.Reason = row.Errors[n-1].Error
	}
	return j
}

// of chooses the jobs of trials.
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
	return river.NewJobListParams().Where(q.db.trial+" IN ("+names+")", args)
}

func (q *Queue) list(ctx context.Context, what *river.JobListParams) ([]*rivertype.JobRow, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	found, err := q.client.JobList(ctx, what.First(atOnce))
	if err != nil {
		return nil, fmt.Errorf("looking for jobs: %w", translate(err))
	}
	return found.Jobs, nil
}

// Ahead says how many jobs are to be worked before one that is waiting.
func (q *Queue) Ahead(ctx context.Context, j Job) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	table := "river_job"
	if q.db.schema != "" {
		table = q.db.schema + "." + table
	}
	n, err := q.db.number(ctx, `SELECT count(*) FROM `+table+` AS before, `+table+` AS own WHERE own.id = $1 AND before.state = 'available'
		AND (before.scheduled_at < own.scheduled_at OR before.scheduled_at = own.scheduled_at AND before.id < own.id)`, j.id)
	if err != nil {
		return 0, fmt.Errorf("counting jobs: %w", translate(err))
	}
	return int(n), nil
}

// Waiting says how many jobs wait for room, in all processes together.
func (q *Queue) Waiting(ctx context.Context) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	counts, err := q.db.exec.JobCountByQueueAndState(ctx, &riverdriver.JobCountByQueueAndStateParams{QueueNames: []string{queue}, Schema: q.db.schema})
	if err != nil {
		return 0, fmt.Errorf("counting jobs: %w", translate(err))
	}
	n := 0
	for _, c := range counts {
		n += int(c.CountAvailable)
	}
	return n, nil
}
