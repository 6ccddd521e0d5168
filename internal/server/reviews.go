package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ledger"
)

func (s *Server) reviewRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/records/{id}/reviews", Kind: API, Heavy: true, Who: Deciders, Handle: s.postReview, Doc: Doc{
			Summary: "A person's decision on a record, signed with the key of who decides and bound to what the record says.",
			In:      api.Review{}, Out: Record, Status: http.StatusCreated}},
		{Method: "POST", Pattern: "/v1/records/{id}/deliveries", Kind: API, Heavy: true, Who: Who{Roles: []access.Role{access.Agent, access.Reviewer, access.Operator}},
			Handle: s.postDelivery, Doc: Doc{
				Summary: "The answer that is finally given: what the named review approved, signed with the agent's key.",
				In:      api.Delivery{}, Out: Record, Status: http.StatusCreated}},
	}
}

// postReview seals a person's decision.
func (s *Server) postReview(w http.ResponseWriter, r *http.Request, c *Caller) error {
	review, err := readJSON[api.Review](r)
	if err != nil {
		return err
	}
	record, err := s.Review(r, c, r.PathValue("id"), *review)
	if err != nil {
		return err
	}
	return s.created(w, r, record)
}

// Review seals the caller's decision on a record, in the chain of that record.
func (s *Server) Review(r *http.Request, c *Caller, id string, review api.Review) (*evidence.Record, error) {
	original, err := s.readable(r.Context(), c, id)
	if err != nil {
		return nil, err
	}
	if original.Payload.ActionType.ByOperator() {
		return nil, fmt.Errorf("%w: record %s is an act of the operator on the installation, and nothing to approve", api.ErrInvalid, id)
	}
	for _, named := range []struct{ field, value, is string }{
		{"reviewer_id", review.ReviewerID, c.Name()}, {"original_response_id", review.OriginalResponseID, id}} {
		if named.value != "" && named.value != named.is {
			return nil, &evidence.FieldError{Field: named.field, Reason: fmt.Sprintf("is %q, and it is %q who decides on record %s", named.value, c.Name(), id)}
		}
	}
	p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: c.Name(), OriginalResponseID: id, Saw: []evidence.Digest{original.Digest},
		ChainID: original.Payload.ChainID, Case: original.Payload.Case, ApprovalStatus: evidence.ApprovalStatus(review.ApprovalStatus),
		ModifiedResponse: jsontext.Value(review.ModifiedResponse), Changes: jsontext.Value(review.Changes), Context: jsontext.Value(review.Context),
		Timestamp: review.Timestamp}
	given := p
	if p.Timestamp == "" {
		p.Timestamp = evidence.FormatTime(s.config.Now())
	}
	draft, err := evidence.NewDraft(p)
	if err != nil {
		return nil, err
	}
	return s.sealFilled(r, c, draft, given, "review of "+id)
}

// sealFilled seals a draft to which the server has added a time. What was sealed before under the same idempotency key is
// compared without it.
func (s *Server) sealFilled(r *http.Request, c *Caller, draft *evidence.Draft, given evidence.Payload, what string) (*evidence.Record, error) {
	id, err := keyedID(r, c, what)
	if err != nil {
		return nil, err
	}
	if id != "" {
		given.RecordID = id
		before, err := s.config.Installation.Ledger.Record(r.Context(), id)
		if err == nil {
			return s.again(before, given)
		}
		if !errors.Is(err, ledger.ErrNotFound) {
			return nil, err
		}
	}
	record, err := s.seal(r, c, draft, what)
	if errors.Is(err, api.ErrKeyReused) { // or somebody was faster with the same
		if before, failed := s.config.Installation.Ledger.Record(r.Context(), id); failed == nil {
			return s.again(before, given)
		}
	}
	return record, err
}

// again returns a record that was made before, if it was made of what is given now.
func (s *Server) again(before *evidence.Record, given evidence.Payload) (*evidence.Record, error) {
	same, err := s.madeOf(before, &evidence.Draft{Payload: given})
	if err == nil && !same {
		err = fmt.Errorf("%w: it made record %s, which says something else", api.ErrKeyReused, before.Payload.RecordID)
	}
	if err != nil {
		return nil, err
	}
	return before, nil
}

// postDelivery seals the answer that is finally given.
func (s *Server) postDelivery(w http.ResponseWriter, r *http.Request, c *Caller) error {
	delivery, err := readJSON[api.Delivery](r)
	if err != nil {
		return err
	}
	record, err := s.Deliver(r, c, r.PathValue("id"), delivery.Review)
	if err != nil {
		return err
	}
	return s.created(w, r, record)
}

// Deliver seals the answer that a review approved: the response of the record as it is, or as the reviewer changed it. It is
// the agent's act, and so signed with the agent's key, if that is here.
func (s *Server) Deliver(r *http.Request, c *Caller, id, reviewID string) (*evidence.Record, error) {
	original, err := s.readable(r.Context(), c, id)
	if err != nil {
		return nil, err
	}
	if role := original.Payload.Role(); role != evidence.RoleAgent {
		return nil, fmt.Errorf("%w: record %s is an act of the %s, and only what an agent said is delivered", api.ErrInvalid, id, role)
	}
	if c.Has(access.Agent) && original.Payload.Actor() != c.Name() { // which may be public, and so readable
		return nil, fmt.Errorf("%w: record %s is of %q, in whose name %q delivers nothing", api.ErrForbidden, id, original.Payload.Actor(), c.Name())
	}
	review, err := s.config.Installation.Ledger.Record(r.Context(), reviewID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, &evidence.FieldError{Field: "review", Reason: "names no record of this log"}
	}
	if err != nil {
		return nil, err
	}
	response, err := s.approved(original, review)
	if err != nil {
		return nil, err
	}
	draft, err := evidence.NewDraft(evidence.Payload{ActionType: evidence.Delivery, AgentID: original.Payload.AgentID, RequestID: original.Payload.RequestID,
		OriginalResponseID: id, Response: response, Saw: []evidence.Digest{original.Digest, review.Digest}, ChainID: original.Payload.ChainID})
	if err != nil {
		return nil, err
	}
	keyed, err := keyedID(r, c, "delivery of "+id)
	if err != nil {
		return nil, err
	}
	if draft, err = withID(draft, keyed); err != nil {
		return nil, err
	}
	record, err := s.sealAs(r, draft)
	if err != nil {
		return s.already(r, draft, keyed != "", err)
	}
	s.meters.sealed(record.Payload.ActionType)
	return record, nil
}

// approved is the response that a review lets through.
func (s *Server) approved(original, review *evidence.Record) (jsontext.Value, error) {
	p := &review.Payload
	if p.ActionType != evidence.HumanReview || len(p.Saw) != 1 || p.Saw[0] != original.Digest {
		return nil, &evidence.FieldError{Field: "review", Reason: "names a record that is no review of what is to be delivered"}
	}
	from, member := original, "response"
	switch p.ApprovalStatus {
	case evidence.Approved:
	case evidence.ApprovedWithModifications:
		from, member = review, "modified_response"
	default:
		return nil, &evidence.FieldError{Field: "review", Reason: "names a review that rejects"}
	}
	disclosed, err := s.config.Installation.Disclose(from, nil)
	if err != nil {
		return nil, err
	}
	members, withheld, err := evidence.Reveal(from.Canonical(), disclosed.Disclosures)
	if err != nil {
		return nil, err
	}
	for _, pointer := range withheld {
		if pointer == "/"+member {
			return nil, fmt.Errorf("%w: the text that was approved is not kept here", api.ErrConflict)
		}
	}
	return members[member], nil
}
