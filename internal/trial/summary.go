package trial

import (
	"time"

	"jurat/evidence"
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

	reckoning *jury.Reckoning // nil: there is no judgment yet
}

// Cancelled says who has stopped a trial for good, and why.
type Cancelled struct {
	By, Reason string
	At         time.Time
}

// NeedsPerson reports whether the verdict is not one that a program should act on by itself, and no person has closed it.
func (s Summary) NeedsPerson() bool { return s.Over && s.Outcome != nil && s.Outcome.Open }

// add takes in the next record of the trial's chain in brief. The review is the record if it is one, as far as it was read. It returns the
// decision on the verdict that the review is; nil: it is none.
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
	if act.Fault != "" { // one trial that cannot be read must not hide the others
		s.Fault = "record " + b.RecordID + ": " + act.Fault
		return
	}
	s.Degraded = s.Degraded || act.Missing || act.Verdict != nil && act.Verdict.Degraded
	switch {
	case b.Action == evidence.PhaseOpening:
		s.Offline = act.Offline
	case act.Verdict != nil:
		s.judge(b.RecordID, b.Digest, act.Verdict)
	case b.Action == evidence.TrialClosing:
		s.Over = true
	}
}

func (s *Summary) judge(record string, digest evidence.Digest, v *jury.Verdict) {
	if s.reckoning == nil {
		s.reckoning = new(jury.Reckoning)
	}
	s.reckoning.Judge(record, digest, &jury.Judgment{Position: v.Position, Score: v.Score, Method: v.Method, Degraded: v.Degraded, Inconclusive: v.Inconclusive})
	s.Outcome = s.reckoning.Outcome()
}
