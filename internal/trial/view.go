package trial

import (
	"errors"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger/brief"
	"jurat/internal/subject"
	"jurat/jury"
)

// A View is the read model of one trial: what its records come to, as far as they go. Add advances it by one record. The events, the
// courtroom page, the result and the statistics of a trial are read from it; lists are read from the Summary of each trial in an Index.
//
// It is not safe for concurrent use. What its pointers lead to does not change, except that Check completes findings.
type View struct {
	Summary
	Records  int            // how many were added, reviews and deliveries included
	Settings *jury.Settings // nil: nothing was opened yet
	Seats    []Seat
	Now      map[string]*jury.Evaluation // each juror's latest, by juror
	Said     []*Said                     // by all seats, in the order of the log
	Cited    map[int][]*Said             // by the number of the message that they cite
	Judge    *Said                       // the final judge's opinion or absence; nil: neither yet

	Phase     jury.Phase            // opened last; "": none yet
	Discussed bool                  // a round was opened
	Alone     *jury.ConsensusResult // the check after phase 1; nil: none yet
	After     *jury.ConsensusResult // the check of the last round; nil: the discussion is not over, or there was none
	Judgment  *jury.Judgment        // the jury's; nil: none yet
	Votes     jury.Votes            // how the jury stood at three moments

	Spent  int64  // what the recorded calls have cost, in millionths of a US dollar
	Calls  int    // of models
	Broken string // how the acts contradict each other; "": they do not

	Decisions map[string]*jury.Decision // on the verdict, by the id of the record
	Beside    int                       // the number of the last record that is no act, but a review or a delivery; 0: none

	broken    error // the *jury.Discrepancy that Broken tells
	evidence  *subject.Case
	tally     *jury.Tally
	unchecked []*Said
	acts      []jury.Act
	round     *jury.ConsensusResult // the check of the last round so far
	talked    *jury.Ballot          // and how the jury stood then
	seq       int64                 // of the last event
	early     []PersonDecided       // decisions before the closing: their events come after it
}

// NewView returns the view of a trial that has no records yet. The evidence is what quotations are held against; nil: it is not known,
// and no quotation is said to stand in it. Requests are held against each other, and not against the evidence: Reopen does that.
func NewView(on *subject.Case) *View {
	return &View{Now: map[string]*jury.Evaluation{}, Cited: map[int][]*Said{}, Decisions: map[string]*jury.Decision{}, evidence: on, tally: jury.NewTally(evidence.Digest{})}
}

// ViewOf returns the view of the records of a trial's chain, in log order. For the evidence see NewView.
func ViewOf(on *subject.Case, records []*evidence.Record) (*View, error) {
	v := NewView(on)
	return v, v.addAll(records)
}

func (v *View) addAll(records []*evidence.Record) error {
	for _, r := range records {
		if _, err := v.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// Unchecked reports whether quotations were taken in without evidence to hold them against: see Check.
func (v *View) Unchecked() bool { return len(v.unchecked) > 0 }

// Check holds quotations that were taken in without evidence against it; nil: it cannot be read, and none is said to stand in it.
func (v *View) Check(on *subject.Case) {
	for _, said := range v.unchecked {
		v.quote(on, said)
	}
	v.unchecked = nil
}

// A step is a record on its way into a View.
type step struct {
	*evidence.Record
	act    jury.Act
	effort jury.Effort
	lawful bool // the act is as it must be at its place
}

// taken says what the record of each action type changes in a View, and which event tells of it; a nil Event: none does.
var taken = map[evidence.ActionType]func(*View, *step) Event{
	evidence.Submission:     (*View).submitted,
	evidence.PhaseOpening:   (*View).opened,
	evidence.Evaluation:     (*View).evaluated,
	evidence.Statement:      (*View).stated,
	evidence.Absence:        (*View).absent,
	evidence.ConsensusCheck: (*View).checked,
	evidence.JudgeOpinion:   (*View).judgeSpoke,
	evidence.FinalJudgment:  (*View).judged,
	evidence.TrialClosing:   (*View).closed,
	evidence.HumanReview:    (*View).reviewed,
	evidence.Delivery:       (*View).delivered,
}

const (
	byAgent    = "an agent's act stands in no trial's chain"
	byOperator = "an act of the operator stands in the operator's chains"
)

// ignored are the action types that no View takes in, each with the reason.
var ignored = map[evidence.ActionType]string{
	evidence.ModelOutput: byAgent, evidence.Recommendation: byAgent, evidence.Proposal: byAgent, evidence.Instruction: byAgent,
	evidence.APICall: byAgent, evidence.ToolPlan: byAgent, evidence.Message: byAgent, evidence.ChainStep: byAgent,
	evidence.LateStamp: byOperator, evidence.CheckpointStamp: byOperator, evidence.KeyEvent: byOperator, evidence.Erasure: byOperator,
	evidence.AccessEvent: byOperator, evidence.Refusal: byOperator, evidence.RetentionEvent: byOperator,
	evidence.TrialEvent: byOperator + ", and an Index reads it there",
}

// Add takes in the next record of the trial's chain, and returns the events that tell of it. The same records give the same events
// wherever they are projected. What people decide before the closing has its events after the closing, so no number is given twice.
// The error is that of a record that cannot be read. Acts that contradict each other are no error: see Broken.
func (v *View) Add(r *evidence.Record) ([]Event, error) {
	fold, known := taken[r.Payload.ActionType]
	if !known {
		return nil, fmt.Errorf("record %s: %s: %s", r.Payload.RecordID, r.Payload.ActionType, ignored[r.Payload.ActionType])
	}
	s := &step{Record: r}
	degraded := v.Degraded
	if err := v.take(s); err != nil {
		return nil, fmt.Errorf("record %s: reading act: %w", r.Payload.RecordID, err)
	}
	var events []Event
	if event := fold(v, s); event != nil {
		events = append(events, event)
	}
	if who, why, missing := jury.Missing(s.act.Body); missing && !degraded {
		events = append(events, TrialDegraded{EventHead: v.head(r, "trial_degraded"), Record: r.Digest, Juror: who, Reason: why})
	}
	return append(events, v.overdue()...), nil
}

// take does what is the same for all records: it reads the act, holds it against the law of trials, and counts it.
func (v *View) take(s *step) (err error) {
	if s.Payload.ActionType.InTrial() {
		if s.act, err = jury.ReadAct(s.Record); err != nil {
			return err
		}
		if s.effort, err = jury.ReadEffort(s.act.Origin.Metadata); err != nil {
			return err
		}
		s.lawful = v.apply(s)
	}
	if v.Records++; !s.Payload.ActionType.InTrial() {
		v.Beside = v.Records
	}
	for _, attempt := range s.effort.Attempts {
		v.Spent += attempt.Cost
		v.Calls++
	}
	if decision := v.Summary.add(brief.Of(&s.Payload, s.Digest), s.Record); decision != nil {
		v.Decisions[s.Payload.RecordID] = decision
	}
	return nil
}

// apply holds the next act against the acts before it. After the first that breaks the law none counts as lawful.
func (v *View) apply(s *step) bool {
	v.acts = append(v.acts, s.act)
	if v.broken != nil {
		return false
	}
	if v.broken = v.tally.Apply(s.act); v.broken != nil {
		v.Broken = v.broken.Error()
	}
	return v.broken == nil
}

// State returns what the acts come to under the law of trials, as a copy. It takes as long as the trial is.
func (v *View) State() *jury.Replayed { return v.tally.State() }

// Waiting lists the jurors who were asked and have not answered, by seat.
func (v *View) Waiting() []string { return v.tally.Waiting() }

// Result returns the result of a trial that is over.
func (v *View) Result() (*jury.Result, error) {
	if v.broken != nil {
		return nil, fmt.Errorf("reading trial: %w", v.broken)
	}
	state := v.State()
	if !state.Finished {
		return nil, errors.New("reading trial: it has no verdict yet")
	}
	return &state.Result, nil
}

// Took is the time from the first to the last act, as these claim.
func (v *View) Took() time.Duration { return v.Last.Sub(v.Submitted) }
