package relay

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// askedAt returns the address of a request, as its client names it.
func askedAt(req *http.Request) *url.URL {
	path, query, _ := strings.Cut(req.RequestURI, "?")
	at := &url.URL{Scheme: "http", Host: req.Host, RawQuery: query}
	if req.TLS != nil {
		at.Scheme = "https"
	}
	if at.Path, _ = url.PathUnescape(path); at.EscapedPath() != path { // which checkPath has read
		at.RawPath = path
	}
	return at
}

// plainAddress are addresses that every client reads in the same way: browsers' rules leave out tabs, and take a backslash for a slash.
var plainAddress = regexp.MustCompile(`^[A-Za-z0-9._~:/?\[\]@!$&()*+,;=%-]+$`)

// endpointOf returns the path and the query to which clients post that were told an endpoint. It fails if they would not post to this relay, or not to what the server means.
func (r *relay) endpointOf(c *Call, asked *url.URL, text string) (path, query string, err error) {
	to, err := url.Parse(text)
	switch {
	case len(text) > longestEndpoint:
		return "", "", fmt.Errorf("it has more than %d bytes", longestEndpoint)
	case err != nil || !plainAddress.MatchString(text) || to.User != nil || to.Opaque != "" || to.Scheme != "" && to.Host == "":
		return "", "", errors.New("clients may read it in more than one way")
	case r.Root == "" || strings.TrimSuffix(r.Upstreams[c.Upstream].Base.EscapedPath(), "/") != "":
		return "", "", errors.New("this recorder has other paths than the server, and clients look for it under the server's")
	case to.Host != "" && !r.leadsHere(asked, asked.ResolveReference(to)):
		return "", "", fmt.Errorf("it leads to %s://%s, past this recorder, at which the client asked as %s://%s: let the server name a path alone, or this address", asked.ResolveReference(to).Scheme, to.Host, asked.Scheme, asked.Host)
	}
	to = asked.ResolveReference(to)
	if path = to.EscapedPath(); path == "" {
		path = "/"
	}
	return path, to.RawQuery, checkPath(path)
}

// leadsHere reports whether an address has the origin at which a client asked. Before a relay that has a name of a reverse proxy, that one may speak TLS.
func (r *relay) leadsHere(asked, to *url.URL) bool {
	same := strings.EqualFold(hostOf(to, asked.Scheme), hostOf(asked, asked.Scheme)) && to.Scheme == asked.Scheme
	return same || to.Scheme == "https" && strings.EqualFold(to.Host, asked.Host) && slices.Contains(r.Hosts, strings.ToLower(asked.Hostname()))
}

// hostOf is a host with its port.
func hostOf(u *url.URL, scheme string) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
