package lock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jurat/internal/pgtest"
)

// places are implementations of Claims. Each returns a function that opens the same one once more, as another process
// would.
var places = map[string]func(t *testing.T) func() Claims{
	"folder": func(t *testing.T) func() Claims {
		dir := filepath.Join(t.TempDir(), "claims")
		return func() Claims { return NewFolder(dir) }
	},
	"database": func(t *testing.T) func() Claims {
		config := configure(t, pgtest.Database(t))
		return func() Claims {
			d := NewDatabase(config)
			t.Cleanup(func() { d.Close() })
			return d
		}
	},
}

func configure(t *testing.T, url string) *pgx.ConnConfig {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func everywhere(t *testing.T, test func(t *testing.T, open func() Claims)) {
	for name, place := range places {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

func mustClaim(t *testing.T, c Claims, name string) (held context.Context, release func()) {
	t.Helper()
	held, release, err := c.Claim(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return held, release
}

func wantClaimed(t *testing.T, c Claims, name string, want bool) {
	t.Helper()
	if is, err := c.Claimed(t.Context(), name); is != want || err != nil {
		t.Errorf("%s is claimed: %t, %v; want %t", name, is, err, want)
	}
}

// TestClaim checks that one holder at a time has a claim, here and in other processes.
func TestClaim(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Claims) {
		here, there := open(), open()
		held, release := mustClaim(t, here, "trial-1")
		for _, c := range []Claims{here, there} {
			if _, _, err := c.Claim(t.Context(), "trial-1"); !errors.Is(err, ErrTaken) {
				t.Errorf("claimed twice: %v", err)
			}
			wantClaimed(t, c, "trial-1", true)
			wantClaimed(t, c, "trial-2", false)
		}
		_, other := mustClaim(t, there, "trial-2")
		wantClaimed(t, here, "trial-2", true)
		other()
		wantClaimed(t, here, "trial-1", true)
		if held.Err() != nil {
			t.Error(held.Err())
		}
		release()
		if held.Err() == nil {
			t.Error("what was done under the claim goes on")
		}
		wantClaimed(t, here, "trial-1", false)
		_, release = mustClaim(t, there, "trial-1")
		defer release()
		wantClaimed(t, here, "trial-1", true)
	})
}

// TestClaimEndsWithContext checks that work under a claim ends with the caller's context.
func TestClaimEndsWithContext(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Claims) {
		ctx, cancel := context.WithCancel(t.Context())
		held, release, err := open().Claim(ctx, "trial-1")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		cancel()
		<-held.Done()
		if cause := context.Cause(held); !errors.Is(cause, context.Canceled) {
			t.Error(cause)
		}
		wantClaimed(t, open(), "trial-1", true) // until it is released
	})
}

// TestClaimIsExclusive checks that no two of many callers have a claim at once.
func TestClaimIsExclusive(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Claims) {
		shared := open()
		var inside, held atomic.Int32
		var all sync.WaitGroup
		for n := range 8 {
			c := shared
			if n%2 == 0 {
				c = open()
			}
			all.Go(func() {
				for range 200 {
					_, release, err := c.Claim(t.Context(), "trial-1")
					if errors.Is(err, ErrTaken) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 {
						t.Error("two have it at once")
					}
					held.Add(1)
					inside.Add(-1)
					release()
				}
			})
		}
		all.Wait()
		if held.Load() == 0 {
			t.Error("nobody ever had it")
		}
	})
}

// TestClaimNames checks that a name that could not be a file name is refused everywhere.
func TestClaimNames(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Claims) {
		c := open()
		for _, id := range []string{"", ".", "..", "../trial-1", "a/b", ".hidden"} {
			if _, release, err := c.Claim(t.Context(), id); err == nil {
				release()
				t.Errorf("%q is claimed", id)
			}
			if _, err := c.Claimed(t.Context(), id); err == nil {
				t.Errorf("%q could be claimed", id)
			}
		}
	})
}

// TestAskingClaimsNothing checks that callers of Claimed do not prevent others from claiming.
func TestAskingClaimsNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Claims) {
		c, asks := open(), open()
		var asking sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			asking.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						if _, err := asks.Claimed(t.Context(), "trial-1"); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		for range 500 {
			_, release, err := c.Claim(t.Context(), "trial-1")
			if err != nil {
				t.Errorf("nobody else claims it: %v", err)
				break
			}
			release()
		}
		close(stop)
		asking.Wait()
	})
}

// TestFolderKeepsNothing checks that a released claim leaves no file, and that a file left by a crash claims nothing.
func TestFolderKeepsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trial-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, release := mustClaim(t, NewFolder(dir), "trial-1")
	release()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// patient is how long tests wait for a busy server.
const patient = time.Minute

// sessions ends or counts the sessions that hold claims.
func sessions(t *testing.T, url, query string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLost checks a holder that loses its connection to the database: its context ends, others can claim, and it can
// claim again.
func TestLost(t *testing.T) {
	url := pgtest.Database(t)
	config := configure(t, url)
	here, there := newDatabase(config, 20*time.Millisecond, patient, idle), NewDatabase(config)
	defer here.Close()
	defer there.Close()
	first, releaseFirst := mustClaim(t, here, "trial-1")
	second, releaseSecond := mustClaim(t, here, "trial-2")
	if n := sessions(t, url, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'jurat claims'`); n != 1 {
		t.Fatalf("%d sessions hold claims", n)
	}
	for _, held := range []context.Context{first, second} {
		<-held.Done()
		if cause := context.Cause(held); !errors.Is(cause, ErrLost) {
			t.Errorf("it ended because of %v", cause)
		}
	}
	_, release := mustClaim(t, there, "trial-1")
	defer release()
	if _, _, err := here.Claim(t.Context(), "trial-1"); !errors.Is(err, ErrTaken) {
		t.Errorf("it is another's now: %v", err)
	}
	_, again := mustClaim(t, here, "trial-2")
	releaseFirst()
	releaseSecond() // what was lost and claimed anew stays
	wantClaimed(t, there, "trial-2", true)
	again()
	wantClaimed(t, there, "trial-2", false)
}

// TestStandsStill checks that a process that is silent for too long, because it has stopped or lost the network,
// loses its claims.
func TestStandsStill(t *testing.T) {
	config := configure(t, pgtest.Database(t))
	still, there := newDatabase(config, time.Hour, patient, time.Hour), NewDatabase(config)
	defer there.Close()
	_, release := mustClaim(t, still, "trial-1")
	var was, is string
	still.mu.Lock() // from here on it stands still
	err := still.ask(t.Context(), `SELECT current_setting('idle_session_timeout')`, &was)
	if err == nil {
		err = still.ask(t.Context(), `SELECT set_config('idle_session_timeout', '200', false)`, &is)
	}
	still.mu.Unlock()
	if err != nil || was != "1h" {
		t.Fatalf("the database's patience is %s, %v", was, err)
	}
	for {
		_, _, err := there.Claim(t.Context(), "trial-1")
		if err == nil {
			break
		}
		if !errors.Is(err, ErrTaken) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	release() // of what it has no more
	wantClaimed(t, there, "trial-1", true)
	if err := still.Close(); err != nil {
		t.Error(err)
	}
}

// TestSaysSomething checks that an idle process sends messages, and keeps its claims.
func TestSaysSomething(t *testing.T) {
	url := pgtest.Database(t)
	here, there := newDatabase(configure(t, url), 20*time.Millisecond, patient, time.Hour), NewDatabase(configure(t, url))
	defer there.Close()
	defer here.Close()
	held, release := mustClaim(t, here, "trial-1")
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
	wantClaimed(t, there, "trial-1", true)
}

// TestPatience checks the time limits: an idle process is heard in time, and one without an answer gives up its
// claims before another can have them.
func TestPatience(t *testing.T) {
	if margin := idle - beat - answer; margin < 5*time.Second {
		t.Errorf("a claim is taken for lost %v before the database gives it to others", margin)
	}
}

// TestClaimsEndWithTheServer checks that all claims are lost when the database goes away, and that new ones can be
// made when it is back.
func TestClaimsEndWithTheServer(t *testing.T) {
	server := pgtest.Start(t)
	config := configure(t, server.Database(t))
	here := newDatabase(config, 20*time.Millisecond, patient, idle)
	defer here.Close()
	held, release := mustClaim(t, here, "trial-1")
	defer release()
	server.Halt(t)
	<-held.Done()
	if cause := context.Cause(held); !errors.Is(cause, ErrLost) {
		t.Error(cause)
	}
	if _, _, err := here.Claim(t.Context(), "trial-1"); err == nil || errors.Is(err, ErrTaken) {
		t.Errorf("claimed without a database: %v", err)
	}
	if _, err := here.Claimed(t.Context(), "trial-1"); err == nil {
		t.Error("it is known without a database whether somebody has it")
	}
	server.Restart(t)
	_, again := mustClaim(t, here, "trial-1")
	again()
}
