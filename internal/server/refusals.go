package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/access"
)

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
