package server

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"jurat/api"
	"jurat/evidence"
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

// refusalsEvery is how often the program log tells what was refused.
const refusalsEvery = time.Minute

// A refusalCounter counts what is refused, for the program log and the metrics. It is safe for concurrent use.
type refusalCounter struct {
	log     *slog.Logger
	metrics *metrics

	mu      sync.Mutex // held while counted is read or written
	counted map[refused]int
}

// A refused request, by whom, where and why. A stranger has neither name nor token.
type refused struct {
	name           string
	token          evidence.Digest
	route, problem string
}

// note counts a request to a route that ended with this problem, if that was a refusal rather than a mistake.
func (f *refusalCounter) note(route string, c *Caller, p *api.Problem) {
	if p.Status != http.StatusUnauthorized && p.Status != http.StatusForbidden && p.Status != http.StatusTooManyRequests {
		return
	}
	f.metrics.Refused(route, p.Name())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counted == nil {
		f.counted = map[refused]int{}
	}
	f.counted[refused{c.Name(), c.tokenID(), route, p.Name()}]++
}

// run tells the counts every minute, and once more at the end.
func (f *refusalCounter) run(ctx context.Context) {
	ticker := time.NewTicker(refusalsEvery)
	defer ticker.Stop()
	for done := false; !done; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			done = true
		}
		f.tell(ctx)
	}
}

func (f *refusalCounter) tell(ctx context.Context) {
	f.mu.Lock()
	counted := f.counted
	f.counted = nil
	f.mu.Unlock()
	for one, count := range counted {
		said := []slog.Attr{slog.String("route", one.route), slog.String("problem", one.problem), slog.Int("count", count)}
		if !one.token.IsZero() {
			said = append(said, slog.String("name", one.name), slog.String("token", one.token.String()))
		}
		f.log.LogAttrs(ctx, slog.LevelWarn, "requests refused", said...)
	}
}
