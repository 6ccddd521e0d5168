package access

import (
	"sync"
	"time"

	"jurat/evidence"
)

// Uses remembers when this process last saw each token. The log has acts, not requests, so this ends with the process. It
// holds valid tokens alone, and so no more than the log. It is safe for concurrent use.
type Uses struct {
	mu   sync.Mutex // held while last is read or changed
	last map[evidence.Digest]time.Time
}

// Note says that a token was used. The use of a session is one of the token under it, too.
func (u *Uses) Note(g *Grant, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[evidence.Digest]time.Time{}
	}
	u.last[g.Token] = at
	if !g.Under.IsZero() {
		u.last[g.Under] = at
	}
}

// Last returns when a token was last used; zero: not since this process began.
func (u *Uses) Last(token evidence.Digest) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last[token]
}
