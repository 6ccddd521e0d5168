package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/plural"
	"jurat/property"
)

// Bounds of proofs. MaxProofs bytes of statements and proofs of one record are checked, which take about 2 s; docs/format.md has the same number,
// because two verifiers must agree.
const (
	MaxProofs    = 512 << 10
	maxShown     = 1000    // statements that a report lists
	maxShownSize = 1 << 20 // bytes of these
)

// A ShownProperty is a statement that a carried proof shows.
type ShownProperty struct {
	Record    string         `json:"record"` // id of the record that carries the proof
	Statement jsontext.Value `json:"statement"`

	statement *property.Statement
}

// proofs is what the proofs of one record show, or those of a file.
type proofs struct {
	carried, proved int             // how many; of these, that hold
	shown           []ShownProperty // of a file: the first
	size            int             // bytes of all statements shown
	doubts          []*Finding      // of one record
	demands         []*demanded     // of a file
}

// proofsOf checks the proofs that a record carries. Many records can be checked at once.
func proofsOf(r *evidence.Record) (found proofs) {
	found.carried = len(r.Properties)
	size := 0
	for i, p := range r.Properties {
		size += len(p.Statement) + len(p.Proof)
		if size > MaxProofs {
			found.doubts = append(found.doubts, unshown("volume", "its proofs have more than %d bytes, and what is beyond is not checked", MaxProofs))
			break
		}
		if statement, doubt := checkProof(r, p, i); doubt != nil {
			found.doubts = append(found.doubts, doubt)
		} else {
			found.shown = append(found.shown, ShownProperty{r.Payload.RecordID, p.Statement, statement})
		}
	}
	return found
}

// unshown says why a carried proof shows nothing.
func unshown(rule, format string, args ...any) *Finding {
	return found(Property, NotProved, rule, format, args...)
}

// checkProof reads a statement, which must be about the record that carries it, and holds the proof against the record's commitment.
func checkProof(r *evidence.Record, p evidence.PropertyProof, i int) (*property.Statement, *Finding) {
	s, err := property.ParseStatement(p.Statement)
	if err != nil {
		return nil, unshown("statement", "proof %d: %v", i, err)
	}
	m := s.Members[0]
	if m.Record != r.Digest.String() {
		return nil, unshown("record", "proof %d is about another record, %s", i, m.Record)
	}
	at := slices.IndexFunc(r.Payload.Provable, func(known evidence.Provable) bool { return known.Pointer == m.Pointer && known.Kind == s.Kind })
	if at < 0 {
		return nil, unshown("unprovable", "it has no provable member of the kind %s at %s", s.Kind, evidence.Abbreviate(m.Pointer))
	}
	c, err := property.ParseCommitment(r.Payload.Provable[at].Commitment)
	if err != nil {
		return nil, unshown("unprovable", "%v", err) // cannot happen: opening refuses such a payload
	}
	err = property.Verify(s, c, p.Proof)
	switch {
	case errors.Is(err, property.ErrProof): // it is a proof of something else, or of nothing
		return nil, found(Property, Refuted, "proof", "the proof of %s does not hold: %v", s.Form, err)
	case err != nil:
		return nil, unshown("statement", "%v", err)
	}
	return s, nil
}

// prove takes in what the proofs of the next record show, and asks each demand of it.
func (c *check) prove(r *evidence.Record, found proofs, shows []member) {
	all := &c.proofs
	all.carried += found.carried
	for i, s := range shows {
		c.found(r, all.demands[i].ask(r, s))
	}
	for _, doubt := range found.doubts {
		c.found(r, doubt)
	}
	for _, shown := range found.shown {
		all.proved++
		for _, d := range all.demands {
			d.show(shown.statement)
		}
		if all.size += len(shown.Statement); all.size <= maxShownSize && len(all.shown) < maxShown {
			all.shown = append(all.shown, shown)
		}
	}
}

// proven sums up the proofs. A reader who requires properties, and does not say which, wants to see one.
func (c *check) proven() {
	n := c.proofs.proved
	c.notes[Property] = fmt.Sprintf("%s %s, about values to which the actors committed; they chose these values, and nothing shows that they are true. It holds while discrete logarithms on P-256 are hard",
		plural.Of(n, "proof"), plural.Or(n, "holds", "hold"))
	if c.proofs.carried == 0 {
		c.notes[Property] = "the values that the file shows are as demanded"
		if slices.Contains(c.options.Require, Property) {
			c.doubt(Property, "missing", nil, "no record carries a proof of a property")
		}
	}
}

// demands says what came of the reader's demands. That is known when all else is.
func (c *check) demands() (answers []DemandAnswer) {
	doubt := func(rule, record, format string, args ...any) {
		f := unshown(rule, format, args...)
		f.Record = record
		c.findings = c.keep(c.findings, *f)
	}
	for _, d := range c.proofs.demands {
		answers = append(answers, d.answer(doubt))
	}
	return answers
}
