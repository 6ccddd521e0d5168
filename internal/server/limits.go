package server

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"jurat/api"
)

// Limits say how much one caller may ask for. A caller is a token, or, of strangers, an address.
type Limits struct {
	PerSecond float64 // requests; 0: 50
	Burst     int     // requests at once; 0: 200
}

const (
	defaultPerSecond = 50
	defaultBurst     = 200
	maxCallers       = 10_000 // that are remembered at once
	forgetCaller     = 10 * time.Minute
)

// limiter says who asks too often.
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex // held while callers is read or written
	callers map[string]*asking
	swept   time.Time
}

type asking struct {
	rate *rate.Limiter
	last time.Time
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	if l.PerSecond == 0 {
		l.PerSecond = defaultPerSecond
	}
	if l.Burst == 0 {
		l.Burst = defaultBurst
	}
	return &limiter{limits: l, now: now, callers: map[string]*asking{}}
}

// allow takes note of a request, and refuses it where there were too many.
func (l *limiter) allow(caller string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	a := l.callers[caller]
	if a == nil {
		if l.sweep(now); len(l.callers) >= maxCallers {
			return fmt.Errorf("%w: from too many places at once", api.ErrTooMany)
		}
		a = &asking{rate: rate.NewLimiter(rate.Limit(l.limits.PerSecond), l.limits.Burst)}
		l.callers[caller] = a
	}
	a.last = now
	if !a.rate.AllowN(now, 1) {
		return fmt.Errorf("%w: at most %v a second, and %d at once", api.ErrTooMany, l.limits.PerSecond, l.limits.Burst)
	}
	return nil
}

// sweep forgets who has not asked for a while, at most once a second.
func (l *limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Second {
		return
	}
	l.swept = now
	for caller, a := range l.callers {
		if now.Sub(a.last) > forgetCaller {
			delete(l.callers, caller)
		}
	}
}

// limitedAs says as whom a caller is limited: by token, wherever it comes from, and without one by where it comes from.
func limitedAs(c *Caller, r *http.Request) string {
	if c.Stranger() {
		return address(r)
	}
	return c.tokenID().String()
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
