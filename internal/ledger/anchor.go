package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// An anchor is a signed checkpoint, and what authorities say of when it existed.
type anchor struct {
	signed string
	head   Head
	stamps []evidence.Timestamp // over SHA-256 of signed; none of one that nobody has stamped
}

// Unanchored returns the checkpoint that an authority has still to stamp, or "" when it has stamped one over everything.
// The acts about stamped checkpoints count for nothing here: each would ask for another.
//
// A checkpoint that another authority has stamped, and that will do, is returned again, so that one has several stamps.
func (l *Ledger) Unanchored(ctx context.Context, authority string) (checkpoint string, err error) {
	checkpoint, err = l.unanchored(ctx, authority)
	if err != nil {
		return "", fmt.Errorf("looking for a stamped checkpoint: %w", err)
	}
	return checkpoint, nil
}

func (l *Ledger) unanchored(ctx context.Context, authority string) (string, error) {
	acts, size, err := l.stampsAtTheEnd(ctx)
	if err != nil || size == 0 {
		return "", err
	}
	again := ""
	for _, act := range acts {
		body, head, err := l.stampedBy(act)
		if err != nil {
			return "", err
		}
		if head.Size < size {
			continue
		}
		if body.Authority == authority {
			return "", nil
		}
		again = body.Checkpoint
	}
	if again != "" {
		return again, nil
	}
	return l.Checkpoint(ctx)
}

// stampsAtTheEnd returns the checkpoint_stamp acts that end the log, and how many records stand before them. Only among
// these acts can one be that covers all of those records.
func (l *Ledger) stampsAtTheEnd(ctx context.Context) (acts []*evidence.Record, size int64, err error) {
	if size, err = l.Size(ctx); err != nil {
		return nil, 0, err
	}
	for size > 0 {
		from := max(0, size-pageSize)
		page, err := l.page(ctx, from, size-from)
		if err != nil {
			return nil, 0, err
		}
		for _, record := range slices.Backward(page) {
			if record.Index != size-1 || record.Payload.ActionType != evidence.CheckpointStamp { // what has expired was no such act
				slices.Reverse(acts)
				return acts, size, nil
			}
			acts = append(acts, record.Record)
			size--
		}
		if size > from {
			break
		}
	}
	slices.Reverse(acts)
	return acts, size, nil
}

// stampedBy reads a checkpoint_stamp act, whose checkpoint must be of this log.
func (l *Ledger) stampedBy(act *evidence.Record) (*evidence.CheckpointStampBody, Head, error) {
	body, err := evidence.ReadOperatorBody[evidence.CheckpointStampBody](&act.Payload)
	if err != nil {
		return nil, Head{}, fmt.Errorf("%w: record %s: %w", ErrDamaged, act.Payload.RecordID, err)
	}
	head, err := l.cfg.open(body.Checkpoint)
	if err != nil {
		return nil, Head{}, fmt.Errorf("record %s: %w", act.Payload.RecordID, err)
	}
	return body, head, nil
}

// Anchor seals that an authority has stamped a checkpoint of this log, with the token over SHA-256 of its bytes. Whether
// the token is good is for the caller to check before. From then on Prove uses it. The act waits for nobody.
func (l *Ledger) Anchor(ctx context.Context, body evidence.CheckpointStampBody, by []evidence.Signer) (*evidence.Record, error) {
	record, err := l.anchor(ctx, body, by)
	if err != nil {
		return nil, fmt.Errorf("sealing that a checkpoint was stamped: %w", err)
	}
	return record, nil
}

func (l *Ledger) anchor(ctx context.Context, body evidence.CheckpointStampBody, by []evidence.Signer) (*evidence.Record, error) {
	if err := l.mayAppend(); err != nil {
		return nil, err
	}
	if _, err := l.cfg.open(body.Checkpoint); err != nil {
		return nil, err
	}
	response, err := evidence.EncodeOperatorBody(body)
	if err != nil {
		return nil, err
	}
	for {
		record, err := l.sealAnchor(ctx, response, by)
		if !errors.Is(err, errMoved) {
			return record, err
		}
	}
}

// sealAnchor seals the act directly after the last one of its chain.
func (l *Ledger) sealAnchor(ctx context.Context, response jsontext.Value, by []evidence.Signer) (*evidence.Record, error) {
	p := evidence.Payload{ActionType: evidence.CheckpointStamp, AgentID: OperatorName, ChainID: evidence.CheckpointsChain, Response: response}
	last, err := l.cfg.Store.LastOfChain(ctx, evidence.CheckpointsChain)
	var before *evidence.Record
	if err == nil {
		before, err = openRow(&last)
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
	a := newAppending(time.Time{}, []*evidence.Record{record}, make([][]Missing, 1)) // it waits for nobody
	a.after = &chainEnd{chain: evidence.CheckpointsChain, count: last.Counts.ChainSeq}
	return record, l.append(ctx, a)
}

// earliest returns the earliest stamped checkpoint over at least size records, with the stamps of all authorities that
// stamped the same one, or nil when there is none. An act about such a checkpoint stands behind all that it covers.
func (l *Ledger) earliest(ctx context.Context, size int64) (*anchor, error) {
	var found *anchor
	for from := size; ; {
		rows, err := l.cfg.Store.InChain(ctx, evidence.CheckpointsChain, from, pageSize)
		if err != nil {
			return nil, err
		}
		acts, err := openRows(rows)
		if err != nil {
			return nil, err
		}
		for i, act := range acts {
			from = rows[i].Index + 1
			body, head, err := l.stampedBy(act)
			switch {
			case err != nil:
				return nil, err
			case found != nil && body.Checkpoint != found.signed:
				return found, nil
			case found == nil && head.Size < size:
				continue
			case found == nil:
				found = &anchor{signed: body.Checkpoint, head: head}
			}
			found.add(body.Token)
		}
		if len(rows) < pageSize {
			return found, nil
		}
	}
}

func (a *anchor) add(token []byte) {
	if !slices.ContainsFunc(a.stamps, func(has evidence.Timestamp) bool { return bytes.Equal(has.Token, token) }) {
		a.stamps = append(a.stamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: token})
	}
}
