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

// Bind adds to a review or delivery the digest of the record that it is about, if this log has that record. Then it
// is bound to the record's content, not only to its id. Bind adds a saw only if the draft has none, and changes no
// digest that the actor gave. It returns an *evidence.FieldError for a review whose digests name another record than
// original_response_id: its author has not looked at what it names. It also refuses a draft in a trial's chain about
// a record outside that trial: it would look like a decision on the trial.
//
// It reports whether the draft is bound to the record whose id it gives. A delivery without an id is about what it
// saw, and is bound by that. Drafts of other acts are returned unchanged, as bound.
func (k *Known) Bind(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, bool, error) {
	decides := draft.ActionType == evidence.HumanReview || draft.ActionType == evidence.Delivery
	if !decides {
		return draft, true, nil
	}
	if draft.ApprovalStatus == evidence.Rejected && draft.ModifiedResponse != nil {
		return nil, false, &evidence.FieldError{Field: "modified_response", Reason: "a review that rejects must not give a response: leave it out, or approve with modifications"}
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
			"does not name %v, the digest of record %s in original_response_id", original.Digest, draft.OriginalResponseID)}
	}
	p := draft.Payload
	p.Saw = []evidence.Digest{original.Digest}
	bound, err := evidence.NewDraft(p)
	return bound, true, err
}

// record opens a row that the store returned, or returns the store's error.
func (k *Known) record(row storage.Row, err error) (*evidence.Record, error) {
	if err != nil {
		return nil, err
	}
	return row.Record()
}

// fits refuses a review that verification would refute as long as its original is there.
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
		return &evidence.FieldError{Field: "reviewer_id", Reason: fmt.Sprintf("%q also acted in record %s: reviewers do not review their own output", draft.Actor(), of.RecordID)}
	case !draft.Case.IsZero() && draft.Case != of.Case:
		return &evidence.FieldError{Field: "case", Reason: fmt.Sprintf("differs from the case of record %s in original_response_id: leave it out", of.RecordID)}
	case draft.ApprovalStatus == evidence.Approved && compared && !same:
		return &evidence.FieldError{Field: "modified_response", Reason: "differs from the text that the review approves unchanged: leave it out, or approve with modifications"}
	case draft.ApprovalStatus == evidence.ApprovedWithModifications && same:
		return &evidence.FieldError{Field: "modified_response", Reason: "equals the reviewed text, so nothing was modified: approve it, without modified_response"}
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
	return &evidence.FieldError{Field: "chain_id", Reason: fmt.Sprintf("%q is the chain of a trial, but the %s is about a record outside it",
		draft.ChainID, draft.ActionType)}
}

// sawItsTrial refuses a draft for a trial's chain that names no record by id and saw none of the trial.
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

// aboutSomethingElse refuses a draft whose digests are all of other records, if this log lacks the record whose id it
// gives.
func (k *Known) aboutSomethingElse(ctx context.Context, draft *evidence.Draft) error {
	other := ""
	for _, digest := range draft.Saw {
		r, err := k.record(k.store.ByDigest(ctx, digest))
		if errors.Is(err, storage.ErrNotFound) {
			return nil // this can be the record
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
		"is %q, but saw names record %s", draft.OriginalResponseID, other)}
}
