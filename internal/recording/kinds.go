package recording

import (
	"cmp"

	"jurat/evidence"
	"jurat/internal/observe"
	"jurat/internal/relay"
)

// A kind says what the record of a call is.
type kind struct {
	act      evidence.ActionType
	protocol func(*relay.Call) string // "": none that is read
}

// kinds are all that a recorder records, by what an upstream speaks.
var kinds = map[*relay.Protocol]kind{
	relay.MCP:    {evidence.ObservedTool, func(c *relay.Call) string { return observe.MCP + cmp.Or(c.MCPVersion(), "unknown") }},
	relay.Models: {evidence.ObservedCall, func(c *relay.Call) string { return observe.Protocol(c.Method, c.Path) }},
}

// protocolOf names the protocol of a call. Other calls of HTTP are recorded as bytes.
func (k kind) protocolOf(c *relay.Call) string { return cmp.Or(k.protocol(c), "http") }
