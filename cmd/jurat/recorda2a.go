package main

import (
	"context"
	"errors"
	"fmt"

	"jurat/internal/card"
	"jurat/recorder"
)

type recordA2ACmd struct {
	Agent       string `required:"" placeholder:"NAME" help:"The name of the agent that is recorded."`
	As          string `enum:"callee,caller" default:"callee" help:"callee: the agent is behind this, and answers. caller: the agent reaches another one through this, and asks."`
	Upstream    string `required:"" placeholder:"URL" help:"The agent behind this: scheme, host and port. Paths pass as they are."`
	Listen      string `default:"127.0.0.1:8420" placeholder:"ADDR" help:"Where to listen. An address beyond this machine needs --tls-key, as callers send credentials."`
	Chain       string `placeholder:"NAME" help:"One chain for all messages. Default: that of the context or task which the agent names."`
	RewriteCard string `name:"rewrite-card" placeholder:"URL" help:"Hand out the agent's card with this address in the place of the agent's own, and without its signatures, which would not hold. Default: the card passes as it is."`
	listenFlags
	logJSONFlag
	witnessFlags
}

// flagOrigin refuses what is no origin of an agent, with the name of its flag.
func flagOrigin(flag, address string) error {
	if _, err := card.ParseOrigin(address); err != nil {
		return fmt.Errorf("%s %q: %w", flag, address, err)
	}
	return nil
}

// Run records until it is interrupted.
func (c *recordA2ACmd) Run(ctx context.Context, a *app, io stdio) error {
	o, err := c.witness()
	if err = errors.Join(err, flagName("--agent", c.Agent), flagOrigin("--upstream", c.Upstream)); err == nil && c.RewriteCard != "" {
		err = flagOrigin("--rewrite-card", c.RewriteCard)
	}
	if err != nil {
		return err
	}
	o.Agent, o.Chain, o.Hosts, o.Log = c.Agent, c.Chain, lowered(c.Host), io.logger(c.LogJSON)
	o.A2A = &recorder.A2A{Origin: c.Upstream, Side: recorder.Answered, RewriteCard: c.RewriteCard}
	if c.As == "caller" {
		o.A2A.Side = recorder.Asked
	}
	return c.serve(ctx, a, io, o, listening{c.Listen, c.TLSCert, c.TLSKey})
}
