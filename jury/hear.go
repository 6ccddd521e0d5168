package jury

import "jurat/evidence"

// applyAnswer adds a seat's answer, or the clerk's act that the seat gave no valid answer.
func (t *Tally) applyAnswer(a *Act) error {
	s := t.last()
	who := a.Actor
	if absent, ok := a.Body.(*Absent); ok {
		who = absent.JurorID
	}
	if s == nil {
		return a.breaks(RuleSequence, "no seat was asked")
	}
	seat := s.seatOf(who)
	if seat < 0 {
		return a.breaks(RuleSequence, "%q was not asked in %s", abbreviate(who), placeName(s.Phase, s.RoundNumber))
	}
	if s.answers[seat] != nil {
		return a.breaks(RuleSequence, "%q has already answered in %s", who, placeName(s.Phase, s.RoundNumber))
	}
	want, err := t.rebuilt(s, seat, a)
	if err != nil {
		return err
	}
	if err := want.match(a); err != nil {
		return err
	}
	if err := a.sameBody(want.Body); err != nil {
		return err
	}
	want.Digest = a.Digest
	t.hear(s, seat, want)
	return nil
}

// rebuilt computes the act again from the answer that it contains.
func (t *Tally) rebuilt(s *session, seat int, a *Act) (*Act, error) {
	if absent, ok := a.Body.(*Absent); ok {
		return t.rebuiltAbsence(s, seat, a, absent)
	}
	if a.Type != s.answerType(seat) {
		return nil, a.breaks(RuleSequence, "%s in %s", a.Type, placeName(s.Phase, s.RoundNumber))
	}
	if _, _, missing := Missing(a.Body); missing {
		if !t.standsIn(s, seat) {
			return nil, a.breaks(RuleAnswer, "a fallback for %q, which has an evaluation or abstains", a.Actor)
		}
		return t.seatAct(s, seat, a.Origin, t.fallback(s, seat)), nil
	}
	body, err := t.body(s, said(a.Body, seat))
	if err != nil {
		return nil, a.breaks(ruleOf(err), "%v", err)
	}
	return t.seatAct(s, seat, a.Origin, body), nil
}

// said extracts the answer from the body of an act.
func said(body any, seat int) answer {
	a := answer{seat: seat}
	switch body := body.(type) {
	case *Evaluation:
		a.Opinion = body.Opinion
	case *Opinion:
		a.Opinion = *body
	case *Statement:
		a.Speech = Speech{Statement: body.Statement, Position: body.Position, Reasoning: body.Reasoning}
		if body.UpdatedEvaluation != nil {
			a.Speech.Updated = &body.UpdatedEvaluation.Opinion
		}
	}
	return a
}

func (t *Tally) rebuiltAbsence(s *session, seat int, a *Act, absent *Absent) (*Act, error) {
	switch absent.Reason {
	case Blocked:
		if t.standsIn(s, seat) {
			return nil, a.breaks(RuleAnswer, "%q was blocked before it had an evaluation, and has no stand-in", absent.JurorID)
		}
	case TimedOut, Invalid, Failed, Ceiling:
	default:
		return nil, a.breaks(RuleAnswer, "reason: unknown reason for an absence %q", abbreviate(string(absent.Reason)))
	}
	want := &Absent{JurorID: s.seats[seat].JurorID, Phase: s.Phase, RoundNumber: s.RoundNumber,
		Reason: absent.Reason, Detail: detail(absent.Detail)}
	return t.clerkAct(evidence.Absence, s.digest, nil, want), nil
}

// hear updates the trial with an answer that was checked.
func (t *Tally) hear(s *session, seat int, a *Act) {
	switch body := a.Body.(type) {
	case *Evaluation:
		t.evaluated(s, s.places[seat], body)
	case *Statement:
		if body.UpdatedEvaluation != nil {
			t.standing[s.places[seat]], t.abstains[s.places[seat]] = body.UpdatedEvaluation, false
		}
	}
	s.answers[seat] = a
	t.count(a)
}
