package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"jurat/internal/relay"
)

// MCP is a server of the Model Context Protocol that clients reach over HTTP, through the handler. The handler's paths are the server's own.
type MCP struct {
	// URL is the server's address. Of its host this path alone passes, without a query.
	URL string
	// Also are other paths that pass. What passes is sealed, so paths that give out tokens do not belong here.
	Also []string
	// Key is a bearer token for the server. If it is set, it replaces every credential that a client sends.
	Key Secret
}

// beforeServer returns the server as the relay takes it. It refuses what no recorder before a server can be made of.
func (o Options) beforeServer(name string) (none relay.Upstream, err error) {
	m := o.MCP
	u, err := url.Parse(m.URL)
	if o.Upstreams != nil || o.Pipes || o.A2A != nil {
		return none, errors.New("a handler leads to a server of MCP or elsewhere, and not to both")
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return none, errors.New("URL: it is no address of a server: https://HOST/PATH")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return none, errors.New("URL: it must have no user, query or fragment; a token belongs into Key")
	}
	for _, path := range m.Also {
		if p, err := url.ParseRequestURI(path); err != nil || p.EscapedPath() != path || !strings.HasPrefix(path, "/") {
			return none, fmt.Errorf("field Also: %q is no path: it must begin with a slash, and have no query", path)
		}
	}
	only := append([]string{cmp.Or(u.EscapedPath(), "/")}, m.Also...)
	r := relay.Upstream{Base: &url.URL{Scheme: u.Scheme, Host: u.Host}, Speaks: relay.MCP, Only: only, Key: m.Key, KeyIn: "authorization"}
	return r, r.Check(name)
}
