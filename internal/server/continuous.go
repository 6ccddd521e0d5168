package server

import (
	"net/http"

	"jurat/api"
	"jurat/internal/pages"
	"jurat/internal/server/wire"
)

// continuousRoutes show what the server tries without being asked.
func (s *Server) continuousRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/v1/continuous-trial", Kind: API, Who: metered, Handle: s.getContinuous, Doc: Doc{
			Summary: "What the server tries without being asked: which records are still to be tried, what was spent within 24 hours, and where agents' reputations are, seen from the thresholds. docs/operations.md describes it.",
			Out:     api.ContinuousTrial{}}},
		{Method: "GET", Pattern: "/continuous-trial", Kind: Page, Who: metered, Handle: s.continuousPage, Doc: Doc{Summary: "What the server tries without being asked."}},
	}
}

func (s *Server) getContinuous(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	return wire.WriteJSON(w, r, http.StatusOK, s.config.Continuous.Status())
}

func (s *Server) continuousPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	page, err := pages.NewContinuous(s.config.Continuous.Status())
	if err != nil {
		return err
	}
	return s.page(w, r, c, http.StatusOK, page)
}
