package jury

import "slices"

// tell adds to the result how the jury stood after phase 1 and at the end of the discussion, and which jurors changed
// in between.
func (t *Tally) tell(r *Result) {
	standing := make([]*Evaluation, len(t.settings.Seats))
	for _, s := range t.sessions {
		before := slices.Clone(standing)
		for i, answer := range s.answers {
			if answer == nil || s.Phase == Judging {
				continue
			}
			switch body := answer.Body.(type) {
			case *Evaluation:
				place := s.places[i]
				standing[place] = afterHearing(s, before[place], body)
			case *Statement:
				if body.PositionChanged {
					r.Changes = append(r.Changes, t.change(i, before, body))
				}
				if body.UpdatedEvaluation != nil {
					standing[i] = body.UpdatedEvaluation
				}
			}
		}
		if s.Phase == Initial {
			r.Phase1Verdict = prevailing(standing)
		}
	}
	r.DiscussionVerdict = prevailing(standing)
}

// prevailing is the most common position. It is needs_review if there is a tie.
func prevailing(standing []*Evaluation) Position {
	if top, _ := plurality(positionsOf(standing)); len(top) == 1 {
		return top[0]
	}
	return NeedsReview
}

// change describes a juror's change of position, compared with the evaluations before the round.
func (t *Tally) change(seat int, before []*Evaluation, s *Statement) Change {
	c := Change{JurorID: s.JurorID, RoundNumber: s.RoundNumber, From: before[seat].Position, To: s.Position,
		Toward: []string{}, Cites: []Finding{}}
	held := 0
	for i, e := range before {
		if e == nil {
			continue
		}
		held++
		if i != seat && e.Position == s.Position {
			c.Toward = append(c.Toward, t.settings.Seats[i].JurorID)
		}
	}
	c.ToMajority = 2*len(c.Toward) > held
	if s.UpdatedEvaluation != nil {
		c.Cites = fresh(s.UpdatedEvaluation.Findings, before[seat].Findings)
	}
	c.Unsupported = len(c.Cites) == 0
	return c
}

// fresh returns the findings that point to a place in the evidence to which none of the old findings points.
func fresh(now, old []Finding) []Finding {
	list := []Finding{}
	for _, f := range now {
		known := slices.ContainsFunc(old, func(o Finding) bool { return o.Message == f.Message && o.Quote == f.Quote })
		if !known && !f.Unfounded {
			list = append(list, f)
		}
	}
	return list
}
