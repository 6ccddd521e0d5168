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

// followed are the headers of an answer that name an address which clients ask next by themselves: redirects and what was made, where uploads go on, and where the result
// of a long call will be. Content-Location and Link are not followed by clients of models and agents.
var followed = []string{"Location", "X-Goog-Upload-Url", "X-Goog-Upload-Control-Url", "Operation-Location", "Azure-Asyncoperation", "Refresh"}

// An astrayError says that an answer leads the client to an address that is not this relay's, or means something else there.
type astrayError struct {
	status int
	header string
	to     string // no more of the address than others may know
	past   bool   // past this relay, and not to another path of it
}

func (e *astrayError) Error() string {
	how := "elsewhere than the server means, to "
	if e.past {
		how = "past this recorder, to "
	}
	return fmt.Sprintf("the server's answer with the status %d leads the client by the header %s %s%s", e.status, e.header, how, e.to)
}

// notAstray says what to do.
const notAstray = "start the recorder with the address to which the server leads as its upstream, such as --upstream https://HOST/mcp/ with a slash at the end, or let the server name a path alone"

// astray returns an error if a client that follows the answer would ask past this relay, or for something else than the server means.
func (p *passage) astray(answer *http.Response) *astrayError {
	if p.from == nil {
		return nil
	}
	for _, header := range followed {
		for _, text := range answer.Header[header] {
			if header == "Refresh" {
				if text = refreshed(text); text == "" {
					continue
				}
			}
			if to, past := p.leads(text); to != "" {
				return &astrayError{answer.StatusCode, header, to, past}
			}
		}
	}
	return nil
}

// refreshing is a header Refresh that names an address, as browsers read it: "5; url=https://HOST/", and also with a comma or a space, or without "url=".
var refreshing = regexp.MustCompile(`^[^;,\s]*(?:\s*[;,]|\s)\s*(?:(?i:url)\s*=\s*)?(.+)$`)

// refreshed returns the address in a header Refresh. "": it names none.
func refreshed(text string) string {
	found := refreshing.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return strings.Trim(strings.TrimSpace(found[1]), `"'`)
}

// leads returns where an address leads that a client is to ask; "": to the same upstream, through this relay. past is set if that is not this relay.
func (p *passage) leads(text string) (shown string, past bool) {
	text, _, _ = strings.Cut(text, "#")
	to, err := url.Parse(text)
	if err != nil || text != "" && !plainAddress.MatchString(text) || to.User != nil || to.Opaque != "" || to.Scheme != "" && to.Host == "" {
		return "an address that clients may read in more than one way", true
	}
	if to = p.from.ResolveReference(to); !p.r.leadsHere(p.from, to) {
		shown = to.Scheme + "://" + to.Host
		if path := to.EscapedPath(); strings.Trim(path, "/") == strings.Trim(p.call.Path, "/") { // others may be secret, as those of uploads are
			shown += path
		}
		return shown, true
	}
	path := to.EscapedPath()
	if path == "" {
		path = "/"
	}
	_, name, rest := p.r.divided(path)
	upstream := p.r.Upstreams[p.call.Upstream]
	if name != p.call.Upstream || upstream.Only != nil && !slices.Contains(upstream.Only, upstream.pathOf(rest)) || checkPath(path) != nil {
		return "a path at which it does not find that server", false
	}
	return "", false
}

// isAstray reports whether an answer was not handed out because of where it leads.
func isAstray(err error) bool {
	_, is := errors.AsType[*astrayError](err)
	return is
}

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
