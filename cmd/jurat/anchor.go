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

// Help is shown by 'jurat log anchor --help'.
func (*logAnchorCmd) Help() string {
	return `Asks outside authorities to stamp the log's signed checkpoint, and logs their time stamps. One time stamp then proves of every
record under the checkpoint that it existed by then, also of records that only the operator's own clock has stamped. Case
files and proofs that you write afterwards carry, for each record, the earliest such time stamp of each authority. 'jurat log renew' renews
them before they end.

It does nothing if the log has not grown since the last time, so you can run it on a schedule:

    0 * * * *  jurat --data /var/lib/jurat log anchor

Exit code 0: every authority has stamped everything in the log. 3: an authority did not answer; the next run asks it again. 2: it could not
be done.`
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
