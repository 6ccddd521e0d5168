package server

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"jurat/api"
)

// originConfig says under which names browsers reach a server.
type originConfig struct {
	Secure  bool     // by https; false: by http on this machine alone
	Local   bool     // it listens on this machine alone
	Origins []string // under which a proxy shows it, such as https://jurat.example
}

// An originGuard checks where requests come from. It is safe for concurrent use.
type originGuard struct {
	c       originConfig
	origins *http.CrossOriginProtection
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

// newOriginGuard returns a Guard. It returns an error for an origin that Parse refuses.
func newOriginGuard(c originConfig) (*originGuard, error) {
	g := &originGuard{c: c, origins: http.NewCrossOriginProtection()}
	for _, text := range c.Origins {
		origin, err := ParseOrigin(text)
		if err == nil {
			err = g.origins.AddTrustedOrigin(origin)
		}
		if err != nil {
			return nil, fmt.Errorf("origin %q: %w", text, err)
		}
	}
	return g, nil
}

// Check refuses requests that a browser sends for another site, or for one that only seems to be this one.
func (g *originGuard) Check(r *http.Request) error {
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
func (g *originGuard) plain(r *http.Request) bool {
	if !g.c.Secure || r.TLS != nil || r.Header.Get("Sec-Fetch-Site") != "" {
		return false
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Scheme != "https" && (origin.Host == "" || origin.Host == r.Host)
}

// calledByName refuses requests to this machine under a foreign host name. Only a browser sends these, for a page of
// a site that points its own name to this machine (DNS rebinding): the page and this server would have the same
// origin.
func (g *originGuard) calledByName(r *http.Request) error {
	if g.c.Secure && !g.c.Local || isLoopback(r.Host) {
		return nil
	}
	for _, origin := range g.c.Origins {
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
