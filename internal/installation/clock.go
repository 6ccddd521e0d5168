package installation

import (
	"context"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
)

// mostBack is the longest step back for which the clock stands still. After a longer step, the clock follows.
const mostBack = 24 * time.Hour

// A steady clock does not go back: while the clock below it is behind a time that was already used, it stands still.
//
// The program cannot know which of the two times is right. A time stamp says "no later than". One that is too late says too little. One
// that is too early says something false: that something was signed before its signer had the key, or before the act that it refers to. An
// operator who sets the clock back by more than a day does so on purpose. Otherwise one leap into the future would stop the clock for
// years.
//
// It is safe for concurrent use.
type steady struct {
	below func() time.Time

	mu   sync.Mutex // held while last is read or written
	last time.Time
}

func (s *steady) now() time.Time {
	now := s.below()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.last) && s.last.Sub(now) <= mostBack {
		return s.last
	}
	s.last = now
	return now
}

// notBefore makes the clock continue from t, if t is later than its last time.
func (s *steady) notBefore(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.After(s.last) {
		s.last = t
	}
}

// catchUp makes the clock continue from the time stamps of a record of the log.
func (s *steady) catchUp(r *evidence.Record) { s.notBefore(stampedLast(r.Timestamps)) }

// LastStamped returns the latest time that the time stamps of the log's last record say, and the zero time if there is none.
func (i *Installation) LastStamped(ctx context.Context) (time.Time, error) {
	size, err := i.Ledger.Size(ctx)
	if err != nil || size == 0 {
		return time.Time{}, err
	}
	rows, err := i.Ledger.RowsFrom(ctx, size-1, 1)
	if err != nil {
		return time.Time{}, err
	}
	return stampedLast(rows[0].Timestamps), nil
}

// stampedLast returns the latest time that time stamps say, and the zero time if there is none.
func stampedLast(stamps []evidence.Timestamp) (last time.Time) {
	for _, t := range stamps {
		token, err := timestamp.Parse(t.Token)
		if err != nil {
			continue // another kind of time stamp
		}
		if at := token.UnverifiedInfo().GenTime; at.After(last) {
			last = at
		}
	}
	return last
}
