package main

import (
	"context"

	"jurat/internal/installation"
)

type accessAdmitCmd struct {
	Agent newName `arg:"" help:"agent_id of the agent."`
	Chain string  `arg:"" help:"The chain_id."`
	whyFlags
}

// Run lets an agent into a chain.
func (c *accessAdmitCmd) Run(ctx context.Context, a *app, _ stdio) error {
	why, err := c.why()
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		return registerOf(i).Admit(ctx, c.Chain, string(c.Agent), why.Reason, why.By)
	})
}
