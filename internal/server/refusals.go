package server

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/access"
	"jurat/internal/server/wire"
)

// countingTime is how long refusals are counted before they are sealed.
const countingTime = time.Minute

// oneByOne is how many refusals of one token are sealed individually in that time.
const oneByOne = 20

// refusals seals refusals into the log. Refusals of known people and tokens are sealed one by one, before the answer.
// Others are only counted, because a stranger must not be able to make the log grow: strangers' refusals, those of
// callers that ask too often, and further ones of the same token.
type refusals struct {
	access *access.Register
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex // held while counted is read or written
	counted map[refusalKey]*operator.Refused
	told    map[evidence.Digest]int // how many of a token were sealed individually
}

type refusalKey struct {
	token          evidence.Digest
	route, problem string
}

func newRefusals(a *access.Register, log *slog.Logger, now func() time.Time) *refusals {
	return &refusals{access: a, log: log, now: now, counted: map[refusalKey]*operator.Refused{}, told: map[evidence.Digest]int{}}
}

// note records that a request ended with this problem, if that was a refusal rather than a mistake.
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

// tell reports whether one more refusal of a token is sealed individually.
func (f *refusals) tell(token evidence.Digest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[token]++
	return f.told[token] <= oneByOne
}

// refused reports whether a problem means that the caller was denied something.
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

// run seals the counts every minute, and once more at the end.
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

// flush seals the counts. If that fails, they stay for the next time.
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

// refuse answers a failed request, in the form of the route's kind.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, route *Route, c *Caller, err error) *api.Problem {
	p := wire.Problem(err)
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.config.Log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("route", route.Name()), slog.Any("error", err))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="jurat"`)
	}
	if pause := wire.ComeAgain(p.Status); pause > 0 && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(int(pause.Seconds())))
	}
	w.Header().Del("ETag")
	unshare(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	if route.Kind == Page {
		s.refusePage(w, r, c, p)
		return p
	}
	w.Header().Set("Content-Type", api.ProblemMediaType)
	w.WriteHeader(p.Status)
	if r.Method == http.MethodHead {
		return p
	}
	if doc, err := json.Marshal(p); err != nil {
		s.config.Log.Error("writing a problem", "error", err)
	} else {
		_, _ = w.Write(append(doc, '\n')) // an error means that the caller has disconnected
	}
	return p
}
