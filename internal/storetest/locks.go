package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"jurat/internal/lock"
	"jurat/internal/must"
)

// OpenLocks opens locks once more, as another process would.
type OpenLocks func(t *testing.T) lock.Locks

// Locks checks locks against the contract of lock.Locks. Every call of place makes new locks that are all free.
func Locks(t *testing.T, place func(t *testing.T) OpenLocks) {
	for name, test := range map[string]func(*testing.T, OpenLocks){
		"one holder":            oneHolder,
		"ends with the context": endsWithContext,
		"exclusive":             exclusive,
		"lock names":            lockNames,
		"asking takes nothing":  askingTakesNothing,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

func mustLock(t *testing.T, c lock.Locks, name string) (held context.Context, release func()) {
	t.Helper()
	held, release, err := c.Lock(t.Context(), name)
	must.Do(t, err)
	return held, release
}

func wantLocked(t *testing.T, c lock.Locks, name string, want bool) {
	t.Helper()
	if is, err := c.Locked(t.Context(), name); is != want || err != nil {
		t.Errorf("%s is locked: %t, %v; want %t", name, is, err, want)
	}
}

// oneHolder checks that one holder at a time has a lock, here and in other processes.
func oneHolder(t *testing.T, open OpenLocks) {
	here, there := open(t), open(t)
	held, release := mustLock(t, here, "trial-1")
	for _, c := range []lock.Locks{here, there} {
		if _, _, err := c.Lock(t.Context(), "trial-1"); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("locked twice: %v", err)
		}
		wantLocked(t, c, "trial-1", true)
		wantLocked(t, c, "trial-2", false)
	}
	_, other := mustLock(t, there, "trial-2")
	wantLocked(t, here, "trial-2", true)
	other()
	wantLocked(t, here, "trial-1", true)
	if held.Err() != nil {
		t.Error(held.Err())
	}
	release()
	if held.Err() == nil {
		t.Error("the context of the lock is still alive")
	}
	wantLocked(t, here, "trial-1", false)
	_, release = mustLock(t, there, "trial-1")
	defer release()
	wantLocked(t, here, "trial-1", true)
}

// endsWithContext checks that work under a lock ends with the caller's context.
func endsWithContext(t *testing.T, open OpenLocks) {
	ctx, cancel := context.WithCancel(t.Context())
	held, release, err := open(t).Lock(ctx, "trial-1")
	must.Do(t, err)
	defer release()
	cancel()
	<-held.Done()
	if cause := context.Cause(held); !errors.Is(cause, context.Canceled) {
		t.Error(cause)
	}
	wantLocked(t, open(t), "trial-1", true) // until it is released
}

// exclusive checks that no two of many callers have a lock at once.
func exclusive(t *testing.T, open OpenLocks) {
	shared := open(t)
	var inside, held atomic.Int32
	var all sync.WaitGroup
	for n := range 8 {
		c := shared
		if n%2 == 0 {
			c = open(t)
		}
		all.Go(func() {
			for range 200 {
				_, release, err := c.Lock(t.Context(), "trial-1")
				if errors.Is(err, lock.ErrTaken) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				must.Equal(t, inside.Add(1), 1)
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
}

// lockNames checks that a name that could not be a file name is refused everywhere.
func lockNames(t *testing.T, open OpenLocks) {
	c := open(t)
	for _, id := range []string{"", ".", "..", "../trial-1", "a/b", ".hidden"} {
		if _, release, err := c.Lock(t.Context(), id); err == nil {
			release()
			t.Errorf("%q is locked", id)
		}
		if _, err := c.Locked(t.Context(), id); err == nil {
			t.Errorf("%q could be locked", id)
		}
	}
}

// askingTakesNothing checks that callers of Locked do not prevent others from locking.
func askingTakesNothing(t *testing.T, open OpenLocks) {
	c, asks := open(t), open(t)
	var asking sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := asks.Locked(t.Context(), "trial-1"); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 500 {
		_, release, err := c.Lock(t.Context(), "trial-1")
		if err != nil {
			t.Errorf("no other process has the lock: %v", err)
			break
		}
		release()
	}
	close(stop)
	asking.Wait()
}
