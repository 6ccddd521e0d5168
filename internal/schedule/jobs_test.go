package schedule

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
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"

	"jurat/internal/pgtest"
)

// onEach runs a test on each database; open opens it once more, as another process would.
func onEach(t *testing.T, test func(t *testing.T, open func() *Database)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "jobs.db")
		test(t, func() *Database { return opened(t)(SQLite(t.Context(), path)) })
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Database(t)
		test(t, func() *Database {
			pool, err := pgxpool.New(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			return opened(t)(Postgres(t.Context(), pool, "jurat_jobs"))
		})
	})
}

func opened(t *testing.T) func(*Database, error) *Database {
	return func(d *Database, err error) *Database {
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

// worked notes which jobs are worked, in order.
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

func newQueue(t *testing.T, c QueueConfig) *Queue {
	t.Helper()
	q, err := NewQueue(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func start(t *testing.T, q *Queue) {
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

func add(t *testing.T, q *Queue, trials ...string) {
	t.Helper()
	if err := q.Add(t.Context(), trials...); err != nil {
		t.Fatal(err)
	}
}

func jobOf(t *testing.T, q *Queue, trial string) Job {
	t.Helper()
	found, err := q.Find(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	return found[trial]
}

func await(t *testing.T, q *Queue, trial string, want State) Job {
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
	onEach(t, func(t *testing.T, open func() *Database) {
		var w worked
		one := newQueue(t, QueueConfig{Database: open(), Work: w.work, Parallel: 1})
		other := newQueue(t, QueueConfig{Database: open(), Work: w.work, Parallel: 1})
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
		await(t, one, all[39], Done)
		if got := w.all(); !slices.Equal(got, all) {
			t.Errorf("worked %v", got)
		}
		if found, err := one.Find(t.Context(), "trial-none"); len(found) != 0 || err != nil {
			t.Errorf("%v, %v", found, err)
		}
		add(t, other, all[3]) // its trial is not over after all
		await(t, one, all[3], Done)
	})
}

// TestManyProcesses checks that three processes that start on an empty database at once all find the tables, and
// share the work.
func TestManyProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Database) {
		var w worked
		var opening sync.WaitGroup
		queues := make([]*Queue, 3)
		for i := range queues {
			opening.Go(func() { queues[i] = newQueue(t, QueueConfig{Database: open(), Work: w.work, Parallel: 3}) })
		}
		opening.Wait()
		all := names(60)
		for i, q := range queues {
			start(t, q)
			add(t, q, all[20*i:20*(i+1)]...)
		}
		for _, trial := range all {
			await(t, queues[0], trial, Done)
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
	onEach(t, func(t *testing.T, open func() *Database) {
		w := worked{answer: func(trial string, times int) error {
			switch {
			case trial == "trial-never":
				return Permanent(errors.New("the jury sits differently"))
			case trial == "trial-down" && times <= 3:
				return fmt.Errorf("down for the %d. time", times)
			case trial == "trial-later" && times <= 5:
				return Later(time.Millisecond)
			}
			return nil
		}}
		q := newQueue(t, QueueConfig{Database: open(), Work: w.work, Attempts: 3, Backoff: 20 * time.Millisecond})
		add(t, q, "trial-never", "trial-down", "trial-later")
		start(t, q)
		if j := await(t, q, "trial-never", Failed); !strings.Contains(j.Reason, "the jury sits differently") {
			t.Errorf("%+v", j)
		}
		if j := await(t, q, "trial-down", Failed); !strings.Contains(j.Reason, "down for the 3. time") {
			t.Errorf("%+v", j)
		}
		await(t, q, "trial-later", Done)
		if err := q.Again(t.Context(), "trial-down"); err != nil {
			t.Fatal(err)
		}
		await(t, q, "trial-down", Done)
		times := map[string]int{}
		for _, trial := range w.all() {
			times[trial]++
		}
		if times["trial-never"] != 1 || times["trial-down"] != 4 || times["trial-later"] != 6 {
			t.Errorf("worked %v", times)
		}
	})
}

// TestRetriedIsSeen checks that a job between attempts tells why it failed and when it is retried.
func TestRetriedIsSeen(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Database) {
		w := worked{answer: func(string, int) error { return errors.New("no route to the provider") }}
		q := newQueue(t, QueueConfig{Database: open(), Work: w.work, Backoff: time.Hour})
		start(t, q)
		add(t, q, "trial-1")
		before := time.Now()
		if j := await(t, q, "trial-1", Retried); j.Reason != "no route to the provider" || j.Next.Before(before.Add(50*time.Minute)) {
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

// TestTakenOver checks that the job of a dead process is taken over, and a job with a claimed trial is not. If the
// first process was alive after all, its late result does no harm.
func TestTakenOver(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Database) {
		begun, goOn := make(chan string, 3), make(chan struct{})
		letGo := sync.OnceFunc(func() { close(goOn) })
		first := newQueue(t, QueueConfig{Database: open(), Work: func(_ context.Context, trial string) error {
			begun <- trial
			<-goOn
			return errors.New("too late")
		}, Backoff: time.Hour, Parallel: 3}) // he has no hand free for what is offered again
		start(t, first)
		t.Cleanup(letGo) // before he is waited for
		add(t, first, names(3)...)
		for range 3 {
			<-begun
		}
		var w worked
		claimed := func(_ context.Context, trial string) (bool, error) { return trial == "trial-000", nil }
		second := newQueue(t, QueueConfig{Database: open(), Work: w.work, Claimed: claimed, Lease: time.Hour})
		if j := jobOf(t, second, "trial-001"); j.State != Running || j.Here || !jobOf(t, first, "trial-001").Here {
			t.Errorf("%+v", j)
		}
		if err := second.TakeOver(t.Context()); err != nil { // before the lease has run out
			t.Fatal(err)
		}
		if j := jobOf(t, second, "trial-001"); j.State != Running {
			t.Errorf("%+v", j)
		}
		time.Sleep(startLease)
		start(t, second) // which does not wait for it
		await(t, second, "trial-001", Done)
		await(t, second, "trial-002", Done)
		if err := second.Drop(t.Context(), "trial-002"); err != nil {
			t.Fatal(err)
		}
		if err := second.Drop(t.Context(), "trial-000"); !errors.Is(err, ErrRunning) {
			t.Errorf("a job is taken away that is being worked: %v", err)
		}
		letGo()
		await(t, second, "trial-000", Retried)
		await(t, second, "trial-001", Done)
		if got := w.all(); len(got) != 2 {
			t.Errorf("worked %v", got)
		}
	})
}

// TestDeathsAreCounted checks that a job that ends every process that works on it is not offered for ever.
func TestDeathsAreCounted(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Database) {
		db := open()
		q := newQueue(t, QueueConfig{Database: db, Work: (&worked{}).work, Attempts: 2})
		add(t, q, "trial-1")
		for range 2 {
			_, err := db.exec.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{ClientID: "one who dies", MaxAttemptedBy: 9, MaxToLock: 1, Queue: queue, Schema: db.schema})
			if err != nil {
				t.Fatal(err)
			}
			if j := jobOf(t, q, "trial-1"); j.State != Running {
				t.Fatalf("%+v", j)
			}
			if err := q.takeOver(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if j := jobOf(t, q, "trial-1"); j.State != Failed || !strings.Contains(j.Reason, "has stopped") {
			t.Errorf("%+v", j)
		}
	})
}

// TestMemory checks that, without a file, jobs belong to this process alone.
func TestMemory(t *testing.T) {
	var w worked
	q := newQueue(t, QueueConfig{Database: opened(t)(SQLite(t.Context(), "")), Work: w.work})
	add(t, q, "trial-1")
	start(t, q)
	await(t, q, "trial-1", Done)
	other := newQueue(t, QueueConfig{Database: opened(t)(SQLite(t.Context(), "")), Work: w.work})
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
		if trial == "trial-1" && times == 1 { // it may be taken over more than once before its end is noted
			close(begun)
			<-goOn
		}
		return nil
	}}
	q := newQueue(t, QueueConfig{Database: opened(t)(Postgres(t.Context(), pool, "jurat_jobs")), Work: w.work, Lease: time.Second, Attempts: 1000})
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
	await(t, q, "trial-2", Done)
	for jobOf(t, q, "trial-1").State != Done {
		time.Sleep(100 * time.Millisecond)
		if err := q.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// deaf is a client that ignores Stop until the test releases it.
type deaf struct {
	client
	letGo chan struct{}
}

func (d deaf) Stop(context.Context) error { <-d.letGo; return nil }

// TestStopHasAnEnd checks that Stop waits for running jobs without limit, but for River only for a limited time.
func TestStopHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deaf{letGo: make(chan struct{})}
		defer close(d.letGo)
		q := &Queue{client: d, here: map[string]bool{"trial-1": true}}
		stopped := make(chan error, 1)
		go func() { stopped <- q.Stop(t.Context()) }()
		time.Sleep(time.Hour)
		select {
		case err := <-stopped:
			t.Errorf("a job is under way, and it has stopped: %v", err)
		default:
		}
		q.leave("trial-1")
		if err := <-stopped; err == nil || !strings.Contains(err.Error(), "River") {
			t.Errorf("%v", err)
		}
	})
}

// TestListensApart checks that the listening connection is not from the pool, and sends no cancel request when it
// ends.
func TestListensApart(t *testing.T) {
	url := pgtest.Database(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	listens, err := listening(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	defer listens.Close()
	conn, err := listens.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	handler := listens.Config().ConnConfig.BuildContextWatcherHandler(conn.Conn().PgConn())
	if _, hangsUp := handler.(*pgconn.DeadlineContextWatcherHandler); !hangsUp || pool.Stat().AcquiredConns() != 0 {
		t.Errorf("%T, %d connections of the pool", handler, pool.Stat().AcquiredConns())
	}
}

// TestStrangeJobs checks that a malformed job prevents neither a takeover of other jobs nor a start, and that a job
// from a clock that is ahead is taken over.
func TestStrangeJobs(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Database) {
		db := open()
		var w worked
		claimed := func(_ context.Context, trial string) (bool, error) {
			if trial == "trial-001" {
				return false, errors.New("not the id of a trial")
			}
			return false, nil
		}
		q := newQueue(t, QueueConfig{Database: db, Work: w.work, Claimed: claimed, Backoff: time.Hour})
		add(t, q, names(2)...)
		if _, err := q.client.InsertMany(t.Context(), []river.InsertManyParams{{Args: unreadable{7}}}); err != nil {
			t.Fatal(err)
		}
		add(t, q, "trial-002")
		tomorrow := time.Now().Add(24 * time.Hour).UTC()
		taken, err := db.exec.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{ClientID: "one who dies", MaxAttemptedBy: 9, MaxToLock: 9,
			Now: &tomorrow, Queue: queue, Schema: db.schema})
		if err != nil || len(taken) != 4 {
			t.Fatalf("%d taken, %v", len(taken), err)
		}
		start(t, q)
		await(t, q, "trial-000", Done)
		await(t, q, "trial-002", Done)
		if j := jobOf(t, q, "trial-001"); j.State != Running {
			t.Errorf("%+v", j)
		}
	})
}

// unreadable is a job whose trial is not text.
type unreadable struct {
	Trial int `json:"trial"`
}

func (unreadable) Kind() string { return "trial" }

// TestFewConnections checks that a pool with too few connections is refused with an error.
func TestFewConnections(t *testing.T) {
	config, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = leastConns - 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := Postgres(t.Context(), pool, "jurat_jobs"); err == nil || !strings.Contains(err.Error(), "pool_max_conns") {
		t.Errorf("%v", err)
	}
}

// TestHeldByAnother checks that a stopped process that holds the file does not block others for ever.
func TestHeldByAnother(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	db, err := SQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	q := newQueue(t, QueueConfig{Database: db, Work: (&worked{}).work})
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
	outcome := make(chan error, 4) // so many that they wait for one another, too
	for n := range cap(outcome) {
		go func() { outcome <- q.Add(t.Context(), fmt.Sprint("trial-", n)) }()
	}
	for range cap(outcome) {
		select {
		case err := <-outcome:
			if !errors.Is(err, ErrBusy) {
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
