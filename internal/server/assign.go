package server

import (
	"context"
	"net/http"

	"jurat/api"
	"jurat/internal/access"
)

// assigners say who means to decide on a trial.
var assigners = Who{Roles: []access.Role{access.Reviewer, access.Operator}}

func (s *Server) assignRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/submissions/{id}/take", Kind: API, Who: assigners, Handle: s.postTaking, Doc: Doc{
			Summary: "Take a trial that waits for a person: others see who means to decide on it. An operator can assign it to another reviewer. It hinders nobody from deciding, and ends with the next decision.",
			In:      api.Taking{}, Out: api.Submission{}}},
		{Method: "POST", Pattern: "/v1/submissions/{id}/give-back", Kind: API, Who: assigners, Handle: s.postGivingBack, Doc: Doc{
			Summary: "Give back a trial that was taken. The reviewer who has it and operators may.", In: api.GivingBack{}, Out: api.Submission{}}},
	}
}

func (s *Server) postTaking(w http.ResponseWriter, r *http.Request, c *Caller) error {
	asked, err := readJSON[api.Taking](r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if err := s.take(r.Context(), c, id, *asked); err != nil {
		return err
	}
	return s.sendEntry(w, r, http.StatusOK, id)
}

func (s *Server) postGivingBack(w http.ResponseWriter, r *http.Request, c *Caller) error {
	asked, err := readJSON[api.GivingBack](r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if err := s.giveBack(r.Context(), c, id, *asked); err != nil {
		return err
	}
	return s.sendEntry(w, r, http.StatusOK, id)
}

// take records that a reviewer has taken a trial.
func (s *Server) take(ctx context.Context, c *Caller, id string, asked api.Taking) error {
	if err := s.mayReadTrial(ctx, c, id); err != nil {
		return err
	}
	return ofScheduler(s.assigned.take(ctx, c, id, asked))
}

// giveBack records that a trial is no reviewer's any more.
func (s *Server) giveBack(ctx context.Context, c *Caller, id string, asked api.GivingBack) error {
	if err := s.mayReadTrial(ctx, c, id); err != nil {
		return err
	}
	return ofScheduler(s.assigned.giveBack(ctx, c, id, asked))
}
