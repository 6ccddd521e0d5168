package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/log/names"
	"jurat/internal/web/pages"
)

func withEnded(r *http.Request) (bool, error) {
	ended := r.URL.Query().Get("ended")
	if ended != "" && ended != "1" {
		return false, fmt.Errorf("%w: ended: want 1, or leave it out", api.ErrMalformed)
	}
	return ended == "1", nil
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
	grants = slices.DeleteFunc(grants, func(g access.Grant) bool { return !all && !g.Counts() })
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

func (s *Server) revokeForm(r *http.Request, c *Caller) (elsewhere, error) {
	if r.PostFormValue("sure") != "yes" {
		return "", fmt.Errorf("%w: the box that confirms it is not ticked", api.ErrInvalid)
	}
	_, err := s.revoke(r.Context(), r.PathValue("token"), r.PostFormValue("reason"), c.Name())
	return pageAt("access", r.PathValue("token")), err
}

const (
	aPage     = 100 // tokens on a page of the list; it bounds the look-ups of last records
	actsShown = 20  // acts on the page of a token
)

// findGrant returns a token by its id. An unknown one returns api.ErrNotFound.
func (s *Server) findGrant(ctx context.Context, id string) (*access.Grant, error) {
	unknown := fmt.Errorf("%w: there is no token with this id", api.ErrNotFound)
	token, err := evidence.ParseDigest(id)
	if err != nil {
		return nil, unknown
	}
	grants, err := s.access.Grants(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(grants, func(g access.Grant) bool { return g.Token == token })
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

func (s *Server) granted(ctx context.Context, g *access.Grant, most int64) (pages.Granted, []pages.Act, error) {
	made := pages.Granted{Grant: g.Described(), Used: s.uses.Last(g.Token)}
	acts, err := s.actsUnder(ctx, g, most)
	if len(acts) > 0 {
		made.Acted = acts[0].At
	}
	return made, acts, err
}

// actsUnder returns the newest records under a grant's name in its roles: auditors make none, and the installation signs the operator's.
func (s *Server) actsUnder(ctx context.Context, g *access.Grant, most int64) (acts []pages.Act, err error) {
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

const sessionTime = 12 * time.Hour

// smallForm is the size limit of forms that strangers may send.
const smallForm = 64 << 10

// SignInLink makes the path of a link for one sign-in. Its errors are those of SignInPath.
func (s *Server) SignInLink(ctx context.Context, name string, roles ...access.Role) (string, error) {
	return SignInPath(ctx, s.config.Installation, s.config.Now(), name, roles...)
}

// SignInPath makes the path of a link for one sign-in, within an hour of now, on any server of the installation. It
// refuses a name that names.Check refuses. Its other errors are those of Installation.GiveTicket.
func SignInPath(ctx context.Context, i *installation.Installation, now time.Time, name string, roles ...access.Role) (string, error) {
	if err := names.Check(name); err != nil {
		return "", fmt.Errorf("making a sign-in link: the name %q: %w", name, err)
	}
	secret, err := i.GiveTicket(ctx, link{name, roles}, now.Add(linkTime))
	if err != nil {
		return "", fmt.Errorf("making a sign-in link: %w", err)
	}
	return "/sign-in?link=" + url.QueryEscape(secret), nil
}

// signIn makes a session from a link or a token, and redirects the browser. It needs a form, because programs open
// links to preview them, and must not use them up.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	if err := r.ParseForm(); err != nil {
		return malformed(err)
	}
	order, err := s.sessionOf(r)
	if err == nil {
		err = s.grantSession(w, r, order)
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, ownPath(r.PostForm.Get("next")), http.StatusSeeOther)
	return nil
}

func (s *Server) sessionOf(r *http.Request) (access.Order, error) {
	if secret := r.PostForm.Get("link"); secret != "" {
		var l link
		err := s.config.Installation.TakeTicket(r.Context(), secret, &l)
		if errors.Is(err, installation.ErrNoTicket) {
			err = fmt.Errorf("%w: the link was used or has expired; 'jurat access grant --link' prints a new one", api.ErrSignIn)
		}
		return access.Order{Name: l.Name, Roles: l.Roles, For: sessionTime, Reason: "signed in with a link of the operator's", By: l.Name}, err
	}
	token := strings.TrimSpace(r.PostForm.Get("token"))
	if token == "" {
		return access.Order{}, fmt.Errorf("%w: the form has neither link nor token", api.ErrMalformed)
	}
	g, err := s.access.Who(r.Context(), token)
	switch {
	case errors.Is(err, access.ErrUnknown), errors.Is(err, access.ErrExpired), errors.Is(err, access.ErrRevoked):
		return access.Order{}, fmt.Errorf("%w: the token is not valid", api.ErrSignIn)
	case err != nil:
		return access.Order{}, err // the log cannot be read now, and the token may be valid
	}
	if g.Session || g.Has(access.Agent) {
		return access.Order{}, fmt.Errorf("%w: the token is not a person's", api.ErrSignIn)
	}
	return access.Order{Name: g.Name, Roles: g.Roles, For: min(sessionTime, g.Until.Sub(s.config.Now())), Under: g.Token,
		Reason: "signed in with a token", By: g.Name}, nil
}

func (s *Server) grantSession(w http.ResponseWriter, r *http.Request, o access.Order) error {
	o.Session = true
	token, grant, err := s.access.Grant(r.Context(), o)
	if err != nil {
		return err
	}
	s.setSession(w, token, grant.Until)
	return nil
}

// ownPath returns a path of this server, so that a link to the sign-in page cannot redirect to another site.
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return cmp.Or(next, "/")
}

func (s *Server) signOut(w http.ResponseWriter, r *http.Request, c *Caller) error {
	if !c.cookie {
		return fmt.Errorf("%w: a token is revoked with 'jurat access revoke'", api.ErrMalformed)
	}
	if err := s.access.Revoke(context.WithoutCancel(r.Context()), c.tokenID(), "signed out", c.Name()); err != nil {
		return err
	}
	s.setSession(w, "", time.Time{})
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

const linkTime = time.Hour

// A link allows one sign-in, for the person who can see the terminal of a server. Every server of the installation
// accepts it, because the person cannot choose which server a browser reaches.
type link struct {
	Name  string        `json:"name"`
	Roles []access.Role `json:"roles"`
}

const stateTime = 10 * time.Minute

const callbackPath = "/sign-in/callback"

func (s *Server) askProvider(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	if s.config.Provider == nil {
		return fmt.Errorf("%w: this server has no provider for signing in", api.ErrNotFound)
	}
	address, kept, err := s.config.Provider.Begin(s.config.URL+callbackPath, ownPath(r.URL.Query().Get("next")))
	if err != nil {
		return fmt.Errorf("%w: next: %w", api.ErrMalformed, err)
	}
	s.setState(w, kept, int(stateTime.Seconds()))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, address, http.StatusSeeOther)
	return nil
}

// setState stores the state of a sign-in in a cookie. It is Lax, because it must be sent when the provider redirects the browser back.
func (s *Server) setState(w http.ResponseWriter, state string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: s.cookieName() + "-state", Value: state, Path: "/", HttpOnly: true, Secure: s.config.Secure,
		SameSite: http.SameSiteLaxMode, MaxAge: seconds})
}

// onward continues by a page: a redirect that follows another site's request would come without the session's cookie, which is Strict.
var onward = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>jurat</title><meta http-equiv="refresh" content="0; url={{.}}"><a href="{{.}}">jurat</a></html>
`))

func (s *Server) fromProvider(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	if s.config.Provider == nil {
		return fmt.Errorf("%w: this server has no provider for signing in", api.ErrNotFound)
	}
	state := ""
	if c, err := r.Cookie(s.cookieName() + "-state"); err == nil {
		state = c.Value
	}
	s.setState(w, "", -1)
	person, next, err := s.config.Provider.Finish(r.Context(), r.URL.Query(), state)
	if err != nil {
		return err
	}
	order := access.Order{Name: person.Name, Roles: person.Roles, For: sessionTime,
		Reason: fmt.Sprintf("signed in as %q of the provider", person.Subject), By: s.config.Provider.Issuer()}
	if err := s.grantSession(w, r, order); err != nil {
		return err
	}
	var page bytes.Buffer
	if err := onward.Execute(&page, next); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeDoc(w, r, http.StatusOK, "text/html; charset=utf-8", page.Bytes())
}
