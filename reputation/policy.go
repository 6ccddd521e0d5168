package reputation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// PolicyFormat is the version of the policy format that this package reads and writes.
const PolicyFormat = "jurat/reputation-policy/v1"

// Limits of a policy.
const (
	Minimum    = 10 // no policy can show a number for less weight
	maxMinimum = 1_000_000
	maxListed  = 10_000 // of each list
)

// A Policy is what a reader decides beside the trust file: whose word counts. DefaultPolicy
// is that of a reader who brings none.
type Policy struct {
	Format        string            `json:"format"`
	Minimum       int64             `json:"minimum"`        // below this weight there is no number; at least 10
	Clock         Clock             `json:"clock"`          // whose time counts
	RuleJuries    bool              `json:"rule_juries"`    // true: trials before rules give a number, too
	AfterOverturn bool              `json:"after_overturn"` // true: a verdict that a person overturned gives way to a later one
	Panels        []evidence.Digest `json:"panels"`         // only these panels of models count; empty: all
	SharedCAs     []string          `json:"shared_cas"`     // CAs that certify for many organisations: sharing one does not make two organisations neighbours
	Organisations []Organisation    `json:"organisations"`  // who belongs together, as far as the reader knows
}

// Clock says which proved times count.
type Clock string

const (
	AnyClock    Clock = "any"         // the earliest proved time
	Independent Clock = "independent" // the earliest by an authority whose clock is not the operator's
)

// An Organisation is a group of actors that do not judge each other: those named, and all whom one of its CAs certified.
type Organisation struct {
	Name   string   `json:"name"`
	Actors []Actor  `json:"actors"`
	CAs    []string `json:"cas"`
}

// An Actor is a name in a role.
type Actor struct {
	Role evidence.Role `json:"role"`
	Name string        `json:"name"`
}

// DefaultPolicy is the policy of a reader who brings none.
func DefaultPolicy() *Policy {
	return &Policy{Format: PolicyFormat, Minimum: Minimum, Clock: AnyClock,
		Panels: []evidence.Digest{}, SharedCAs: []string{}, Organisations: []Organisation{}}
}

// ParsePolicy reads a policy file. Members that are left out have their default. It returns an error for unknown members
// and values out of range.
func ParsePolicy(doc []byte) (*Policy, error) {
	form, err := evidence.Canonical(evidence.CutMark(doc))
	if err != nil {
		return nil, fmt.Errorf("reading policy: %w", err)
	}
	p := DefaultPolicy()
	p.Format = ""
	if err := json.Unmarshal(form, p, json.RejectUnknownMembers(true)); err != nil {
		if wrong, ok := errors.AsType[*json.SemanticError](err); ok && wrong.JSONPointer == "/half_life_days" {
			return nil, errors.New("reading policy: half_life_days: old records weigh as much as new ones; leave it out, and see the counts of each month in the result")
		}
		return nil, fmt.Errorf("reading policy: %w", evidence.Steady(err))
	}
	p.tidy()
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("reading policy: %w", err)
	}
	return p, nil
}

// tidy writes empty lists in their one form.
func (p *Policy) tidy() {
	p.Panels, p.SharedCAs, p.Organisations = filled(p.Panels), filled(p.SharedCAs), filled(p.Organisations)
	for i := range p.Organisations {
		o := &p.Organisations[i]
		o.Actors, o.CAs = filled(o.Actors), filled(o.CAs)
	}
}

func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (p *Policy) check() error {
	switch {
	case p.Format != PolicyFormat:
		return fmt.Errorf("format is %q, want %q", evidence.Abbreviate(p.Format), PolicyFormat)
	case p.Minimum < Minimum || p.Minimum > maxMinimum:
		return fmt.Errorf("minimum is %d, want %d to %d: fewer observations give no number worth reading", p.Minimum, Minimum, maxMinimum)
	case p.Clock != AnyClock && p.Clock != Independent:
		return fmt.Errorf("clock is %q, want %q or %q", evidence.Abbreviate(string(p.Clock)), AnyClock, Independent)
	case max(len(p.Panels), len(p.SharedCAs), len(p.Organisations)) > maxListed:
		return fmt.Errorf("a list has more than %d members", maxListed)
	}
	for i, o := range p.Organisations {
		if err := o.check(); err != nil {
			return fmt.Errorf("organisations/%d: %w", i, err)
		}
	}
	return nil
}

func (o *Organisation) check() error {
	if o.Name == "" {
		return errors.New("name is empty")
	}
	if len(o.Actors)+len(o.CAs) == 0 {
		return errors.New("it has neither actors nor cas")
	}
	if max(len(o.Actors), len(o.CAs)) > maxListed {
		return fmt.Errorf("a list has more than %d members", maxListed)
	}
	for i, a := range o.Actors {
		if a.Name == "" || !slices.Contains(evidence.Roles(), a.Role) {
			return fmt.Errorf("actors/%d: want a name and a role of %v", i, evidence.Roles())
		}
	}
	return nil
}

// Fingerprint returns the digest of the policy's canonical form, in which nothing is left out. It fails for text that is
// not valid UTF-8.
func (p *Policy) Fingerprint() (evidence.Digest, error) {
	form, err := canonical(p)
	return evidence.DigestOf(form), err
}

func canonical(v any) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	form := jsontext.Value(doc)
	return form, form.Canonicalize()
}
