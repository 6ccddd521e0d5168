package recorder

import (
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

// mcpUpstream is the name of the server among the upstreams of a relay.
const mcpUpstream = "mcp"

// checkMCP refuses what no recorder before a server can be made of.
func (o Options) checkMCP() error {
	if o.MCP == nil {
		return nil
	}
	if o.Upstreams != nil || o.Pipes || o.A2A != nil {
		return errors.New("a handler leads to a server of MCP or elsewhere, and not to both")
	}
	u, err := o.MCP.upstream()
	if err != nil {
		return err
	}
	for _, path := range o.MCP.Also {
		if p, err := url.ParseRequestURI(path); err != nil || p.EscapedPath() != path || !strings.HasPrefix(path, "/") {
			return fmt.Errorf("field Also: %q is no path: it must begin with a slash, and have no query", path)
		}
	}
	return u.Check(mcpUpstream)
}

// upstream returns the server as the relay takes it.
func (m *MCP) upstream() (relay.Upstream, error) {
	u, err := url.Parse(m.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return relay.Upstream{}, errors.New("URL: it is no address of a server: https://HOST/PATH")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return relay.Upstream{}, errors.New("URL: it must have no user, query or fragment; a token belongs into Key")
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	r := relay.Upstream{Base: &url.URL{Scheme: u.Scheme, Host: u.Host}, Speaks: relay.MCP, Only: append([]string{path}, m.Also...), Key: m.Key}
	if r.Key != "" {
		r.KeyIn = "authorization"
	}
	return r, nil
}
