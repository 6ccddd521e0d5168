package server

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"jurat/api"
)

// All requests take their memory from one budget, so their total is limited, whatever their number and size. A request waits a short time
// for its part. Then it is refused, and its caller may try again.

const (
	// DefaultMemory is the memory of a server without a setting, in bytes.
	DefaultMemory = 1 << 30

	bodyFactor   = 32               // a body takes this many times its size while it is read, sealed and tried
	recordFactor = 8                // a record that is shown with others takes this many times its size
	valueSize    = 512              // a value of JSON takes this many bytes beside, where many are small
	heavyRequest = 64 << 20         // a request that may read a record of any size takes this many bytes
	budgetWait   = 10 * time.Second // how long a request waits for memory
)

// MemoryFor returns the least memory with which a server can accept bodies of this size.
func MemoryFor(body int64) int64 { return max(4*bodyFactor*body, 8*heavyRequest) }

// A memoryBudget is the memory that all requests may hold together. It is safe for concurrent use.
type memoryBudget struct {
	total int64 // half of the memory: the rest is for trials, the log and garbage
	parts *semaphore.Weighted

	mu      sync.Mutex // held while callers is read or changed
	callers map[string]int64
}

// newMemoryBudget returns a Budget of half of this memory, in bytes.
func newMemoryBudget(memory int64) *memoryBudget {
	return &memoryBudget{total: memory / 2, parts: semaphore.NewWeighted(memory / 2), callers: map[string]int64{}}
}

// A memoryAccount counts what one request holds. It must be used by one goroutine only.
type memoryAccount struct {
	of     *memoryBudget
	caller string
	held   int64
}

// most returns the limit for all requests of one caller together, so that others get a part, too.
func (b *memoryBudget) most() int64 { return b.total / 2 }

// reserve counts n more bytes for a caller, or returns api.ErrUnavailable if that exceeds the caller's limit.
func (b *memoryBudget) reserve(caller string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if held := b.callers[caller]; held+n > b.most() {
		return fmt.Errorf("%w: the requests of one caller may hold at most %d MiB of memory: send them one after the other", api.ErrUnavailable, b.most()>>20)
	}
	b.callers[caller] += n
	return nil
}

func (b *memoryBudget) restore(caller string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.callers[caller] -= n; b.callers[caller] <= 0 {
		delete(b.callers, caller)
	}
}

// Take counts n more bytes for the request, and waits a short time for them. It returns api.ErrTooLarge, api.ErrUnavailable or the
// context's error.
func (a *memoryAccount) Take(ctx context.Context, n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	if a.held+n > a.of.most() {
		return fmt.Errorf("%w: the answer takes more memory than the %d MiB that one request may hold", api.ErrTooLarge, a.of.most()>>20)
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

// Keep gives back all but n bytes.
func (a *memoryAccount) Keep(n int64) {
	if a == nil || n >= a.held {
		return
	}
	a.of.parts.Release(a.held - n)
	a.of.restore(a.caller, a.held-n)
	a.held = n
}

// Open opens the account of one request, and returns a context that holds it.
func (b *memoryBudget) Open(ctx context.Context, caller string) (context.Context, *memoryAccount) {
	a := &memoryAccount{of: b, caller: caller}
	return context.WithValue(ctx, accountKey{}, a), a
}

type accountKey struct{}

// memoryAccountOf returns the account of a request, or nil if it has none.
func memoryAccountOf(ctx context.Context) *memoryAccount {
	a, _ := ctx.Value(accountKey{}).(*memoryAccount)
	return a
}

// Reading returns a reader that takes memory for twice the bytes that are read through it, since a growing buffer briefly exists twice.
func (a *memoryAccount) Reading(ctx context.Context, r io.Reader) io.Reader {
	return &counted{r: r, on: func(n int64) error { return a.Take(ctx, n) }}
}

// counted takes memory for twice the bytes that are read.
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

// account opens the memory account of an admitted request.
func (s *Server) account(route *Route, r *http.Request, c *Caller) (*http.Request, *memoryAccount, error) {
	ctx, a := s.budget.Open(r.Context(), limitedAs(c, r))
	r = r.WithContext(ctx)
	most := s.config.MaxBody
	if route.MaxBody > 0 {
		most = route.MaxBody
	}
	var need int64
	if route.Kind != API || c.cookie { // no other body is parsed as a form, whatever its Content-Type: curl labels all bodies as forms
		need = 4 * formSize(r, most)
	}
	if route.Heavy {
		need += heavyRequest
	}
	return r, a, a.Take(r.Context(), need)
}

// formSize is the size limit of a form. The server reads forms completely before it calls a handler.
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

// limitedAs returns the key under which a caller's rate is limited: the token, or the address for a caller without
// one. A session counts as the token that opened it, so many sessions do not raise the limit.
func limitedAs(c *Caller, r *http.Request) string {
	switch {
	case c.Stranger():
		return address(r)
	case !c.grant.Under.IsZero():
		return c.grant.Under.String()
	}
	return c.grant.Token.String()
}

// address returns the caller's address. For IPv6 it is the network that one subscriber has.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip := net.ParseIP(host)
	if ip == nil || ip.To4() != nil {
		return host
	}
	return ip.Mask(net.CIDRMask(64, 128)).String()
}
