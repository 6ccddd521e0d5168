package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
)

// ErrUnknown says that the log has no such trial.
var ErrUnknown = errors.New("there is no such trial in the log")

// An Index has the Summary of every trial in a log. Follow takes in what was appended since the last call, by whatever process. It reads
// no payload of what was said in trials, and nothing of other records. It is safe for concurrent use.
type Index struct {
	Ledger *ledger.Ledger
	// Heard is told of each trial about which Follow reads something new. It must not call the Index. nil: nobody is told.
	Heard func(id string)
	// Unread is told of each archive that cannot be read, so that the trials in it are missing. If it returns an error, Follow ends with
	// it. nil: Follow ends with the error of the archive.
	Unread func(*ledger.UnreadableError) error

	reading chan struct{} // holds one element while one caller reads the log, who alone uses the next two, and changes the rest
	next    int64         // the index of the first record that has not been read of what was said in trials
	changes int64         // the same of what the operator did to trials

	mu      sync.Mutex // held while what follows is read or changed, and not while the log is asked, which may not answer
	entries map[string]*Summary
	order   []*Summary // in which they were submitted
	open    int        // trials without a closing
}

// NewIndex returns an Index that has read nothing yet. For heard and unread see there.
func NewIndex(l *ledger.Ledger, heard func(id string), unread func(*ledger.UnreadableError) error) *Index {
	if heard == nil {
		heard = func(string) {}
	}
	if unread == nil {
		unread = func(e *ledger.UnreadableError) error { return e }
	}
	return &Index{Ledger: l, Heard: heard, Unread: unread, reading: make(chan struct{}, 1), entries: map[string]*Summary{}}
}

// pageTime is how long a page of the log may take to be read: those who wait for a trial's turn have no deadline of their own.
const pageTime = time.Minute

// Follow reads what is new in the log. It reads what the operator did before what was said: so of a trial that was stopped, the
// submission is read, too.
func (x *Index) Follow(ctx context.Context) error {
	select {
	case x.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.reading }()
	for {
		changes, next, err := x.readChanges(ctx)
		if err != nil {
			return err
		}
		for more := true; more; {
			if more, err = x.readPage(ctx); err != nil {
				return err
			}
		}
		if len(changes) == 0 {
			return nil
		}
		for _, r := range changes {
			if err := x.change(ctx, &r.Payload); err != nil {
				return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
			}
		}
		x.changes = next
	}
}

// readChanges returns what the operator did to trials next.
func (x *Index) readChanges(ctx context.Context) (changes []*evidence.Record, next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	return x.Ledger.InChain(ctx, operator.TrialsChain, x.changes)
}

// readPage takes in what was said next in trials.
func (x *Index) readPage(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	said, next, err := x.Ledger.Briefs().InTrials(ctx, x.next)
	var unreadable *ledger.UnreadableError
	if errors.As(err, &unreadable) { // that old trials cannot be listed keeps no new one from being held
		x.next = unreadable.In.To
		return true, x.Unread(unreadable)
	}
	if err != nil || len(said) == 0 {
		return false, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range said {
		x.note(b)
	}
	x.next = next
	return true, nil
}

// note takes in what was said next in any trial. The mutex is held. A chain that does not begin with a submission is no trial.
func (x *Index) note(b *brief.Brief) {
	s := x.entries[b.ChainID]
	if s == nil && b.Action != evidence.Submission {
		return
	}
	if s == nil {
		s = new(Summary)
		x.entries[b.ChainID], x.order = s, append(x.order, s)
		x.open++
	}
	before := s.Over
	s.add(b, b.Review())
	if s.Over && !before {
		x.open--
	}
	x.Heard(b.ChainID)
}

// change takes in what the operator did to a trial next.
func (x *Index) change(ctx context.Context, p *evidence.Payload) error {
	e, err := operator.ReadTrialEvent(p)
	if err != nil {
		return err
	}
	x.mu.Lock()
	s := x.entries[e.Trial] // others read it, and change nothing
	x.mu.Unlock()
	if s == nil {
		there, err := x.Ledger.HasChain(ctx, e.Trial)
		if err == nil && !there {
			err = fmt.Errorf("%s is %s, and nobody has submitted it", e.Trial, e.Event)
		}
		return err // its submission has expired, or is in an archive that cannot be read
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s.Cancelled = nil
	if e.Event == operator.TrialCancelled {
		s.Cancelled = &Cancelled{By: e.By, Reason: e.Reason, At: p.Time()}
	}
	x.Heard(s.ID)
	return nil
}

// Get returns the Summary of a trial, if the log has one as far as it was followed.
func (x *Index) Get(id string) (Summary, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.entries[id]
	if s == nil {
		return Summary{}, false
	}
	return *s, true
}

// Unfinished lists the trials without a closing, the cancelled ones too, in the order in which they were submitted.
func (x *Index) Unfinished() (list []Summary) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open == 0 {
		return nil
	}
	for _, s := range x.order {
		if !s.Over {
			list = append(list, *s)
		}
	}
	return list
}

// Before lists at most n trials that match (nil: all match), the newest first, of those that were submitted before one ("": of all), and
// says whether there are more. ErrUnknown says that there is no such trial.
func (x *Index) Before(id string, n int, match func(*Summary) bool) (list []Summary, more bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	end := len(x.order)
	if id != "" {
		// From the end: who turns pages is mostly not far from it.
		for end--; end >= 0 && x.order[end].ID != id; end-- {
		}
		if end < 0 {
			return nil, false, fmt.Errorf("trial %q: %w", id, ErrUnknown)
		}
	}
	for _, s := range slices.Backward(x.order[:end]) {
		if match != nil && !match(s) {
			continue
		}
		if len(list) == n {
			return list, true, nil
		}
		list = append(list, *s)
	}
	return list, false, nil
}

// Oldest lists at most n trials that match, the oldest first.
func (x *Index) Oldest(n int, match func(*Summary) bool) (list []Summary) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.order {
		if len(list) == n {
			break
		}
		if match(s) {
			list = append(list, *s)
		}
	}
	return list
}

// ListUnfinished reads the log for the trials without a closing, in the order in which they were submitted.
func ListUnfinished(ctx context.Context, l *ledger.Ledger) ([]Summary, error) {
	x := NewIndex(l, nil, nil)
	if err := x.Follow(ctx); err != nil {
		return nil, err
	}
	return x.Unfinished(), nil
}
