package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jurat/internal/log/lock"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/internal/test/storetest"
)

func TestLocks(t *testing.T) {
	storetest.Locks(t, func(t *testing.T) storetest.OpenLocks {
		config := configure(t, rig.Database(t))
		return func(t *testing.T) lock.Locks {
			l := NewLocks(config)
			t.Cleanup(func() { l.Close() })
			return l
		}
	})
}

func configure(t *testing.T, url string) *pgx.ConnConfig {
	t.Helper()
	return must.Get(pgx.ParseConfig(url))(t)
}

func mustLock(t *testing.T, l lock.Locks, name string) (held context.Context, release func()) {
	t.Helper()
	held, release, err := l.Lock(t.Context(), name)
	must.Do(t, err)
	return held, release
}

func wantLocked(t *testing.T, l lock.Locks, name string, want bool) {
	t.Helper()
	is, err := l.Locked(t.Context(), name)
	must.Hold(t, is == want && err == nil, "%s is locked: %t, %v; want %t", name, is, err, want)
}

// patient is how long tests wait for a busy server.
const patient = time.Minute

// sessions ends or counts the sessions that hold locks.
func sessions(t *testing.T, url, query string) (n int) {
	t.Helper()
	conn := must.Get(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(t.Context())
	must.Do(t, conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}

// TestLostLock checks a holder that loses its connection to the database: its context ends, others can lock, and it can
// lock again.
func TestLostLock(t *testing.T) {
	url := rig.Database(t)
	config := configure(t, url)
	here, there := newLocks(config, 20*time.Millisecond, patient, lockIdle), NewLocks(config)
	defer here.Close()
	defer there.Close()
	first, releaseFirst := mustLock(t, here, "trial-1")
	second, releaseSecond := mustLock(t, here, "trial-2")
	must.Equal(t, sessions(t, url, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'jurat claims'`), 1)
	for _, held := range []context.Context{first, second} {
		<-held.Done()
		cause := context.Cause(held)
		must.Hold(t, errors.Is(cause, lock.ErrLost), "it ended because of %v", cause)
	}
	_, release := mustLock(t, there, "trial-1")
	defer release()
	_, _, err := here.Lock(t.Context(), "trial-1")
	must.Hold(t, errors.Is(err, lock.ErrTaken), "it is another's now: %v", err)
	_, again := mustLock(t, here, "trial-2")
	releaseFirst()
	releaseSecond() // a lock that was lost and made again stays
	wantLocked(t, there, "trial-2", true)
	again()
	wantLocked(t, there, "trial-2", false)
}

// TestLockedAfterALostSession: a process whose session ended, such as with a server that was restarted, still reads what is locked.
func TestLockedAfterALostSession(t *testing.T) {
	url := rig.Database(t)
	here, there := newLocks(configure(t, url), time.Hour, patient, lockIdle), NewLocks(configure(t, url))
	defer here.Close()
	defer there.Close()
	held, releaseOwn := mustLock(t, here, "trial-1")
	defer releaseOwn()
	must.Equal(t, sessions(t, url, `SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE application_name = 'jurat claims'`), 1)
	_, release := mustLock(t, there, "trial-2")
	defer release()
	wantLocked(t, here, "trial-2", true)
	wantLocked(t, here, "trial-1", false)
	must.Want(t, context.Cause(held), lock.ErrLost)
}

// TestLocksOfAProcessThatStandsStill checks that a process that is silent for too long, because it has stopped or lost the network,
// loses its locks.
func TestLocksOfAProcessThatStandsStill(t *testing.T) {
	config := configure(t, rig.Database(t))
	still, there := newLocks(config, time.Hour, patient, time.Hour), NewLocks(config)
	defer there.Close()
	_, release := mustLock(t, still, "trial-1")
	var was, is string
	still.mu.Lock() // from here on the process stands still
	err := still.ask(t.Context(), `SELECT current_setting('idle_session_timeout')`, &was)
	if err == nil {
		err = still.ask(t.Context(), `SELECT set_config('idle_session_timeout', '200', false)`, &is)
	}
	still.mu.Unlock()
	must.Need(t, err == nil && was == "1h", "the database's patience is %s, %v", was, err)
	for {
		_, _, err := there.Lock(t.Context(), "trial-1")
		if err == nil {
			break
		}
		must.Need(t, errors.Is(err, lock.ErrTaken), "%v", err)
		time.Sleep(10 * time.Millisecond)
	}
	release() // releasing a lock that it no longer has
	wantLocked(t, there, "trial-1", true)
	must.Want(t, still.Close(), nil)
}

// TestSaysSomething checks that an idle process sends messages, and keeps its locks.
func TestSaysSomething(t *testing.T) {
	url := rig.Database(t)
	here, there := newLocks(configure(t, url), 20*time.Millisecond, patient, time.Hour), NewLocks(configure(t, url))
	defer there.Close()
	defer here.Close()
	held, release := mustLock(t, here, "trial-1")
	defer release()
	const saidLast = `SELECT (extract(epoch FROM max(query_start)) * 1000000)::bigint FROM pg_stat_activity
		WHERE application_name = 'jurat claims' AND datname = current_database()`
	for range 3 {
		for before := sessions(t, url, saidLast); sessions(t, url, saidLast) == before; time.Sleep(10 * time.Millisecond) {
		}
	}
	if held.Err() != nil {
		t.Error(context.Cause(held))
	}
	wantLocked(t, there, "trial-1", true)
}

// TestPatienceOfLocks checks the time limits: an idle process is heard in time, and one without an answer gives up its
// locks before another can have them.
func TestPatienceOfLocks(t *testing.T) {
	margin := lockIdle - lockBeat - lockAnswer
	must.Hold(t, margin >= 5*time.Second, "a holder gives up its lock %v before others can have it", margin)
}

// TestLocksEndWithTheServer checks that all locks are lost when the database goes away, and that new ones can be
// made when it is back.
func TestLocksEndWithTheServer(t *testing.T) {
	server := rig.StartPostgres(t)
	config := configure(t, server.Database(t))
	here := newLocks(config, 20*time.Millisecond, patient, lockIdle)
	defer here.Close()
	held, release := mustLock(t, here, "trial-1")
	defer release()
	server.Halt(t)
	<-held.Done()
	cause := context.Cause(held)
	must.Want(t, cause, lock.ErrLost)
	_, _, err := here.Lock(t.Context(), "trial-1")
	must.Hold(t, err != nil && !errors.Is(err, lock.ErrTaken), "locked without a database: %v", err)
	must.Refuse(t, "", "Claimed answers although the database is away")(here.Locked(t.Context(), "trial-1"))
	server.Restart(t)
	_, again := mustLock(t, here, "trial-1")
	again()
}
