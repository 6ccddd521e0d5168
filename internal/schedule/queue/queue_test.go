package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"

	"jurat/internal/lock"
	"jurat/internal/pgtest"
	"jurat/internal/postgres"
	"jurat/internal/schedule/queue"
)

// onEach runs a test on each database. open opens it again, as another process would.
func onEach(t *testing.T, test func(t *testing.T, open func() *queue.Database)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "jobs.db")
		test(t, func() *queue.Database { return opened(t)(queue.SQLite(t.Context(), path)) })
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Database(t)
		test(t, func() *queue.Database {
			pool, err := pgxpool.New(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			return opened(t)(postgres.Jobs(t.Context(), pool))
		})
	})
}

func opened(t *testing.T) func(*queue.Database, error) *queue.Database {
	return func(d *queue.Database, err error) *queue.Database {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	}
}

// worked records which jobs are worked, in order.
type worked struct {
	mu     sync.Mutex
	trials []string
	answer func(trial string, times int) error // nil: nil
}

func (w *worked) work(_ context.Context, trial string) error {
	w.mu.Lock()
	w.trials = append(w.trials, trial)
	times := 0
	for _, one := range w.trials {
		if one == trial {
			times++
		}
	}
	w.mu.Unlock()
	if w.answer == nil {
		return nil
	}
	return w.answer(trial, times)
}

func (w *worked) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.trials)
}

func newQueue(t *testing.T, c queue.Config) *queue.Queue {
	t.Helper()
	q, err := queue.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func start(t *testing.T, q *queue.Queue) {
	t.Helper()
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func add(t *testing.T, q *queue.Queue, trials ...string) {
	t.Helper()
	if err := q.Add(t.Context(), trials...); err != nil {
		t.Fatal(err)
	}
}

func jobOf(t *testing.T, q *queue.Queue, trial string) queue.Job {
	t.Helper()
	found, err := q.Find(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	return found[trial]
}

func await(t *testing.T, q *queue.Queue, trial string, want queue.State) queue.Job {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		j := jobOf(t, q, trial)
		if j.State == want {
			return j
		}
		if time.Now().After(end) {
			t.Fatalf("%s is %+v, want %s", trial, j, want)
		}
	}
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("trial-%03d", i))
	}
	return list
}

// TestOneJobForEachTrial checks that a trial is worked once, however often it is added, and in order of arrival.
func TestOneJobForEachTrial(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *queue.Database) {
		var w worked
		one := newQueue(t, queue.Config{Database: open(), Work: w.work, Parallel: 1})
		other := newQueue(t, queue.Config{Database: open(), Work: w.work, Parallel: 1})
		all := names(40)
		add(t, one, all[:20]...)
		add(t, other, all...)
		add(t, one, all...)
		if n, err := other.Waiting(t.Context()); n != 40 || err != nil {
			t.Errorf("%d wait, %v", n, err)
		}
		for _, i := range []int{0, 1, 19, 20, 39} {
			if n, err := other.Ahead(t.Context(), jobOf(t, one, all[i])); n != i || err != nil {
				t.Errorf("%d before number %d, %v", n, i, err)
			}
		}
		start(t, one)
		await(t, one, all[39], queue.Done)
		if got := w.all(); !slices.Equal(got, all) {
			t.Errorf("worked %v", got)
		}
		if found, err := one.Find(t.Context(), "trial-none"); len(found) != 0 || err != nil {
			t.Errorf("%v, %v", found, err)
		}
		add(t, other, all[3]) // its trial turns out not to be over
		await(t, one, all[3], queue.Done)
	})
}

// TestManyProcesses checks that three processes that start on an empty database at once all find the tables, and
// share the work.
func TestManyProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *queue.Database) {
		var w worked
		var opening sync.WaitGroup
		queues := make([]*queue.Queue, 3)
		for i := range queues {
			opening.Go(func() { queues[i] = newQueue(t, queue.Config{Database: open(), Work: w.work, Parallel: 3}) })
		}
		opening.Wait()
		all := names(60)
		for i, q := range queues {
			start(t, q)
			add(t, q, all[20*i:20*(i+1)]...)
		}
		for _, trial := range all {
			await(t, queues[0], trial, queue.Done)
		}
		got := w.all()
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Errorf("worked %v", got)
		}
	})
}

// TestFailures checks that temporary failures are retried a limited number of times, with growing pauses, and
// permanent ones are not. A postponed job does not count as failed, and Again starts every job anew.
func TestFailures(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *queue.Database) {
		w := worked{answer: func(trial string, times int) error {
			switch {
			case trial == "trial-never":
				return queue.Permanent(errors.New("the jury sits differently"))
			case trial == "trial-down" && times <= 3:
				return fmt.Errorf("down for the %d. time", times)
			case trial == "trial-later" && times <= 5:
				return queue.Later(time.Millisecond)
			}
			return nil
		}}
		q := newQueue(t, queue.Config{Database: open(), Work: w.work, Attempts: 3, Backoff: 20 * time.Millisecond})
		add(t, q, "trial-never", "trial-down", "trial-later")
		start(t, q)
		if j := await(t, q, "trial-never", queue.Failed); !strings.Contains(j.Reason, "the jury sits differently") {
			t.Errorf("%+v", j)
		}
		if j := await(t, q, "trial-down", queue.Failed); !strings.Contains(j.Reason, "down for the 3. time") {
			t.Errorf("%+v", j)
		}
		await(t, q, "trial-later", queue.Done)
		if err := q.Again(t.Context(), "trial-down"); err != nil {
			t.Fatal(err)
		}
		await(t, q, "trial-down", queue.Done)
		times := map[string]int{}
		for _, trial := range w.all() {
			times[trial]++
		}
		if times["trial-never"] != 1 || times["trial-down"] != 4 || times["trial-later"] != 6 {
			t.Errorf("worked %v", times)
		}
	})
}

// TestRetriedIsSeen checks that a job between attempts shows why it failed and when it will be retried.
func TestRetriedIsSeen(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *queue.Database) {
		w := worked{answer: func(string, int) error { return errors.New("no route to the provider") }}
		q := newQueue(t, queue.Config{Database: open(), Work: w.work, Backoff: time.Hour})
		start(t, q)
		add(t, q, "trial-1")
		before := time.Now()
		if j := await(t, q, "trial-1", queue.Retried); j.Reason != "no route to the provider" || j.Next.Before(before.Add(50*time.Minute)) {
			t.Errorf("%+v", j)
		}
		if err := q.Drop(t.Context(), "trial-1"); err != nil {
			t.Fatal(err)
		}
		if j := jobOf(t, q, "trial-1"); j.State != "" {
			t.Errorf("%+v", j)
		}
	})
}

// lockedFunc are locks that a function says are taken.
type lockedFunc struct {
	lock.Alone
	locked func(context.Context, string) (bool, error)
}

func (l lockedFunc) Locked(ctx context.Context, name string) (bool, error) {
	return l.locked(ctx, name)
}

// TestTakenOver checks that the job of a dead process is taken over, and a job with a locked trial is not. If the
// first process was alive after all, its late result does no harm.
func TestTakenOver(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *queue.Database) {
		begun, goOn := make(chan string, 3), make(chan struct{})
		letGo := sync.OnceFunc(func() { close(goOn) })
		first := newQueue(t, queue.Config{Database: open(), Work: func(_ context.Context, trial string) error {
			begun <- trial
			<-goOn
			return errors.New("too late")
		}, Backoff: time.Hour, Parallel: 3}) // the first process has no capacity for jobs that are offered again
		start(t, first)
		t.Cleanup(letGo) // before Stop waits for the first process
		add(t, first, names(3)...)
		for range 3 {
			<-begun
		}
		var w worked
		locks := lockedFunc{locked: func(_ context.Context, trial string) (bool, error) { return trial == "trial-000", nil }}
		second := newQueue(t, queue.Config{Database: open(), Work: w.work, Locks: locks, Lease: time.Hour})
		if j := jobOf(t, second, "trial-001"); j.State != queue.Running || j.Here || !jobOf(t, first, "trial-001").Here {
			t.Errorf("%+v", j)
		}
		if err := second.TakeOver(t.Context()); err != nil { // before the lease has ended
			t.Fatal(err)
		}
		if j := jobOf(t, second, "trial-001"); j.State != queue.Running {
			t.Errorf("%+v", j)
		}
		time.Sleep(queue.StartLease)
		start(t, second) // its start does not wait for the first process
		await(t, second, "trial-001", queue.Done)
		await(t, second, "trial-002", queue.Done)
		if err := second.Drop(t.Context(), "trial-002"); err != nil {
			t.Fatal(err)
		}
		if err := second.Drop(t.Context(), "trial-000"); !errors.Is(err, queue.ErrRunning) {
			t.Errorf("Drop removed a job that is being worked: %v", err)
		}
		letGo()
		await(t, second, "trial-000", queue.Retried)
		await(t, second, "trial-001", queue.Done)
		if got := w.all(); len(got) != 2 {
			t.Errorf("worked %v", got)
		}
	})
}

// TestReasonIsKept checks that a job that has failed for good keeps its reason and is not worked again: not while River
// still stores how it ended, whoever looks for abandoned jobs then, and not when somebody adds it who saw it missing.
func TestReasonIsKept(t *testing.T) {
	// In the first, a busy machine must begin a job that it has fetched. In half the second, it must store the reason.
	const own, lease = time.Second, 3 * time.Second
	onEach(t, func(t *testing.T, open func() *queue.Database) {
		w := worked{answer: func(string, int) error {
			time.Sleep(lease + lease/10) // longer than the leases
			return queue.Permanent(errors.New("a mistake"))
		}}
		first := newQueue(t, queue.Config{Database: open(), Work: w.work, Lease: own})
		second := newQueue(t, queue.Config{Database: open(), Work: w.work, Lease: lease, Locks: lockedFunc{locked: func(context.Context, string) (bool, error) {
			return len(w.all()) > 0 && jobOf(t, first, "trial-1").Here, nil // as a lock that is released when the work ends
		}}})
		start(t, first)
		add(t, first, "trial-1")
		for end := time.Now().Add(time.Minute); jobOf(t, first, "trial-1").State != queue.Failed; {
			if err := errors.Join(first.TakeOver(t.Context()), second.TakeOver(t.Context())); err != nil || time.Now().After(end) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if err := first.AddMissing(t.Context(), "trial-1", "trial-2"); err != nil {
			t.Fatal(err)
		}
		await(t, first, "trial-2", queue.Failed)
		if j := jobOf(t, first, "trial-1"); j.State != queue.Failed || !strings.Contains(j.Reason, "a mistake") {
			t.Errorf("%+v", j)
		}
		if got := w.all(); !slices.Equal(got, []string{"trial-1", "trial-2"}) {
			t.Errorf("worked %v", got)
		}
	})
}

// TestDeathsAreNoAttempts checks that a job is offered again when its process has died, more often than it may fail. A job that ends every process
// that works on it is not offered for ever.
func TestDeathsAreNoAttempts(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *queue.Database) {
		db := open()
		q := newQueue(t, queue.Config{Database: db, Work: (&worked{}).work, Attempts: 2})
		add(t, q, "trial-1")
		for died := range queue.MostStopped {
			_, err := queue.Executor(db).JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{ClientID: "one who dies", MaxAttemptedBy: 9, MaxToLock: 1, Queue: queue.Name, Schema: queue.Schema(db)})
			if err != nil {
				t.Fatal(err)
			}
			if j := jobOf(t, q, "trial-1"); j.State != queue.Running {
				t.Fatalf("after %d deaths: %+v", died, j)
			}
			if err := q.TakeOverAfter(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if j := jobOf(t, q, "trial-1"); j.State != queue.Failed || !strings.Contains(j.Reason, "has stopped") {
			t.Errorf("%+v", j)
		}
	})
}

// TestMemory checks that, without a file, jobs belong to this process alone.
func TestMemory(t *testing.T) {
	var w worked
	q := newQueue(t, queue.Config{Database: opened(t)(queue.SQLite(t.Context(), "")), Work: w.work})
	add(t, q, "trial-1")
	start(t, q)
	await(t, q, "trial-1", queue.Done)
	other := newQueue(t, queue.Config{Database: opened(t)(queue.SQLite(t.Context(), "")), Work: w.work})
	if j := jobOf(t, other, "trial-1"); j.State != "" {
		t.Errorf("%+v", j)
	}
}

// TestDatabaseGoesAway checks that no job can be added while the database is away, and that jobs are worked again
// when it is back, also one whose result could not be stored.
func TestDatabaseGoesAway(t *testing.T) {
	server := pgtest.Start(t)
	pool, err := pgxpool.New(t.Context(), server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	begun, goOn := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(goOn) })
	w := worked{answer: func(trial string, times int) error {
		if trial == "trial-1" && times == 1 { // it may be taken over several times before its end is stored
			close(begun)
			<-goOn
		}
		return nil
	}}
	q := newQueue(t, queue.Config{Database: opened(t)(postgres.Jobs(t.Context(), pool)), Work: w.work, Lease: time.Second, Attempts: 1000})
	start(t, q)
	t.Cleanup(letGo)
	add(t, q, "trial-1")
	<-begun
	server.Halt(t)
	letGo()
	if err := q.Add(t.Context(), "trial-2"); err == nil {
		t.Error("added to a database that is away")
	}
	if _, err := q.Waiting(t.Context()); err == nil {
		t.Error("counted in a database that is away")
	}
	server.Restart(t)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := q.Add(t.Context(), "trial-2"); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	await(t, q, "trial-2", queue.Done)
	for jobOf(t, q, "trial-1").State != queue.Done {
		time.Sleep(100 * time.Millisecond)
		if err := q.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStrangeJobs checks that a malformed job prevents neither a takeover of other jobs nor a start, and that a job
// from a clock that is ahead is taken over.
func TestStrangeJobs(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *queue.Database) {
		db := open()
		var w worked
		locks := lockedFunc{locked: func(_ context.Context, trial string) (bool, error) {
			if trial == "trial-001" {
				return false, errors.New("not the id of a trial")
			}
			return false, nil
		}}
		q := newQueue(t, queue.Config{Database: db, Work: w.work, Locks: locks, Backoff: time.Hour})
		add(t, q, names(2)...)
		if err := q.Insert(t.Context(), unreadable{7}); err != nil {
			t.Fatal(err)
		}
		add(t, q, "trial-002")
		tomorrow := time.Now().Add(24 * time.Hour).UTC()
		taken, err := queue.Executor(db).JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{ClientID: "one who dies", MaxAttemptedBy: 9, MaxToLock: 9,
			Now: &tomorrow, Queue: queue.Name, Schema: queue.Schema(db)})
		if err != nil || len(taken) != 4 {
			t.Fatalf("%d taken, %v", len(taken), err)
		}
		start(t, q)
		await(t, q, "trial-000", queue.Done)
		await(t, q, "trial-002", queue.Done)
		if j := jobOf(t, q, "trial-001"); j.State != queue.Running {
			t.Errorf("%+v", j)
		}
	})
}

// unreadable is a job whose trial is not text.
type unreadable struct {
	Trial int `json:"trial"`
}

func (unreadable) Kind() string { return "trial" }

// TestHeldByAnother checks that a stopped process that holds the file does not block others for ever.
func TestHeldByAnother(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	db, err := queue.SQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	q := newQueue(t, queue.Config{Database: db, Work: (&worked{}).work})
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	held, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	outcome := make(chan error, 4) // so many that they wait for each other, too
	for n := range cap(outcome) {
		go func() { outcome <- q.Add(t.Context(), fmt.Sprint("trial-", n)) }()
	}
	for range cap(outcome) {
		select {
		case err := <-outcome:
			if !errors.Is(err, queue.ErrBusy) {
				t.Errorf("adding: %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("it waits without end")
		}
	}
	if _, err := held.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	add(t, q, "trial-0")
}
