package links

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// Bind makes a review or delivery name by digest the record that it is about, where this log has it, so that it is
// bound to what that record says and not only to its id. A review that has no saw gets one; nothing else is added, and
// no digest that the actor gave is changed: a review of something else than its original_response_id is refused with an
// *evidence.FieldError, as whoever wrote it has not looked at what they name. So is one in a trial's chain about what is not of
// that trial: it would seem to be decided on the trial by whoever may not, or without having looked at it.
//
// It reports whether the draft is bound to the record whose id it gives. A delivery that gives none is about what it
// saw, and bound by that. Drafts of other acts are returned as they are, as bound.
func (k *Known) Bind(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, bool, error) {
	decides := draft.ActionType == evidence.HumanReview || draft.ActionType == evidence.Delivery
	if !decides {
		return draft, true, nil
	}
	if draft.ApprovalStatus == evidence.Rejected && draft.ModifiedResponse != nil {
		return nil, false, &evidence.FieldError{Field: "modified_response", Reason: "the review rejects, and so lets no response pass: leave it out, or approve with modifications"}
	}
	if draft.OriginalResponseID == "" {
		return draft, true, k.sawItsTrial(ctx, draft)
	}
	original, err := k.record(k.store.ByRecordID(ctx, draft.OriginalResponseID))
	if errors.Is(err, storage.ErrNotFound) {
		return draft, false, cmp.Or(ofItsTrial(draft, ""), k.aboutSomethingElse(ctx, draft))
	}
	if err != nil {
		return nil, false, fmt.Errorf("binding %s: %w", draft.ActionType, err)
	}
	if err := ofItsTrial(draft, original.Payload.ChainID); err != nil {
		return nil, false, err
	}
	if err := fits(draft, original); err != nil {
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

// record opens a row that the store has returned.
func (k *Known) record(row storage.Row, err error) (*evidence.Record, error) {
	if err != nil {
		return nil, err
	}
	return row.Record()
}

// fits refuses a review that verification would refute beside its original for as long as there are both.
func fits(draft *evidence.Draft, original *evidence.Record) error {
	if draft.ActionType != evidence.HumanReview {
		return nil
	}
	of := &original.Payload
	given, output := draft.ModifiedResponse, of.Response
	if of.ActionType == evidence.HumanReview {
		output = of.ModifiedResponse
	}
	compared := given != nil && output != nil && !slices.Contains(draft.SealedApart, "/modified_response") &&
		!slices.Contains(of.SealedApart, "/response") && !slices.Contains(of.SealedApart, "/modified_response")
	same := compared && sameText(given, output)
	switch {
	case draft.Actor() == of.Actor():
		return &evidence.FieldError{Field: "reviewer_id", Reason: fmt.Sprintf("%q is also who acted in record %s: nobody reviews their own output", draft.Actor(), of.RecordID)}
	case !draft.Case.IsZero() && draft.Case != of.Case:
		return &evidence.FieldError{Field: "case", Reason: fmt.Sprintf("is not that of record %s, which original_response_id is about: leave it out", of.RecordID)}
	case draft.ApprovalStatus == evidence.Approved && compared && !same:
		return &evidence.FieldError{Field: "modified_response", Reason: "is another text than was reviewed, and the review approves that as it is: leave it out, or approve with modifications"}
	case draft.ApprovalStatus == evidence.ApprovedWithModifications && same:
		return &evidence.FieldError{Field: "modified_response", Reason: "is the very text that was reviewed, so nothing was modified: approve it, without modified_response"}
	}
	return nil
}

// sameText compares two values by their canonical forms.
func sameText(a, b []byte) bool {
	first, err := evidence.Canonical(a)
	if err != nil {
		return false
	}
	second, err := evidence.Canonical(b)
	return err == nil && bytes.Equal(first, second)
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
func (k *Known) sawItsTrial(ctx context.Context, draft *evidence.Draft) error {
	for _, digest := range draft.Saw {
		r, err := k.record(k.store.ByDigest(ctx, digest))
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
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
func (k *Known) aboutSomethingElse(ctx context.Context, draft *evidence.Draft) error {
	other := ""
	for _, digest := range draft.Saw {
		r, err := k.record(k.store.ByDigest(ctx, digest))
		if errors.Is(err, storage.ErrNotFound) {
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
