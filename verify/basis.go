package verify

import (
	"fmt"
	"slices"

	"jurat/verify/assurance"
	"jurat/verify/trust"
)

// Demanded is what the reader demands besides what counts by default.
type Demanded struct {
	assurance.Need
	Guarantees []Guarantee           `json:"guarantees,omitempty"`
	File       *assurance.PolicyFile `json:"policy_file,omitzero"` // nil: it came from no policy file, or not all of it
}

// demanded returns what the reader demands; nil: nothing.
func (o *Options) demanded() *Demanded {
	if o.Need == (assurance.Need{}) && len(o.Require) == 0 && o.PolicyFile == nil {
		return nil
	}
	return &Demanded{Need: o.Need, Guarantees: o.Require, File: o.PolicyFile}
}

// Adopt takes over what a policy file demands, besides what the reader demands already. An error names the demand that cannot be read.
func (o *Options) Adopt(p *assurance.Policy) error {
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
		c.parties = assurance.AddParty(c.parties, assurance.Party{Role: i.Role, Custody: i.Custody, By: i.By})
	}
}

// rate fills in what the proof rests on. What the reader demands of that counts for the outcome.
func (c *check) rate(r *Report) {
	if c.kind == SeveralFiles {
		return
	}
	isProved := func(g Guarantee) bool { return !c.applies(g) || r.Of(g).Status == Proved }
	f := assurance.Facts{LogOnly: c.kind == OneCheckpoint, Log: c.basisOfLog(r)}
	f.OwnWord = len(c.ownWord) > 0
	f.Signed = isProved(Content) && isProved(Authentication) && (!f.LogOnly || isProved(Order))
	f.Proved = !slices.ContainsFunc(assurance.Required(c.kind), func(g Guarantee) bool { return !isProved(g) }) &&
		!slices.ContainsFunc(r.Guarantees, func(f Finding) bool { return f.Status == Refuted })
	if f.Signed && !f.LogOnly {
		f.Keys, f.Parties, f.Time = c.basisOfKeys(r), c.parties, c.basisOfTime(r)
	}
	r.Basis = assurance.Rate(f)
	if r.Basis.Unmet = c.options.Need.Unmet(r.Basis, f.LogOnly); len(r.Basis.Unmet) > 0 && r.Outcome == Proved {
		r.Outcome = NotProved
	}
}

func (c *check) basisOfKeys(r *Report) assurance.Keys {
	switch byCA := func(p assurance.Party) bool { return p.By == trust.ByCA }; {
	case r.Of(NonRepudiation).Status != Proved:
		return assurance.ByOperator
	case slices.ContainsFunc(c.parties, byCA):
		return assurance.ByCA
	}
	return assurance.ByOwner
}

func (c *check) basisOfTime(r *Report) assurance.Clock {
	if r.Of(Time).Status != Proved || len(c.times) == 0 {
		return ""
	}
	weakest := assurance.QualifiedClock
	for _, t := range c.times {
		clock := assurance.OperatorClock
		switch independent := t.Clock == trust.Independent || t.Independent != nil; {
		case independent && t.Qualified != nil:
			clock = assurance.QualifiedClock
		case independent:
			clock = assurance.IndependentClock
		}
		weakest = weakest.Weaker(clock)
	}
	return weakest
}

// basisOfLog says who saw the log. Entries alone are compared with the file's own checkpoint, which its sender chose.
func (c *check) basisOfLog(r *Report) assurance.Log {
	switch witnessed, compared := c.witnesses != "", c.known != nil && c.options.Checkpoint != ""; {
	case c.log == nil || r.Of(Order).Status != Proved:
		return ""
	case witnessed && compared:
		return assurance.Both
	case witnessed:
		return assurance.Witness
	case compared:
		return assurance.Compared
	}
	return assurance.Alone
}

// demandsOf reads the demands of a policy file.
func demandsOf(p *assurance.Policy) ([]*Demand, error) {
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
