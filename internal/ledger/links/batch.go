package links

import (
	"context"
	"fmt"

	"jurat/evidence"
	"jurat/verify"
)

// A Batch is what the links of the records of one transaction are judged by. What is let in is added.
type Batch struct {
	known    *Known
	chains   map[string]*chainState
	grown    map[string]bool // chains to which something was added
	prepared map[*Judging]bool
	reviewed bool // a review was let in
}

// Begin returns a batch in which nothing is.
func (k *Known) Begin() *Batch {
	return &Batch{known: k, chains: map[string]*chainState{}, grown: map[string]bool{}, prepared: map[*Judging]bool{}}
}

// Prepare brings up to date by what a record is judged, before anybody is kept from appending.
func (b *Batch) Prepare(ctx context.Context, j *Judging) error {
	s, err := b.known.prepare(ctx, j, maxCatchUp)
	if err != nil {
		return fmt.Errorf("judging record %s: %w", j.link.Payload().RecordID, err)
	}
	if s != nil && b.chains[s.id] == nil {
		b.chains[s.id] = s.clone()
	}
	b.prepared[j] = true
	return nil
}

// Judge says what stands against a record's links, in a log of so many records of which so many are in the record's chain. The record is
// refused by what is committed alone: where a neighbour would have a part in it, Judge returns ErrMoved.
func (b *Batch) Judge(j *Judging, size int64, inChain map[string]int64) error {
	var s *chainState
	if chain := j.link.Payload().ChainID; chain != "" {
		if s = b.chains[chain]; s == nil || s.count != inChain[chain] {
			return ErrMoved
		}
	}
	if !b.prepared[j] || j.upTo >= 0 && (j.upTo != size || b.reviewed) {
		return ErrMoved
	}
	err := j.judge(s)
	if err != nil && s != nil && b.grown[s.id] {
		return ErrMoved
	}
	return err
}

// Add notes a record that was let in, at its index.
func (b *Batch) Add(index int64, r *evidence.Record) {
	b.reviewed = b.reviewed || r.Payload.ActionType == evidence.HumanReview
	if s := b.chains[r.Payload.ChainID]; s != nil && r.Payload.ChainID != "" {
		s.add(index, &placedLink{index, verify.Link(r)})
		b.grown[s.id] = true
	}
}

// Commit keeps what is known of the chains that have grown: the transaction is durable.
func (b *Batch) Commit() {
	for chain := range b.grown {
		b.known.put(b.chains[chain])
	}
}
