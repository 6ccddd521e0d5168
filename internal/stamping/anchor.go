package stamping

import (
	"context"
	"crypto/sha256"
	"errors"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/witness"
)

// ErrNobodyOutside says that no authority outside is there to stamp a checkpoint. That the operator's clock stamps what the
// operator signed would say nothing more.
var ErrNobodyOutside = errors.New("there is no time-stamping authority outside")

// An Anchored is what came of having an authority stamp the log's checkpoint.
type Anchored struct {
	Authority string
	Act       *evidence.Record // that says so; nil: it has stamped everything before, or see Reason
	Size      int64            // how many records the stamped checkpoint covers
	Reason    error            // why it has not
}

// Anchor has each selected authority outside stamp a checkpoint over all that is in the log, unless it has done so: then
// nothing is added. Each token is verified before it is kept. An authority that does not answer is asked again when this is
// called again. What is sealed meanwhile waits until then, too: all are shown the same checkpoint.
//
// Proofs are under the earliest checkpoint that is stamped, and what has no witnesses when it is stamped never gets any. So one that too few
// have cosigned is not stamped, but the last one that counts, if that is more than the authority has stamped; and if it is not, that is a
// Reason, too.
func (t *Timekeeper) Anchor(ctx context.Context) ([]Anchored, error) {
	if len(t.Stampers.selected) == 0 {
		return nil, ErrNobodyOutside
	}
	checkpoints, err := t.stampable(ctx)
	if err != nil {
		return nil, err
	}
	var all []Anchored
	for _, c := range t.Stampers.selected {
		a, err := t.anchor(ctx, c, checkpoints)
		if err != nil {
			return all, err
		}
		all = append(all, a)
	}
	return all, nil
}

// stampable returns what may be stamped, the best first: the checkpoint over all that is in the log, which witnesses have just been asked
// to cosign, and the last one that is kept as they have cosigned it.
func (t *Timekeeper) stampable(ctx context.Context) ([]string, error) {
	asked, err := t.Witnesses.Cosign(ctx)
	if err != nil {
		return nil, err
	}
	if asked == nil { // there are no witnesses
		checkpoint, err := t.Ledger.Checkpoint(ctx)
		return []string{checkpoint}, err
	}
	kept, err := t.Witnesses.LastCosigned(ctx)
	if err != nil || kept == nil {
		return []string{asked.Checkpoint}, err
	}
	return []string{asked.Checkpoint, kept.Checkpoint}, nil
}

// anchor has an authority stamp the first checkpoint that counts.
func (t *Timekeeper) anchor(ctx context.Context, c *stamper, checkpoints []string) (Anchored, error) {
	a := Anchored{Authority: c.name}
	for _, checkpoint := range checkpoints {
		left, err := t.Ledger.Unanchored(ctx, c.name, checkpoint)
		if err != nil || left == "" {
			return a, err
		}
		opened, err := operator.OpenCheckpoint(left, t.Log)
		if err != nil {
			return a, err
		}
		err = t.Witnesses.Counts(ctx, left)
		if err == nil {
			return t.stampedBy(ctx, c, left, opened.Size)
		}
		if !errors.Is(err, witness.ErrNotCosigned) {
			return a, err
		}
		if a.Reason == nil { // what the best one lacks
			a.Size, a.Reason = opened.Size, err
		}
	}
	return a, nil
}

// stampedBy has an authority stamp a checkpoint, and logs it.
func (t *Timekeeper) stampedBy(ctx context.Context, c *stamper, checkpoint string, size int64) (Anchored, error) {
	a := Anchored{Authority: c.name, Size: size}
	token, err := c.ask(ctx, sha256.Sum256([]byte(checkpoint)))
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	if err != nil {
		a.Reason = err
		return a, nil
	}
	// A crash up to here loses a token, and the authority is asked again.
	a.Act, err = t.Operator.Anchor(ctx, operator.CheckpointStampBody{Authority: c.name, Checkpoint: checkpoint, Token: token})
	return a, err
}
