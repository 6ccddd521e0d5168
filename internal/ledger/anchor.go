package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger/storage"
)

// An anchor is a signed checkpoint, and the time stamps that authorities made over it.
type anchor struct {
	signed string
	head   storage.Head
	stamps []evidence.Timestamp // over SHA-256 of signed; empty if no authority stamped it
}

// Unanchored returns the checkpoint that an authority should stamp next. It returns "" if the authority has stamped
// one over every record that a checkpoint of this log covers. It ignores the acts about stamped checkpoints at the
// end of the log, because each would require another stamp.
//
// If another authority has stamped a checkpoint that covers enough, Unanchored returns that one, so that one
// checkpoint gets several stamps.
func (l *Ledger) Unanchored(ctx context.Context, authority, checkpoint string) (string, error) {
	left, err := l.unanchored(ctx, authority, checkpoint)
	if err != nil {
		return "", fmt.Errorf("looking for a stamped checkpoint: %w", err)
	}
	return left, nil
}

func (l *Ledger) unanchored(ctx context.Context, authority, checkpoint string) (string, error) {
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
		case stamped.head.Size < size:
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

// Anchor seals the fact that an authority has stamped a checkpoint of this log. The token is over SHA-256 of the
// checkpoint's bytes; the caller has verified it. From then on Prove uses the checkpoint. If an authority does not
// stamp the act itself, the act is stored without waiting for it. It returns ErrCheckpoint, wrapped, for a checkpoint
// that the log's key did not sign, and the errors of Seal.
func (l *Ledger) Anchor(ctx context.Context, body operator.CheckpointStampBody, by []evidence.Signer) (*evidence.Record, error) {
	record, err := l.anchor(ctx, body, by)
	if err != nil {
		return nil, fmt.Errorf("sealing that a checkpoint was stamped: %w", err)
	}
	return record, nil
}

func (l *Ledger) anchor(ctx context.Context, body operator.CheckpointStampBody, by []evidence.Signer) (*evidence.Record, error) {
	if err := l.mayAppend(); err != nil {
		return nil, err
	}
	if _, err := l.cfg.open(body.Checkpoint); err != nil {
		return nil, err
	}
	p, err := OperatorAct(evidence.Payload{ActionType: evidence.CheckpointStamp, ChainID: operator.CheckpointsChain}, body)
	if err != nil {
		return nil, err
	}
	for {
		record, err := l.sealAnchor(ctx, p, by)
		if !errors.Is(err, errMoved) {
			return record, err
		}
	}
}

// sealAnchor seals the act directly after the last one of its chain. It returns errMoved if another act took that
// place.
func (l *Ledger) sealAnchor(ctx context.Context, p evidence.Payload, by []evidence.Signer) (*evidence.Record, error) {
	last, err := l.cfg.Store.LastOfChain(ctx, operator.CheckpointsChain)
	var before *evidence.Record
	if err == nil {
		before, err = last.Record()
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	l.follow(&p, before)
	record, err := l.signPayload(p, by)
	if err != nil {
		return nil, err
	}
	if _, err := l.stamp(ctx, record); err != nil {
		return nil, err
	}
	a := newAppending(time.Time{}, []*evidence.Record{record}, make([][]Missing, 1)) // a zero time and no missing stamps: it does not wait in the outbox
	a.after = &chainEnd{chain: operator.CheckpointsChain, count: last.Counts.ChainSeq}
	return record, l.append(ctx, a)
}

// earliest returns the earliest stamped checkpoint over at least size records, with the stamps of all authorities
// that stamped it. It returns nil if there is none.
func (l *Ledger) earliest(ctx context.Context, size int64) (*anchor, error) {
	var found *anchor
	for stamped, err := range l.stampedFrom(ctx, size) {
		switch {
		case err != nil:
			return nil, err
		case found != nil && stamped.body.Checkpoint != found.signed:
			return found, nil
		case found == nil && stamped.head.Size < size:
			continue
		case found == nil:
			found = &anchor{signed: stamped.body.Checkpoint, head: stamped.head}
		}
		found.add(stamped.body.Token)
	}
	return found, nil
}

func (a *anchor) add(token []byte) {
	if !slices.ContainsFunc(a.stamps, func(has evidence.Timestamp) bool { return bytes.Equal(has.Token, token) }) {
		a.stamps = append(a.stamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: token})
	}
}
