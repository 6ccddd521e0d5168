package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/internal/stamping"
	"jurat/verify/trust"
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
	t := table{heads: []head{{name: "authority"}, {name: "what it is", rank: 1}}}
	t.row("(built in)", "the operator's own clock")
	for _, o := range list {
		t.row(o.Name, strings.Join(strings.Fields(o.URL+" "+o.Policy+" "+qualifiedUntil(&o)+" "+waiting[o.Name]), " "))
		delete(waiting, o.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		t.row(name, "removed; "+waiting[name])
	}
	return errors.Join(jsonFlag{}.list(io, nil, &t, ""), tellDue(ctx, io, i))
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
	if err != nil {
		return err
	}
	if n > 0 {
		fmt.Fprintf(io.err, "jurat: time: given up for %s: the time stamps of %s\n", c.Name, plural.Of(n, "record"))
	}
	_, err = fmt.Fprintln(io.err, "jurat: its tokens stay; keep its root in the trust files of those who verify them")
	return err
}

type logStampCmd struct {
	List       bool      `xor:"what" help:"Only list the records that wait."`
	Checkpoint bool      `xor:"what" help:"Have the log's checkpoint stamped: one time stamp for all records."`
	Renew      bool      `xor:"what" help:"Renew the time stamps of checkpoints before the certificates that they rest on end."`
	Before     time.Time `placeholder:"TIME" help:"With --renew: what rests on certificates that end before this time (RFC 3339). Default: a year from now."`
	TSA        []string  `name:"tsa" sep:"none" placeholder:"NAME|URL" help:"With --checkpoint or --renew: ask these authorities (may be repeated). Default: all of 'jurat tsa'; for --renew the first, or the built-in one."`
	jsonFlag
}

func (c *logStampCmd) Run(ctx context.Context, a *app, io stdio) error {
	switch {
	case c.JSON && !c.List, !c.Before.IsZero() && !c.Renew, c.TSA != nil && !c.Checkpoint && !c.Renew:
		return errors.New("--json goes with --list, --before with --renew, --tsa with --checkpoint or --renew")
	case c.Renew && len(c.TSA) > 1:
		return errors.New("--renew takes one authority with --tsa")
	case c.Checkpoint:
		return a.withStampers(ctx, c.TSA, func(i *installation.Installation) error { return anchor(ctx, i, io) })
	}
	do := stamp
	switch {
	case c.List:
		do = c.pending
	case c.Renew:
		do = c.renew
	}
	return a.with(ctx, func(i *installation.Installation) error { return do(ctx, i, io) })
}

func stamp(ctx context.Context, i *installation.Installation, io stdio) error {
	report := map[string]func(done, total int64){}
	outcomes, err := i.Timekeeper.Stamp(ctx, stamping.Order{Progress: func(authority string, done, total int64) {
		if report[authority] == nil {
			report[authority] = progress(io, "stamped by "+authority)
		}
		report[authority](done, total)
	}})
	still := false
	p := newPrinter(io.out)
	for _, o := range outcomes {
		p.line("%s: %d stamped, %d still waiting%s", o.Authority, o.Stamped, o.Records, because(o.Reason))
		still = still || o.Records > 0
		if errors.Is(o.Reason, stamping.ErrNotConfigured) {
			fmt.Fprintf(io.err, "jurat: hint: 'jurat tsa %s URL --root FILE' adds it again; 'jurat tsa %s --remove --forget' gives its stamps up\n",
				o.Authority, o.Authority)
		}
	}
	if len(outcomes) == 0 {
		p.line("nothing waits for a time stamp")
	}
	return cmp.Or(errors.Join(err, p.err), when(still, exitUndecided))
}

// pendingLine is a record that waits, as it is listed.
type pendingLine struct {
	Authority string `json:"authority"`
	Since     string `json:"since"`
	Index     int64  `json:"index"`
	Record    string `json:"record"`
	Stamps    int    `json:"stamps"` // that it has
}

func (c *logStampCmd) pending(ctx context.Context, i *installation.Installation, io stdio) error {
	lines, err := pending(ctx, i)
	if err != nil {
		return err
	}
	t := table{heads: []head{{name: "authority", rank: 2}, {name: "since", rank: 3}, {name: "record", rank: 1}, {name: "index", right: true}, {name: "time stamps", right: true}}}
	for _, l := range lines {
		t.row(l.Authority, l.Since, l.Record, l.Index, l.Stamps)
	}
	if err := c.list(io, lines, &t, "nothing waits for a time stamp"); err != nil || c.JSON {
		return err
	}
	return tellDue(ctx, io, i)
}

func pending(ctx context.Context, i *installation.Installation) ([]pendingLine, error) {
	owing, err := i.Ledger.Owing(ctx)
	if err != nil {
		return nil, err
	}
	lines := []pendingLine{}
	for _, o := range owing {
		for from := int64(0); ; {
			page, err := i.Ledger.Waiting(ctx, o.Authority, from, operator.MaxLateStamps)
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				break
			}
			for _, w := range page {
				lines = append(lines, pendingLine{Authority: w.Authority, Since: evidence.FormatTime(w.Since), Index: w.Index,
					Record: w.Record.Payload.RecordID, Stamps: len(w.Record.Timestamps)})
				from = w.Index + 1
			}
		}
	}
	return lines, nil
}

func anchor(ctx context.Context, i *installation.Installation, io stdio) error {
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
	return cmp.Or(errors.Join(err, p.err), when(missing, exitUndecided))
}

func (c *logStampCmd) renew(ctx context.Context, i *installation.Installation, io stdio) error {
	o := stamping.RenewConfig{Before: cmp.Or(c.Before, time.Now().AddDate(1, 0, 0))}
	if c.TSA != nil {
		o.TSA = c.TSA[0]
	}
	r, err := i.Timekeeper.Renew(ctx, o)
	if err != nil {
		return err
	}
	p := newPrinter(io.out)
	if r.Renewed == 0 {
		p.line("nothing is due: no stamped checkpoint that can be renewed rests on certificates that end before %s", o.Before.UTC().Format(time.DateOnly))
	} else {
		p.line("%s: renewed %s", r.Authority, plural.Of(r.Renewed, "stamped checkpoint"))
	}
	if r.Renewed > 0 && stamping.ClockOf(r.Authority) == trust.OperatorClock {
		fmt.Fprintln(io.err, "jurat: hint: this rests on the operator's own clock; an authority outside is worth more ('jurat tsa')")
	}
	if r.Foreign > 0 {
		p.line("%s cannot be judged here: of authorities that are not configured, or damaged", plural.Of(r.Foreign, "stamped checkpoint"))
	}
	return closing(when(r.Foreign > 0, exitUndecided), p.err)
}
