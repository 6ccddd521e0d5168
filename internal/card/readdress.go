package card

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// Readdress returns a card whose agent is reached at another origin (scheme, host and port), with the paths that it has. It leaves out the signatures,
// which would not hold, and interfaces that another origin has or that speak gRPC: who used one would go past the new origin.
func Readdress(doc []byte, from, to *url.URL) ([]byte, error) {
	c, err := Parse(doc)
	if err != nil {
		return nil, err
	}
	left := 0
	for _, member := range []string{"supportedInterfaces", "additionalInterfaces"} {
		list, there := c.tree[member].([]any)
		if !there {
			continue
		}
		kept := []any{}
		for _, one := range list {
			if moved := readdressed(one, from, to); moved != nil {
				kept = append(kept, moved)
			}
		}
		c.tree[member] = kept
		left += len(kept)
	}
	if _, there := c.tree["url"]; there {
		moved := readdressed(c.tree, from, to)
		if moved == nil {
			return nil, fmt.Errorf("the agent card's url is not at %s, or speaks gRPC, which cannot pass here", originOf(from))
		}
		c.tree, left = moved, left+1
	}
	if left == 0 {
		return nil, fmt.Errorf("the agent card names no interface at %s that can pass here", originOf(from))
	}
	return json.Marshal(c.tree, json.Deterministic(true))
}

// readdressed returns an interface at the new origin; nil: it is none that moves.
func readdressed(one any, from, to *url.URL) map[string]any {
	face, is := one.(map[string]any)
	if !is {
		return nil
	}
	for _, member := range []string{"protocolBinding", "transport", "preferredTransport"} {
		if kind, named := face[member].(string); named && strings.EqualFold(kind, "GRPC") {
			return nil
		}
	}
	address, _ := face["url"].(string)
	u, err := url.Parse(address)
	if err != nil || originOf(u) != originOf(from) || u.User != nil {
		return nil
	}
	moved := maps.Clone(face)
	u.Scheme, u.Host = to.Scheme, to.Host
	moved["url"] = u.String()
	return moved
}

// originOf is scheme, host and port, with the port that a scheme stands for.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}

// ErrNoOrigin says that an address is more than scheme, host and port, or less.
var ErrNoOrigin = errors.New("want https://HOST or http://HOST, with a port if need be, and nothing else: paths pass as they are")

// ParseOrigin reads the address of an agent: scheme, host and port alone.
func ParseOrigin(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("it is no URL")
	case u.Scheme == "grpc" || u.Scheme == "grpcs":
		return nil, errors.New("gRPC cannot be recorded: name the agent's address for JSON-RPC or HTTP with JSON")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "":
		return nil, ErrNoOrigin
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}
