package schedule

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/log/ledger"
	"jurat/internal/log/lock"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// onEach runs a test on each engine, with the name of a database for openTable.
func onEach(t *testing.T, test func(t *testing.T, where string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "work.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, emptyLog(t, rig.Database(t))) })
}

// emptyLog makes the schema of the log in a database.
func emptyLog(t *testing.T, url string) string {
	t.Helper()
	pool := must.Get(pgxpool.New(t.Context(), url))(t)
	defer pool.Close()
	must.Get(pool.Exec(t.Context(), `CREATE SCHEMA jurat`))(t)
	return url
}

// openTable opens the table as another process would, in a file or in the database at a URL.
func openTable(t *testing.T, where string) *Table {
	t.Helper()
	table, closes, err := tableAt(t.Context(), where)
	must.Do(t, err)
	t.Cleanup(closes)
	return table
}

// worked is what a queue does in a test: it notes the trials, in order.
type worked struct {
	mu     sync.Mutex
	trials []string
	answer func(ctx context.Context, trial string, times int) error // nil: nil
}

func (w *worked) work(ctx context.Context, trial string, _ <-chan struct{}) error {
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
	return w.answer(ctx, trial, times)
}

func (w *worked) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.trials)
}

// openQueue makes a queue as another process would.
func openQueue(t *testing.T, where string, w *worked, c Config) *queue {
	t.Helper()
	c.Table = openTable(t, where)
	return newQueue(c.complete(), w.work)
}

func begin(t *testing.T, q *queue) {
	t.Helper()
	must.Do(t, q.start(t.Context(), context.WithoutCancel(t.Context())))
	t.Cleanup(q.stop)
}

func put(t *testing.T, q *queue, again string, trials ...string) {
	t.Helper()
	must.Do(t, q.put(t.Context(), again, trials...))
}

// await waits until a trial's turn is as wanted, and returns it. While it waits, it takes trials over from the dead.
func await(t *testing.T, q *queue, trial string, wanted func(now turn, has bool) bool) turn {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		must.Do(t, q.takeOver(t.Context(), q.cfg.Lease))
		found := must.Get(q.find(t.Context(), trial))(t)
		now, has := found[trial]
		if wanted(now, has) {
			return now
		}
		must.Need(t, !time.Now().After(end), "%s is %+v, in the queue: %t", trial, now, has)
	}
}

func isGone(_ turn, has bool) bool   { return !has }
func isFailed(now turn, _ bool) bool { return now.failed }
func isHeld(now turn, _ bool) bool   { return now.held }

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("trial-%03d", i))
	}
	return list
}

// TestOneTurnForEachTrial checks that a trial is worked once, however often it is queued, and in the order of arrival.
func TestOneTurnForEachTrial(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		var w worked
		one, other := openQueue(t, where, &w, Config{Parallel: 1}), openQueue(t, where, &w, Config{Parallel: 1})
		all := names(atOnce + 40)
		put(t, one, none, all[:20]...)
		put(t, other, failed, all...)
		put(t, one, none, all...)
		found, err := one.find(t.Context(), append(all, "trial-none")...)
		must.Need(t, err == nil && len(found) == len(all), "%d found, %v", len(found), err)
		for _, i := range []int{0, 1, 19, 20, 39, len(all) - 1} {
			must.Give(other.waiting(t.Context(), found[all[i]].place))(t, i, "before number")
		}
		begin(t, one)
		await(t, other, all[len(all)-1], isGone)
		got := w.all()
		must.Hold(t, slices.Equal(got, all), "worked %v", got)
		put(t, other, none, all[3]) // its trial turns out not to be over
		await(t, one, all[3], isGone)
	})
}

// TestManyProcesses checks that processes that open an empty database at once all find the table, and share the work.
func TestManyProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		w := worked{answer: func(context.Context, string, int) error { time.Sleep(time.Millisecond); return nil }}
		var opening sync.WaitGroup
		queues := make([]*queue, 4)
		for i := range queues {
			opening.Go(func() { queues[i] = openQueue(t, where, &w, Config{Parallel: 3}) })
		}
		opening.Wait()
		all := names(80)
		for i, q := range queues {
			begin(t, q)
			put(t, q, none, all[20*i:20*(i+1)]...)
		}
		for _, trial := range all {
			await(t, queues[0], trial, isGone)
		}
		got := w.all()
		slices.Sort(got)
		must.Hold(t, slices.Equal(got, all), "worked %v", got)
	})
}

// TestFailures checks that a failure that may pass is tried again a limited number of times, that a final one is not, and that to put a trial off is no
// attempt. Until it is tried again, a failed trial shows why and when.
func TestFailures(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		w := worked{answer: func(_ context.Context, trial string, times int) error {
			switch {
			case trial == "trial-never":
				return final{errors.New("the jury sits differently")}
			case trial == "trial-down" && times <= 3:
				return fmt.Errorf("down for the %d. time", times)
			case trial == "trial-later" && times <= 5:
				return fmt.Errorf("not now: %w", later(time.Millisecond))
			}
			return nil
		}}
		q := openQueue(t, where, &w, Config{Attempts: 3, Backoff: 20 * time.Millisecond})
		put(t, q, none, "trial-never", "trial-down", "trial-later")
		begin(t, q)
		if now := await(t, q, "trial-never", isFailed); now.reason != "the jury sits differently" || !now.next.IsZero() {
			t.Errorf("%+v", now)
		}
		must.Equal(t, await(t, q, "trial-down", isFailed).reason, "down for the 3. time")
		await(t, q, "trial-later", isGone)
		put(t, q, none, "trial-down") // as by one who saw it missing a moment ago: the reason is kept
		await(t, q, "trial-down", isFailed)
		put(t, q, failed, "trial-down")
		await(t, q, "trial-down", isGone)
		times := map[string]int{}
		for _, trial := range w.all() {
			times[trial]++
		}
		must.Hold(t, times["trial-never"] == 1 && times["trial-down"] == 4 && times["trial-later"] == 6, "worked %v", times)

		w.answer = func(context.Context, string, int) error { return errors.New("no route to the provider") }
		q.cfg.Backoff = time.Hour
		put(t, q, none, "trial-slow")
		now := await(t, q, "trial-slow", func(now turn, _ bool) bool { return now.reason != "" })
		wait := time.Until(now.next)
		must.Hold(t, !now.failed && !now.held && now.reason == "no route to the provider" && wait >= 50*time.Minute && wait <= 70*time.Minute, "%+v", now)
		must.Do(t, q.drop(t.Context(), "trial-slow"))
		await(t, q, "trial-slow", isGone)
	})
}

// lockedFunc are locks that a function says are taken.
type lockedFunc struct {
	lock.Alone
	locked func(string) (bool, error)
}

func (l lockedFunc) Locked(_ context.Context, name string) (bool, error) { return l.locked(name) }

// TestTakenOver checks which trials are taken over from a process that is silent: not those that are locked, nor those of which nobody knows, which
// hinder no other; and also those whose beat is of a clock that was ahead. A trial that is held can be neither dropped nor queued anew.
func TestTakenOver(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		var w worked
		locks := lockedFunc{locked: func(trial string) (bool, error) {
			if trial == "trial-001" {
				return false, errors.New("not the id of a trial")
			}
			return trial == "trial-000", nil
		}}
		q := openQueue(t, where, &w, Config{Locks: locks, Lease: 50 * time.Millisecond})
		all := names(5)
		put(t, q, none, all...)
		for range all {
			h, err := q.take(t.Context(), "one who dies")
			must.Need(t, err == nil && h != nil, "%+v, %v", h, err)
		}
		must.Get(q.exec(t.Context(), `UPDATE @work SET beat = beat + 86400000 WHERE trial = 'trial-003'`))(t)
		must.Do(t, errors.Join(q.drop(t.Context(), "trial-002"), q.put(t.Context(), free, "trial-002"), q.put(t.Context(), failed, "trial-002")))
		must.Do(t, q.takeOver(t.Context(), time.Hour))
		found, err := q.find(t.Context(), "trial-002")
		must.Need(t, err == nil && found["trial-002"].held, "%+v, %v", found, err) // await would take it over after the lease
		begin(t, q)
		for _, trial := range all[2:] {
			await(t, q, trial, isGone)
		}
		for _, trial := range all[:2] {
			await(t, q, trial, isHeld)
		}
		got := w.all()
		must.Hold(t, len(got) == 3, "worked %v", got)
	})
}

// TestDeathsAreNoAttempts checks that a trial is offered again when its process has died, more often than it may fail, at its old place. A trial that ends
// every process that works on it is not offered for ever.
func TestDeathsAreNoAttempts(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		q := openQueue(t, where, &worked{}, Config{Attempts: 2})
		put(t, q, none, names(2)...)
		for died := range mostDeaths {
			h, err := q.take(t.Context(), "one who dies")
			must.Need(t, err == nil && h != nil && h.trial == "trial-000" && h.attempts <= 0, "after %d deaths: %+v, %v", died, h, err)
			must.Do(t, q.takeOver(t.Context(), 0))
		}
		now := await(t, q, "trial-000", isFailed)
		must.Hold(t, now.reason == allDied, "%+v", now)
	})
}

// TestDatabaseGoesAway checks that no trial can be queued while the database is away, and that when it is back, trials are worked again and it is stored
// how work ended meanwhile. None of that is an attempt.
func TestDatabaseGoesAway(t *testing.T) {
	server := rig.StartPostgres(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(goOn) })
	w := worked{answer: func(_ context.Context, trial string, _ int) error {
		if trial == "trial-1" {
			close(begun)
			<-goOn
			return final{errors.New("a mistake")}
		}
		return nil
	}}
	q := openQueue(t, emptyLog(t, server.Database(t)), &w, Config{Attempts: 1, Poll: 10 * time.Millisecond})
	begin(t, q)
	t.Cleanup(letGo) // before it waits for the work to end
	put(t, q, none, "trial-1")
	<-begun
	server.Halt(t)
	letGo()
	must.Want(t, q.put(t.Context(), none, "trial-2"), ledger.ErrAway)
	must.Fail(t, ledger.ErrAway)(q.waiting(t.Context(), 1))
	server.Restart(t)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := q.put(t.Context(), none, "trial-2"); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	await(t, q, "trial-2", isGone)
	now := await(t, q, "trial-1", isFailed)
	must.Hold(t, now.reason == "a mistake", "%+v", now)
	got := w.all()
	must.Hold(t, slices.Equal(got, []string{"trial-1", "trial-2"}), "worked %v", got)
}

// TestEveryErrorSaysAway checks that whoever asks while the database stops, dies and starts again is told that it is away, and nothing else.
func TestEveryErrorSaysAway(t *testing.T) {
	server := rig.StartPostgres(t)
	table := openTable(t, emptyLog(t, server.Database(t)))
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for ctx.Err() == nil {
				_, err := table.waiting(context.WithoutCancel(ctx), 1)
				must.Hold(t, err == nil || errors.Is(err, ledger.ErrAway), "counting: %v", err)
			}
		})
	}
	for n := range 8 {
		time.Sleep(50 * time.Millisecond)
		if n%2 == 0 {
			server.Halt(t)
		} else {
			server.Kill(t)
		}
		server.Restart(t)
	}
	stop()
	asking.Wait()
}

// TestFileHeldByAnother checks that a stopped process that holds the file does not block others for ever.
func TestFileHeldByAnother(t *testing.T) {
	where := filepath.Join(t.TempDir(), "work.db")
	q, other := openQueue(t, where, &worked{}, Config{}), openTable(t, where)
	must.Get(q.exec(t.Context(), `PRAGMA busy_timeout = 20`))(t)
	must.Get(other.exec(t.Context(), `BEGIN IMMEDIATE`))(t)
	outcome := make(chan error, 4) // so many that they wait for each other, too
	for n := range cap(outcome) {
		go func() { outcome <- q.put(t.Context(), none, fmt.Sprint("trial-", n)) }()
	}
	for range cap(outcome) {
		must.Want(t, <-outcome, ledger.ErrBusy)
	}
	must.Get(other.exec(t.Context(), `ROLLBACK`))(t)
	put(t, q, none, "trial-0")
}

// TestStopWaits checks that a queue that stops waits for the work under way, and takes no more.
func TestStopWaits(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	w := worked{answer: func(context.Context, string, int) error { close(begun); <-goOn; return nil }}
	q := openQueue(t, "", &w, Config{Parallel: 1}) // with more room, it may be asking for a second trial when it is told to stop
	put(t, q, none, "trial-1")
	must.Do(t, q.start(t.Context(), t.Context()))
	<-begun
	stopped := make(chan struct{})
	go func() { q.stop(); close(stopped) }()
	<-q.stopping.Done()
	put(t, q, none, "trial-2")
	select {
	case <-stopped:
		t.Error("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	<-stopped
	got := w.all()
	must.Hold(t, len(got) == 1, "worked %v", got)
	await(t, q, "trial-1", isGone)
	if other := openTable(t, ""); other != nil {
		found, err := other.find(t.Context(), "trial-2")
		must.Hold(t, len(found) == 0 && err == nil, "%v, %v", found, err) // without a file, a table belongs to this process alone
	}
}

// TestStrangeFile checks that a file that is no database is refused by name.
func TestStrangeFile(t *testing.T) {
	where := t.TempDir()
	_, err := OpenTable(t.Context(), nil, where)
	must.Hold(t, err != nil && strings.Contains(err.Error(), where), "%v", err)
}
