package links

import (
	"context"
	"fmt"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/verify"
)

// A Batch is what the links of one transaction's records are judged by: committed records, and those accepted into
// the batch.
type Batch struct {
	known    *Known
	chains   map[string]*chainState
	grown    map[string]bool // chains to which something was added
	prepared map[*Judging]bool
	reviewed bool // a review was accepted
}

// Begin returns an empty batch.
func (k *Known) Begin() *Batch {
	return &Batch{known: k, chains: map[string]*chainState{}, grown: map[string]bool{}, prepared: map[*Judging]bool{}}
}

// Prepare updates what a record is judged by, before the transaction begins and other writers have to wait. Its
// errors are those of the store, wrapped.
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

// Judge returns an error, a *Error for example, if the log contradicts a record's links. size is the number of
// records in the log, inChain those in each chain. Only committed records can refuse a record: if a neighbour in the
// batch would have a part in it, Judge returns ErrMoved.
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

// Add adds a record that was accepted, at its index.
func (b *Batch) Add(index int64, r *evidence.Record) {
	b.reviewed = b.reviewed || r.Payload.ActionType == evidence.HumanReview
	if s := b.chains[r.Payload.ChainID]; s != nil && r.Payload.ChainID != "" {
		s.add(index, storage.ActorOf(&r.Payload), &placedLink{index, verify.Link(r)})
		b.grown[s.id] = true
	}
}

// Commit keeps the new state of the chains that have grown. The caller calls it after the transaction has committed.
func (b *Batch) Commit() {
	for chain := range b.grown {
		b.known.put(b.chains[chain])
	}
}
