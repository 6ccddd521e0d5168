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
	"jurat/internal/provider"
)

// stateTime is how long a browser keeps what it needs to come back from the provider.
const stateTime = 10 * time.Minute

const callbackPath = "/sign-in/callback"

// askProvider sends the browser to the provider of OpenID Connect.
func (s *Server) askProvider(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	if s.config.Provider == nil {
		return fmt.Errorf("%w: nobody signs in by a provider here", api.ErrNotFound)
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

// setState has the browser keep the state of a sign-in. Unlike a session it must come along when the provider sends the browser
// back: it is Lax.
func (s *Server) setState(w http.ResponseWriter, state string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: s.cookieName() + "-state", Value: state, Path: "/", HttpOnly: true, Secure: s.config.Secure,
		SameSite: http.SameSiteLaxMode, MaxAge: seconds})
}

// onward leads on by a page and not by a redirect: what follows on one that another site began comes without the session's
// cookie, which is Strict.
var onward = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>jurat</title><meta http-equiv="refresh" content="0; url={{.}}"><a href="{{.}}">jurat</a></html>
`))

// fromProvider makes a session of what the provider says.
func (s *Server) fromProvider(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	if s.config.Provider == nil {
		return fmt.Errorf("%w: nobody signs in by a provider here", api.ErrNotFound)
	}
	state := ""
	if c, err := r.Cookie(s.cookieName() + "-state"); err == nil {
		state = c.Value
	}
	s.setState(w, "", -1)
	person, next, err := s.config.Provider.Finish(r.Context(), r.URL.Query(), state)
	switch {
	case errors.Is(err, provider.ErrNobody):
		return fmt.Errorf("%w: %w", api.ErrForbidden, err)
	case errors.Is(err, provider.ErrStale), errors.Is(err, provider.ErrRefused):
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
	return write(w, r, http.StatusOK, "text/html; charset=utf-8", page.Bytes())
}
