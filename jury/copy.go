package jury

import (
	"maps"
	"slices"
)

// Copies are deep, so that a juror cannot change what another juror or the record holds. Nil lists become empty
// lists, as in JSON.

func copied[T any](list []T, clone func(T) T) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = clone(v)
	}
	return out
}

func flat[T any](list []T) []T { return append([]T{}, list...) }

func (o Opinion) clone() Opinion {
	scores := Scores{}
	maps.Copy(scores, o.AxisScores)
	o.AxisScores = scores
	o.Findings = flat(o.Findings)
	o.Levels = maps.Clone(o.Levels)
	o.Work = o.Work.Clone()
	return o
}

func (o *Opinion) copy() *Opinion {
	if o == nil {
		return nil
	}
	return new(o.clone())
}

// Clone returns a copy of tables that shares nothing with them; nil of nil.
func (w *Work) Clone() *Work {
	if w == nil {
		return nil
	}
	return &Work{Requests: copied(w.Requests, WorkRequest.clone), Acts: copied(w.Acts, WorkAct.clone), Amounts: copied(w.Amounts, WorkAmount.clone)}
}

func (r WorkRequest) clone() WorkRequest {
	r.Shown = r.Shown.copy()
	return r
}

func (a WorkAct) clone() WorkAct {
	a.Clause, a.Fact = a.Clause.copy(), a.Fact.copy()
	return a
}

func (a WorkAmount) clone() WorkAmount {
	a.Announced, a.Charged = a.Announced.copy(), a.Charged.copy()
	return a
}

func (p *Passage) copy() *Passage {
	if p == nil {
		return nil
	}
	return new(*p)
}

func (a Axis) clone() Axis {
	a.Levels = slices.Clone(a.Levels)
	return a
}

func (e Evaluation) clone() Evaluation {
	e.Opinion = e.Opinion.clone()
	return e
}

func (e *Evaluation) copy() *Evaluation {
	if e == nil {
		return nil
	}
	return new(e.clone())
}

func (s Statement) clone() Statement {
	s.UpdatedEvaluation = s.UpdatedEvaluation.copy()
	return s
}

func (c ConsensusResult) clone() ConsensusResult {
	if c.MajorityPosition != nil {
		c.MajorityPosition = new(*c.MajorityPosition)
	}
	return c
}

func (r Round) clone() Round {
	r.Statements = copied(r.Statements, Statement.clone)
	r.ConsensusCheck = r.ConsensusCheck.clone()
	r.SpeakerOrder = flat(r.SpeakerOrder)
	return r
}

func (v Vote) clone() Vote {
	if v.Position != nil {
		v.Position = new(*v.Position)
	}
	return v
}

func (j Judgment) clone() Judgment {
	scores := Scores{}
	maps.Copy(scores, j.AxisScores)
	j.AxisScores = scores
	j.Votes = copied(j.Votes, Vote.clone)
	j.Vetoes = slices.Clone(j.Vetoes)
	j.Review = slices.Clone(j.Review)
	if j.AfterTalk != nil {
		j.AfterTalk = new(*j.AfterTalk)
	}
	return j
}

func (seat Seat) clone() Seat {
	seat.Parameters = slices.Clone(seat.Parameters)
	if seat.Ended != nil {
		seat.Ended = new(*seat.Ended)
	}
	return seat
}

func (s *Shortening) copy() *Shortening {
	if s == nil {
		return nil
	}
	return new(*s)
}

func (s Settings) clone() Settings {
	s.Seats = copied(s.Seats, Seat.clone)
	if s.Judge != nil {
		s.Judge = new(s.Judge.clone())
	}
	s.Rubric = copied(s.Rubric, Axis.clone)
	s.Weights = maps.Clone(s.Weights)
	s.Shortening = s.Shortening.copy()
	return s
}
