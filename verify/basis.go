package verify

import (
	"fmt"
	"slices"

	"jurat/verify/trust"
)

// Demanded is what the reader demands besides what counts by default.
type Demanded struct {
	Need
	Guarantees []Guarantee `json:"guarantees,omitempty"`
	File       *PolicyFile `json:"policy_file,omitzero"` // nil: it came from no policy file, or not all of it
}

// demanded returns what the reader demands; nil: nothing.
func (o *Options) demanded() *Demanded {
	if o.Need == (Need{}) && len(o.Require) == 0 && o.PolicyFile == nil {
		return nil
	}
	return &Demanded{Need: o.Need, Guarantees: o.Require, File: o.PolicyFile}
}

// Adopt takes over what a policy file demands, besides what the reader demands already. An error names the demand that cannot be read.
func (o *Options) Adopt(p *PolicyTerms) error {
	demands, err := demandsOf(p)
	if err != nil {
		return err
	}
	if o.Need, err = p.Need.With(o.Need); err != nil {
		return err
	}
	if p.Strict {
		o.Policy = Strict
	}
	o.Require, o.Demands, o.PolicyFile = append(slices.Clone(p.Require), o.Require...), append(demands, o.Demands...), p.File()
	return nil
}

// party notes who keeps the keys of a role.
func (c *check) party(identified []trust.Identified) {
	for _, i := range identified {
		c.parties = AddParty(c.parties, Party{Role: i.Role, Custody: i.Custody, By: i.By})
	}
}

// rate fills in what the proof rests on. What the reader demands of that counts for the outcome.
func (c *check) rate(r *Report) {
	if c.kind == SeveralFiles {
		return
	}
	isProved := func(g Guarantee) bool { return !c.applies(g) || r.Of(g).Status == Proved }
	f := Facts{LogOnly: c.kind == OneCheckpoint, Log: c.basisOfLog(r)}
	f.OwnWord = len(c.ownWord) > 0
	f.Signed = isProved(Content) && isProved(Authentication) && (!f.LogOnly || isProved(Order))
	f.Proved = !slices.ContainsFunc(Required(c.kind), func(g Guarantee) bool { return !isProved(g) }) &&
		!slices.ContainsFunc(r.Guarantees, func(f Finding) bool { return f.Status == Refuted })
	if f.Signed && !f.LogOnly {
		f.Keys, f.Parties, f.Time = c.basisOfKeys(r), c.parties, c.basisOfTime(r)
	}
	r.Basis = Rate(f)
	if r.Basis.Unmet = c.options.Need.Unmet(r.Basis, f.LogOnly); len(r.Basis.Unmet) > 0 && r.Outcome == Proved {
		r.Outcome = NotProved
	}
}

func (c *check) basisOfKeys(r *Report) Keys {
	switch byCA := func(p Party) bool { return p.By == trust.ByCA }; {
	case r.Of(NonRepudiation).Status != Proved:
		return KeysByOperator
	case slices.ContainsFunc(c.parties, byCA):
		return KeysByCA
	}
	return KeysByOwner
}

func (c *check) basisOfTime(r *Report) Clock {
	if r.Of(Time).Status != Proved || len(c.times) == 0 {
		return ""
	}
	weakest := QualifiedClock
	for _, t := range c.times {
		clock := OperatorClock
		switch independent := t.Clock == trust.Independent || t.Independent != nil; {
		case independent && t.Qualified != nil:
			clock = QualifiedClock
		case independent:
			clock = IndependentClock
		}
		weakest = weakest.Weaker(clock)
	}
	return weakest
}

// basisOfLog says who saw the log. Entries alone are compared with the file's own checkpoint, which its sender chose.
func (c *check) basisOfLog(r *Report) Log {
	switch witnessed, compared := c.witnesses != "", c.known != nil && c.options.Checkpoint != ""; {
	case c.log == nil || r.Of(Order).Status != Proved:
		return ""
	case witnessed && compared:
		return LogBoth
	case witnessed:
		return LogWitnessed
	case compared:
		return LogCompared
	}
	return LogAlone
}

// demandsOf reads the demands of a policy file.
func demandsOf(p *PolicyTerms) ([]*Demand, error) {
	var demands []*Demand
	for i, d := range p.Demands {
		demand, err := ParseDemand(d.Demand)
		if err != nil {
			return nil, fmt.Errorf("demands/%d: %w", i, err)
		}
		demand.Audience = d.Audience
		demands = append(demands, demand)
	}
	return demands, nil
}
