package verify

import (
	"slices"

	"jurat/evidence"
)

// A Linked holds what the rules of chains and reviews need of a record: actor, time, ids, links, and the digests of
// its texts.
type Linked struct {
	record *evidence.Record
	said   spoken
}

// Link returns what the rules about links need of a record, without its texts.
func Link(r *evidence.Record) Linked {
	l := Linked{record: slim(r), said: spokenIn(r)}
	l.record.Log = nil
	p := &l.record.Payload
	p.Signers = slices.Clone(p.Signers)
	withoutTexts(l.record) // texts of a trial's acts, too
	return l
}

// Payload returns the record's payload without its texts. The caller must not change it.
func (l Linked) Payload() *evidence.Payload { return &l.record.Payload }

// Digest returns the digest of the record's payload.
func (l Linked) Digest() evidence.Digest { return l.record.Digest }

// Contradictions returns what the rules of chains and reviews would refute in a file of these records, in this order.
// A ledger calls it before it seals a record, because a contradiction in the log is permanent. It checks no
// signature, time stamp or place.
func Contradictions(file []Linked) (found []Finding) {
	c := newCheck(Options{}, ManyRecords)
	for _, l := range file {
		c.all = append(c.all, l.record)
		c.said[l.record] = l.said
	}
	c.graph = newGraph(c.all)
	c.byDigest = c.graph.ByDigest
	c.reviews()
	c.chain()
	for _, f := range c.findings {
		if f.Status == Refuted && (f.Guarantee == Chain || f.Guarantee == HumanReview) {
			found = append(found, f)
		}
	}
	return found
}
