package installation

import (
	"context"
	"crypto/sha256"
	"errors"

	"jurat/evidence"
	"jurat/internal/ledger"
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
// called again.
//
// Proofs are under the earliest checkpoint that is stamped, and what has no witnesses when it is stamped never gets any. So one that too few
// have cosigned is not stamped: that is a Reason, too.
func (i *Installation) Anchor(ctx context.Context) ([]Anchored, error) {
	if len(i.stampers.selected) == 0 {
		return nil, ErrNobodyOutside
	}
	if _, err := i.Cosign(ctx); err != nil { // so that what is stamped is what witnesses have cosigned
		return nil, err
	}
	var all []Anchored
	for _, c := range i.stampers.selected {
		a, err := i.anchor(ctx, c)
		if err != nil {
			return all, err
		}
		all = append(all, a)
	}
	return all, nil
}

func (i *Installation) anchor(ctx context.Context, c *client) (Anchored, error) {
	a := Anchored{Authority: c.name}
	checkpoint, err := i.Ledger.Unanchored(ctx, c.name)
	if err != nil || checkpoint == "" {
		return a, err
	}
	opened, err := evidence.OpenCheckpoint(checkpoint, i.log.verifier)
	if err != nil {
		return a, err
	}
	a.Size = opened.Size
	if err := i.counts(checkpoint); errors.Is(err, ErrNotCosigned) {
		a.Reason = err
		return a, nil
	} else if err != nil {
		return a, err
	}
	token, err := c.ask(ctx, sha256.Sum256([]byte(checkpoint)))
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	if err != nil {
		a.Reason = err
		return a, nil
	}
	signers, err := i.Keys.Signers(evidence.RoleOperator, ledger.OperatorName)
	if err != nil {
		return a, err
	}
	// A crash up to here loses a token, and the authority is asked again.
	a.Act, err = i.Ledger.Anchor(ctx, evidence.CheckpointStampBody{Authority: c.name, Checkpoint: checkpoint, Token: token}, signers)
	return a, err
}
