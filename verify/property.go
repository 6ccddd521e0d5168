package verify

import (
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/plural"
	"jurat/verify/properties"
)

// Bounds of Report.Properties.
const (
	maxShown     = 1000
	maxShownSize = 1 << 20 // bytes of statements
)

// carriedProofs sums up the proofs that a file's records carry.
type carriedProofs struct {
	carried, proved int
	known           properties.Known
	shown           []properties.Shown
	size            int
}

// takeProofs keeps what the proofs of the next record show.
func (c *check) takeProofs(r *evidence.Record, found properties.Found) {
	p := &c.proofs
	p.carried += found.Carried
	p.known.Add(r)
	for i := range found.Shown {
		c.takeProof(r.Payload.RecordID, &found.Shown[i], nil)
	}
	for i := range found.Doubts {
		c.takeProof(r.Payload.RecordID, nil, &found.Doubts[i])
	}
	if doubt := p.known.Later(found.Open); doubt != nil {
		c.takeProof(r.Payload.RecordID, nil, doubt)
	}
}

func (c *check) takeProof(record string, shown *properties.Shown, doubt *properties.Doubt) {
	p := &c.proofs
	switch {
	case doubt != nil && doubt.Refuted:
		c.findings = c.keep(c.findings, Finding{Property, Refuted, doubt.Rule, record, inOneLine(doubt.Reason)})
	case doubt != nil:
		c.findings = c.keep(c.findings, Finding{Property, NotProved, doubt.Rule, record, inOneLine(doubt.Reason)})
	default:
		p.proved++
		if p.size += len(shown.Statement); p.size <= maxShownSize && len(p.shown) < maxShown {
			p.shown = append(p.shown, *shown)
		}
	}
}

// jointProofs checks the proofs about several records. Whoever requires properties wants to see one.
func (c *check) jointProofs() {
	c.proofs.known.Joint(c.takeProof)
	if c.proofs.carried == 0 && slices.Contains(c.options.Require, Property) {
		c.doubt(Property, "missing", nil, "no record carries a proof of a property")
	}
	c.notes[Property] = fmt.Sprintf("%s %s, about values to which the actors committed; they chose these values, and nothing shows that they are true. It holds while discrete logarithms on P-256 are hard",
		plural.Of(c.proofs.proved, "proof"), plural.Or(c.proofs.proved, "holds", "hold"))
}
