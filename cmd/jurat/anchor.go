package main

import (
	"context"
	"errors"

	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/internal/stamping"
)

type logAnchorCmd struct {
	TSA []string `name:"tsa" sep:"none" placeholder:"NAME|URL" help:"Ask only these authorities (may be repeated). Default: all outside authorities of 'jurat tsa list'."`
}

// Run has the checkpoint stamped.
func (c *logAnchorCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.withStampers(ctx, c.TSA, func(i *installation.Installation) error {
		anchored, err := i.Timekeeper.Anchor(ctx)
		p := newPrinter(io.out)
		missing := false
		for _, a := range anchored {
			switch {
			case a.Reason != nil:
				missing = true
				p.line("%s: has not stamped the checkpoint over %s%s", a.Authority, plural.Of(a.Size, "record"), because(a.Reason))
			case a.Act == nil:
				p.line("%s: has stamped everything already", a.Authority)
			default:
				p.line("%s: stamped the checkpoint over %s", a.Authority, plural.Of(a.Size, "record"))
			}
		}
		if errors.Is(err, stamping.ErrNobodyOutside) {
			return hint(err, "'jurat tsa add NAME URL --root FILE' adds one")
		}
		if err := errors.Join(err, p.err); err != nil || !missing {
			return err
		}
		return exitCode(exitUndecided)
	})
}
