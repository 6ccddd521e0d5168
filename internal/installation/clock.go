package installation

import (
	"context"
	"sync"
	"time"

	"jurat/internal/ledger"
	"jurat/timestamp"
)

// mostBack is how far back a clock may have been set for the installation to wait for it.
const mostBack = 24 * time.Hour

// A steady clock is not set back: while the one below it is behind what was said already, it stands still.
//
// Which of the two times is right nobody here knows. But a time stamp says "no later than", so one that is too late says too little,
// and one that is too early says what is false: that something was signed before its signer had the key, or before the act that it
// rests on. Whoever sets a clock back by more than a day means it, and is believed: otherwise one leap into the future would make
// time stand still for years.
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

// notBefore has the clock go on from a time.
func (s *steady) notBefore(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.After(s.last) {
		s.last = t
	}
}

// goOn has the clock go on from the last record's time stamps: what was said in the log was said.
func (s *steady) goOn(ctx context.Context, l *ledger.Ledger) error {
	size, err := l.Size(ctx)
	if err != nil || size == 0 {
		return err
	}
	rows, err := l.KeptRows(ctx, size-1, 1) // one that is archived is old, and an archive that is missing stops nobody
	if err != nil {
		return err
	}
	for _, t := range rows[0].Timestamps {
		if token, err := timestamp.Parse(t.Token); err == nil { // of another kind it says nothing here
			s.notBefore(token.UnverifiedInfo().GenTime)
		}
	}
	return nil
}
