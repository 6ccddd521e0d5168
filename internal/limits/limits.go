// Package limits says how much callers of a server may ask for: how often, and how many bytes their requests hold in memory together.
package limits

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"jurat/api"
)

// A Rate is how often one caller may ask. A caller is a token, or, of strangers, an address.
type Rate struct {
	PerSecond float64 // requests; 0: 50; less: as many as they like
	Burst     int     // requests at once; 0: 200, or where that is more, as many as in four seconds
}

const (
	defaultPerSecond = 50
	defaultBurst     = 200
	maxStrangers     = 10_000 // addresses that are remembered at once
)

// A Limiter says who asks too often. It is safe for concurrent use.
type Limiter struct {
	limits Rate
	now    func() time.Time

	mu      sync.Mutex // held while callers is read or written
	callers map[string]*rate.Limiter
	swept   time.Time
}

// NewLimiter returns one by which everybody may ask at this rate.
func NewLimiter(l Rate, now func() time.Time) *Limiter {
	if l.PerSecond == 0 {
		l.PerSecond = defaultPerSecond
	}
	if l.Burst == 0 {
		l.Burst = max(defaultBurst, int(min(4*l.PerSecond, math.MaxInt32)))
	}
	return &Limiter{limits: l, now: now, callers: map[string]*rate.Limiter{}}
}

// Allow takes note of a request, and refuses it where there were too many. However many places strangers come from, they keep
// nobody out who has a token: of tokens there are only as many as were given out.
func (l *Limiter) Allow(caller string, stranger bool) error {
	if l.limits.PerSecond < 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	a := l.callers[caller]
	if a == nil {
		if l.sweep(now); stranger && len(l.callers) >= maxStrangers {
			return fmt.Errorf("%w: from too many places at once", api.ErrTooMany)
		}
		a = rate.NewLimiter(rate.Limit(l.limits.PerSecond), l.limits.Burst)
		l.callers[caller] = a
	}
	if !a.AllowN(now, 1) {
		return fmt.Errorf("%w: at most %v a second, and %d at once", api.ErrTooMany, l.limits.PerSecond, l.limits.Burst)
	}
	return nil
}

// sweep forgets, at most once a second, who may ask as much as if he had never asked.
func (l *Limiter) sweep(now time.Time) {
	if since := now.Sub(l.swept); 0 <= since && since < time.Second { // a clock may go back
		return
	}
	l.swept = now
	for caller, a := range l.callers {
		if a.TokensAt(now) >= float64(l.limits.Burst) {
			delete(l.callers, caller)
		}
	}
}
