package trial

import (
	"jurat/evidence"
	"jurat/jury"
)

// The functions below say what each record changes in a View, and return its event. They skip answers of a seat that
// no opening names; such a trial is broken.

// head makes the head of the next event.
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
		v.open(o.Phase)
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

func (v *View) open(phase jury.Phase) {
	v.Phase = phase
	v.Discussed = v.Discussed || phase == jury.Discussion
	if phase == jury.Judging {
		v.After, v.Votes.AfterDiscussion = v.round, v.talked
	}
}

func (v *View) evaluated(s *step) Event {
	e := s.act.Body.(*jury.Evaluation)
	before := v.Now[e.JurorID]
	if at := v.seat(e.JurorID); at != nil {
		said := v.say(at, s, e.JurorID, e.RoundNumber, added(e, before))
		if e.Phase == jury.Repetition {
			at.Again, at.Abstains = said, before != nil && before.Position != e.Position
		} else {
			at.Alone = said
		}
		if at.Abstains {
			delete(v.Now, e.JurorID)
			return JurorEvaluated{EventHead: v.head(s.Record, "juror_evaluated"), Record: s.Digest, Model: s.Payload.Model, Evaluation: *e, Abstains: true}
		}
	}
	v.Now[e.JurorID] = e
	return JurorEvaluated{EventHead: v.head(s.Record, "juror_evaluated"), Record: s.Digest, Model: s.Payload.Model, Evaluation: *e}
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
	if check.Phase == jury.Repetition {
		v.Again = c
		return ConsensusChecked{EventHead: v.head(s.Record, "consensus_checked"), Phase: check.Phase, ConsensusResult: *c}
	}
	if check.Phase != jury.Discussion {
		v.Alone, v.Votes.AfterPhase1 = c, now
		return ConsensusChecked{EventHead: v.head(s.Record, "consensus_checked"), Phase: check.Phase, ConsensusResult: *c}
	}
	v.round, v.talked, v.Rounds[check.RoundNumber] = c, now, c
	return RoundCompleted{EventHead: v.head(s.Record, "round_completed"), Round: check.RoundNumber, ConsensusStatus: c.ConsensusStatus,
		AgreementLevel: c.AgreementLevel, MajorityPosition: c.MajorityPosition}
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
