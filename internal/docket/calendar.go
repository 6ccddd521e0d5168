package docket

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
	"jurat/jury"
)

// A Summary is what the log says of a trial in a few words.
type Summary struct {
	ID        string
	Submitter string          // who put the agent before the jury
	Agent     string          // as its card names itself, or, without a card, who acts in the records; at most 200 characters of it
	Case      evidence.Digest // of the evidence
	Submitted time.Time       // as the submission claims
	Last      time.Time       // as the last act claims
	Acts      int
	Offline   bool // the jurors are rules
	Degraded  bool // so far
	Over      bool
	Fault     string // an act that cannot be read; "": there is none

	Cancelled *Cancelled // nil: it was not, or was resumed after that

	Outcome   *jury.TrialOutcome // what the jury judged and people decided; nil: there is no judgment yet
	Reviews   int                // reviews by people of what is in this trial, the verdict or anything else
	Delivered bool               // an answer was delivered after that
}

// Cancelled says who has stopped a trial for good, and why.
type Cancelled struct {
	By, Reason string
	At         time.Time
}

// A calendar has a Summary of every trial in the log. It follows the log: each look takes in what was appended since the last one,
// whichever process appended it. Of records that are none of a trial's it reads nothing, and
// of the others no payload.
type calendar struct {
	heard  func(id string)               // told of each trial about which there is something new, while mu is held
	unread func(*ledger.UnreadableError) // told of each archive whose trials are missing here

	reading chan struct{} // holds one element while somebody reads the log, who alone uses the next two, and changes the rest
	next    int64         // the index of the first record that has not been read of what was said in trials
	changes int64         // the same of what the operator did to trials

	mu      sync.Mutex // held while what follows is read or changed, and not while the log is asked, which may not answer
	entries map[string]*calendarEntry
	order   []*calendarEntry // in which they were submitted
	open    map[string]bool  // trials without a closing
}

type calendarEntry struct {
	Summary
	reckoning jury.Reckoning
}

func newCalendar(heard func(id string), unread func(*ledger.UnreadableError)) *calendar {
	return &calendar{heard: heard, unread: unread, reading: make(chan struct{}, 1), entries: map[string]*calendarEntry{}, open: map[string]bool{}}
}

// patience is how long a page of the log may take to be read: those who wait for a trial's turn have no deadline of their own.
const patience = time.Minute

// follow reads what the operator did before what was said: so whatever is read of a trial that was stopped, its submission is read, too.
func (c *calendar) follow(ctx context.Context, l *ledger.Ledger) error {
	select {
	case c.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.reading }()
	for {
		changes, next, err := c.readChanges(ctx, l)
		if err != nil {
			return err
		}
		for more := true; more; {
			if more, err = c.readPage(ctx, l); err != nil {
				return err
			}
		}
		if len(changes) == 0 {
			return nil
		}
		for _, r := range changes {
			if err := c.change(ctx, l, &r.Payload); err != nil {
				return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
			}
		}
		c.changes = next
	}
}

// readChanges returns what the operator did to trials next.
func (c *calendar) readChanges(ctx context.Context, l *ledger.Ledger) (changes []*evidence.Record, next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return l.InChain(ctx, operator.TrialsChain, c.changes)
}

// readPage takes in what was said next in trials.
func (c *calendar) readPage(ctx context.Context, l *ledger.Ledger) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said, next, err := l.Briefs().InTrials(ctx, c.next)
	var unreadable *ledger.UnreadableError
	if errors.As(err, &unreadable) { // that old trials cannot be listed keeps no new one from being held
		c.unread(unreadable)
		c.next = unreadable.In.To
		return true, nil
	}
	if err != nil || len(said) == 0 {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range said {
		c.note(b)
	}
	c.next = next
	return true, nil
}

// unfinished lists the trials that are still to be held, in the order in which they were submitted.
func (c *calendar) unfinished() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		return nil
	}
	for _, s := range c.order {
		if c.open[s.ID] && s.Cancelled == nil {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func (c *calendar) one(id string) (Summary, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.entries[id]
	if s == nil {
		return Summary{}, false
	}
	return s.Summary, true
}

// before lists at most n trials that match, the newest first, of those that were submitted before one ("": of all), and says whether
// there are more.
func (c *calendar) before(id string, n int, match func(*Summary) bool) (list []Summary, more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := len(c.order)
	if id != "" {
		// From the end: who turns pages is mostly not far from it.
		for end--; end >= 0 && c.order[end].ID != id; end-- {
		}
		if end < 0 {
			return nil, false, ErrUnknown
		}
	}
	for _, s := range slices.Backward(c.order[:end]) {
		if match != nil && !match(&s.Summary) {
			continue
		}
		if len(list) == n {
			return list, true, nil
		}
		list = append(list, s.Summary)
	}
	return list, false, nil
}

// oldest lists at most n trials that match, the oldest first.
func (c *calendar) oldest(n int, match func(*Summary) bool) (list []Summary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.order {
		if len(list) == n {
			break
		}
		if match(&s.Summary) {
			list = append(list, s.Summary)
		}
	}
	return list
}

// note takes in what was said next in any trial. The mutex is held. What is in the chain of a trial that has not begun is none of the docket's.
func (c *calendar) note(b *brief.Brief) {
	s := c.entries[b.ChainID]
	switch {
	case s == nil && b.Action == evidence.Submission:
		c.begin(b)
	case s == nil:
		return
	case !b.Action.InTrial():
		s.decide(b)
	default:
		s.act(b)
		if s.Over {
			delete(c.open, s.ID)
		}
	}
	c.heard(b.ChainID)
}

func (c *calendar) begin(b *brief.Brief) {
	s := &calendarEntry{Summary: Summary{ID: b.ChainID, Submitter: b.Actor, Case: b.Case, Submitted: b.Time(), Last: b.Time(), Acts: 1}}
	if b.Trial != nil {
		s.Agent = b.Trial.Agent
	}
	c.entries[s.ID], c.open[s.ID] = s, true
	c.order = append(c.order, s)
}

// change takes in what the operator did to a trial next.
func (c *calendar) change(ctx context.Context, l *ledger.Ledger, p *evidence.Payload) error {
	e, err := operator.ReadTrialEvent(p)
	if err != nil {
		return err
	}
	c.mu.Lock()
	s := c.entries[e.Trial] // others read it, and change nothing
	c.mu.Unlock()
	if s == nil {
		there, err := l.HasChain(ctx, e.Trial)
		if err == nil && !there {
			err = fmt.Errorf("%s is %s, and nobody has submitted it", e.Trial, e.Event)
		}
		return err // its submission has expired, or is in an archive that cannot be read
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Cancelled = nil
	if e.Event == operator.TrialCancelled {
		s.Cancelled = &Cancelled{By: e.By, Reason: e.Reason, At: p.Time()}
	}
	c.heard(s.ID)
	return nil
}

func (s *calendarEntry) act(b *brief.Brief) {
	s.Acts, s.Last = s.Acts+1, b.Time()
	act := brief.Act{}
	if b.Trial != nil {
		act = *b.Trial
	}
	if act.Fault != "" { // one trial that cannot be read must not hide the others
		s.Fault = "record " + b.RecordID + ": " + act.Fault
		return
	}
	if act.Missing {
		s.Degraded = true
	}
	switch {
	case b.Action == evidence.PhaseOpening:
		s.Offline = act.Offline
	case act.Verdict != nil:
		v := act.Verdict
		s.reckoning.Judge(b.RecordID, b.Digest, &jury.Judgment{Position: v.Position, Score: v.Score, Method: v.Method, Degraded: v.Degraded, Inconclusive: v.Inconclusive})
		s.Outcome = s.reckoning.Outcome()
	case b.Action == evidence.TrialClosing:
		s.Over = true
	}
}

// decide notes what people decided on a trial.
func (s *calendarEntry) decide(b *brief.Brief) {
	switch b.Action {
	case evidence.HumanReview:
		s.reckoning.Decide(b.Review())
		s.Reviews, s.Outcome, s.Delivered = s.Reviews+1, s.reckoning.Outcome(), false
	case evidence.Delivery:
		s.Delivered = true
	}
}
