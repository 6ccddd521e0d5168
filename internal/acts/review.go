package acts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ledger"
)

// Review seals a person's decision on a record, in the chain of that record. The caller has checked that the person may read the record.
// Its errors are those of Seal, and api.ErrInvalid for an act of the operator.
func (a *Acts) Review(ctx context.Context, o Order, original *evidence.Record, review api.Review) (*Done, error) {
	id := original.Payload.RecordID
	if original.Payload.ActionType.ByOperator() {
		return nil, fmt.Errorf("%w: record %s is an act of the operator, which is not reviewed", api.ErrInvalid, id)
	}
	name := o.By.Name()
	for _, named := range []struct{ field, value, is string }{
		{"reviewer_id", review.ReviewerID, name}, {"original_response_id", review.OriginalResponseID, id}} {
		if named.value != "" && named.value != named.is {
			return nil, &evidence.FieldError{Field: named.field, Reason: fmt.Sprintf("is %q, but %q decides on record %s", named.value, name, id)}
		}
	}
	given := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: name, OriginalResponseID: id, Saw: []evidence.Digest{original.Digest},
		ChainID: original.Payload.ChainID, Case: original.Payload.Case, ApprovalStatus: evidence.ApprovalStatus(review.ApprovalStatus),
		ModifiedResponse: jsontext.Value(review.ModifiedResponse), Changes: jsontext.Value(review.Changes), Context: jsontext.Value(review.Context),
		Timestamp: review.Timestamp}
	p := given
	if p.Timestamp == "" {
		p.Timestamp = evidence.FormatTime(notBefore(a.config.Now(), original.Payload.Time()))
	}
	draft, err := evidence.NewDraft(p)
	if err != nil {
		return nil, err
	}
	return a.seal(ctx, o, "review of "+id, draft, &given)
}

// notBefore returns a time, or that of the act before it, if that is later by another clock.
func notBefore(now, then time.Time) time.Time {
	if now.Before(then) {
		return then
	}
	return now
}

// Deliver seals the answer that a review approved: the response of a record, as it is or as the reviewer changed it. It is the agent's act,
// so the agent's key signs it, if that is here. The caller has checked that the party may read the record. Its errors include
// api.ErrInvalid, api.ErrForbidden, api.ErrConflict, *evidence.FieldError, and those of the keys and the ledger.
func (a *Acts) Deliver(ctx context.Context, o Order, original *evidence.Record, reviewID string) (*Done, error) {
	p := &original.Payload
	if role := p.Role(); role != evidence.RoleAgent {
		return nil, fmt.Errorf("%w: record %s is an act of the %s; only an agent's answer can be delivered", api.ErrInvalid, p.RecordID, role)
	}
	// An agent delivers only its own answers, although it may also read public records of others.
	if o.By != Operator && o.By.Has(access.Agent) && p.Actor() != o.By.Name() {
		return nil, fmt.Errorf("%w: record %s is by %q, so %q cannot deliver it", api.ErrForbidden, p.RecordID, p.Actor(), o.By.Name())
	}
	review, err := a.config.Ledger.Record(ctx, reviewID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, &evidence.FieldError{Field: "review", Reason: "names a record that is not in this log"}
	}
	if err != nil {
		return nil, err
	}
	response, err := a.approved(ctx, original, review)
	if err != nil {
		return nil, err
	}
	draft, err := evidence.NewDraft(evidence.Payload{ActionType: evidence.Delivery, AgentID: p.AgentID, RequestID: p.RequestID,
		OriginalResponseID: p.RecordID, Response: response, Saw: []evidence.Digest{original.Digest, review.Digest}, ChainID: p.ChainID})
	if err != nil {
		return nil, err
	}
	draft, keyed, err := o.keyed(draft, "delivery of "+p.RecordID)
	if err != nil {
		return nil, err
	}
	return a.signOnce(ctx, draft, keyed)
}

func (a *Acts) approved(ctx context.Context, original, review *evidence.Record) (jsontext.Value, error) {
	p := &review.Payload
	if p.ActionType != evidence.HumanReview || len(p.Saw) != 1 || p.Saw[0] != original.Digest {
		return nil, &evidence.FieldError{Field: "review", Reason: "names a record that is not a review of this answer"}
	}
	from, member := original, "response"
	switch p.ApprovalStatus {
	case evidence.Approved:
	case evidence.ApprovedWithModifications:
		from, member = review, "modified_response"
	default:
		return nil, &evidence.FieldError{Field: "review", Reason: "names a review that rejects"}
	}
	disclosed, err := a.config.Disclose(ctx, from, nil)
	if err != nil {
		return nil, err
	}
	members, withheld, err := evidence.Reveal(from.Canonical(), disclosed.Disclosures)
	if err != nil {
		return nil, err
	}
	if slices.Contains(withheld, "/"+member) {
		return nil, fmt.Errorf("%w: the approved text is no longer kept here", api.ErrConflict)
	}
	return members[member], nil
}

// Observations is a log as a recorder needs it. Only a recorder on the installation itself has it: nobody can hand in what a recorder is said
// to have seen.
type Observations struct{ acts *Acts }

// Observations returns the log for a recorder.
func (a *Acts) Observations() Observations { return Observations{a} }

// Seal seals what a recorder saw, or an event of its own, with the recorder's keys. Its errors include api.ErrConflict, if the log has another
// record with the draft's id, and those of the keys and the ledger.
func (o Observations) Seal(ctx context.Context, draft *evidence.Draft) (evidence.Digest, error) {
	if role := draft.Role(); role != evidence.RoleRecorder {
		return evidence.Digest{}, &evidence.FieldError{Field: "action_type", Reason: fmt.Sprintf("%s is an act of the %s, and not of a recorder", draft.ActionType, role)}
	}
	done, err := o.acts.signOnce(ctx, draft, false)
	if err != nil {
		return evidence.Digest{}, err
	}
	return done.Record.Digest, nil
}

// Last returns the digest of the last record of a chain and the time that it claims, or zero if the log has no such chain. The time is zero if the record has expired.
func (o Observations) Last(ctx context.Context, chain string) (evidence.Digest, time.Time, error) {
	last, err := o.acts.config.Ledger.LastOf(ctx, chain)
	if err != nil || last.IsZero() {
		return last, time.Time{}, err
	}
	r, err := o.acts.config.Ledger.RecordByDigest(ctx, last)
	if errors.Is(err, ledger.ErrExpired) {
		return last, time.Time{}, nil
	}
	if err != nil {
		return last, time.Time{}, err
	}
	return last, r.Payload.Time(), nil
}

// Has reports whether the log has a record with this id.
func (o Observations) Has(ctx context.Context, recordID string) (bool, error) {
	_, err := o.acts.config.Ledger.Record(ctx, recordID)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return false, nil
	case errors.Is(err, ledger.ErrExpired): // its content was deleted, and it was there
		return true, nil
	}
	return err == nil, err
}

// RequestOf returns the digest of the request that a record of a recorder states; zero if it states none, or if it has expired.
func (o Observations) RequestOf(ctx context.Context, recordID string) (evidence.Digest, error) {
	r, err := o.acts.config.Ledger.Record(ctx, recordID)
	if errors.Is(err, ledger.ErrExpired) {
		return evidence.Digest{}, nil
	}
	if err != nil {
		return evidence.Digest{}, err
	}
	if p := &r.Payload; p.Observed != nil && p.Observed.Request != nil {
		return p.Observed.Request.SHA256, nil
	}
	return evidence.Digest{}, nil
}
