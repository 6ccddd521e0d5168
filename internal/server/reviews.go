package server

import (
	"net/http"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/acts"
	"jurat/internal/server/wire"
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
	review, err := wire.ReadJSON[api.Review](r)
	if err != nil {
		return err
	}
	done, err := s.Review(r, c, r.PathValue("id"), *review)
	return s.created(w, r, done, err)
}

// Review seals the caller's decision on a record. It returns api.ErrNotFound for a missing record, the errors of the
// caller's rights, and those of acts.Review.
func (s *Server) Review(r *http.Request, c *Caller, id string, review api.Review) (*acts.Done, error) {
	original, err := s.readable(r.Context(), c, id)
	if err != nil {
		return nil, err
	}
	return s.acts.Review(r.Context(), order(r, c), original, review)
}

// postDelivery seals the answer that is delivered.
func (s *Server) postDelivery(w http.ResponseWriter, r *http.Request, c *Caller) error {
	delivery, err := wire.ReadJSON[api.Delivery](r)
	if err != nil {
		return err
	}
	done, err := s.Deliver(r, c, r.PathValue("id"), delivery.Review)
	return s.created(w, r, done, err)
}

// Deliver seals the answer that a review approved. It returns api.ErrNotFound for a missing record, the errors of the
// caller's rights, and those of acts.Deliver.
func (s *Server) Deliver(r *http.Request, c *Caller, id, review string) (*acts.Done, error) {
	original, err := s.readable(r.Context(), c, id)
	if err != nil {
		return nil, err
	}
	return s.acts.Deliver(r.Context(), order(r, c), original, review)
}
