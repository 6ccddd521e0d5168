package server

import (
	"context"
	"net/http"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/acts"
)

func (s *Server) reviewRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/records/{id}/reviews", Kind: API, Heavy: true, Who: Deciders, Handle: s.postReview, Doc: Doc{
			Summary: "A person's decision on a record, signed with the reviewer's key and bound to the record's content.",
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
	done, err := s.review(r.Context(), c, order(r, c), r.PathValue("id"), *review)
	return s.created(w, r, done, err)
}

// review seals the caller's decision on a record. It returns api.ErrNotFound for a missing record, the errors of the
// caller's rights, and those of acts.Review.
func (s *Server) review(ctx context.Context, c *Caller, o acts.Order, id string, review api.Review) (*acts.Done, error) {
	original, err := s.readable(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.acts.Review(ctx, o, original, review)
}

// postDelivery seals the answer that is delivered.
func (s *Server) postDelivery(w http.ResponseWriter, r *http.Request, c *Caller) error {
	delivery, err := readJSON[api.Delivery](r)
	if err != nil {
		return err
	}
	done, err := s.deliver(r.Context(), c, order(r, c), r.PathValue("id"), delivery.Review)
	return s.created(w, r, done, err)
}

// deliver seals the answer that a review approved. It returns api.ErrNotFound for a missing record, the errors of the
// caller's rights, and those of acts.Deliver.
func (s *Server) deliver(ctx context.Context, c *Caller, o acts.Order, id, review string) (*acts.Done, error) {
	original, err := s.readable(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.acts.Deliver(ctx, o, original, review)
}
