package trial

import (
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger/brief"
	"jurat/jury"
)

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

	Cancelled *Cancelled // nil: not cancelled, or resumed since

	Outcome   *jury.TrialOutcome // the result of the jury's judgment and people's decisions; nil: no judgment yet
	Reviews   int                // people's reviews of records of this trial, the verdict or others
	Delivered bool               // an answer was delivered after the judgment

	claimed   *Taken         // who took it last; nil: nobody. It can have ended: see Taken
	reckoning *jury.Reckoning // has the outcome; nil: no judgment yet
}

// Taken says which reviewer means to decide on a trial. It hinders no other.
type Taken struct {
	Reviewer string
	By       string // who said so: the reviewer, or an operator
	Reason   string // "": none was given
	At       time.Time
	Record   string // what waited then: see Waits
}

// Cancelled says who stopped a trial, and why.
type Cancelled struct {
	By, Reason string
	At         time.Time
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
func (s Summary) Taken() *Taken {
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
		s.claimed = &Taken{Reviewer: e.Reviewer, By: e.By, Reason: e.Reason, At: at, Record: e.Record}
	case e.Event == operator.TrialLeft && now != nil && now.Reviewer == e.Reviewer:
		s.claimed = nil
	}
}

// WhyOpen returns for what reasons a trial needs a person's decision: words for programs.
func (s Summary) WhyOpen() (list []string) {
	v := &s.Outcome.Verdict
	for _, one := range []struct {
		is  bool
		why string
	}{
		{!slices.Contains(jury.Decidable(), v.Position), "needs_review"}, // the jury neither passes nor fails the agent
		{v.Degraded, "degraded"},
		{v.Inconclusive, "inconclusive"},
		{s.Outcome.Decision != nil, "left_open"}, // by a person
	} {
		if one.is {
			list = append(list, one.why)
		}
	}
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
