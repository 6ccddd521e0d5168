package stamping

import (
	"context"
	"crypto/sha256"
	"errors"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/witness"
)

// ErrNobodyOutside says that no outside authority is selected to stamp a checkpoint. The operator's own clock would prove nothing more
// about what the operator signed.
var ErrNobodyOutside = errors.New("no outside time-stamping authority is selected")

// An Anchored is the result of asking one authority to stamp the log's checkpoint.
type Anchored struct {
	Authority string
	Act       *evidence.Record // the act that logs the token; nil: nothing new to stamp, or Reason says why not
	Size      int64            // how many records the stamped checkpoint covers
	Reason    error            // why there is no stamp
}

// Anchor asks each selected outside authority to stamp a checkpoint over the whole log. If an authority has stamped it already, nothing is
// added. Each token is verified before it is kept. If an authority does not answer, Reason says so, and the next call asks it again. All
// authorities get the same checkpoint, so records that are sealed meanwhile wait for the next call.
//
// A proof uses the earliest stamped checkpoint, and a checkpoint cannot gain cosignatures after it was stamped. So if too few witnesses
// cosigned the checkpoint, Anchor uses the last one that enough of them cosigned, if that covers more than the authority has stamped.
// Otherwise Reason says what is missing. Anchor returns ErrNobodyOutside if no authority is selected.
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

// stampable returns the checkpoints that may be stamped, the best first: the one over the whole log, which it asks the witnesses to cosign,
// and the last one that they did cosign.
func (t *Timekeeper) stampable(ctx context.Context) ([]string, error) {
	asked, err := t.Witnesses.Cosign(ctx)
	if err != nil {
		return nil, err
	}
	if asked == nil { // no witnesses are configured
		checkpoint, err := t.Ledger.Checkpoint(ctx)
		return []string{checkpoint}, err
	}
	kept, err := t.Witnesses.LastCosigned(ctx)
	if err != nil || kept == nil {
		return []string{asked.Checkpoint}, err
	}
	return []string{asked.Checkpoint, kept.Checkpoint}, nil
}

// anchor asks an authority to stamp the first checkpoint that enough witnesses cosigned.
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
		if a.Reason == nil { // the first failure belongs to the best checkpoint
			a.Size, a.Reason = opened.Size, err
		}
	}
	return a, nil
}

// stampedBy asks an authority to stamp a checkpoint, and logs the token.
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
	// A crash before this loses the token. The next call asks the authority again.
	a.Act, err = t.Operator.Anchor(ctx, operator.CheckpointStampBody{Authority: c.name, Checkpoint: checkpoint, Token: token})
	return a, err
}
