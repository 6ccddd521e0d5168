package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
)

// Bind makes a review or delivery name by digest the record that it is about, where this log has it, so that it is
// bound to what that record says and not only to its id. A review that has no saw gets one; nothing else is added, and
// no digest that the actor gave is changed: a review of something else than its original_response_id is refused with an
// *evidence.FieldError, as whoever wrote it has not looked at what they name. So is one in a trial's chain about what is not of
// that trial: it would seem to be decided on the trial by whoever may not, or without having looked at it.
//
// It reports whether the draft is bound to the record whose id it gives. A delivery that gives none is about what it
// saw, and bound by that. Drafts of other acts are returned as they are, as bound.
func (l *Ledger) Bind(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, bool, error) {
	decides := draft.ActionType == evidence.HumanReview || draft.ActionType == evidence.Delivery
	if !decides {
		return draft, true, nil
	}
	if draft.OriginalResponseID == "" {
		return draft, true, l.sawItsTrial(ctx, draft)
	}
	original, err := l.Record(ctx, draft.OriginalResponseID)
	if errors.Is(err, ErrNotFound) {
		return draft, false, cmp.Or(ofItsTrial(draft, ""), l.aboutSomethingElse(ctx, draft))
	}
	if err != nil {
		return nil, false, fmt.Errorf("binding %s: %w", draft.ActionType, err)
	}
	if err := ofItsTrial(draft, original.Payload.ChainID); err != nil {
		return nil, false, err
	}
	switch {
	case slices.Contains(named(draft), original.Digest):
		return draft, true, nil
	case draft.Saw != nil:
		return nil, false, &evidence.FieldError{Field: "saw", Reason: fmt.Sprintf(
			"does not name %v, which is record %s, that original_response_id is about", original.Digest, draft.OriginalResponseID)}
	}
	p := draft.Payload
	p.Saw = []evidence.Digest{original.Digest}
	bound, err := evidence.NewDraft(p)
	return bound, true, err
}

// ofItsTrial refuses a draft for a trial's chain that is about a record of another chain.
func ofItsTrial(draft *evidence.Draft, chain string) error {
	if !strings.HasPrefix(draft.ChainID, evidence.TrialPrefix) || draft.ChainID == chain {
		return nil
	}
	return &evidence.FieldError{Field: "chain_id", Reason: fmt.Sprintf("%q is the chain of a trial, and what the %s is about is no record of it",
		draft.ChainID, draft.ActionType)}
}

// sawItsTrial refuses a draft for a trial's chain that names no record and saw none of the trial either.
func (l *Ledger) sawItsTrial(ctx context.Context, draft *evidence.Draft) error {
	for _, digest := range draft.Saw {
		r, err := l.RecordByDigest(ctx, digest)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("binding %s: %w", draft.ActionType, err)
		}
		if err == nil && r.Payload.ChainID == draft.ChainID {
			return nil
		}
	}
	return ofItsTrial(draft, "")
}

func named(draft *evidence.Draft) []evidence.Digest {
	return append([]evidence.Digest{draft.PreviousRecord}, draft.Saw...)
}

// aboutSomethingElse refuses a draft all of whose digests are of other records than the one whose id it gives, which
// this log does not have.
func (l *Ledger) aboutSomethingElse(ctx context.Context, draft *evidence.Draft) error {
	other := ""
	for _, digest := range draft.Saw {
		r, err := l.RecordByDigest(ctx, digest)
		if errors.Is(err, ErrNotFound) {
			return nil // this can be the one
		}
		if err != nil {
			return fmt.Errorf("binding %s: %w", draft.ActionType, err)
		}
		other = r.Payload.RecordID
	}
	if other == "" {
		return nil
	}
	return &evidence.FieldError{Field: "original_response_id", Reason: fmt.Sprintf(
		"is %q, and saw names record %s", draft.OriginalResponseID, other)}
}
