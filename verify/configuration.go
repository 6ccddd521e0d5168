package verify

import (
	"bytes"
	"slices"

	"jurat/evidence"
	"jurat/jury"
)

// configuration checks whether records state which model and parameters made them, under a valid signature. Whether
// the statement is true remains the actor's word.
func (c *check) configuration() {
	c.notes[Configuration] = "model, version and parameters are stated under the signature; that they are true is the actor's word"
	given := newSeats(c.byDigest)
	unsound := c.unsound()
	compared := false
	for _, r := range c.all {
		if !statesModel(r) {
			continue
		}
		if f := unsound[recordName(r)]; f != nil {
			c.doubt(Configuration, "rests", r, "it rests on a signature of which %s is %s", f.Guarantee, f.Status)
		}
		p := &r.Payload
		switch {
		case p.ActionType == evidence.ChainStep:
			c.stated(r)
		case p.ActionType.InTrial():
			compared = true
			c.found(r, given.Against(r))
		}
	}
	if compared {
		c.notes[Configuration] += "; jurors and judge have the models and parameters of their seats"
	}
}

// unsound finds, for each record, the worst finding about its content or authorship.
func (c *check) unsound() map[string]*Finding {
	found := map[string]*Finding{}
	for i := range c.findings {
		f := &c.findings[i]
		if f.Guarantee != Content && f.Guarantee != Authentication {
			continue
		}
		if worst := found[f.Record]; worst == nil || f.Status.Worse(worst.Status) {
			found[f.Record] = f
		}
	}
	return found
}

// stated requires a model, a version and parameters. A step in a chain may leave them out; then they are not proved.
func (c *check) stated(r *evidence.Record) {
	p := &r.Payload
	if p.Model == "" || p.ModelVersion == "" || len(p.Parameters) == 0 {
		c.doubt(Configuration, "unstated", r, "it does not state all of model, version and parameters")
	}
}

// statesModel reports whether a record states, or should state, which model made it.
func statesModel(r *evidence.Record) bool {
	switch r.Payload.ActionType {
	case evidence.ModelOutput, evidence.Recommendation, evidence.Proposal, evidence.Instruction, evidence.APICall,
		evidence.ToolPlan, evidence.Message, evidence.ChainStep, evidence.Evaluation, evidence.Statement, evidence.JudgeOpinion:
		return true
	}
	return false
}

// seats reads each opening once and remembers it.
type seats struct {
	byDigest map[evidence.Digest]*evidence.Record
	read     map[evidence.Digest]*jury.Settings // nil: not an opening
}

// newSeats returns the seats that the openings among these records give.
func newSeats(byDigest map[evidence.Digest]*evidence.Record) *seats {
	return &seats{byDigest: byDigest, read: map[evidence.Digest]*jury.Settings{}}
}

// Against compares what an act of a juror or judge says about its model with the seat that the opening gives it. It
// returns nil if the two agree. It skips a stand-in: the clerk makes it without a model.
func (s *seats) Against(r *evidence.Record) *Finding {
	p, seat := &r.Payload, s.of(r)
	fits := seat != nil && sameObject(p.Parameters, seat.Parameters) && jury.IsModel(p.Model, seat.Model)
	switch {
	case fits || stoodIn(r):
		return nil
	case seat == nil:
		return found(Configuration, NotProved, "seat", "the file has no opening that gives %q a seat", p.AgentID)
	case !sameObject(p.Parameters, seat.Parameters):
		return found(Configuration, Refuted, "parameters", "%q answers with the parameters %s, and its seat has %s", p.AgentID, p.Parameters, seat.Parameters)
	}
	return found(Configuration, NotProved, "model", "%q answers with the model %q, and its seat has %q", p.AgentID, p.Model, seat.Model)
}

// of returns the seat of an act's actor, from the opening that the act names as its previous record. It returns nil
// if there is none.
func (s *seats) of(r *evidence.Record) *jury.Seat {
	settings := s.settings(r.Payload.PreviousRecord)
	if settings == nil {
		return nil
	}
	if r.Payload.ActionType == evidence.JudgeOpinion {
		if settings.Judge == nil || settings.Judge.JurorID != r.Payload.AgentID {
			return nil
		}
		return settings.Judge
	}
	i := slices.IndexFunc(settings.Seats, func(seat jury.Seat) bool { return seat.JurorID == r.Payload.AgentID })
	if i < 0 {
		return nil
	}
	return &settings.Seats[i]
}

func (s *seats) settings(opening evidence.Digest) *jury.Settings {
	if settings, read := s.read[opening]; read {
		return settings
	}
	s.read[opening] = nil
	r := s.byDigest[opening]
	if r == nil || r.Payload.ActionType != evidence.PhaseOpening {
		return nil
	}
	if body, err := jury.DecodeBody(r.Payload.ActionType, r.Payload.Response); err == nil {
		s.read[opening] = &body.(*jury.Opening).Settings
	}
	return s.read[opening]
}

// sameObject compares JSON objects by value. An absent object equals an empty one.
func sameObject(a, b []byte) bool {
	forms := [2][]byte{}
	for i, value := range [][]byte{a, b} {
		if len(value) == 0 {
			value = []byte("{}")
		}
		form, err := evidence.Canonical(value)
		if err != nil {
			return false
		}
		forms[i] = form
	}
	return bytes.Equal(forms[0], forms[1])
}

// stoodIn reports whether an act is the stand-in for a juror that a filter blocked. The rules of the trial check
// whether it may be one.
func stoodIn(r *evidence.Record) bool {
	body, err := jury.DecodeBody(r.Payload.ActionType, r.Payload.Response)
	if err != nil {
		return false
	}
	switch body := body.(type) {
	case *jury.Evaluation:
		return body.Fallback
	case *jury.Statement:
		return body.UpdatedEvaluation != nil && body.UpdatedEvaluation.Fallback
	}
	return false
}
