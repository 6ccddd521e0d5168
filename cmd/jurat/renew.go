package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/internal/stamping"
	"jurat/verify/trust"
)

type logRenewCmd struct {
	Before *time.Time `placeholder:"TIME" help:"Renew what rests on certificates that end before this time (RFC 3339). Default: a year from now."`
	TSA    string     `name:"tsa" placeholder:"NAME|URL" help:"Who stamps. Default: the first authority of 'jurat tsa list', or the built-in one."`
}

// Help is shown by 'jurat log renew --help'.
func (*logRenewCmd) Help() string {
	return `A time stamp proves something only while its authority's key, certificates and algorithms can be relied on. If it is renewed before that
ends, it stays valid: a new token covers the stamped checkpoint ('jurat log anchor') and all its tokens, and proves that these existed in time.
Case files and proofs that you write afterwards carry it.

Run the command from time to time, and again if it was interrupted: it renews nothing twice. Readers must trust all authorities that
stamped, so keep their roots in your trust files.

    jurat log renew --before 2030-01-01T00:00:00Z

Exit code 0: nothing is left to renew. 3: some stamped checkpoints could not be judged here. 2: it could not be done.`
}

// Run renews.
func (c *logRenewCmd) Run(ctx context.Context, a *app, io stdio) error {
	before := time.Now().AddDate(1, 0, 0)
	if c.Before != nil {
		before = *c.Before
	}
	return a.with(ctx, func(i *installation.Installation) error {
		r, err := i.Timekeeper.Renew(ctx, stamping.RenewConfig{Before: before, TSA: c.TSA})
		if errors.Is(err, stamping.ErrEndsTooEarly) {
			return hint(err, "name another authority with --tsa, or an earlier time with --before")
		}
		if err != nil {
			return err
		}
		p := newPrinter(io.out)
		if r.Renewed == 0 {
			p.line("nothing is due: no stamped checkpoint that can be renewed rests on certificates that end before %s", before.UTC().Format(time.DateOnly))
		} else {
			p.line("%s: renewed %s", r.Authority, plural.Of(r.Renewed, "stamped checkpoint"))
		}
		if r.Renewed > 0 && stamping.ClockOf(r.Authority) == trust.OperatorClock {
			fmt.Fprintln(io.err, "jurat: hint: this rests on the operator's own clock; an authority outside is worth more ('jurat tsa add')")
		}
		if r.Foreign > 0 {
			p.line("%s cannot be judged here: of authorities that are not configured, or damaged", plural.Of(r.Foreign, "stamped checkpoint"))
		}
		if p.err == nil && r.Foreign > 0 {
			return exitCode(exitUndecided)
		}
		return p.err
	})
}
