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

// A Caller is who makes a request.
type Caller struct {
	grant  *access.Grant // nil: a stranger
	token  string
	cookie bool // the token came in a browser's cookie
}

// Stranger reports whether the caller is not signed in.
func (c *Caller) Stranger() bool { return c.grant == nil }

// Name is who it is: an agent_id, or a person's name; "" of a stranger.
func (c *Caller) Name() string {
	if c.grant == nil {
		return ""
	}
	return c.grant.Name
}

// Has reports whether the caller has a role.
func (c *Caller) Has(role access.Role) bool { return c.grant != nil && c.grant.Has(role) }

// FormKey is what forms made for this caller carry in the field "form"; "" if the caller did not sign in by a browser.
func (c *Caller) FormKey() string {
	if !c.cookie {
		return ""
	}
	return access.FormKey(c.token)
}

// Until is when the caller's session or token ends.
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

// Names of the session's cookie: browsers keep the first from being set by anything but this very host over TLS.
const (
	cookieName         = "__Host-jurat"
	loopbackCookieName = "jurat"
)

// FormField and FormHeader carry a session's form key.
const (
	FormField  = "form"
	FormHeader = "Jurat-Form"
)

// caller finds out who makes a request. A token that opens nothing is an error, and not a stranger: whoever sends one means to
// be somebody. The caller is returned with the error where it is known whose token it was.
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
	return c, nil
}

// tokenOf reads the token of a request. A header says more than a cookie, which browsers send by themselves.
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

// setSession has the browser keep a session; an empty token has it forget the one that it has.
func (s *Server) setSession(w http.ResponseWriter, token string, until time.Time) {
	c := &http.Cookie{Name: s.cookieName(), Value: token, Path: "/", HttpOnly: true, Secure: s.config.Secure,
		SameSite: http.SameSiteStrictMode, Expires: until}
	if token == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// changes reports whether a request may change something.
func changes(r *http.Request) bool { return changing(r.Method) }

// changing reports whether requests with a method may change something.
func changing(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// formMemory is how much of a form with files is held in memory; the rest is on disk until the request is over.
const formMemory = 8 << 20

// checkForm refuses a request that a browser would also send for another page than ours: it is signed in by cookie, and does
// not carry what only our pages know.
func checkForm(r *http.Request, c *Caller) error {
	if !c.cookie || c.Stranger() || !changes(r) {
		return nil
	}
	key := r.Header.Get(FormHeader)
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // of one that cannot be read no form is read
	if key == "" && (media == "application/x-www-form-urlencoded" || media == "multipart/form-data") {
		if err := r.ParseMultipartForm(formMemory); err != nil && !errors.Is(err, http.ErrNotMultipart) {
			return malformed(err)
		}
		key = r.PostForm.Get(FormField)
	}
	if subtle.ConstantTimeCompare([]byte(key), []byte(c.FormKey())) != 1 {
		return fmt.Errorf("%w: it has not, or not rightly, the field %q or the header %s; load the page again", api.ErrForm, FormField, FormHeader)
	}
	return nil
}
