package stamping

import (
	"context"
	"crypto/sha256"
	"errors"

	"jurat/evidence"
	"jurat/evidence/operator"
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
// authorities get the same checkpoint, so records that are sealed meanwhile wait for the next call. Witnesses need not have cosigned it: it
// shows a time, and what it is consistent with shows the order. Anchor returns ErrNobodyOutside if no authority is selected.
func (t *Timekeeper) Anchor(ctx context.Context) ([]Anchored, error) {
	if len(t.Stampers.selected) == 0 {
		return nil, ErrNobodyOutside
	}
	checkpoint, err := t.Ledger.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	var all []Anchored
	for _, c := range t.Stampers.selected {
		a, err := t.anchor(ctx, c, checkpoint)
		if err != nil {
			return all, err
		}
		all = append(all, a)
	}
	return all, nil
}

// anchor asks an authority to stamp a checkpoint, and logs the token.
func (t *Timekeeper) anchor(ctx context.Context, c *stamper, checkpoint string) (Anchored, error) {
	a := Anchored{Authority: c.name}
	left, err := t.Ledger.Unanchored(ctx, c.name, checkpoint)
	if err != nil || left == "" {
		return a, err
	}
	if a.Size, err = t.Ledger.SizeAt(ctx, left); err != nil {
		return a, err
	}
	token, err := c.ask(ctx, sha256.Sum256([]byte(left)))
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	if err != nil {
		a.Reason = err
		return a, nil
	}
	// A crash before this loses the token. The next call asks the authority again.
	a.Act, err = t.Operator.Anchor(ctx, operator.CheckpointStampBody{Authority: c.name, Checkpoint: left, Token: token})
	return a, err
}
