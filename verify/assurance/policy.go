package assurance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// PolicyFormat is the version of the format of policy files.
const PolicyFormat = "jurat/policy/v1"

// MaxPolicy is the size of the largest policy file, in bytes.
const MaxPolicy = 1 << 20

// A Policy is a reader's file that says how much must be proved. It comes from the reader, never from the file under verification.
type Policy struct {
	Format string `json:"format"`
	Name   string `json:"name,omitzero"` // for people; "": it has none

	Strict bool `json:"strict,omitzero"` // as the named policy
	Need

	Require []Guarantee `json:"require,omitempty"` // count for the outcome, too
	Demands []Demanded  `json:"demands,omitempty"` // of values

	fingerprint evidence.Digest
}

// Demanded is a demand on the values of records, as 'jurat verify --require' takes it.
type Demanded struct {
	Demand   string `json:"demand"`
	Audience string `json:"audience,omitzero"`
}

// PolicyFile says which policy file a report was made under.
type PolicyFile struct {
	Name        string          `json:"name,omitzero"`
	Fingerprint evidence.Digest `json:"fingerprint"`
}

// ParsePolicy reads a policy file. It returns an error for unknown members, for words that are none, and for a file that demands
// nothing.
func ParsePolicy(doc []byte) (*Policy, error) {
	form, err := evidence.Canonical(evidence.CutMark(doc))
	if err != nil {
		return nil, fmt.Errorf("reading policy: %w", err)
	}
	p := &Policy{fingerprint: evidence.DigestOf(form)}
	var said map[string]any
	if err := errors.Join(json.Unmarshal(form, p, json.RejectUnknownMembers(true)), json.Unmarshal(form, &said)); err != nil {
		return nil, fmt.Errorf("reading policy: %w", evidence.Steady(err))
	}
	for _, name := range []string{"level", "keys", "time", "log"} {
		if value, there := said[name]; there && (value == nil || value == "") { // a demand that was left blank is not one that was left out
			return nil, fmt.Errorf("reading policy: %s is empty: write a word, or leave it out", name)
		}
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("reading policy: %w", err)
	}
	return p, nil
}

func (p *Policy) check() error {
	if p.Format != PolicyFormat {
		return fmt.Errorf("format is %q, want %q", p.Format, PolicyFormat)
	}
	if err := p.Need.check(); err != nil {
		return err
	}
	for i, g := range p.Require {
		if !slices.Contains(Guarantees(), g) {
			return fmt.Errorf("require/%d: unknown guarantee %q: want one of %v", i, g, Guarantees())
		}
		if slices.Contains(p.Require[:i], g) {
			return fmt.Errorf("require/%d: %s is there twice", i, g)
		}
	}
	for i, d := range p.Demands {
		if d.Demand == "" {
			return fmt.Errorf("demands/%d: demand is empty", i)
		}
	}
	if !p.Strict && p.Need == (Need{}) && len(p.Require) == 0 && len(p.Demands) == 0 {
		return errors.New("it demands nothing: set level, keys, time, log, strict, require or demands, or leave the policy out")
	}
	return nil
}

// File says which file this is: for the report.
func (p *Policy) File() *PolicyFile { return &PolicyFile{Name: p.Name, Fingerprint: p.fingerprint} }
