package verify

import (
	"jurat/evidence"
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
			c.asSeated(r, given)
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

// asSeated compares what an act of a juror or judge says about its model with the seat that the opening gives it.
func (c *check) asSeated(r *evidence.Record, given *seats) {
	if f := given.Against(r); f != nil {
		c.add(Configuration, f.Status, f.Rule, r, "%s", f.Reason)
	}
}
