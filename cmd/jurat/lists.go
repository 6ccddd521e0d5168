package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/eutrust"
	"jurat/internal/installation"
	"jurat/internal/listlog"
	"jurat/internal/plural"
)

type listsCmd struct {
	Fetch listsFetchCmd `cmd:"" help:"Fetch the European Union's trusted lists into a folder."`
	Keep  listsKeepCmd  `cmd:"" help:"Keep trusted lists in the installation, and seal which ones they are."`
	Show  listsShowCmd  `cmd:"" help:"List the trusted lists that the installation keeps, or write one to a file."`
}

type listsKeepCmd struct {
	Folder string `arg:"" help:"The folder of trusted lists: 'jurat lists fetch' fills one."`

	OJ     string  `required:"" name:"oj" placeholder:"FILE" help:"The certificates that the Official Journal publishes, in PEM, or their SHA-256, one a line."`
	Reason string  `help:"Why. It goes into the log." default:"routine"`
	By     newName `placeholder:"NAME" help:"Who decided it. It goes into the log. Default: the name of the account."`
}

// Help is shown by 'jurat lists keep --help'.
func (*listsKeepCmd) Help() string {
	return `There is no public archive of old trusted lists. This command verifies the lists in a folder and keeps those that the log does not have yet. An
act for each (trusted_list) has its digest, territory, number and dates. The act is stamped like every record, so it shows years later that
this list existed then. A list that does not hold is named and not kept.

    jurat lists fetch --oj oj.pem lists && jurat lists keep --oj oj.pem lists

Exit code 0: every list that holds is kept. 2: it could not be done, or no list holds.`
}

// Run keeps lists.
func (c *listsKeepCmd) Run(ctx context.Context, a *app, io stdio) error {
	journal, err := readJournal(c.OJ)
	if err != nil {
		return err
	}
	files, err := eutrust.Read(os.DirFS(c.Folder))
	if err != nil {
		return err
	}
	held, notes := files.Held(journal)
	for _, note := range notes {
		if _, err := fmt.Fprintf(io.err, "jurat: not kept: %s\n", oneLine(errors.New(note))); err != nil {
			return err
		}
	}
	if len(held) == 0 {
		return fmt.Errorf("%s: no list in this folder holds by the certificates in %s", c.Folder, c.OJ)
	}
	why, err := (&whyFlags{Reason: c.Reason, By: c.By}).why()
	if err != nil {
		return err
	}
	var lists []listlog.File
	for _, h := range held {
		lists = append(lists, listlog.File{List: h.List, Raw: h.Raw})
	}
	return a.with(ctx, func(i *installation.Installation) error {
		kept, err := i.Lists.Keep(ctx, lists, why.By, why.Reason)
		if err != nil {
			return err
		}
		defer catchUp(ctx, io, i)
		p := newPrinter(io.out)
		printKept(p, kept)
		p.line("%s, %d kept now", plural.Of(len(lists), "list")+plural.Or(int64(len(lists)), " holds", " hold"), len(kept))
		return p.err
	})
}

func printKept(p *printer, list []listlog.Kept) {
	t := table{heads: []head{{name: "territory"}, {name: "number", right: true}, {name: "issued", rank: 2}, {name: "next", rank: 4}, {name: "kept", rank: 3}, {name: "digest", rank: 1}}}
	for _, k := range list {
		t.row(k.Territory, k.Sequence, k.Issued, cmp.Or(k.NextUpdate, "no next list"), evidence.FormatTime(k.At), k.Digest)
	}
	p.table(&t)
}

type listsShowCmd struct {
	Territory string     `placeholder:"XX" help:"Only lists of this territory, such as BE; EU is the list of the lists."`
	At        *time.Time `placeholder:"TIME" help:"Of each territory only the list that was the newest then (RFC 3339)."`
	Out       string     `short:"o" placeholder:"FILE" help:"Write the one list that is left to this file, byte for byte as it was published."`
	JSON      bool       `name:"json" help:"Print the lists as JSON."`
}

// Help is shown by 'jurat lists show --help'.
func (*listsShowCmd) Help() string {
	return `Lists what 'jurat lists keep' kept: territory, number, when the list was issued, when a next one was due, when it was kept, and its digest.
To give a list to a reader who checks an old record, write it to a file, with the list of the lists of that time:

    jurat lists show --territory BE --at 2026-03-01T00:00:00Z -o lists/be.xml
    jurat lists show --territory EU --at 2026-03-01T00:00:00Z -o lists/eu.xml
    jurat log case operator-lists > lists.jurat`
}

// Run lists or gives back what is kept.
func (c *listsShowCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		list, err := i.Lists.All(ctx)
		if err != nil {
			return err
		}
		if c.Territory != "" {
			list = slices.DeleteFunc(list, func(k listlog.Kept) bool { return k.Territory != c.Territory })
		}
		if c.At != nil {
			list = listlog.At(list, *c.At)
		}
		if c.Out != "" {
			return c.write(ctx, i, list)
		}
		if c.JSON {
			return io.json(append([]listlog.Kept{}, list...))
		}
		p := newPrinter(io.out)
		if printKept(p, list); len(list) == 0 {
			p.line("no such list is kept")
		}
		return p.err
	})
}

func (c *listsShowCmd) write(ctx context.Context, i *installation.Installation, list []listlog.Kept) error {
	if len(list) != 1 {
		return hint(fmt.Errorf("-o writes one list, and %d are left", len(list)), "--territory and --at choose one; without -o they are listed")
	}
	raw, err := i.Lists.Read(ctx, list[0].Digest)
	if err != nil {
		return err
	}
	return atomicfile.Create(c.Out, raw, 0o644)
}
