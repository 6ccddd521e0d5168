package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/jury"
)

// Bind is ledger.Bind for trials. It also refuses decisions that are invalid for a verdict: a decision must pass or
// fail the agent, and must stand in the chain of its trial, where readers look for it. It returns an
// *evidence.FieldError for these.
func Bind(ctx context.Context, l *ledger.Ledger, draft *evidence.Draft) (bound *evidence.Draft, is bool, err error) {
	if bound, is, err = l.Bind(ctx, draft); err != nil || draft.ActionType != evidence.HumanReview {
		return bound, is, err
	}
	return bound, is, mayDecide(ctx, l, &bound.Payload)
}

func mayDecide(ctx context.Context, l *ledger.Ledger, p *evidence.Payload) error {
	original, err := l.Record(ctx, p.OriginalResponseID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	on := &original.Payload
	if !strings.HasPrefix(on.ChainID, evidence.TrialPrefix) || on.ActionType != evidence.FinalJudgment && on.ActionType != evidence.HumanReview {
		return nil
	}
	chain, err := l.Chain(ctx, on.ChainID)
	if err != nil {
		return err
	}
	k := new(jury.Reckoning)
	for _, r := range chain {
		if err := k.Add(r); err != nil {
			return err
		}
	}
	if k.Decides(p) && p.ChainID != on.ChainID {
		return &evidence.FieldError{Field: "chain_id", Reason: fmt.Sprintf("must be %q: a decision on a verdict stands in the chain of its trial", on.ChainID)}
	}
	return k.Refuse(p)
}
