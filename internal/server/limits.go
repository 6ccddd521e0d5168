package server

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"jurat/api"
)

// A Rate is how often one caller may ask. A caller is a token, or the address of a stranger.
type Rate struct {
	PerSecond float64 // requests per second; 0: 50; negative: no limit
	Burst     int     // requests at once; 0: 200, or the number in four seconds if that is more
}

const (
	defaultPerSecond = 50
	defaultBurst     = 200
	maxStrangers     = 10_000 // the largest number of callers that are remembered while strangers still get in
)

// A rateLimiter refuses callers that ask too often. It is safe for concurrent use.
type rateLimiter struct {
	limits Rate
	now    func() time.Time

	mu      sync.Mutex // held while callers is read or written
	callers map[string]*rate.Limiter
	swept   time.Time
}

// newRateLimiter returns a Limiter with this rate for every caller.
func newRateLimiter(l Rate, now func() time.Time) *rateLimiter {
	if l.PerSecond == 0 {
		l.PerSecond = defaultPerSecond
	}
	if l.Burst == 0 {
		l.Burst = max(defaultBurst, int(min(4*l.PerSecond, math.MaxInt32)))
	}
	return &rateLimiter{limits: l, now: now, callers: map[string]*rate.Limiter{}}
}

// Allow counts a request. It returns api.ErrTooMany if the caller asks too often, or if a stranger comes while too many callers are
// remembered. Strangers never shut out a caller with a token, since only issued tokens count as such.
func (l *rateLimiter) Allow(caller string, stranger bool) error {
	if l.limits.PerSecond < 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	a := l.callers[caller]
	if a == nil {
		if l.sweep(now); stranger && len(l.callers) >= maxStrangers {
			return fmt.Errorf("%w: from too many addresses at once", api.ErrTooMany)
		}
		a = rate.NewLimiter(rate.Limit(l.limits.PerSecond), l.limits.Burst)
		l.callers[caller] = a
	}
	if !a.AllowN(now, 1) {
		return fmt.Errorf("%w: at most %v a second, and %d at once", api.ErrTooMany, l.limits.PerSecond, l.limits.Burst)
	}
	return nil
}

// sweep forgets, at most once a second, the callers that have their full allowance again.
func (l *rateLimiter) sweep(now time.Time) {
	if since := now.Sub(l.swept); 0 <= since && since < time.Second { // the clock may go back
		return
	}
	l.swept = now
	for caller, a := range l.callers {
		if a.TokensAt(now) >= float64(l.limits.Burst) {
			delete(l.callers, caller)
		}
	}
}
