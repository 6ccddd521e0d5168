package server

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
)

// A Caller is the sender of a request.
type Caller struct {
	grant  *access.Grant // nil: a stranger
	token  string
	cookie bool // the token came in a browser's cookie
}

// Stranger reports whether the caller is not signed in.
func (c *Caller) Stranger() bool { return c.grant == nil }

// Name returns the agent_id or the person's name; "" for a stranger.
func (c *Caller) Name() string {
	if c.grant == nil {
		return ""
	}
	return c.grant.Name
}

// Has reports whether the caller has a role.
func (c *Caller) Has(role access.Role) bool { return c.grant != nil && c.grant.Has(role) }

// FormKey returns the session's form key, which every form for this caller must carry. It returns "" if the caller
// has no session.
func (c *Caller) FormKey() string {
	if !c.cookie {
		return ""
	}
	return access.FormKey(c.token)
}

// Until returns when the caller's session or token ends.
func (c *Caller) Until() time.Time {
	if c.grant == nil {
		return time.Time{}
	}
	return c.grant.Until
}

func (c *Caller) tokenID() evidence.Digest {
	if c.grant == nil {
		return evidence.Digest{}
	}
	return c.grant.Token
}

// Names of the session's cookie. Browsers accept the first only from this very host over TLS.
const (
	cookieName         = "__Host-jurat"
	loopbackCookieName = "jurat"
)

// FormField and FormHeader carry a session's form key.
const (
	FormField  = "form"
	FormHeader = "Jurat-Form"
)

// caller determines who sends a request. An invalid token gives an error rather than a stranger, because the caller
// meant to be identified. If the token's owner is known, the Caller comes with the error.
func (s *Server) caller(r *http.Request) (*Caller, error) {
	token, cookie, err := s.tokenOf(r)
	if err != nil || token == "" {
		return &Caller{}, err
	}
	grant, err := s.access.Who(r.Context(), token)
	c := &Caller{grant: grant, token: token, cookie: cookie}
	switch {
	case errors.Is(err, access.ErrUnknown):
		return &Caller{}, fmt.Errorf("%w: the token was never given out here", api.ErrSignIn)
	case errors.Is(err, access.ErrExpired):
		return c, fmt.Errorf("%w at %s", api.ErrExpired, evidence.FormatTime(grant.Until))
	case errors.Is(err, access.ErrRevoked):
		return c, api.ErrRevoked
	case err != nil:
		return &Caller{}, err
	}
	s.uses.Note(grant, s.config.Now())
	return c, nil
}

// tokenOf reads the token of a request. The header overrides the cookie, which browsers send automatically.
func (s *Server) tokenOf(r *http.Request) (token string, cookie bool, err error) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return "", false, fmt.Errorf("%w: header Authorization: want Bearer and a token", api.ErrSignIn)
		}
		return token, false, nil
	}
	if c, err := r.Cookie(s.cookieName()); err == nil {
		return c.Value, true, nil
	}
	return "", false, nil
}

func (s *Server) cookieName() string {
	if s.config.Secure {
		return cookieName
	}
	return loopbackCookieName
}

// setSession sets the session's cookie; an empty token deletes it.
func (s *Server) setSession(w http.ResponseWriter, token string, until time.Time) {
	c := &http.Cookie{Name: s.cookieName(), Value: token, Path: "/", HttpOnly: true, Secure: s.config.Secure,
		SameSite: http.SameSiteStrictMode, Expires: until}
	if token == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// formMemory is how much of a form with files is held in memory. The rest is on disk until the request ends.
const formMemory = 8 << 20

// checkForm refuses a request that another site could make the browser send: it is signed in by cookie and lacks the
// form key, which only our pages know.
func checkForm(r *http.Request, c *Caller) error {
	if !c.cookie || c.Stranger() || !changes(r) {
		return nil
	}
	key := r.Header.Get(FormHeader)
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // a body of an unreadable media type is not parsed as a form
	if key == "" && (media == "application/x-www-form-urlencoded" || media == "multipart/form-data") {
		if err := r.ParseMultipartForm(formMemory); err != nil && !errors.Is(err, http.ErrNotMultipart) {
			return malformed(err)
		}
		key = r.PostForm.Get(FormField)
	}
	if subtle.ConstantTimeCompare([]byte(key), []byte(c.FormKey())) != 1 {
		return fmt.Errorf("%w: the field %q or the header %s is missing or wrong; load the page again", api.ErrForm, FormField, FormHeader)
	}
	return nil
}
