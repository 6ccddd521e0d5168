package trial

import (
	"fmt"

	"jurat/evidence"
	"jurat/jury"
)

// A Projector turns the records of one trial's chain into events, one record at a time, in log order. Whoever projects the
// same records gets the same events: live, after a reload, on another machine. Who conducts a trial projects its acts alone: what
// people decide meanwhile has its events after the closing, so that no number is given twice.
type Projector struct {
	seq       int64
	degraded  bool
	current   map[string]jury.Evaluation // each juror's evaluation as it stands
	reckoning jury.Reckoning
	closed    bool
	early     []*evidence.Record // reviews before the closing
}

// NewProjector begins at a trial's first record.
func NewProjector() *Projector { return &Projector{current: map[string]jury.Evaluation{}} }

// Next returns the events of the next record in the trial's chain.
func (p *Projector) Next(r *evidence.Record) ([]Event, error) {
	if !r.Payload.ActionType.InTrial() {
		return p.review(r), nil
	}
	act, err := jury.ReadAct(r)
	if err != nil {
		return nil, fmt.Errorf("reading act: %w", err)
	}
	events, err := p.act(r, act)
	if act.Type != evidence.TrialClosing || err != nil {
		return events, err
	}
	p.closed = true
	for _, review := range p.early {
		events = append(events, p.review(review)...)
	}
	p.early = nil
	return events, nil
}

// review returns the event of a decision on the verdict. Other reviews, and deliveries, have none.
func (p *Projector) review(r *evidence.Record) []Event {
	if !p.closed {
		p.early = append(p.early, r)
		return nil
	}
	decision := p.reckoning.Decide(r)
	if decision == nil {
		return nil
	}
	head := p.head(r)
	head.Type = "person_decided"
	return []Event{PersonDecided{EventHead: head, Record: r.Digest, Decision: *decision, Outcome: *p.reckoning.Outcome()}}
}

func (p *Projector) act(r *evidence.Record, act jury.Act) ([]Event, error) {
	event := p.event(p.head(r), r, act)
	if event == nil {
		return nil, fmt.Errorf("reading act: no event for %s", act.Type)
	}
	who, why, missing := jury.Missing(act.Body)
	if !missing || p.degraded {
		return []Event{event}, nil
	}
	p.degraded = true
	head := p.head(r)
	head.Type = "trial_degraded"
	return []Event{event, TrialDegraded{EventHead: head, Record: r.Digest, Juror: who, Reason: why}}, nil
}

// head begins the next event.
func (p *Projector) head(r *evidence.Record) EventHead {
	p.seq++
	return EventHead{Seq: p.seq, At: r.Payload.Time(), SubmissionID: r.Payload.ChainID}
}

func (p *Projector) event(head EventHead, r *evidence.Record, act jury.Act) Event {
	switch body := act.Body.(type) {
	case nil:
		head.Type = "submission_received"
		return SubmissionReceived{EventHead: head, Record: r.Digest, Case: r.Payload.Case}
	case *jury.Opening:
		return opened(head, body)
	case *jury.Evaluation:
		p.current[body.JurorID] = *body
		head.Type = "juror_evaluated"
		return JurorEvaluated{EventHead: head, Record: r.Digest, Model: r.Payload.Model, Evaluation: *body}
	case *jury.Absent:
		head.Type = "juror_absent"
		return JurorAbsent{EventHead: head, Record: r.Digest, Absent: *body}
	case *jury.Statement:
		return p.stated(head, body)
	case *jury.Check:
		return checked(head, body)
	case *jury.Opinion:
		head.Type = "judge_spoke"
		return JudgeSpoke{EventHead: head, Record: r.Digest, Model: r.Payload.Model, Opinion: *body}
	case *jury.Judgment:
		p.reckoning.Judge(r.Payload.RecordID, r.Digest, body)
		head.Type = "final_judgment"
		return Judged{EventHead: head, Record: r.Digest, Judgment: *body}
	case *jury.Closing:
		head.Type = "trial_closed"
		return TrialClosed{EventHead: head, Acts: body.Acts}
	}
	return nil
}

func opened(head EventHead, opening *jury.Opening) Event {
	if opening.Phase == jury.Discussion {
		head.Type = "round_started"
		return RoundStarted{EventHead: head, Round: opening.RoundNumber, SpeakerOrder: asked(opening)}
	}
	head.Type = "phase_started"
	return PhaseStarted{EventHead: head, Phase: opening.Phase, Settings: opening.Settings, Asked: asked(opening)}
}

func asked(opening *jury.Opening) []string {
	ids := make([]string, len(opening.Requests))
	for i, request := range opening.Requests {
		ids[i] = request.JurorID
	}
	return ids
}

func (p *Projector) stated(head EventHead, s *jury.Statement) Event {
	if s.UpdatedEvaluation != nil {
		p.current[s.JurorID] = *s.UpdatedEvaluation
	}
	now := p.current[s.JurorID]
	head.Type = "juror_statement"
	return JurorStated{EventHead: head, Round: s.RoundNumber, Juror: s.JurorID, Statement: s.Statement,
		PositionChanged: s.PositionChanged, NewVerdict: now.Position, NewScore: now.TotalScore}
}

func checked(head EventHead, check *jury.Check) Event {
	if check.Phase != jury.Discussion {
		head.Type = "consensus_checked"
		return ConsensusChecked{EventHead: head, Phase: check.Phase, ConsensusResult: check.ConsensusCheck}
	}
	head.Type = "round_completed"
	c := check.ConsensusCheck
	return RoundCompleted{EventHead: head, Round: check.RoundNumber, ConsensusStatus: c.ConsensusStatus,
		AgreementLevel: c.AgreementLevel, MajorityPosition: c.MajorityPosition}
}
