package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/brief"
	"jurat/jury"
)

var ErrUnknown = errors.New("there is no such trial in the log")

// An Index has the Summary of every trial in a log. Follow reads what any process appended since the last call. It
// reads no evidence and no answers of trials, and nothing of other records. It is safe for concurrent use.
type Index struct {
	Ledger *ledger.Ledger
	// Follow calls Heard for each trial about which it reads something new. Heard must not call the Index. May be
	// nil.
	Heard func(id string)
	// Follow calls Progress with how much of the log it has read. May be nil.
	Progress func(done, total int64)

	reading  chan struct{} // holds one element while one caller reads the log; only that caller uses the next fields and writes to the others
	next     int64         // the index of the next record to read from trials' chains
	changes  int64         // the index of the next record to read of the operator's acts on trials
	replaced *int64        // how often the log had replaced briefs at the last Renew; nil: Renew was not called

	mu      sync.Mutex // held while the fields below are used, but not while the log is read, which may block
	entries map[string]*Summary
	order   []*Summary // in the order of submission
}

// NewIndex returns an empty Index. Its field Heard describes the function.
func NewIndex(l *ledger.Ledger, heard func(id string)) *Index {
	if heard == nil {
		heard = func(string) {}
	}
	return &Index{Ledger: l, Heard: heard, reading: make(chan struct{}, 1), entries: map[string]*Summary{}}
}

// pageTime limits the reading of one page of the log. The callers that wait for a trial's turn have no deadline of
// their own.
const pageTime = time.Minute

// Follow reads what is new in the log. It reads the operator's acts first and then the trials' records. So if it
// knows that a trial was cancelled, it also knows the trial's submission. It returns the error of the log, or of a
// record that contradicts the others.
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
			if more, err = x.readPage(ctx); err == nil && more {
				err = x.progress(ctx)
			}
			if err != nil {
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

// Renew reads the whole log again if records have expired since the last Renew, so that the Index forgets them. The first one only notes
// how the log is: it must come before Follow. Its errors are those of the log.
func (x *Index) Renew(ctx context.Context) error {
	x.reading <- struct{}{}
	defer func() { <-x.reading }()
	now, err := x.Ledger.Briefs().Replaced(ctx)
	if err != nil || x.replaced != nil && *x.replaced == now {
		return err
	}
	if x.replaced != nil {
		fresh := NewIndex(x.Ledger, nil)
		if err := fresh.Follow(ctx); err != nil {
			return err
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		for id, now := range fresh.entries { // of what came meanwhile, watchers hear, too
			if was := x.entries[id]; x.Heard != nil && (was == nil || was.Acts != now.Acts || was.Reviews != now.Reviews) {
				x.Heard(id)
			}
		}
		x.next, x.changes, x.entries, x.order = fresh.next, fresh.changes, fresh.entries, fresh.order
	}
	x.replaced = &now
	return nil
}

func (x *Index) progress(ctx context.Context) error {
	if x.Progress == nil {
		return nil
	}
	size, err := x.Ledger.Size(ctx)
	if err == nil {
		x.Progress(min(x.next, size), size)
	}
	return err
}

func (x *Index) readChanges(ctx context.Context) (changes []*evidence.Record, next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	return x.Ledger.InChain(ctx, operator.TrialsChain, x.changes)
}

func (x *Index) readPage(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	said, next, err := x.Ledger.Briefs().InTrials(ctx, x.next)
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

// note adds the next record of any trial. The mutex is held. It ignores chains that do not begin with a submission.
func (x *Index) note(b *brief.Brief) {
	s := x.entries[b.ChainID]
	if s == nil && b.Action != evidence.Submission {
		return
	}
	if s == nil {
		s = new(Summary)
		x.entries[b.ChainID], x.order = s, append(x.order, s)
	}
	s.add(b, b.Review())
	x.Heard(b.ChainID)
}

func (x *Index) change(ctx context.Context, p *evidence.Payload) error {
	e, err := operator.ReadTrialEvent(p)
	if err != nil {
		return err
	}
	x.mu.Lock()
	s := x.entries[e.Trial] // concurrent callers only read it
	x.mu.Unlock()
	if s == nil {
		there, err := x.Ledger.HasChain(ctx, e.Trial)
		if err == nil && !there {
			err = fmt.Errorf("the log says that %s is %s, but has no submission of it", e.Trial, e.Event)
		}
		return err // its submission has expired
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch e.Event {
	case operator.TrialCancelled:
		s.Cancelled = &Change{*e, p.Time()}
	case operator.TrialResumed:
		s.Cancelled = nil
	default:
		s.assign(e, p.Time())
	}
	x.Heard(s.ID)
	return nil
}

// Get returns the Summary of a trial. It reports false if Follow has not read that trial.
func (x *Index) Get(id string) (Summary, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.entries[id]
	if s == nil {
		return Summary{}, false
	}
	return *s, true
}

// Before lists at most n trials that match (nil: all match), the newest first, of those submitted before a given one
// ("": of all). It reports whether there are more. It returns ErrUnknown if the given trial does not exist.
func (x *Index) Before(id string, n int, match func(*Summary) bool) (list []Summary, more bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	end := len(x.order)
	if id != "" {
		// It searches from the end, because readers mostly look at recent trials.
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

// ListUnfinished reads the log for the trials without a closing, in the order of submission. Its errors are those of
// Index.Follow.
func ListUnfinished(ctx context.Context, l *ledger.Ledger) ([]Summary, error) {
	x := NewIndex(l, nil)
	err := x.Follow(ctx)
	return x.List(func(s *Summary) bool { return !s.Over }), err
}

// List returns the trials that match (nil: all match), in the order of submission.
func (x *Index) List(match func(*Summary) bool) (list []Summary) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.order {
		if match == nil || match(s) {
			list = append(list, *s)
		}
	}
	return list
}

// Holding returns the id of the trial that has a record, and "" if none has it. Its errors are those of the log.
func (x *Index) Holding(ctx context.Context, record string) (string, error) {
	b, err := x.Ledger.Briefs().ByID(ctx, record)
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrExpired) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return b.ChainID, nil
}

// A Summary is a short description of a trial, from its records.
type Summary struct {
	ID        string
	Submitter string          // the name that the submission is sealed under
	Agent     string          // the name on its card, or without a card the actors of the records; at most 200 characters
	Case      evidence.Digest // of the evidence
	Submitted time.Time       // the submission's claim
	Last      time.Time       // the last act's claim
	Acts      int
	Offline   bool // the jurors are rules
	Degraded  bool // by the acts so far
	Over      bool
	Fault     string // the error of an unreadable act; "": none

	Cancelled *Change // nil: not cancelled, or resumed since

	Outcome   *jury.TrialOutcome // the result of the jury's judgment and people's decisions; nil: no judgment yet
	Reviews   int                // people's reviews of records of this trial, the verdict or others
	Delivered bool               // an answer was delivered after the judgment

	claimed   *Change         // who took it last; nil: nobody. It can have ended: see Taken
	reckoning *jury.Reckoning // has the outcome; nil: no judgment yet
}

// A Change says who stopped a trial, or which reviewer means to decide on it and on what (see Waits), and when. Taking a trial hinders no other.
type Change struct {
	operator.TrialEventBody
	At time.Time
}

// NeedsPerson reports whether the trial is over, and its verdict still needs a person's decision.
func (s Summary) NeedsPerson() bool { return s.Over && s.Outcome != nil && s.Outcome.Open }

// Waits returns the record id of what a person must decide on: the verdict, or the last decision on it. It returns "" if the trial
// does not need a person.
func (s Summary) Waits() string {
	switch {
	case !s.NeedsPerson():
		return ""
	case s.Outcome.Decision != nil:
		return s.Outcome.Decision.Record
	}
	return s.Outcome.Verdict.Record
}

// Taken returns which reviewer has taken the trial. It returns nil if none has, or if anybody has decided since.
func (s Summary) Taken() *Change {
	if s.claimed == nil || s.claimed.Record != s.Waits() {
		return nil
	}
	return s.claimed
}

// assign applies an act that says that a reviewer took the trial or gave it back. It ignores acts on what does not wait any more, which
// can only be older than the last decision, and the act of a reviewer who was not the first: so every reader of the log agrees on who
// has the trial.
func (s *Summary) assign(e *operator.TrialEventBody, at time.Time) {
	if e.Record != s.Waits() {
		return
	}
	switch now := s.Taken(); {
	case e.Event == operator.TrialTaken && now == nil:
		s.claimed = &Change{*e, at}
	case e.Event == operator.TrialLeft && now != nil && now.Reviewer == e.Reviewer:
		s.claimed = nil
	}
}

// WhyOpen returns for what reasons a trial needs a person's decision: words for programs.
func (s Summary) WhyOpen() (list []string) {
	v := &s.Outcome.Verdict
	add := func(is bool, why string) {
		if is {
			list = append(list, why)
		}
	}
	add(!slices.Contains(jury.Decidable(), v.Position), "needs_review") // the jury neither passes nor fails the agent
	add(v.Degraded, "degraded")
	add(v.Inconclusive, "inconclusive")
	add(s.Outcome.Decision != nil, "left_open") // by a person
	for _, reason := range v.Review {
		list = append(list, string(reason))
	}
	return list
}

// add adds the brief of the next record of the trial's chain. If the record is a review, review is that record, as
// far as it was read. add returns the review's decision on the verdict; nil if it decides something else.
func (s *Summary) add(b *brief.Brief, review *evidence.Record) *jury.Decision {
	switch {
	case b.Action == evidence.HumanReview:
		s.Reviews, s.Delivered = s.Reviews+1, false
		return s.decide(review)
	case b.Action == evidence.Delivery:
		s.Delivered = true
	case b.Action.InTrial():
		s.act(b)
	}
	return nil
}

func (s *Summary) decide(review *evidence.Record) *jury.Decision {
	if s.reckoning == nil {
		return nil
	}
	decision := s.reckoning.Decide(review)
	s.Outcome = s.reckoning.Outcome()
	return decision
}

func (s *Summary) act(b *brief.Brief) {
	act := brief.Act{}
	if b.Trial != nil {
		act = *b.Trial
	}
	if s.Acts == 0 {
		s.ID, s.Submitter, s.Agent, s.Case, s.Submitted = b.ChainID, b.Actor, act.Agent, b.Case, b.Time()
	}
	s.Acts, s.Last = s.Acts+1, b.Time()
	if act.Fault != "" { // one unreadable trial must not hide the others
		s.Fault = "record " + b.RecordID + ": " + act.Fault
		return
	}
	s.Degraded = s.Degraded || act.Missing || act.Verdict != nil && act.Verdict.Degraded
	switch {
	case b.Action == evidence.PhaseOpening:
		s.Offline = act.Offline
	case act.Verdict != nil:
		s.judge(b, *act.Verdict)
	case b.Action == evidence.TrialClosing:
		s.Over = true
	}
}

func (s *Summary) judge(b *brief.Brief, v jury.Verdict) {
	if s.reckoning == nil {
		s.reckoning = new(jury.Reckoning)
	}
	v.Record = b.RecordID
	s.reckoning.Judge(b.Digest, v)
	s.Outcome = s.reckoning.Outcome()
}

// MayDecide returns an *evidence.FieldError for a review that is invalid for a verdict: a decision must pass or fail the agent, and must stand
// in the chain of its trial, where readers look for it.
func MayDecide(ctx context.Context, l *ledger.Ledger, p *evidence.Payload) error {
	original, err := l.Record(ctx, p.OriginalResponseID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	on := &original.Payload
	if !strings.HasPrefix(on.ChainID, evidence.TrialPrefix) || on.ActionType != evidence.FinalJudgment && on.ActionType != evidence.HumanReview {
		return nil
	}
	chain, err := l.Chain(ctx, on.ChainID)
	k := new(jury.Reckoning)
	for _, r := range chain {
		err = cmp.Or(err, k.Add(r))
	}
	if err != nil {
		return err
	}
	if k.Decides(p) && p.ChainID != on.ChainID {
		return &evidence.FieldError{Field: "chain_id", Reason: fmt.Sprintf("must be %q: a decision on a verdict stands in the chain of its trial", on.ChainID)}
	}
	return k.Refuse(p)
}
