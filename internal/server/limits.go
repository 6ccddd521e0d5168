package server

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"jurat/api"
)

// Limits say how much one caller may ask for. A caller is a token, or, of strangers, an address.
type Limits struct {
	PerSecond float64 // requests; 0: 50; less: as many as they like
	Burst     int     // requests at once; 0: 200, or where that is more, as many as in four seconds
}

const (
	defaultPerSecond = 50
	defaultBurst     = 200
	maxStrangers     = 10_000 // addresses that are remembered at once
)

// limiter says who asks too often.
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex // held while callers is read or written
	callers map[string]*rate.Limiter
	swept   time.Time
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	if l.PerSecond == 0 {
		l.PerSecond = defaultPerSecond
	}
	if l.Burst == 0 {
		l.Burst = max(defaultBurst, int(min(4*l.PerSecond, math.MaxInt32)))
	}
	return &limiter{limits: l, now: now, callers: map[string]*rate.Limiter{}}
}

// allow takes note of a request, and refuses it where there were too many. However many places strangers come from, they keep
// nobody out who has a token: of tokens there are only as many as were given out.
func (l *limiter) allow(caller string, stranger bool) error {
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
func (l *limiter) sweep(now time.Time) {
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

// limitedAs says as whom a caller is limited: by token, wherever it comes from, and without one by where it comes from. Sessions
// count as the token by which they were opened: whoever opens many may not ask more often.
func limitedAs(c *Caller, r *http.Request) string {
	switch {
	case c.Stranger():
		return address(r)
	case !c.grant.Under.IsZero():
		return c.grant.Under.String()
	}
	return c.grant.Token.String()
}

// address is where a request comes from. Of IPv6 it is the network that one subscriber has.
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
