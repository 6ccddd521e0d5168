package limits

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"jurat/api"
)

// What requests hold in memory comes out of one budget, so that however many there are, and however large, they hold no more
// together. A request waits a little for its part, and is then told to come again.

const (
	// DefaultMemory is the memory of a server of which nothing is said.
	DefaultMemory = 1 << 30

	BodyFactor   = 32               // how many times its size a body takes while it is read, sealed and tried
	RecordFactor = 8                // how many times its size a record takes that is shown with others
	HeavyRequest = 64 << 20         // what a request takes that may read a record of any size
	budgetWait   = 10 * time.Second // for others to give back what they hold
)

// MemoryFor is the least memory with which a server can take bodies of a size.
func MemoryFor(body int64) int64 { return max(4*BodyFactor*body, 8*HeavyRequest) }

// A Budget is what all requests may hold together. It is safe for concurrent use.
type Budget struct {
	total int64 // half of the memory: the rest is for trials, the log, and what the collector has not got to
	parts *semaphore.Weighted

	mu      sync.Mutex // held while what callers hold is read or changed
	callers map[string]int64
}

// NewBudget returns half of a memory, for requests.
func NewBudget(memory int64) *Budget {
	return &Budget{total: memory / 2, parts: semaphore.NewWeighted(memory / 2), callers: map[string]int64{}}
}

// An Account is what one request holds. It is for one goroutine.
type Account struct {
	of     *Budget
	caller string
	held   int64
}

// most is how much one caller may hold, in all requests together: others are to get something, too.
func (b *Budget) most() int64 { return b.total / 2 }

// reserve notes that a caller is about to hold more.
func (b *Budget) reserve(caller string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if held := b.callers[caller]; held+n > b.most() {
		return fmt.Errorf("%w: the requests of one caller hold at most %d MiB of memory here: ask for one after the other", api.ErrUnavailable, b.most()>>20)
	}
	b.callers[caller] += n
	return nil
}

func (b *Budget) restore(caller string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.callers[caller] -= n; b.callers[caller] <= 0 {
		delete(b.callers, caller)
	}
}

// Take counts so many bytes more for the request, and waits a little for them. It returns api.ErrTooLarge or api.ErrUnavailable.
func (a *Account) Take(ctx context.Context, n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	if a.held+n > a.of.most() {
		return fmt.Errorf("%w: to answer takes more memory than one request has here, which is %d MiB", api.ErrTooLarge, a.of.most()>>20)
	}
	waiting, cancel := context.WithTimeout(ctx, budgetWait)
	defer cancel()
	for {
		err := a.of.reserve(a.caller, n)
		if err == nil {
			break
		}
		select {
		case <-waiting.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := a.of.parts.Acquire(waiting, n); err != nil {
		a.of.restore(a.caller, n)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: other requests hold the memory that this one needs", api.ErrUnavailable)
	}
	a.held += n
	return nil
}

// Keep gives back all but so many bytes.
func (a *Account) Keep(n int64) {
	if a == nil || n >= a.held {
		return
	}
	a.of.parts.Release(a.held - n)
	a.of.restore(a.caller, a.held-n)
	a.held = n
}

// Open opens the account of one request, and puts it into a context.
func (b *Budget) Open(ctx context.Context, caller string) (context.Context, *Account) {
	a := &Account{of: b, caller: caller}
	return context.WithValue(ctx, accountKey{}, a), a
}

type accountKey struct{}

// AccountOf returns the account of a request, or nil if nobody counts.
func AccountOf(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// Reading returns a reader that takes for what is read through it, twice: a buffer that grows is there twice for a moment.
func (a *Account) Reading(ctx context.Context, r io.Reader) io.Reader {
	return &counted{r: r, on: func(n int64) error { return a.Take(ctx, n) }}
}

// counted counts what is read from a body, twice.
type counted struct {
	r  io.Reader
	on func(n int64) error
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if failed := c.on(2 * int64(n)); failed != nil {
		return 0, failed
	}
	return n, err
}
