package server

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
)

// A Caller is the sender of a request. A stranger's grant is zero.
type Caller struct {
	grant  access.Grant
	token  string
	cookie bool // the token came in a browser's cookie
}

// Stranger reports whether the caller is not signed in.
func (c *Caller) Stranger() bool { return c.grant.Token.IsZero() }

// Name returns the agent_id or the person's name; "" for a stranger.
func (c *Caller) Name() string { return c.grant.Name }

// Has reports whether the caller has a role.
func (c *Caller) Has(role access.Role) bool { return c.grant.Has(role) }

// FormKey returns the session's form key, which every form for this caller must carry. It returns "" if the caller
// has no session.
func (c *Caller) FormKey() string {
	if !c.cookie {
		return ""
	}
	return access.FormKey(c.token)
}

func (c *Caller) tokenID() evidence.Digest { return c.grant.Token }

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
	if grant == nil {
		if errors.Is(err, access.ErrUnknown) {
			err = fmt.Errorf("%w: the token was never given out here", api.ErrSignIn)
		}
		return &Caller{}, err
	}
	c := &Caller{*grant, token, cookie}
	switch {
	case errors.Is(err, access.ErrExpired):
		return c, fmt.Errorf("%w at %s", api.ErrExpired, evidence.FormatTime(grant.Until))
	case err != nil:
		return c, api.ErrRevoked
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

// sharedHeaders lists headers that pages of other sites may read beside those that they may always read.
const sharedHeaders = "ETag, Jurat-Cut"

// share lets pages of other sites read an answer (CORS), if the route is Shared and any stranger gets the same answer. It
// gives no credentials: a request that carries any gets no permission, so the answer cannot depend on who is signed in.
func (s *Server) share(route *Route, h http.Header, r *http.Request, c *Caller) {
	if !route.Shared || !s.published() {
		return
	}
	h.Add("Vary", "Origin")
	if r.Header.Get("Origin") == "" || !c.Stranger() || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", sharedHeaders)
}

// unshare takes the permission back from a refusal: what a stranger may not read has none.
func unshare(h http.Header) {
	h.Del("Access-Control-Allow-Origin")
	h.Del("Access-Control-Expose-Headers")
}

// published reports whether others than this machine reach the server. If only this machine does, other sites' pages in
// its browsers would reach what nobody else can, so they may read nothing.
func (s *Server) published() bool {
	return s.config.Secure && (!s.config.Local || len(s.config.Origins) > 0)
}

// ParseOrigin returns an https origin as browsers send it: in small letters, without the usual port and without a slash at its end. It refuses
// what is no origin, and a host that browsers spell otherwise.
func ParseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	number, err := strconv.ParseUint(cmp.Or(port, "443"), 10, 16)
	ip, notIP := netip.ParseAddr(host)
	switch {
	case u.Scheme != "https":
		return "", fmt.Errorf("%s: want https://, as browsers send session cookies over nothing else", text)
	case host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return "", fmt.Errorf("%s: want a host and no more, such as https://jurat.example", text)
	case err != nil || number == 0:
		return "", fmt.Errorf("%s: the port %q is not a number from 1 to 65535", text, port)
	case notIP == nil && (ip.Is4In6() || ip.Zone() != ""):
		return "", fmt.Errorf("%s: browsers spell this address in another way", text)
	case notIP == nil && ip.Is6():
		host = "[" + ip.String() + "]"
	case notIP != nil && strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }):
		return "", fmt.Errorf("%s: give the host as browsers send it: in ASCII, with xn-- before each part that has other letters", text)
	case notIP != nil && !isName(host):
		return "", fmt.Errorf("%s: %q is not the name of a host", text, host)
	}
	if number == 443 {
		return "https://" + host, nil
	}
	return fmt.Sprintf("https://%s:%d", host, number), nil
}

// isName reports whether a host is a name, and not an IP address in one of the spellings that browsers replace, such as 127.1.
func isName(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// crossOrigin returns the check of where requests come from. Its error is that of an origin that ParseOrigin refuses.
func crossOrigin(origins []string) (*http.CrossOriginProtection, error) {
	check := http.NewCrossOriginProtection()
	for _, text := range origins {
		origin, err := ParseOrigin(text)
		if err == nil {
			err = check.AddTrustedOrigin(origin)
		}
		if err != nil {
			return nil, fmt.Errorf("origin %q: %w", text, err)
		}
	}
	return check, nil
}

// checkOrigin refuses requests that a browser sends for another site, or for one that only seems to be this one.
func (s *Server) checkOrigin(r *http.Request) error {
	err := s.origins.Check(r)
	if s.plain(r) && (err != nil || r.Header.Get("Origin") != "") { // before a link is used up for a session that the browser would drop
		return fmt.Errorf("%w: over http from another machine it neither keeps a session nor says where a request comes from", api.ErrPlainHTTP)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrCrossOrigin, err)
	}
	return s.calledByName(r)
}

// plain reports whether a browser that should come by https has come by http. Then it sends no Sec-Fetch-Site, which
// it sends only to trustworthy origins. Its requests are refused, because they could come from any site.
func (s *Server) plain(r *http.Request) bool {
	if !s.config.Secure || r.TLS != nil || r.Header.Get("Sec-Fetch-Site") != "" {
		return false
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Scheme != "https" && (origin.Host == "" || origin.Host == r.Host)
}

// calledByName refuses requests to this machine under a foreign host name. Only a browser sends these, for a page of
// a site that points its own name to this machine (DNS rebinding): the page and this server would have the same
// origin.
func (s *Server) calledByName(r *http.Request) error {
	if s.config.Secure && !s.config.Local || isLoopback(r.Host) {
		return nil
	}
	for _, origin := range s.config.Origins {
		if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Host, strings.TrimSuffix(r.Host, ":443")) { // some proxies add the port
			return nil
		}
	}
	return fmt.Errorf("%w: header Host: %q is not a name of this machine", api.ErrCrossOrigin, r.Host)
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(host string) bool {
	u := url.URL{Host: host}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}
