package jury

import "jurat/evidence"

// disputed lists the seats that are asked a second time after phase 1: those of models with a valid vote that do not
// hold the majority's position. Without a majority these are all seats of models with a valid vote.
func (t *Tally) disputed() []Seat {
	if !t.settings.Repeat || t.ceilinged() || validVotes(t.standing) < quorum {
		return nil
	}
	majority := Consensus(positionsOf(t.firstVotes()), 0, false).MajorityPosition
	var seats []Seat
	for place, e := range t.firstVotes() {
		seat := t.settings.Seats[place]
		if e == nil || e.Fallback || seat.Provider == Offline || majority != nil && e.Position == *majority {
			continue
		}
		seats = append(seats, seat)
	}
	return seats
}

// firstVotes are the evaluations of phase 1 by seat, also after the repetition.
func (t *Tally) firstVotes() []*Evaluation {
	votes := make([]*Evaluation, len(t.settings.Seats))
	first := t.sessions[0]
	for i, a := range first.answers {
		if a != nil && first.places[i] != judgePlace {
			votes[first.places[i]], _ = a.Body.(*Evaluation)
		}
	}
	return votes
}

// evaluated takes an evaluation of phase 1 or of the repetition.
func (t *Tally) evaluated(s *session, place int, e *Evaluation) {
	t.standing[place] = afterHearing(s, t.standing[place], e)
	t.abstains[place] = t.standing[place] == nil
}

// afterHearing returns the evaluation of a seat that counts after it gave this one. It returns nil if the seat was asked
// again and took another position: then it abstains.
func afterHearing(s *session, last, e *Evaluation) *Evaluation {
	if s.Phase == Repetition && last != nil && last.Position != e.Position {
		return nil
	}
	return e
}

// reading is the judge's answer in phase 1, before it knew the jury's view; nil if there is none.
func (t *Tally) reading() *Act {
	if len(t.sessions) == 0 {
		return nil
	}
	for _, a := range t.sessions[0].answers {
		if a != nil && a.Type == evidence.JudgeOpinion {
			return a
		}
	}
	return nil
}
