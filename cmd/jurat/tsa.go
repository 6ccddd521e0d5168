package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/internal/stamping"
)

type tsaCmd struct {
	Name   string `arg:"" optional:"" help:"A name of your choice."`
	URL    string `arg:"" optional:"" help:"Add the authority that answers RFC 3161 queries there: it stamps every record from now on."`
	Root   string `aliases:"roots" placeholder:"FILE" help:"Its root certificates in PEM, from a source that you trust. Required, unless --qualified is given."`
	Policy string `placeholder:"OID" help:"The policy to ask for and to insist on."`

	Qualified bool   `help:"It must be a qualified trust service by the European Union's trusted lists, now and at each time stamp."`
	Trust     string `placeholder:"FILE" help:"With --qualified: a trust file that 'jurat trust eu' wrote from the lists."`

	Untried bool `help:"Do not ask it for a time stamp now."`
	Remove  bool `help:"Stop asking this authority."`
	Forget  bool `help:"With --remove: give up the time stamps that records wait for."`
}

// Run lists, adds or removes authorities.
func (c *tsaCmd) Run(ctx context.Context, a *app, io stdio) error {
	adds := c.Root + c.Policy + c.Trust
	switch {
	case c.Name == "" && !c.Remove && !c.Forget && !c.Qualified && !c.Untried && adds == "":
		return a.with(ctx, func(i *installation.Installation) error { return listAuthorities(ctx, i, io) })
	case c.Remove && c.Name != "" && c.URL == "" && !c.Qualified && !c.Untried && adds == "":
		return a.with(ctx, func(i *installation.Installation) error { return c.remove(ctx, i, io) })
	case c.Remove || c.Forget || c.URL == "":
		return hint(errors.New("want NAME URL --root FILE, NAME --remove, or nothing"), "'jurat tsa' lists the authorities")
	case c.Qualified:
		return c.qualified(ctx, a, io)
	}
	return c.add(ctx, a, io)
}

func (c *tsaCmd) add(ctx context.Context, a *app, io stdio) error {
	if c.Trust != "" || c.Root == "" {
		return errors.New("want either --root FILE, or --qualified with --trust FILE")
	}
	roots, err := readFile(c.Root)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		err := i.Timekeeper.Add(ctx,
			stamping.Outside{Name: c.Name, URL: c.URL, Roots: string(roots), Policy: c.Policy}, c.Untried)
		if errors.Is(err, stamping.ErrUnavailable) {
			return hint(err, "--untried adds it without asking; records then wait for its time stamps")
		}
		if err == nil {
			_, err = fmt.Fprintf(io.err, "jurat: %s stamps every record from now on: give the new trust file ('jurat trust') to the people who verify, and restart running servers\n", c.Name)
		}
		return err
	})
}

// qualified adds an authority that the trusted lists know.
func (c *tsaCmd) qualified(ctx context.Context, a *app, io stdio) error {
	if c.Trust == "" {
		return hint(errors.New("--qualified needs --trust FILE: the trust file with what the trusted lists say"), "'jurat trust eu' writes one")
	}
	if c.Root != "" || c.Untried {
		return errors.New("--qualified takes the certificates from --trust FILE, so it goes with neither --root nor --untried")
	}
	file, err := readTrust("--trust", c.Trust)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		q, err := i.Timekeeper.AddQualified(ctx, stamping.Outside{Name: c.Name, URL: c.URL, Policy: c.Policy}, file)
		if errors.Is(err, stamping.ErrListOutOfDate) {
			return hint(err, "'jurat trust eu --fetch' brings newer lists, and 'jurat trust eu' writes a trust file from them")
		}
		if err != nil {
			return err
		}
		return io.line("%s is the qualified service %q of %q, by the trusted list of %s number %d, issued %s", c.Name, q.Service, q.TSP, q.Territory, q.List.Sequence, evidence.FormatTime(q.List.Issued))
	})
}

func listAuthorities(ctx context.Context, i *installation.Installation, io stdio) error {
	list, err := i.Timekeeper.List(ctx)
	if err != nil {
		return err
	}
	owing, err := i.Ledger.Owing(ctx)
	if err != nil {
		return err
	}
	waiting := map[string]string{}
	for _, o := range owing {
		waiting[o.Authority] = fmt.Sprintf("%d waiting since %s", o.Records, evidence.FormatTime(o.Since))
	}
	p := newPrinter(io.out)
	t := table{heads: []head{{name: "authority"}, {name: "what it is", rank: 1}}}
	t.row("(built in)", "the operator's own clock")
	for _, o := range list {
		t.row(o.Name, strings.Join(strings.Fields(o.URL+" "+o.Policy+" "+qualifiedUntil(&o)+" "+waiting[o.Name]), " "))
		delete(waiting, o.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		t.row(name, "removed; "+waiting[name])
	}
	p.table(&t)
	return errors.Join(p.err, tellDue(ctx, io, i))
}

func qualifiedUntil(o *stamping.Outside) string {
	switch until := o.Until(); {
	case o.Qualified == nil:
		return ""
	case until.IsZero():
		return "qualified"
	default:
		return "qualified, by lists until " + evidence.FormatTime(until)
	}
}

// tellDue prints which authorities need newer trusted lists.
func tellDue(ctx context.Context, io stdio, i *installation.Installation) error {
	notes, err := i.Timekeeper.Due(ctx)
	for _, note := range notes {
		fmt.Fprintf(io.err, "jurat: time: %s\n", oneLine(errors.New(note)))
	}
	return err
}

func (c *tsaCmd) remove(ctx context.Context, i *installation.Installation, io stdio) error {
	n, err := i.Timekeeper.Remove(ctx, c.Name, c.Forget)
	if errors.Is(err, stamping.ErrAwaited) {
		return hint(err, "'jurat log stamp' asks for them; --forget gives them up")
	}
	if err != nil {
		return err
	}
	if n > 0 {
		fmt.Fprintf(io.err, "jurat: time: given up for %s: the time stamps of %s\n", c.Name, plural.Of(n, "record"))
	}
	_, err = fmt.Fprintln(io.err, "jurat: its tokens stay; keep its root in the trust files of those who verify them")
	return err
}
