package verify

import (
	"slices"

	"jurat/evidence"
	"jurat/verify/graph"
)

// A Linked is what the rules of chains and reviews need of a record: actor, time, ids, links, and the digests of its texts.
type Linked struct {
	record *evidence.Record
	said   graph.Spoken
}

// Link keeps of a record what its links are judged by, and none of its texts.
func Link(r *evidence.Record) Linked {
	l := Linked{record: slim(r), said: graph.SpokenIn(r)}
	l.record.Log = nil
	p := &l.record.Payload
	p.Signers = slices.Clone(p.Signers)
	withoutTexts(l.record) // of a trial's acts, too
	return l
}

// Payload is the record's, without its texts. It must not be changed.
func (l Linked) Payload() *evidence.Payload { return &l.record.Payload }

// Digest is that of the record's payload.
func (l Linked) Digest() evidence.Digest { return l.record.Digest }

// Contradictions returns what the rules of chains and reviews would refute of a file of these records, in this order. A ledger asks before
// it seals a record that would contradict another for ever. No signature, time stamp or place in a log is looked at.
func Contradictions(file []Linked) (found []Finding) {
	c := newCheck(Options{}, ManyRecords)
	for _, l := range file {
		c.all = append(c.all, l.record)
		c.said[l.record] = l.said
	}
	c.graph = graph.New(c.all)
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
