package server

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/openid"
)

// stateTime is how long a browser keeps the state of a sign-in at the provider.
const stateTime = 10 * time.Minute

const callbackPath = "/sign-in/callback"

// askProvider redirects the browser to the provider of OpenID Connect.
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

// setState stores the state of a sign-in in a cookie. Unlike the session's, it must be sent when the provider
// redirects the browser back, so it is Lax.
func (s *Server) setState(w http.ResponseWriter, state string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: s.cookieName() + "-state", Value: state, Path: "/", HttpOnly: true, Secure: s.config.Secure,
		SameSite: http.SameSiteLaxMode, MaxAge: seconds})
}

// onward continues by a page instead of a redirect: a redirect that follows another site's request would come without
// the session's cookie, which is Strict.
var onward = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>jurat</title><meta http-equiv="refresh" content="0; url={{.}}"><a href="{{.}}">jurat</a></html>
`))

// fromProvider makes a session from the provider's answer.
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
	switch {
	case errors.Is(err, openid.ErrNobody):
		return fmt.Errorf("%w: %w", api.ErrForbidden, err)
	case errors.Is(err, openid.ErrStale), errors.Is(err, openid.ErrRefused):
		return fmt.Errorf("%w: %w", api.ErrSignIn, err)
	case err != nil:
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
