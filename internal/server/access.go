package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

const (
	aPage     = 100 // tokens on a page of the list; it bounds the look-ups of last records
	actsShown = 20  // acts on the page of a token
)

// A grantDesk is where the operator sees and ends tokens. It is safe for concurrent use. All its errors that are not of package
// api are those of reading the log.
type grantDesk struct {
	register *access.Register
	ledger   *ledger.Ledger
	uses     *access.Uses
	began    time.Time // of this process
}

// list makes a page of the list, the newest token first. all adds what has ended, and sessions.
func (d *grantDesk) list(ctx context.Context, all bool, number int) (*pages.Access, error) {
	grants, err := d.register.Grants(ctx)
	if err != nil {
		return nil, err
	}
	grants = slices.DeleteFunc(grants, func(g access.Listed) bool { return !all && !g.Counts() })
	slices.Reverse(grants)
	page := &pages.Access{Ended: all, Began: d.began}
	from := min((min(number, len(grants)+1)-1)*aPage, len(grants))
	if end := from + aPage; end < len(grants) {
		page.Next, grants = number+1, grants[:end]
	}
	for i := range grants[from:] {
		one, _, err := d.one(ctx, &grants[from+i], 1)
		if err != nil {
			return nil, err
		}
		page.Grants = append(page.Grants, one)
	}
	return page, nil
}

// token makes the page of a token. An unknown id returns api.ErrNotFound.
func (d *grantDesk) token(ctx context.Context, id string) (*pages.Token, error) {
	g, err := d.find(ctx, id)
	if err != nil {
		return nil, err
	}
	page := &pages.Token{Began: d.began}
	page.Granted, page.Acts, err = d.one(ctx, g, actsShown)
	return page, err
}

func (d *grantDesk) find(ctx context.Context, id string) (*access.Listed, error) {
	token, err := evidence.ParseDigest(id)
	if err != nil {
		return nil, fmt.Errorf("%w: there is no token with this id", api.ErrNotFound)
	}
	grants, err := d.register.Grants(ctx)
	if err != nil {
		return nil, err
	}
	for i := range grants {
		if grants[i].Token == token {
			return &grants[i], nil
		}
	}
	return nil, fmt.Errorf("%w: there is no token with this id", api.ErrNotFound)
}

// revoke ends a token. It returns the grant as it then is, or an error of package api.
func (d *grantDesk) revoke(ctx context.Context, id, reason, by string) (api.Grant, error) {
	g, err := d.find(ctx, id)
	if err != nil {
		return api.Grant{}, err
	}
	if reason = strings.TrimSpace(reason); reason == "" || len(reason) > maxReason {
		return api.Grant{}, fmt.Errorf("%w: reason: want 1 to %d bytes", api.ErrInvalid, maxReason)
	}
	if err := d.register.Revoke(ctx, g.Token, reason, by); err != nil {
		return api.Grant{}, err
	}
	if g, err = d.find(ctx, id); err != nil {
		return api.Grant{}, err
	}
	return g.Described(), nil
}

// one returns a grant for a page, and the newest acts under its name.
func (d *grantDesk) one(ctx context.Context, g *access.Listed, most int64) (pages.Granted, []pages.Act, error) {
	made, err := pages.NewGranted(g.Described())
	if err != nil {
		return made, nil, err
	}
	acts, err := d.acts(ctx, g, most)
	if len(acts) > 0 {
		made.Acted = acts[0].At
	}
	made.Used = d.uses.Last(g.Token)
	return made, acts, err
}

// acts returns the newest records under a grant's name in its roles. An auditor makes none, and what the operator does is
// signed by the installation.
func (d *grantDesk) acts(ctx context.Context, g *access.Listed, most int64) (acts []pages.Act, err error) {
	var list []ledger.Counted
	for _, role := range []access.Role{access.Agent, access.Submitter, access.Reviewer} {
		if !g.Has(role) && !(role == access.Submitter && g.Has(access.Operator)) {
			continue
		}
		last, err := d.ledger.LastOfActor(ctx, evidence.Role(role), g.Name, most)
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
