package server

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"jurat/api"
)

// What requests hold in memory comes out of one budget, so that however many there are, and however large, they hold no more
// together. A request waits a little for its part, and is then told to come again.

const (
	// DefaultMemory is Config.Memory where nothing is said.
	DefaultMemory = 1 << 30

	bodyFactor   = 32               // how many times its size a body takes while it is read, sealed and tried
	recordFactor = 8                // how many times its size a record takes that is shown with others
	heavyRequest = 64 << 20         // what a request takes that may read a record of any size
	budgetWait   = 10 * time.Second // for others to give back what they hold
)

// MemoryFor is the least memory with which a server can take bodies of a size.
func MemoryFor(body int64) int64 { return max(4*bodyFactor*body, 8*heavyRequest) }

// A budget is what all requests may hold together. It is safe for concurrent use.
type budget struct {
	total int64 // half of the memory: the rest is for trials, the log, and what the collector has not got to
	parts *semaphore.Weighted

	mu      sync.Mutex // held while what callers hold is read or changed
	callers map[string]int64
}

func newBudget(memory int64) *budget {
	return &budget{total: memory / 2, parts: semaphore.NewWeighted(memory / 2), callers: map[string]int64{}}
}

// An account is what one request holds. It is for one goroutine.
type account struct {
	of     *budget
	caller string
	held   int64
}

// most is how much one caller may hold, in all requests together: others are to get something, too.
func (b *budget) most() int64 { return b.total / 2 }

// reserve notes that a caller is about to hold more.
func (b *budget) reserve(caller string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if held := b.callers[caller]; held+n > b.most() {
		return fmt.Errorf("%w: the requests of one caller hold at most %d MiB of memory here: ask for one after the other", api.ErrUnavailable, b.most()>>20)
	}
	b.callers[caller] += n
	return nil
}

func (b *budget) restore(caller string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.callers[caller] -= n; b.callers[caller] <= 0 {
		delete(b.callers, caller)
	}
}

// take has the request hold so many bytes more.
func (a *account) take(ctx context.Context, n int64) error {
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

// keep gives back all but so many bytes.
func (a *account) keep(n int64) {
	if a == nil || n >= a.held {
		return
	}
	a.of.parts.Release(a.held - n)
	a.of.restore(a.caller, a.held-n)
	a.held = n
}

type accountKey struct{}

// accountOf is the account of a request; nil where nobody counts.
func accountOf(ctx context.Context) *account {
	a, _ := ctx.Value(accountKey{}).(*account)
	return a
}

// account opens the account of a request that was let in.
func (s *Server) account(route *Route, r *http.Request, c *Caller) (*http.Request, *account, error) {
	a := &account{of: s.budget, caller: limitedAs(c, r)}
	r = r.WithContext(context.WithValue(r.Context(), accountKey{}, a))
	most := s.config.MaxBody
	if route.MaxBody > 0 {
		most = route.MaxBody
	}
	var need int64
	if route.Kind != API || c.cookie { // elsewhere no body is read as a form, whatever it is said to be: curl calls all of them forms
		need = 4 * formSize(r, most)
	}
	if route.Heavy {
		need += heavyRequest
	}
	return r, a, a.take(r.Context(), need)
}

// formSize is how large a form is at most. Forms are read before a handler is asked, and held whole.
func formSize(r *http.Request, most int64) int64 {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !changes(r) || media != "application/x-www-form-urlencoded" && media != "multipart/form-data" {
		return 0
	}
	if r.ContentLength >= 0 {
		return min(r.ContentLength, most)
	}
	return most
}

// counted counts what is read from a body, twice: a buffer that grows is there twice for a moment.
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
