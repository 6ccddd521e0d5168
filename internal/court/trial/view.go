package trial

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/internal/court/juror"
	"jurat/internal/court/subject"
	"jurat/internal/log/ledger/brief"
	"jurat/jury"
)

// A View is the read model of one trial: its state after the records so far. Add advances it by one record. The
// events, the courtroom page, the result and the statistics of a trial come from it; lists come from the Summaries in
// an Index.
//
// It is not safe for concurrent use. The values behind its pointers do not change, except that Check completes
// findings.
type View struct {
	Summary
	Records  int            // how many were added, including reviews and deliveries
	Settings *jury.Settings // nil: no phase was opened yet
	Seats    []Seat
	Now      map[string]*jury.Evaluation // each juror's latest evaluation, by juror
	Said     []*Said                     // of all seats, in log order
	Cited    map[int][]*Said             // the answers that cite a message, by its number
	Judge    *Said                       // the final judge's opinion or absence; nil: not yet
	Reading  *Said                       // the judge's own findings in phase 1, before it knew the jury's, or its absence there; nil: none

	Phase     jury.Phase                    // the last opened phase; "": none yet
	Discussed bool                          // a round was opened
	Alone     *jury.ConsensusResult         // the check after phase 1; nil: none yet
	Again     *jury.ConsensusResult         // the check after disputed seats were asked again; nil: none
	After     *jury.ConsensusResult         // the check of the last round; nil: the discussion is not over, or there was none
	Rounds    map[int]*jury.ConsensusResult // the check of each round that is over, by its number
	Judgment  *jury.Judgment                // nil: none yet
	Votes     jury.Votes                    // the jury's positions at three moments

	Bill   jury.Bill // of the recorded calls
	Broken string    // how the acts contradict each other; "": they do not

	Decisions map[string]*jury.Decision // on the verdict, by record id
	Beside    int                       // the number of the last review or delivery; 0: none

	broken    error // the *jury.Discrepancy behind Broken
	evidence  *subject.Case
	tally     *jury.Tally
	unchecked []*Said
	acts      []jury.Act
	round     *jury.ConsensusResult // the check of the last round so far
	talked    *jury.Ballot          // and the jury's positions then
	seq       int64                 // of the last event
	early     []PersonDecided       // decisions before the closing; their events come after it
}

// NewView returns the view of a trial without records. Add compares quotations with the evidence; if that is nil, no
// quotation counts as found. The view compares requests with each other, but not with the evidence: Reopen does that.
func NewView(on *subject.Case) *View {
	return &View{Now: map[string]*jury.Evaluation{}, Cited: map[int][]*Said{}, Rounds: map[int]*jury.ConsensusResult{}, Decisions: map[string]*jury.Decision{}, evidence: on, tally: jury.NewTally(evidence.Digest{})}
}

// ViewOf returns the view of a trial's chain, in log order. NewView describes the evidence. Its errors are those of
// Add.
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

// Unchecked reports whether there are quotations that were not compared with evidence: see Check.
func (v *View) Unchecked() bool { return len(v.unchecked) > 0 }

// Check compares the unchecked quotations with the evidence. nil: the evidence cannot be read, and no quotation
// counts as found.
func (v *View) Check(on *subject.Case) {
	for _, said := range v.unchecked {
		v.quote(on, said)
	}
	v.unchecked = nil
}

// A step is a record while Add processes it.
type step struct {
	*evidence.Record
	act    jury.Act
	effort jury.Effort
	lawful bool // the act follows the law of trials
}

// taken says what the record of each action type changes in a View, and which event it returns; nil: none. Records of other types stand in no trial's chain.
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

// Add adds the next record of the trial's chain, and returns its events. The same records always give the same
// events. Decisions that come before the closing have their events after it, so each number is used once. Add returns
// an error for a record that cannot be read. Contradictory acts give no error: see Broken.
func (v *View) Add(r *evidence.Record) ([]Event, error) {
	fold, known := taken[r.Payload.ActionType]
	if !known {
		return nil, fmt.Errorf("record %s: %s stands in no trial's chain", r.Payload.RecordID, r.Payload.ActionType)
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
	event := TrialDegraded{Record: r.Digest}
	var missing bool
	if event.Juror, event.Reason, missing = jury.Missing(s.act.Body); !missing {
		event.Juror, event.Answered = r.Payload.AgentID, r.Payload.Model
		event.Reason, event.Asked = v.unfit(r)
	}
	if event.Reason != "" && !degraded {
		event.EventHead = v.head(r, "trial_degraded")
		events = append(events, event)
	}
	v.Degraded = v.Degraded || event.Reason != ""
	return append(events, v.overdue()...), nil
}

// unfit returns the seat's model, and why the answer in a record makes the trial degraded: another model gave it, or one that has ended. "": it does not.
func (v *View) unfit(r *evidence.Record) (why jury.AbsenceReason, asked string) {
	if answers := []evidence.ActionType{evidence.Evaluation, evidence.Statement, evidence.JudgeOpinion}; v.Settings == nil ||
		!slices.Contains(answers, r.Payload.ActionType) {
		return "", ""
	}
	for _, seat := range v.Settings.Everyone() {
		switch {
		case seat.JurorID != r.Payload.AgentID:
		case jury.OtherModel(r.Payload.Model, seat.Model):
			return otherModel, seat.Model
		case seat.Ended != nil:
			return endedModel, seat.Model
		}
	}
	return "", ""
}

// take does what all records need: it parses the act, checks it against the law of trials, and counts it.
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
	v.Bill.Add(s.effort)
	if decision := v.Summary.add(brief.Of(&s.Payload, s.Digest), s.Record); decision != nil {
		v.Decisions[s.Payload.RecordID] = decision
	}
	return nil
}

// apply compares the next act with those before it. After the first unlawful act, no act counts as lawful.
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

// State returns a copy of the state of the acts under the law of trials. Its time grows with the length of the trial.
func (v *View) State() *jury.Replayed { return v.tally.State() }

// Waiting lists the jurors who were asked and have not answered, by seat.
func (v *View) Waiting() []string { return v.tally.Waiting() }

// Result returns the result of a trial. It returns an error if the acts contradict each other, or there is no verdict
// yet.
func (v *View) Result() (*jury.Result, error) {
	if v.broken != nil {
		return nil, fmt.Errorf("reading trial: %w", v.broken)
	}
	state := v.State()
	if !state.Finished {
		return nil, errors.New("reading trial: it has no verdict yet")
	}
	if v.evidence != nil {
		state.Result.SameVendor = juror.SameVendor(state.Settings, v.evidence)
	}
	return &state.Result, nil
}

// Took is the time from the first to the last act, by their own claims.
func (v *View) Took() time.Duration { return v.Last.Sub(v.Submitted) }

// A Seat is a juror's seat and the juror's current state.
type Seat struct {
	jury.Seat
	Number   int    // from 1
	Reported string // the model's name in its provider's last report; "": it has not answered
	Alone    *Said  // in phase 1; nil: not yet
	Again    *Said  // when it was asked a second time; nil: it was not
	Abstains bool   // the second answer had another position, and it has not spoken since
	Absences []jury.Absent
}

// A Said is one answer of a seat, or its absence.
type Said struct {
	Seat     int    // the seat's number; 0: the judge's
	Juror    string // the juror's id
	Nth      int    // the record's number in the trial, from 1
	Record   string // the record's id
	At       time.Time
	Model    string
	Round    int
	Body     any           // *jury.Evaluation, *jury.Statement, *jury.Opinion or *jury.Absent
	From     jury.Position // of a statement that changes the position: the previous one
	Findings []Finding     // the findings that are new for this seat
	Effort   jury.Effort
}

// A Finding is a juror's finding, checked against the evidence.
type Finding struct {
	jury.Finding
	Here   bool // the evidence has a message with this number
	Stands bool // and that message has the quotation
}

// Discusses reports whether it belongs to a round of discussion.
func (s *Said) Discusses() bool {
	absent, is := s.Body.(*jury.Absent)
	_, states := s.Body.(*jury.Statement)
	return s.Seat > 0 && (states || is && absent.Phase == jury.Discussion)
}

func (v *View) seat(juror string) *Seat {
	for i := range v.Seats {
		if v.Seats[i].JurorID == juror {
			return &v.Seats[i]
		}
	}
	return nil
}

func (v *View) sit() {
	if v.Settings = v.tally.State().Settings; v.Settings == nil {
		return
	}
	for i, seat := range v.Settings.Seats {
		v.Seats = append(v.Seats, Seat{Seat: seat, Number: i + 1})
	}
}

// say stores an answer of a seat. A nil seat is the judge's, who may speak in phase 1, too.
func (v *View) say(at *Seat, s *step, juror string, round int, findings []jury.Finding) *Said {
	said := &Said{Juror: juror, Nth: v.Records, Record: s.Payload.RecordID, At: s.Payload.Time(), Model: s.Payload.Model, Round: round,
		Body: s.act.Body, Effort: s.effort}
	for _, f := range findings {
		said.Findings = append(said.Findings, Finding{Finding: f})
	}
	switch {
	case v.evidence != nil:
		v.quote(v.evidence, said)
	case len(findings) > 0:
		v.unchecked = append(v.unchecked, said)
	}
	if v.Said = append(v.Said, said); at == nil {
		if v.Phase == jury.Initial {
			v.Reading = said
		} else {
			v.Judge = said
		}
		return said
	}
	said.Seat = at.Number
	at.Reported = cmp.Or(said.Model, at.Reported)
	return said
}

// quote checks findings against the evidence, and stores for each message which answers cite it.
func (v *View) quote(on *subject.Case, said *Said) {
	for i := range said.Findings {
		f := &said.Findings[i]
		if on == nil || on.Message(f.Message) == nil {
			continue
		}
		m := on.Message(f.Message)
		f.Here, f.Stands = true, !f.Unfounded && f.Quote != "" && m.Holds(f.Quote)
		if cited := v.Cited[m.Number]; !slices.Contains(cited, said) {
			v.Cited[m.Number] = append(cited, said)
		}
	}
}

func added(now, before *jury.Evaluation) []jury.Finding {
	if before == nil {
		return now.Findings
	}
	return slices.DeleteFunc(slices.Clone(now.Findings), func(f jury.Finding) bool { return slices.Contains(before.Findings, f) })
}

// SaidSince returns the answers after the record of this number, and the earlier ones of the same round.
func (v *View) SaidSince(nth int) []*Said {
	i := len(v.Said) - len(v.SaidAfter(nth))
	if i == len(v.Said) {
		return nil
	}
	for i > 0 && v.Said[i-1].Round == v.Said[i].Round {
		i--
	}
	return v.Said[i:len(v.Said):len(v.Said)]
}

// SaidAfter returns the answers after the record of this number.
func (v *View) SaidAfter(nth int) []*Said {
	i, _ := slices.BinarySearchFunc(v.Said, nth+1, func(s *Said, nth int) int { return s.Nth - nth })
	return v.Said[i:len(v.Said):len(v.Said)]
}
