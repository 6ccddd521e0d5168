package server

import (
	"errors"
	"fmt"
	"net/http"

	"jurat/api"
	"jurat/internal/conduct"
	"jurat/internal/limits"
	"jurat/internal/pages"
	"jurat/internal/server/wire"
	"jurat/reputation"
)

// agentRoutes show what the log has about agents.
func (s *Server) agentRoutes() []Route {
	query := []Parameter{{"ca", "the agent is the one whose keys the CA of this name certified; needed where the trust file has several and none of the agent's keys"}}
	return []Route{
		{Method: "GET", Pattern: "/v1/agents/{name}/reputation", Kind: API, Heavy: true, Who: Readers, Handle: s.getReputation, Doc: Doc{
			Summary: "How the sealed records of an agent were judged, by this installation's trust file and the default policy: what jurat reputation --json prints. docs/reputation.md describes it.",
			Out:     reputation.View{}, Query: query}},
		{Method: "GET", Pattern: "/agents/{name}", Kind: Page, Heavy: true, Who: Readers, Handle: s.agentPage, Doc: Doc{Query: query}},
	}
}

func (s *Server) getReputation(w http.ResponseWriter, r *http.Request, c *Caller) error {
	v, err := s.reputationOf(r, c)
	if err != nil {
		return err
	}
	doc, err := v.Marshal()
	if err != nil {
		return err
	}
	return wire.WriteTagged(w, r, http.StatusOK, "application/json", doc)
}

func (s *Server) agentPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	v, err := s.reputationOf(r, c)
	if err != nil {
		return err
	}
	page, err := pages.NewAgent(v)
	if err != nil {
		return err
	}
	return s.page(w, r, c, http.StatusOK, page)
}

// reputationOf computes what the log has about the agent that the path names, if the caller may read that.
func (s *Server) reputationOf(r *http.Request, c *Caller) (*reputation.View, error) {
	ctx, name := r.Context(), r.PathValue("name")
	if err := s.acts.MayReadAgent(ctx, c, name); err != nil {
		return nil, err
	}
	by, err := s.config.Installation.Trust(ctx)
	if err != nil {
		return nil, err
	}
	account := limits.AccountOf(ctx)
	v, err := s.conduct.View(ctx, conduct.Asked{Agent: name, CA: r.URL.Query().Get("ca")}, by, func(bytes int64) error {
		account.Keep(limits.HeavyRequest) // what was verified before is no longer held
		return account.Take(ctx, limits.RecordFactor*bytes)
	})
	switch {
	case errors.Is(err, conduct.ErrUnknown):
		return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	case errors.Is(err, reputation.ErrIdentity):
		return nil, fmt.Errorf("%w: %w; the parameter ca names a CA", api.ErrInvalid, err)
	case errors.Is(err, conduct.ErrTooMany):
		return nil, fmt.Errorf("%w: %w; 'jurat reputation' computes it", api.ErrTooLarge, err)
	}
	return v, err
}
