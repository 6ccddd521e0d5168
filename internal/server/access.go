package server

import (
	"fmt"
	"net/http"

	"jurat/api"
)

// accessRoutes show who may do what, and end tokens.
func (s *Server) accessRoutes() []Route {
	ended := Parameter{"ended", "1: what has ended and all sessions, too"}
	return []Route{
		{Method: "GET", Pattern: "/v1/access", Kind: API, Who: OperatorOnly, Handle: s.getAccess, Doc: Doc{
			Summary: "Who may do what: what jurat access list --json prints.", Out: api.AccessList{}, Query: []Parameter{ended}}},
		{Method: "POST", Pattern: "/v1/access/{token}/revoke", Kind: API, Who: OperatorOnly, Handle: s.postRevocation, Doc: Doc{
			Summary: "End a token, by its id, and every session that was opened with it. The log records by whom, and why.", In: api.Revocation{}, Out: api.Grant{}}},
		{Method: "GET", Pattern: "/access", Kind: Page, Heavy: true, Who: OperatorOnly, Handle: s.accessPage, Doc: Doc{Summary: "Who may do what.",
			Query: []Parameter{ended, {"page", "which page of a long list, from 1"}}}},
		{Method: "GET", Pattern: "/access/{token}", Kind: Page, Heavy: true, Who: OperatorOnly, Handle: s.tokenPage, Doc: Doc{Summary: "A token: what its owner did, and the form that ends it."}},
		{Method: "POST", Pattern: "/access/{token}", Kind: Page, MaxBody: smallForm, Who: OperatorOnly, Handle: s.revokeForm, Doc: Doc{Summary: "End a token, by the form."}},
	}
}

// withEnded reads whether a list is to have what has ended.
func withEnded(r *http.Request) (bool, error) {
	switch r.URL.Query().Get("ended") {
	case "":
		return false, nil
	case "1":
		return true, nil
	}
	return false, fmt.Errorf("%w: ended: want 1, or leave it out", api.ErrMalformed)
}

func (s *Server) getAccess(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	all, err := withEnded(r)
	if err != nil {
		return err
	}
	list, err := s.access.List(r.Context(), all)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, list)
}

func (s *Server) postRevocation(w http.ResponseWriter, r *http.Request, c *Caller) error {
	asked, err := readJSON[api.Revocation](r)
	if err != nil {
		return err
	}
	g, err := s.granted.revoke(r.Context(), r.PathValue("token"), asked.Reason, c.Name())
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, g)
}

func (s *Server) accessPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	all, err := withEnded(r)
	if err != nil {
		return err
	}
	number, err := pageNumber(r)
	if err != nil {
		return err
	}
	page, err := s.granted.list(r.Context(), all, number)
	if err != nil {
		return err
	}
	return s.page(w, r, c, http.StatusOK, page)
}

func (s *Server) tokenPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	return s.showToken(w, r, c, http.StatusOK, "")
}

func (s *Server) showToken(w http.ResponseWriter, r *http.Request, c *Caller, status int, problem string) error {
	page, err := s.granted.token(r.Context(), r.PathValue("token"))
	if err != nil {
		return err
	}
	page.Problem, page.Typed = problem, r.PostFormValue("reason")
	page.Own = page.Token == c.tokenID() || page.Token == c.grant.Under
	return s.page(w, r, c, status, page)
}

// revokeForm ends a token if the form says that this is wanted.
func (s *Server) revokeForm(w http.ResponseWriter, r *http.Request, c *Caller) error {
	err := fmt.Errorf("%w: the box that confirms it is not ticked", api.ErrInvalid)
	if r.PostFormValue("sure") == "yes" {
		_, err = s.granted.revoke(r.Context(), r.PathValue("token"), r.PostFormValue("reason"), c.Name())
	}
	switch {
	case err == nil:
		return goTo(w, r, "access", r.PathValue("token"))
	case problemOf(err).Status == http.StatusUnprocessableEntity:
		return s.showToken(w, r, c, http.StatusUnprocessableEntity, problemText(problemOf(err)))
	}
	return err
}
