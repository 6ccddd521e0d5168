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
	"jurat/evidence/operator"
	"jurat/internal/access"
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

// countingTime is how long refusals are counted before they are sealed.
const countingTime = time.Minute

// oneByOne is how many refusals of one token are sealed individually in that time.
const oneByOne = 20

// A refusalRecorder seals refusals into the log. It is safe for concurrent use.
type refusalRecorder struct {
	access *access.Register
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex // held while counted is read or written
	counted map[refusedKind]*operator.Refused
	told    map[evidence.Digest]int // how many of a token were sealed individually
}

type refusedKind struct {
	token          evidence.Digest
	route, problem string
}

// newRefusals returns a refusalRecorder for a server. run seals what was counted.
func newRefusals(a *access.Register, log *slog.Logger, now func() time.Time) *refusalRecorder {
	return &refusalRecorder{access: a, log: log, now: now, counted: map[refusedKind]*operator.Refused{}, told: map[evidence.Digest]int{}}
}

// note records that a request to a route ended with this problem, if that was a refusal rather than a mistake.
func (f *refusalRecorder) note(ctx context.Context, route string, c *Caller, p *api.Problem) {
	if !isRefusal(p) {
		return
	}
	now := evidence.FormatTime(f.now())
	one := operator.Refused{Count: 1, From: now, To: now, Name: c.Name(), Token: c.tokenID(), Problem: p.Name(), Route: route}
	if one.Token.IsZero() || p.Status == http.StatusTooManyRequests || !f.tell(one.Token) {
		f.count(one)
		return
	}
	if err := f.access.Refuse(context.WithoutCancel(ctx), []operator.Refused{one}); err != nil {
		f.log.Error("recording a refusal", "error", err)
		f.count(one)
	}
}

// tell reports whether one more refusal of a token is sealed individually.
func (f *refusalRecorder) tell(token evidence.Digest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[token]++
	return f.told[token] <= oneByOne
}

// isRefusal reports whether a problem means that the caller was denied something.
func isRefusal(p *api.Problem) bool {
	return p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden || p.Status == http.StatusTooManyRequests
}

func (f *refusalRecorder) count(one operator.Refused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := refusedKind{one.Token, one.Route, one.Problem}
	if before := f.counted[key]; before != nil {
		before.Count, before.To = before.Count+one.Count, one.To
		return
	}
	f.counted[key] = &one
}

// run seals the counts every minute, and once more at the end.
func (f *refusalRecorder) run(ctx context.Context) {
	for ticker := time.NewTicker(countingTime); ; {
		select {
		case <-ticker.C:
			f.flush(ctx)
		case <-ctx.Done():
			ticker.Stop()
			f.flush(context.WithoutCancel(ctx))
			return
		}
	}
}

// flush seals the counts. If that fails, they stay for the next time.
func (f *refusalRecorder) flush(ctx context.Context) {
	f.mu.Lock()
	counted := f.counted
	f.counted, f.told = map[refusedKind]*operator.Refused{}, map[evidence.Digest]int{}
	f.mu.Unlock()
	var list []operator.Refused
	for _, one := range counted {
		list = append(list, *one)
	}
	if len(list) == 0 {
		return
	}
	if err := f.access.Refuse(ctx, list); err != nil {
		f.log.Error("recording refusals", "error", err)
		for _, one := range list {
			f.count(one)
		}
	}
}
