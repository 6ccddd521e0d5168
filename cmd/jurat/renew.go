package main

import (
	"context"
	"crypto"
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
	Hash   string     `enum:"sha384,sha512," default:"" help:"Go on with this hash (sha384, sha512): renews all that rests on another one."`
}

// Help is shown by 'jurat log renew --help'.
func (*logRenewCmd) Help() string {
	return `A time stamp proves something only while its authority's key, certificates and hash algorithm can be relied on. If it is renewed
before that ends, it stays valid: a new token covers the old one, and proves that the old one existed in time. One token renews
thousands of records; each gets an evidence record (RFC 4998), which verifies alone. The old time stamps stay.

Plain time stamps get an evidence record that covers them, evidence records get a further time stamp; with --hash they get a further
chain, over the record itself and all its time stamps. Run the command from time to time, and again if it was interrupted: it renews
nothing twice. Readers must trust all authorities that stamped, so keep their roots in your trust files.

    jurat log renew --hash sha512

Exit code 0: nothing is left to renew. 3: some time stamps could not be judged here, or wait for an authority. 2: it could not be done.`
}

// Run renews.
func (c *logRenewCmd) Run(ctx context.Context, a *app, io stdio) error {
	before := time.Now().AddDate(1, 0, 0)
	if c.Before != nil {
		before = *c.Before
	}
	hash := map[string]crypto.Hash{"sha384": crypto.SHA384, "sha512": crypto.SHA512}[c.Hash]
	return a.with(ctx, func(i *installation.Installation) error {
		report := progress(io, "renewed")
		r, err := i.Timekeeper.Renew(ctx, stamping.RenewConfig{Before: before, TSA: c.TSA, Hash: hash,
			Progress: func(done, n int) { report(int64(done), int64(n)) }})
		if errors.Is(err, stamping.ErrEndsTooEarly) {
			return hint(err, "name another authority with --tsa, or an earlier time with --before")
		}
		if err != nil {
			return err
		}
		p := newPrinter(io.out)
		switch {
		case r.Records == 0:
			p.line("nothing is due: nothing that can be renewed rests on certificates that end before %s", before.UTC().Format(time.DateOnly))
		default:
			p.line("%s: %s, by %s", r.Authority, plural.Of(r.Records, "evidence record"), plural.Of(r.Requests, "token"))
		}
		if r.Records > 0 && stamping.ClockOf(r.Authority) == trust.OperatorClock {
			fmt.Fprintln(io.err, "jurat: hint: this rests on the operator's own clock; an authority outside is worth more ('jurat tsa add')")
		}
		if r.Foreign > 0 {
			p.line("%s cannot be judged here: of authorities that are not configured, or damaged", plural.Of(r.Foreign, "time stamp"))
		}
		if r.Full > 0 {
			p.line("%d evidence records have grown to the limit and cannot be renewed", r.Full)
		}
		if r.Waiting > 0 {
			p.line("%s for %s: 'jurat log stamp' first", plural.Of(r.Waiting, "record")+plural.Or(r.Waiting, " waits", " wait"), r.Authority)
		}
		if p.err == nil && r.Foreign+r.Full+r.Waiting > 0 {
			return exitCode(exitUndecided)
		}
		return p.err
	})
}
