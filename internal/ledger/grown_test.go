package ledger_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
)

// taken takes a value from c, and reports whether there was one.
func taken(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case _, open := <-c:
		return open
	default:
		return false
	}
}

// TestGrown checks that waiting callers hear at once of what this process appends, and at the next poll of what
// another process appends.
func TestGrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := fresh(t)
		c := config(store)
		c.Poll = time.Minute
		here := must(ledger.Create(t.Context(), c))
		elsewhere := must(ledger.Open(t.Context(), c)) // as in another process
		one, two := here.Grown(ctx), here.Grown(t.Context())
		taken(one)
		taken(two)
		if time.Sleep(time.Hour); taken(one) {
			t.Error("nothing was appended")
		}
		sealMany(t, here, 3)
		if !taken(one) || taken(one) || !taken(two) {
			t.Error("not every waiting caller was notified exactly once of three records appended here")
		}
		time.Sleep(time.Minute)
		taken(one)
		seal(t, elsewhere, "")
		if taken(one) {
			t.Error("who has told?")
		}
		if time.Sleep(time.Minute); !taken(one) || !taken(two) {
			t.Error("not every waiting caller was notified of a record appended elsewhere")
		}
		cancel()
		synctest.Wait()
		if _, open := <-one; open {
			t.Error("the channel of a caller that left is still open")
		}
		seal(t, here, "")
		if !taken(two) {
			t.Error("a caller that stayed was not notified")
		}
	})
}

// telling is a store that notifies, until the test makes it deaf.
type telling struct {
	storage.Store
	deaf   atomic.Bool // listening fails at once
	listen chan func()
	broken chan error
}

func (s *telling) Listen(ctx context.Context, grown func()) error {
	if s.deaf.Load() {
		return errFault
	}
	s.listen <- grown
	grown()
	select {
	case err := <-s.broken:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestGrownIsTold checks that a store that notifies is not polled, is polled while it cannot notify, and misses
// nothing when it can again.
func TestGrownIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &telling{Store: fresh(t), listen: make(chan func(), 1), broken: make(chan error)}
		c := config(store)
		c.Poll = time.Minute
		l := must(ledger.Create(t.Context(), c))
		other := must(ledger.Open(t.Context(), config(store.Store)))
		news := l.Grown(t.Context())
		tell := <-store.listen
		taken(news)
		seal(t, other, "")
		if time.Sleep(time.Hour); taken(news) {
			t.Error("the store was polled although it notifies")
		}
		if tell(); !taken(news) {
			t.Error("the waiting caller was not notified")
		}
		store.deaf.Store(true)
		store.broken <- errFault
		time.Sleep(time.Minute)
		taken(news)
		seal(t, other, "")
		if time.Sleep(2 * time.Minute); !taken(news) {
			t.Error("the store was not polled although it cannot notify")
		}
		seal(t, other, "") // no one gets this notification, and the store is not polled before it listens again
		store.deaf.Store(false)
		tell = <-store.listen
		if !taken(news) {
			t.Error("a record appended before the store listened again was missed")
		}
		seal(t, other, "")
		if tell(); !taken(news) {
			t.Error("no caller was notified afterwards")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestGrownEnds checks that polling ends when no caller waits any more, or when the ledger is closed.
func TestGrownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine still runs at its end
		l, _ := alone(t)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			news := l.Grown(ctx)
			<-news
			cancel()
			for range news {
			}
		}
		l.Grown(context.Background())
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
	})
}
