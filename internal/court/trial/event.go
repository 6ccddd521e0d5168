package trial

import (
	"time"

	"jurat/evidence"
	"jurat/jury"
)

// An Event tells a watcher what one act of a trial means. Each is derived from one sealed record.
type Event interface{ Head() EventHead }

// EventHead holds the members of every event.
type EventHead struct {
	Type         string    `json:"type"`
	Seq          int64     `json:"seq"` // from 1 within a trial; the same each time the trial's records are read
	At           time.Time `json:"at"`  // the record's claim
	SubmissionID string    `json:"submissionId"`
}

func (h EventHead) Head() EventHead { return h }

// The events of a trial, in the order in which their types first occur. After TrialClosed, only PersonDecided can
// come.
type (
	// SubmissionReceived opens a trial.
	SubmissionReceived struct {
		EventHead
		Record evidence.Digest `json:"record"`
		Case   evidence.Digest `json:"case"`
	}
	// PhaseStarted opens phase 1, the repetition or phase 3.
	PhaseStarted struct {
		EventHead
		Phase    jury.Phase    `json:"phase"`
		Settings jury.Settings `json:"settings"`
		Asked    []string      `json:"asked"` // seats, in order
	}
	// JurorEvaluated is an evaluation of phase 1, or of a disputed seat that was asked again.
	JurorEvaluated struct {
		EventHead
		Record     evidence.Digest `json:"record"`
		Model      string          `json:"model"`
		Evaluation jury.Evaluation `json:"evaluation"`
		Abstains   bool            `json:"abstains,omitzero"` // asked again, the juror took another position
	}
	// JurorAbsent says that a seat gave no valid answer.
	JurorAbsent struct {
		EventHead
		Record evidence.Digest `json:"record"`
		jury.Absent
	}
	// TrialDegraded says that the trial is degraded from here on: an answer is missing, a stand-in replaces it, or a model gave it that is another
	// than the seat's or has ended. It comes once, after the event of the act that caused it.
	TrialDegraded struct {
		EventHead
		Record evidence.Digest    `json:"record"`
		Juror  string             `json:"juror"` // or the judge
		Reason jury.AbsenceReason `json:"reason"`

		Asked    string `json:"asked,omitzero"` // if another model answered, or one that has ended: the one of the seat
		Answered string `json:"answered,omitzero"`
	}
	// ConsensusChecked ends phase 1, or the repetition.
	ConsensusChecked struct {
		EventHead
		Phase jury.Phase `json:"phase"`
		jury.ConsensusResult
	}
	RoundStarted struct {
		EventHead
		Round        int      `json:"round"`
		SpeakerOrder []string `json:"speakerOrder"`
	}
	// JurorStated is a statement in a round. NewVerdict and NewScore are the juror's current ones, whether they
	// changed or not.
	JurorStated struct {
		EventHead
		Round           int           `json:"round"`
		Juror           string        `json:"juror"`
		Statement       string        `json:"statement"`
		PositionChanged bool          `json:"positionChanged"`
		NewVerdict      jury.Position `json:"newVerdict"`
		NewScore        int           `json:"newScore"`
	}
	RoundCompleted struct {
		EventHead
		Round            int                  `json:"round"`
		ConsensusStatus  jury.ConsensusStatus `json:"consensusStatus"`
		AgreementLevel   float64              `json:"agreementLevel"`
		MajorityPosition *jury.Position       `json:"majorityPosition"`
	}
	// JudgeSpoke is the final judge's opinion, or its own findings in phase 1, before it knows the jury's.
	JudgeSpoke struct {
		EventHead
		Record  evidence.Digest `json:"record"`
		Model   string          `json:"model"`
		Opinion jury.Opinion    `json:"opinion"`
		Alone   bool            `json:"alone,omitzero"` // in phase 1
	}
	Judged struct {
		EventHead
		Record   evidence.Digest `json:"record"`
		Judgment jury.Judgment   `json:"judgment"`
	}
	TrialClosed struct {
		EventHead
		Acts int `json:"acts"`
	}
	// PersonDecided is a person's decision on the verdict, and the outcome of the trial after it. It always comes
	// after TrialClosed, even if the person decided earlier.
	PersonDecided struct {
		EventHead
		Record   evidence.Digest   `json:"record"`
		Decision jury.Decision     `json:"decision"`
		Outcome  jury.TrialOutcome `json:"outcome"`
	}
)

// Reasons of a TrialDegraded whose answer another model gave, or one that has ended.
const (
	otherModel jury.AbsenceReason = "other_model"
	endedModel jury.AbsenceReason = "ended_model"
)

// The functions below say what each record changes in a View, and return its event. They skip answers of a seat that
// no opening names; such a trial is broken.

func (v *View) head(r *evidence.Record, kind string) EventHead {
	v.seq++
	return EventHead{Type: kind, Seq: v.seq, At: r.Payload.Time(), SubmissionID: r.Payload.ChainID}
}

func (v *View) submitted(s *step) Event {
	return SubmissionReceived{EventHead: v.head(s.Record, "submission_received"), Record: s.Digest, Case: s.Payload.Case}
}

func (v *View) opened(s *step) Event {
	o := s.act.Body.(*jury.Opening)
	if v.Settings == nil {
		v.sit()
	}
	if s.lawful {
		v.Phase = o.Phase
		v.Discussed = v.Discussed || o.Phase == jury.Discussion
		if o.Phase == jury.Judging {
			v.After, v.Votes.AfterDiscussion = v.round, v.talked
		}
	}
	asked := make([]string, len(o.Requests))
	for i, request := range o.Requests {
		asked[i] = request.JurorID
	}
	if o.Phase == jury.Discussion {
		return RoundStarted{EventHead: v.head(s.Record, "round_started"), Round: o.RoundNumber, SpeakerOrder: asked}
	}
	return PhaseStarted{EventHead: v.head(s.Record, "phase_started"), Phase: o.Phase, Settings: o.Settings, Asked: asked}
}

func (v *View) evaluated(s *step) Event {
	e := s.act.Body.(*jury.Evaluation)
	before := v.Now[e.JurorID]
	event := JurorEvaluated{EventHead: v.head(s.Record, "juror_evaluated"), Record: s.Digest, Model: s.Payload.Model, Evaluation: *e}
	if at := v.seat(e.JurorID); at != nil {
		said := v.say(at, s, e.JurorID, e.RoundNumber, added(e, before))
		if e.Phase == jury.Repetition {
			at.Again, at.Abstains = said, before != nil && before.Position != e.Position
		} else {
			at.Alone = said
		}
		event.Abstains = at.Abstains
	}
	if v.Now[e.JurorID] = e; event.Abstains {
		delete(v.Now, e.JurorID)
	}
	return event
}

func (v *View) absent(s *step) Event {
	a := s.act.Body.(*jury.Absent)
	at := v.seat(a.JurorID)
	said := v.say(at, s, a.JurorID, a.RoundNumber, nil)
	if at != nil {
		at.Absences = append(at.Absences[:len(at.Absences):len(at.Absences)], *a)
		switch a.Phase {
		case jury.Initial:
			at.Alone = said
		case jury.Repetition:
			at.Again = said
		}
	}
	return JurorAbsent{EventHead: v.head(s.Record, "juror_absent"), Record: s.Digest, Absent: *a}
}

func (v *View) stated(s *step) Event {
	st := s.act.Body.(*jury.Statement)
	before := v.Now[st.JurorID]
	var findings []jury.Finding
	if st.UpdatedEvaluation != nil {
		v.Now[st.JurorID], findings = st.UpdatedEvaluation, added(st.UpdatedEvaluation, before)
	}
	if at := v.seat(st.JurorID); at != nil {
		at.Abstains = at.Abstains && st.UpdatedEvaluation == nil
		said := v.say(at, s, st.JurorID, st.RoundNumber, findings)
		if before != nil && st.PositionChanged {
			said.From = before.Position
		}
	}
	event := JurorStated{EventHead: v.head(s.Record, "juror_statement"), Round: st.RoundNumber, Juror: st.JurorID, Statement: st.Statement,
		PositionChanged: st.PositionChanged}
	if now := v.Now[st.JurorID]; now != nil {
		event.NewVerdict, event.NewScore = now.Position, now.TotalScore
	}
	return event
}

func (v *View) checked(s *step) Event {
	check := s.act.Body.(*jury.Check)
	c := &check.ConsensusCheck
	var now *jury.Ballot
	if s.lawful {
		now = v.tally.Ballot()
	}
	switch check.Phase {
	case jury.Discussion:
		v.round, v.talked, v.Rounds[check.RoundNumber] = c, now, c
		return RoundCompleted{EventHead: v.head(s.Record, "round_completed"), Round: check.RoundNumber, ConsensusStatus: c.ConsensusStatus,
			AgreementLevel: c.AgreementLevel, MajorityPosition: c.MajorityPosition}
	case jury.Repetition:
		v.Again = c
	default:
		v.Alone, v.Votes.AfterPhase1 = c, now
	}
	return ConsensusChecked{EventHead: v.head(s.Record, "consensus_checked"), Phase: check.Phase, ConsensusResult: *c}
}

func (v *View) judgeSpoke(s *step) Event {
	o := s.act.Body.(*jury.Opinion)
	v.say(nil, s, s.act.Actor, 0, o.Findings)
	return JudgeSpoke{EventHead: v.head(s.Record, "judge_spoke"), Record: s.Digest, Model: s.Payload.Model, Opinion: *o, Alone: v.Phase == jury.Initial}
}

func (v *View) judged(s *step) Event {
	j := s.act.Body.(*jury.Judgment)
	if v.Judgment == nil { // a second judgment changes nothing
		v.Judgment, v.Votes.Final = j, &jury.Ballot{Verdict: j.Position, Votes: j.Votes}
	}
	return Judged{EventHead: v.head(s.Record, "final_judgment"), Record: s.Digest, Judgment: *j}
}

func (v *View) closed(s *step) Event {
	return TrialClosed{EventHead: v.head(s.Record, "trial_closed"), Acts: s.act.Body.(*jury.Closing).Acts}
}

// reviewed returns no event: see overdue.
func (v *View) reviewed(s *step) Event {
	if decision := v.Decisions[s.Payload.RecordID]; decision != nil {
		v.early = append(v.early, PersonDecided{EventHead: EventHead{Type: "person_decided", At: s.Payload.Time(), SubmissionID: s.Payload.ChainID},
			Record: s.Digest, Decision: *decision, Outcome: *v.Outcome})
	}
	return nil
}

func (v *View) delivered(*step) Event { return nil }

// overdue returns the events of decisions that came before the closing, once the trial is closed.
func (v *View) overdue() (events []Event) {
	if !v.Over {
		return nil
	}
	for _, event := range v.early {
		v.seq++
		event.Seq = v.seq
		events = append(events, event)
	}
	v.early = nil
	return events
}
