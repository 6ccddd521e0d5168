package recording

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"jurat/evidence"
	"jurat/evidence/observed"
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
	relay.MCP:    {evidence.ObservedTool, func(c *relay.Call) string { return observe.MCP + cmp.Or(fitting(c.MCPVersion(), checkID), "unknown") }},
	relay.Models: {evidence.ObservedCall, func(c *relay.Call) string { return observe.Protocol(c.Method, c.Path) }},
	relay.A2A:    {evidence.ObservedMessage, a2aOf},
}

// sessionOf is the chain of a call whose protocol has sessions, and that names no chain: of the session that the call or its answer names, or else of all that pass this recorder
// without one.
func (e *exchange) sessionOf(outcome *relay.Outcome) string {
	if e.call.Speaks != relay.MCP {
		return ""
	}
	if session := cmp.Or(e.call.Session, outcome.Session); session != "" {
		return ChainOf(e.intent.Agent, "mcp-"+session[:min(len(session), 32)])
	}
	return ChainOf(e.intent.Agent, "mcp-"+filepath.Base(e.recorder.own))
}

// protocolOf names the protocol of a call. Other calls of HTTP are recorded as bytes.
func (k kind) protocolOf(c *relay.Call) string { return cmp.Or(k.protocol(c), "http") }

// a2aOf names the version of A2A by the header, or the parameter that stands for it.
func a2aOf(c *relay.Call) string {
	return observe.A2AProtocol(c.Method, c.Path, cmp.Or(c.Header.Get("A2A-Version"), c.Query.Get("A2A-Version")))
}

// sideOf is which of two agents the recorded one is, in a record that says so.
func (r *Recorder) sideOf(act evidence.ActionType) evidence.Side {
	if act != evidence.ObservedMessage {
		return ""
	}
	return cmp.Or(r.Side, evidence.Asked)
}

// unmasked is why the bytes of a message are not kept.
const unmasked = "it is not kept, as it cannot be read, and may have secrets for notifications"

// mask overwrites the secrets in the bodies of a message: they must not be on disk. What cannot be read for that is not kept.
func mask(act *observed.Act) {
	if act.Type != evidence.ObservedMessage {
		return
	}
	for _, one := range []struct {
		direction string
		body      *observed.Body
	}{{"request", act.Request}, {"response", act.Response}} {
		if one.body == nil {
			continue
		}
		if one.body.Refused {
			forgetBytes(one.body)
			act.Missing = append(slices.Clip(act.Missing), one.direction+": "+unmasked)
			continue
		}
		masked, secrets := observe.MaskA2A(one.body.Kept)
		if secrets == 0 {
			continue
		}
		one.body.Kept, one.body.Masked = masked, true
		act.Missing = append(slices.Clip(act.Missing), fmt.Sprintf("%s: %d secrets for notifications: they were overwritten before it was sealed", one.direction, secrets))
	}
}
