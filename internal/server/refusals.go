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

// countingTime is how long refusals are counted before the log is told of them.
const countingTime = time.Minute

// oneByOne is how many refusals of one token are told of one by one in that time.
const oneByOne = 20

// refusals has the log told of what was refused: of people and tokens that are known one by one and before they get their
// answer, of others as counts, as a stranger must not be able to make the log grow. Those who ask too often are counted, too,
// and whoever goes on with a token that opens nothing.
type refusals struct {
	access *access.Register
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex // held while counted is read or written
	counted map[refusalKey]*operator.Refused
	told    map[evidence.Digest]int // how many of a token were told of one by one
}

type refusalKey struct {
	token          evidence.Digest
	route, problem string
}

func newRefusals(a *access.Register, log *slog.Logger, now func() time.Time) *refusals {
	return &refusals{access: a, log: log, now: now, counted: map[refusalKey]*operator.Refused{}, told: map[evidence.Digest]int{}}
}

// note remembers that a request ended with this problem, if that was a refusal and no mistake.
func (f *refusals) note(ctx context.Context, route *Route, c *Caller, p *api.Problem) {
	if !refused(p) {
		return
	}
	now := evidence.FormatTime(f.now())
	one := operator.Refused{Count: 1, From: now, To: now, Name: c.Name(), Token: c.tokenID(), Problem: p.Name(), Route: route.Name()}
	if c.Stranger() || p.Status == http.StatusTooManyRequests || !f.tell(one.Token) {
		f.count(one)
		return
	}
	if err := f.access.Refuse(context.WithoutCancel(ctx), []operator.Refused{one}); err != nil {
		f.log.Error("recording a refusal", "error", err)
		f.count(one)
	}
}

// tell reports whether one refusal more of a token is told of by itself.
func (f *refusals) tell(token evidence.Digest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[token]++
	return f.told[token] <= oneByOne
}

// refused reports whether somebody was kept from something.
func refused(p *api.Problem) bool {
	return p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden || p.Status == http.StatusTooManyRequests
}

func (f *refusals) count(one operator.Refused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := refusalKey{one.Token, one.Route, one.Problem}
	if before := f.counted[key]; before != nil {
		before.Count, before.To = before.Count+one.Count, one.To
		return
	}
	f.counted[key] = &one
}

// run tells the log every minute, and once more at the end.
func (f *refusals) run(ctx context.Context) {
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

// flush tells the log of what was counted. What it cannot be told now stays counted.
func (f *refusals) flush(ctx context.Context) {
	f.mu.Lock()
	counted := f.counted
	f.counted, f.told = map[refusalKey]*operator.Refused{}, map[evidence.Digest]int{}
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
