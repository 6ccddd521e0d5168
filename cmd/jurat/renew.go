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
