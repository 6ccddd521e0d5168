// Package origin refuses requests that a browser sends for another site.
package origin

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"jurat/api"
)

// Config says under which names browsers reach a server.
type Config struct {
	Secure  bool     // by https; false: by http on this machine alone
	Local   bool     // it listens on this machine alone
	Origins []string // under which a proxy shows it, such as https://jurat.example
}

// A Guard checks where requests come from. It is safe for concurrent use.
type Guard struct {
	c       Config
	origins *http.CrossOriginProtection
}

// New returns a Guard. It returns an error for an origin that is none.
func New(c Config) (*Guard, error) {
	g := &Guard{c: c, origins: http.NewCrossOriginProtection()}
	for _, origin := range c.Origins {
		if err := g.origins.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("origin %q: %w", origin, err)
		}
	}
	return g, nil
}

// Check refuses requests that a browser sends for another site, or for one that only seems to be this one.
func (g *Guard) Check(r *http.Request) error {
	err := g.origins.Check(r)
	if g.plain(r) && (err != nil || r.Header.Get("Origin") != "") { // before a link is used up for a session that the browser would drop
		return fmt.Errorf("%w: over http from another machine it neither keeps a session nor says where a request comes from", api.ErrPlainHTTP)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrCrossOrigin, err)
	}
	return g.calledByName(r)
}

// plain reports whether a browser that should come by https has come by http. Then it sends no Sec-Fetch-Site, which
// it sends only to trustworthy origins. Its requests are refused, because they could come from any site.
func (g *Guard) plain(r *http.Request) bool {
	if !g.c.Secure || r.TLS != nil || r.Header.Get("Sec-Fetch-Site") != "" {
		return false
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Scheme != "https" && (origin.Host == "" || origin.Host == r.Host)
}

// calledByName refuses requests to this machine under a foreign host name. Only a browser sends these, for a page of
// a site that points its own name to this machine (DNS rebinding): the page and this server would have the same
// origin.
func (g *Guard) calledByName(r *http.Request) error {
	if g.c.Secure && !g.c.Local || isLoopback(r.Host) {
		return nil
	}
	for _, origin := range g.c.Origins {
		if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Host, r.Host) {
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
