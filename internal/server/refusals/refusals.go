// Package refusals records which requests a server refused, in its log.
//
// # A refusal is a record, a stranger's a count
//
// The server records a refusal of a token's owner by name, before it answers. It counts the refusals of strangers, of callers
// that ask too often, and further ones of the same token, and seals the counts of a minute as one act. So a caller without a
// token cannot make the log grow faster.
package refusals

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

// A Recorder seals refusals into the log. It is safe for concurrent use.
type Recorder struct {
	access *access.Register
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex // held while counted is read or written
	counted map[kind]*operator.Refused
	told    map[evidence.Digest]int // how many of a token were sealed individually
}

type kind struct {
	token          evidence.Digest
	route, problem string
}

// New returns a Recorder for a server. Run seals what was counted.
func New(a *access.Register, log *slog.Logger, now func() time.Time) *Recorder {
	return &Recorder{access: a, log: log, now: now, counted: map[kind]*operator.Refused{}, told: map[evidence.Digest]int{}}
}

// A Caller is who was refused.
type Caller struct {
	Name  string          // "": a stranger
	Token evidence.Digest // zero: none
}

// Note records that a request to a route ended with this problem, if that was a refusal rather than a mistake.
func (f *Recorder) Note(ctx context.Context, route string, c Caller, p *api.Problem) {
	if !refused(p) {
		return
	}
	now := evidence.FormatTime(f.now())
	one := operator.Refused{Count: 1, From: now, To: now, Name: c.Name, Token: c.Token, Problem: p.Name(), Route: route}
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
func (f *Recorder) tell(token evidence.Digest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[token]++
	return f.told[token] <= oneByOne
}

// refused reports whether a problem means that the caller was denied something.
func refused(p *api.Problem) bool {
	return p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden || p.Status == http.StatusTooManyRequests
}

func (f *Recorder) count(one operator.Refused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := kind{one.Token, one.Route, one.Problem}
	if before := f.counted[key]; before != nil {
		before.Count, before.To = before.Count+one.Count, one.To
		return
	}
	f.counted[key] = &one
}

// Run seals the counts every minute, and once more at the end.
func (f *Recorder) Run(ctx context.Context) {
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
func (f *Recorder) flush(ctx context.Context) {
	f.mu.Lock()
	counted := f.counted
	f.counted, f.told = map[kind]*operator.Refused{}, map[evidence.Digest]int{}
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
