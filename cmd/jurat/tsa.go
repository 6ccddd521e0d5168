package main

import (
	"context"
	"fmt"
	"os"

	"jurat/internal/installation"
)

type tsaCmd struct {
	Add    tsaAddCmd    `cmd:"" help:"Have an authority stamp every record from now on."`
	List   tsaListCmd   `cmd:"" help:"List the authorities that stamp beside the built-in one."`
	Remove tsaRemoveCmd `cmd:"" help:"Have an authority stamp no more."`
}

type tsaAddCmd struct {
	Name   string `arg:"" help:"A name of your choice."`
	URL    string `arg:"" help:"Where it answers RFC 3161 queries."`
	Root   string `required:"" placeholder:"FILE" help:"Its root certificates in PEM, from a source that you trust."`
	Policy string `placeholder:"OID" help:"The policy to ask for and to insist on."`
}

// Help is shown by 'jurat tsa add --help'.
func (*tsaAddCmd) Help() string {
	return `The built-in authority is the operator's own clock. An authority outside proves time to those who do not take the
operator's word. Every record is then stamped by both, each token is verified before it is kept, and 'jurat trust' lists
the authority as independent. As long as it does not answer, nothing is sealed.

    jurat tsa add freetsa https://freetsa.example/tsr --root freetsa-ca.pem`
}

// Run adds an authority.
func (c *tsaAddCmd) Run(ctx context.Context, a *app, io stdio) error {
	roots, err := os.ReadFile(c.Root)
	if err != nil {
		return err
	}
	return a.withNew(ctx, io, keyFlags{}, func(*installation.Installation) error {
		return installation.AddOutside(ctx, installation.Config{Dir: a.Data},
			installation.Outside{Name: c.Name, URL: c.URL, Roots: string(roots), Policy: c.Policy})
	})
}

type tsaListCmd struct{}

// Run lists authorities.
func (*tsaListCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(*installation.Installation) error {
		list, err := installation.ListOutside(installation.Config{Dir: a.Data})
		if err != nil {
			return err
		}
		p := newPage(io.out)
		p.line("%-20s %s", "(built in)", "the operator's own clock")
		for _, o := range list {
			p.line("%-20s %s %s", o.Name, inert(o.URL), o.Policy)
		}
		return p.err
	})
}

type tsaRemoveCmd struct {
	Name string `arg:"" help:"The authority's name."`
}

// Run removes an authority.
func (c *tsaRemoveCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(*installation.Installation) error {
		if err := installation.RemoveOutside(installation.Config{Dir: a.Data}, c.Name); err != nil {
			return err
		}
		_, err := fmt.Fprintln(io.err, "jurat: its tokens stay; keep its root in the trust files of those who verify them")
		return err
	})
}
