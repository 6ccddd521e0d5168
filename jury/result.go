package jury

import "jurat/evidence"

// result is the trial as far as its acts go.
func (t *Tally) result() Result {
	r := Result{Phase1Evaluations: t.initial(), DiscussionRounds: []Round{}, Absences: t.absences(), Degraded: t.degraded(), OtherModels: t.otherModels(), EndedModels: t.endedModels(), Changes: []Change{}}
	if t.settings == nil {
		return r
	}
	r.Offline = t.settings.offline()
	for _, s := range t.sessions {
		switch {
		case s.outcome == nil:
		case s.Phase == Initial:
			r.Phase1Consensus = s.check().clone()
		case s.Phase == Repetition:
			r.RepetitionConsensus = new(s.check().clone())
		case s.Phase == Discussion:
			r.DiscussionRounds = append(r.DiscussionRounds, t.round(s))
		case s.Phase == Judging:
			r.judged(s.outcome.Body.(*Judgment).clone())
		}
	}
	r.TotalRounds = len(r.DiscussionRounds)
	t.tell(&r)
	t.tellMore(&r)
	r.EarlyTermination = t.endedEarly(r.TotalRounds)
	return r
}

func (r *Result) judged(j Judgment) {
	r.Phase3Judgment = j
	r.FinalVerdict, r.FinalScore = j.Position, j.Score
	r.Inconclusive = j.Inconclusive
}

// endedEarly reports whether the discussion ended before its last allowed round.
func (t *Tally) endedEarly(rounds int) bool {
	s := t.last()
	return s != nil && s.Phase == Judging && t.settings.Collaborative && rounds < t.settings.MaxRounds
}

// initial lists the evaluations of phase 1 by seat.
func (t *Tally) initial() []Evaluation { return append([]Evaluation{}, t.evaluations(Initial)...) }

// evaluations lists the evaluations of phase 1, or of the repetition, by seat. It is nil if there are none.
func (t *Tally) evaluations(phase Phase) (list []Evaluation) {
	for _, s := range t.sessions {
		for _, a := range s.answers {
			if a == nil || s.Phase != phase {
				continue
			}
			if e, ok := a.Body.(*Evaluation); ok {
				list = append(list, e.clone())
			}
		}
	}
	return list
}

// round is a round of discussion as far as it went.
func (t *Tally) round(s *session) Round {
	r := Round{RoundNumber: s.RoundNumber, Statements: []Statement{}, SpeakerOrder: []string{}}
	for i, a := range s.answers {
		r.SpeakerOrder = append(r.SpeakerOrder, s.seats[i].JurorID)
		if a == nil {
			continue
		}
		if statement, ok := a.Body.(*Statement); ok {
			r.Statements = append(r.Statements, statement.clone())
		}
	}
	if check := s.check(); check != nil {
		r.ConsensusCheck = check.clone()
	}
	return r
}

// absences lists who was absent, by phase and round, then by seat.
func (t *Tally) absences() []Absent {
	list := []Absent{}
	for _, s := range t.sessions {
		for _, a := range s.answers {
			if a != nil && a.Type == evidence.Absence {
				list = append(list, *a.Body.(*Absent))
			}
		}
	}
	return list
}

// brief is what a seat is given in the open session.
func (t *Tally) brief(s *session, seat int, material []byte) (Brief, error) {
	request, err := s.Request(s.seats[seat].JurorID, t.material, s.saw)
	if err != nil {
		return Brief{}, err
	}
	b := Brief{Request: request, Material: material}
	if s.Phase == Initial || s.Phase == Repetition {
		return b.clone(), nil
	}
	b.Evaluations, b.Repeated, b.Rounds = t.initial(), t.evaluations(Repetition), []Round{}
	if reading := t.reading(); s.Phase == Judging && reading != nil {
		b.Own = reading.Body.(*Opinion)
	}
	for _, earlier := range t.sessions {
		if earlier.Phase == Discussion && earlier != s {
			r := t.round(earlier)
			r.ConsensusCheck = ConsensusResult{} // jurors are not shown checks
			b.Rounds = append(b.Rounds, r)
		}
	}
	if own := t.own(s, seat); own != nil {
		b.Last = own.copy()
	}
	return b.clone(), nil
}

// own returns the juror's own evaluation (not a stand-in), or nil.
func (t *Tally) own(s *session, seat int) *Evaluation {
	e := t.evaluationOf(s, seat)
	if e == nil || e.Fallback {
		return nil
	}
	return e
}
