package verify

import (
	"fmt"
	"slices"

	"jurat/internal/plural"
)

// doubted keeps why a carried proof shows nothing, or a demand is not met.
func (c *check) doubted(record string, d *proofDoubt) {
	status := NotProved
	if d.Refuted {
		status = Refuted
	}
	c.findings = c.keep(c.findings, Finding{Property, status, d.Rule, record, inOneLine(d.Reason)})
}

// proven sums up the proofs. A reader who requires properties, and does not say which, wants to see one.
func (c *check) proven() {
	if c.proofs.Carried == 0 && slices.Contains(c.options.Require, Property) {
		c.doubt(Property, "missing", nil, "no record carries a proof of a property")
	}
	if c.proofs.Carried == 0 {
		c.notes[Property] = "the values that the file shows are as demanded"
		return
	}
	c.notes[Property] = fmt.Sprintf("%s %s, about values to which the actors committed; they chose these values, and nothing shows that they are true. It holds while discrete logarithms on P-256 are hard",
		plural.Of(c.proofs.Proved, "proof"), plural.Or(c.proofs.Proved, "holds", "hold"))
}

// demands says what came of the reader's demands. That is known when all else is.
func (c *check) demands() []DemandAnswer { return c.proofs.Answers() }
