package server

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"jurat/internal/access"
)

// linkTime is how long a sign-in link is good.
const linkTime = time.Hour

// links are one-time sign-in links. They are for whoever has the terminal in which the server runs, and end with it: nothing is
// stored of them.
type links struct {
	now func() time.Time

	mu    sync.Mutex // held while made is read or written
	given map[[sha256.Size]byte]link
}

type link struct {
	name  string
	roles []access.Role
	until time.Time
}

func newLinks(now func() time.Time) *links {
	return &links{now: now, given: map[[sha256.Size]byte]link{}}
}

// give makes the secret of a link.
func (l *links) give(name string, roles []access.Role) string {
	secret := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given[sha256.Sum256([]byte(secret))] = link{name, roles, l.now().Add(linkTime)}
	return secret
}

// take uses a link up.
func (l *links) take(secret string) (link, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := sha256.Sum256([]byte(secret))
	given, ok := l.given[id]
	delete(l.given, id)
	return given, ok && l.now().Before(given.until)
}
