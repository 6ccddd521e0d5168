package main

import (
	"context"
	"errors"

	"jurat/internal/installation"
	"jurat/internal/plural"
)

type logAnchorCmd struct {
	TSA []string `name:"tsa" sep:"none" placeholder:"NAME|URL" help:"Have exactly these authorities stamp it (may be repeated). Default: all of 'jurat tsa list' that are outside."`
}

// Help is shown by 'jurat log anchor --help'.
func (*logAnchorCmd) Help() string {
	return `Has authorities outside stamp the log's signed checkpoint, and logs their time stamps. One time stamp then says of every
record that the checkpoint covers that it existed by then, also of those that the operator's own clock alone has stamped. Case
files and proofs that are written afterwards carry it.

Where nothing has been added since the last time, it does nothing. So it can run on a schedule:

    0 * * * *  jurat --data /var/lib/jurat log anchor

A checkpoint that too few of the log's witnesses have cosigned is not stamped: proofs would be under it, and not count. The last
one that enough have cosigned is stamped in its place.

Exit code 0: every authority has stamped the last checkpoint that counts, or all that is in the log. 3: one did not answer, or too few
witnesses did for there to be anything new that counts, and they are asked the next time. 2: it could not be done.`
}

// Run has the checkpoint stamped.
func (c *logAnchorCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.withStampers(ctx, c.TSA, func(i *installation.Installation) error {
		anchored, err := i.Anchor(ctx)
		p := newPage(io.out)
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
		if errors.Is(err, installation.ErrNobodyOutside) {
			return hint(err, "'jurat tsa add NAME URL --root FILE' adds one")
		}
		if err := errors.Join(err, p.err); err != nil || !missing {
			return err
		}
		return exitCode(exitUndecided)
	})
}

// latestFlag chooses the checkpoint that something is proved against.
type latestFlag struct {
	Latest bool `help:"Prove it against the latest checkpoint, and not against the earliest that an authority has stamped."`
}

const latestHelp = `

The proof is against the earliest checkpoint over it that an authority has stamped ('jurat log anchor'), with the stamps; where
there is none, and with --latest, against the latest checkpoint.`
