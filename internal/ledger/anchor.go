package ledger

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/fault"
	"jurat/internal/ledger/storage"
)

// Unanchored returns the checkpoint that an authority should stamp next. It returns "" if the authority has stamped
// one over every record that a checkpoint of this log covers. It ignores the acts about stamped checkpoints at the
// end of the log, because each would require another stamp.
//
// If another authority has stamped a checkpoint that covers enough, Unanchored returns that one, so that one
// checkpoint gets several stamps.
func (l *Ledger) Unanchored(ctx context.Context, authority, checkpoint string) (_ string, err error) {
	defer fault.While(&err, "looking for a stamped checkpoint")
	size, err := l.SizeAt(ctx, checkpoint)
	if err != nil {
		return "", err
	}
	if size, err = l.withoutStamps(ctx, size); err != nil || size == 0 {
		return "", err
	}
	for stamped, err := range l.stampedFrom(ctx, size) {
		switch {
		case err != nil:
			return "", err
		case stamped.head.Size < size || len(stamped.body.Renews) > 0:
		case stamped.body.Authority == authority:
			return "", nil
		default:
			checkpoint = stamped.body.Checkpoint
		}
	}
	return checkpoint, nil
}

// withoutStamps returns size, less the checkpoint_stamp acts at the end of the first size records.
func (l *Ledger) withoutStamps(ctx context.Context, size int64) (int64, error) {
	for size > 0 {
		from := max(0, size-pageSize)
		page, err := l.page(ctx, from, size-from)
		if err != nil {
			return 0, err
		}
		for _, record := range slices.Backward(page) {
			if record.Index != size-1 || record.Payload.ActionType != evidence.CheckpointStamp { // an expired record was no such act
				return size, nil
			}
			size--
		}
		if size > from {
			break
		}
	}
	return size, nil
}

// A stamped is the content of a checkpoint_stamp act.
type stamped struct {
	body *operator.CheckpointStampBody
	head storage.Head
}

// stampedFrom yields the checkpoint_stamp acts from an index on. An act about a checkpoint comes after all records
// that the checkpoint covers.
func (l *Ledger) stampedFrom(ctx context.Context, from int64) iter.Seq2[stamped, error] {
	return func(yield func(stamped, error) bool) {
		for {
			acts, next, err := l.InChain(ctx, operator.CheckpointsChain, from)
			if err != nil {
				yield(stamped{}, err)
				return
			}
			for _, act := range acts {
				body, head, err := l.stampedBy(act)
				if !yield(stamped{body, head}, err) || err != nil {
					return
				}
			}
			if from = next; len(acts) < pageSize {
				return
			}
		}
	}
}

// stampedBy reads a checkpoint_stamp act, and checks that its checkpoint is of this log. It returns ErrDamaged if it
// cannot be read.
func (l *Ledger) stampedBy(act *evidence.Record) (*operator.CheckpointStampBody, storage.Head, error) {
	body, err := operator.Read[operator.CheckpointStampBody](&act.Payload)
	if err != nil {
		return nil, storage.Head{}, fmt.Errorf("%w: record %s: %w", ErrDamaged, act.Payload.RecordID, err)
	}
	head, err := l.cfg.open(body.Checkpoint)
	if err != nil {
		return nil, storage.Head{}, fmt.Errorf("record %s: %w", act.Payload.RecordID, err)
	}
	return body, head, nil
}

// Anchor seals the fact that an authority has stamped a checkpoint of this log, or renewed its stamps. The caller has verified
// the token. From then on Prove uses it. If an authority does not
// stamp the act itself, the act is stored without waiting for it. It returns ErrCheckpoint, wrapped, for a checkpoint
// that the log's key did not sign, and the errors of Seal.
func (l *Ledger) Anchor(ctx context.Context, body operator.CheckpointStampBody, by []evidence.Signer) (_ *evidence.Record, err error) {
	defer fault.While(&err, "sealing that a checkpoint was stamped")
	if err := l.mayAppend(); err != nil {
		return nil, err
	}
	if _, err := l.cfg.open(body.Checkpoint); err != nil {
		return nil, err
	}
	if err := evidence.CheckAnchors(body.Checkpoint, []evidence.Anchor{body.Anchor()}); err != nil {
		return nil, err
	}
	p, err := OperatorAct(evidence.Payload{ActionType: evidence.CheckpointStamp, ChainID: operator.CheckpointsChain}, body)
	if err != nil {
		return nil, err
	}
	records, err := l.SealLast(ctx, operator.CheckpointsChain, by, p)
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

// Anchors returns all stamped checkpoints, the smallest first. They have no proofs of consistency.
func (l *Ledger) Anchors(ctx context.Context) (list []evidence.Anchor, err error) {
	defer fault.While(&err, "reading stamped checkpoints")
	all, err := l.anchorsFrom(ctx, 0)
	for _, a := range all {
		list = append(list, a.stamps...)
	}
	return list, err
}

// An anchored is a checkpoint with what was stamped over it.
type anchored struct {
	signed string
	head   storage.Head
	by     []string          // the authorities that stamped the checkpoint itself
	stamps []evidence.Anchor // without consistency; several where a token came after a renewal
}

// anchorsFrom returns the stamped checkpoints, the smallest first, by the acts from an index on.
func (l *Ledger) anchorsFrom(ctx context.Context, from int64) ([]*anchored, error) {
	known := map[string]*anchored{}
	var all []*anchored
	for act, err := range l.stampedFrom(ctx, from) {
		if err != nil {
			return nil, err
		}
		a := known[act.body.Checkpoint]
		if a == nil {
			a = &anchored{signed: act.body.Checkpoint, head: act.head}
			known[act.body.Checkpoint] = a
			all = append(all, a)
		}
		a.add(act.body)
	}
	slices.SortStableFunc(all, func(a, b *anchored) int { return cmp.Compare(a.head.Size, b.head.Size) })
	return all, nil
}

// add adds the token of an act beside others over the same, or after what it renews.
func (a *anchored) add(body *operator.CheckpointStampBody) {
	if len(body.Renews) == 0 {
		a.by = append(a.by, body.Authority)
	}
	at := len(body.Renews)
	for i := range a.stamps {
		has := a.stamps[i].Timestamps
		switch {
		case len(has) < at || len(has) > at+1 || !sameTokens(has[:at], body.Renews):
		case len(has) == at:
			a.stamps[i].Timestamps = append(has, [][]byte{body.Token})
			return
		default:
			if !slices.ContainsFunc(has[at], func(token []byte) bool { return bytes.Equal(token, body.Token) }) {
				has[at] = append(has[at], body.Token)
			}
			return
		}
	}
	a.stamps = append(a.stamps, body.Anchor())
}

func sameTokens(a, b [][][]byte) bool {
	return slices.EqualFunc(a, b, func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) })
}

// anchors returns the stamped checkpoints for records at these indexes, which are in log order: for each record, of each authority, the
// smallest over it. They come with the proofs of their consistency with a checkpoint over all these records. Of more than a file may have, some are
// left out, and the records below them have the next larger one.
func (l *Ledger) anchors(ctx context.Context, at []int64, under storage.Head) ([]evidence.Anchor, error) {
	if len(at) == 0 {
		return nil, nil
	}
	all, err := l.anchorsFrom(ctx, at[0]+1)
	if err != nil {
		return nil, err
	}
	hashes := cached(l.cfg.hashes(ctx))
	var list []evidence.Anchor
	for _, a := range timing(all, at) {
		proof, err := consistency(a.head, under, hashes)
		if err != nil {
			return nil, err
		}
		for _, stamps := range a.stamps {
			stamps.Consistency = proof
			list = append(list, stamps)
		}
	}
	for len(list) > 0 && evidence.CheckAnchors("any", list) != nil {
		n, last := 0, len(list)-1
		list = slices.DeleteFunc(list, func(evidence.Anchor) bool { n++; return (last-n)%2 == 0 || last == 0 })
	}
	return list, nil
}

// timing returns those of the stamped checkpoints that are, for a record at one of these indexes and an authority, the smallest over it.
func timing(all []*anchored, at []int64) []*anchored {
	by := map[string][]*anchored{}
	for _, a := range all {
		for _, authority := range a.by {
			by[authority] = append(by[authority], a)
		}
	}
	wanted := map[*anchored]bool{}
	for _, list := range by {
		for _, index := range at {
			n, _ := slices.BinarySearchFunc(list, index+1, func(a *anchored, size int64) int { return cmp.Compare(a.head.Size, size) })
			for _, a := range list[n:] {
				if a.head.Size > list[n].head.Size {
					break
				}
				wanted[a] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(a *anchored) bool { return !wanted[a] })
}

// consistency proves that of two heads of the log one is the beginning of the other, and verifies that as a reader does.
func consistency(a, b storage.Head, hashes tlog.HashReader) ([][]byte, error) {
	if a.Size > b.Size {
		a, b = b, a
	}
	nodes := [][]byte{}
	if a.Size == b.Size || a.Size == 0 {
		return nodes, nil
	}
	proof, err := tlog.ProveTree(b.Size, a.Size, hashes)
	if err != nil {
		return nil, err
	}
	if err := tlog.CheckTree(proof, b.Size, b.Root, a.Size, a.Root); err != nil {
		return nil, fmt.Errorf("%w: the log of %d records is not the beginning of that of %d: %w", ErrDamaged, a.Size, b.Size, err)
	}
	for _, node := range proof {
		nodes = append(nodes, bytes.Clone(node[:]))
	}
	return nodes, nil
}
