package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ledger"
	"jurat/internal/pages"
)

// accessRoutes show who may do what, and end tokens.
func (s *Server) accessRoutes() []Route {
	ended := Parameter{"ended", "1: what has ended and all sessions, too"}
	return []Route{
		{Method: "GET", Pattern: "/v1/access", Kind: API, Who: OperatorOnly, Handle: inJSON(s.getAccess), Doc: Doc{
			Summary: "Who may do what: what jurat access list --json prints.", Out: api.AccessList{}, Query: []Parameter{ended}}},
		{Method: "POST", Pattern: "/v1/access/{token}/revoke", Kind: API, Who: OperatorOnly, Handle: inJSON(withBody(s.postRevocation)), Doc: Doc{
			Summary: "End a token, by its id, and every session that was opened with it. The log records by whom, and why.", In: api.Revocation{}, Out: api.Grant{}}},
		{Method: "GET", Pattern: "/access", Kind: Page, Heavy: true, Who: OperatorOnly, Handle: shown(s, s.accessPage), Doc: Doc{Summary: "Who may do what.",
			Query: []Parameter{ended, {"page", "which page of a long list, from 1"}}}},
		{Method: "GET", Pattern: "/access/{token}", Kind: Page, Heavy: true, Who: OperatorOnly, Handle: shown(s, s.tokenPage), Doc: Doc{Summary: "A token: what its owner did, and the form that ends it."}},
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

func (s *Server) getAccess(r *http.Request, _ *Caller) (list api.AccessList, err error) {
	all, err := withEnded(r)
	if err != nil {
		return list, err
	}
	return s.access.List(r.Context(), all)
}

func (s *Server) postRevocation(r *http.Request, c *Caller, asked *api.Revocation) (api.Grant, error) {
	return s.revoke(r.Context(), r.PathValue("token"), asked.Reason, c.Name())
}

// accessPage makes a page of the list, the newest token first.
func (s *Server) accessPage(r *http.Request, _ *Caller) (*pages.Access, error) {
	all, err := withEnded(r)
	if err != nil {
		return nil, err
	}
	number, err := pageNumber(r)
	if err != nil {
		return nil, err
	}
	grants, err := s.access.Grants(r.Context())
	if err != nil {
		return nil, err
	}
	grants = slices.DeleteFunc(grants, func(g access.Listed) bool { return !all && !g.Counts() })
	slices.Reverse(grants)
	page := &pages.Access{Ended: all, Began: s.began}
	at := int(min(number, int64(len(grants))+1))
	from := min((at-1)*aPage, len(grants))
	if end := from + aPage; end < len(grants) {
		page.Next, grants = at+1, grants[:end]
	}
	for i := range grants[from:] {
		one, _, err := s.granted(r.Context(), &grants[from+i], 1)
		if err != nil {
			return nil, err
		}
		page.Grants = append(page.Grants, one)
	}
	return page, nil
}

// tokenPage makes the page of a token. An unknown id returns api.ErrNotFound.
func (s *Server) tokenPage(r *http.Request, c *Caller) (*pages.Token, error) {
	g, err := s.findGrant(r.Context(), r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	page := &pages.Token{Began: s.began, Typed: r.PostFormValue("reason"), Own: g.Token == c.tokenID() || g.Token == c.grant.Under}
	page.Granted, page.Acts, err = s.granted(r.Context(), g, actsShown)
	return page, err
}

// revokeForm ends a token if the form says that this is wanted.
func (s *Server) revokeForm(w http.ResponseWriter, r *http.Request, c *Caller) error {
	err := fmt.Errorf("%w: the box that confirms it is not ticked", api.ErrInvalid)
	if r.PostFormValue("sure") == "yes" {
		_, err = s.revoke(r.Context(), r.PathValue("token"), r.PostFormValue("reason"), c.Name())
	}
	switch {
	case err == nil:
		return goTo(w, r, "access", r.PathValue("token"))
	case problemOf(err).Status != http.StatusUnprocessableEntity:
		return err
	}
	return again(s, w, r, c, err, s.tokenPage)
}

const (
	aPage     = 100 // tokens on a page of the list; it bounds the look-ups of last records
	actsShown = 20  // acts on the page of a token
)

// findGrant returns a token by its id. An unknown one returns api.ErrNotFound.
func (s *Server) findGrant(ctx context.Context, id string) (*access.Listed, error) {
	unknown := fmt.Errorf("%w: there is no token with this id", api.ErrNotFound)
	token, err := evidence.ParseDigest(id)
	if err != nil {
		return nil, unknown
	}
	grants, err := s.access.Grants(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(grants, func(g access.Listed) bool { return g.Token == token })
	if i < 0 {
		return nil, unknown
	}
	return &grants[i], nil
}

// revoke ends a token. It returns the grant as it then is, or an error of package api.
func (s *Server) revoke(ctx context.Context, id, reason, by string) (api.Grant, error) {
	g, err := s.findGrant(ctx, id)
	if err != nil {
		return api.Grant{}, err
	}
	if reason, err = givenReason(reason); err != nil {
		return api.Grant{}, err
	}
	if err := s.access.Revoke(ctx, g.Token, reason, by); err != nil {
		return api.Grant{}, err
	}
	if g, err = s.findGrant(ctx, id); err != nil {
		return api.Grant{}, err
	}
	return g.Described(), nil
}

// granted returns a grant for a page, and the newest acts under its name.
func (s *Server) granted(ctx context.Context, g *access.Listed, most int64) (pages.Granted, []pages.Act, error) {
	made := pages.Granted{Grant: g.Described(), From: g.Since.Truncate(time.Second), Until: g.Until.Truncate(time.Second), Used: s.uses.Last(g.Token)}
	acts, err := s.actsUnder(ctx, g, most)
	if len(acts) > 0 {
		made.Acted = acts[0].At
	}
	return made, acts, err
}

// actsUnder returns the newest records under a grant's name in its roles. An auditor makes none, and what the operator does is
// signed by the installation.
func (s *Server) actsUnder(ctx context.Context, g *access.Listed, most int64) (acts []pages.Act, err error) {
	var list []ledger.Counted
	for _, role := range []access.Role{access.Agent, access.Submitter, access.Reviewer} {
		if !g.Has(role) && !(role == access.Submitter && g.Has(access.Operator)) {
			continue
		}
		last, err := s.config.Installation.Ledger.LastOfActor(ctx, evidence.Role(role), g.Name, most)
		if err != nil {
			return nil, err
		}
		list = append(list, last...)
	}
	slices.SortFunc(list, func(a, b ledger.Counted) int { return cmp.Compare(b.Index, a.Index) })
	for _, c := range list[:min(len(list), int(most))] {
		act := pages.Act{ID: c.RecordID}
		if c.Record != nil {
			act.Action, act.At = c.Record.Payload.ActionType, c.Record.Payload.Time()
		}
		acts = append(acts, act)
	}
	return acts, nil
}
