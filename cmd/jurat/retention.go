package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"jurat/evidence/operator"
	"jurat/internal/archive"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/plural"
)

// decidedFlags give the reason of a decision, and who decided.
type decidedFlags struct {
	Reason string  `required:"" help:"Why, for the act that says so. It stays in the log for ever, so do not name a person in it." placeholder:"TEXT"`
	By     newName `required:"" help:"Which person decided it." placeholder:"WHO"`
}

type archiveExpireCmd struct {
	Before time.Time `required:"" placeholder:"DATE" format:"2006-01-02" help:"Delete archived records that are proved, by their time stamps, to have been sealed before this day (UTC)."`
	decidedFlags
	DryRun bool `name:"dry-run" help:"Only say what would be deleted."`
	JSON   bool `name:"json" help:"Print what was done as JSON."`
}

// Help is shown by 'jurat archive expire --help'.
func (*archiveExpireCmd) Help() string {
	return `Deletes archived records whose retention time is over, and the keys to their texts that are sealed apart. It refuses a day within the
retention time ('jurat archive retention'), which is six months at least, and leaves what is on hold ('jurat hold list'), what is not proved to be
that old, and the operator's own acts. Today is what the clock says, but no later than the newest time stamp of the log.

The log keeps each record's id, digest, place and hash: the proofs of all other records stand, and an act says when, why and who
decided it. Copies of the old files and backups still have the records: delete them, too.`
}

// Run deletes.
func (c *archiveExpireCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		done, err := i.Archivist.Expire(ctx, archive.ExpireOrder{Before: c.Before, Reason: c.Reason, By: string(c.By), DryRun: c.DryRun, Progress: steps(io)})
		if errors.Is(err, archive.ErrTooYoung) {
			return hint(err, "'jurat archive retention' says how long records are kept; less than %d days is not possible. If nothing was sealed lately, seal something: "+
				"the clock counts no further than the log's newest time stamp", operator.MinRetention)
		}
		if err != nil {
			return hint(archiveError(err), "what an act says was deleted is finished by the next run")
		}
		if c.JSON {
			return io.json(done)
		}
		p := newPrinter(io.out)
		verb := "deleted"
		if c.DryRun {
			verb = "would delete"
		}
		for _, f := range done.Files {
			p.line("%s: %s %s %s", f.File, verb, plural.Of(f.Records, "record"), actOf(f.Act))
		}
		if done.Finished > 0 {
			p.line("finished %s that had been broken off", plural.Of(done.Finished, "deletion"))
		}
		p.line("%s %s; the log keeps their ids and hashes. %d are on hold, of %d it is not proved when they were sealed", verb, plural.Of(done.Records, "record"), done.Held, done.Unproved)
		return p.err
	})
}

func actOf(id string) string {
	if id == "" {
		return ""
	}
	return "(act " + id + ")"
}

type archiveRetentionCmd struct {
	Keep   string  `placeholder:"TIME" help:"Keep records for this long from now on: 24mo, 400d, 2y. A month counts as 31 days, a year as 366."`
	Reason string  `help:"Why, with --keep." placeholder:"TEXT"`
	By     newName `help:"Which person decided it, with --keep." placeholder:"WHO"`
	JSON   bool    `name:"json" help:"Print it as JSON."`
}

// Help is shown by 'jurat archive retention --help'.
func (*archiveRetentionCmd) Help() string {
	return `Says for how long records are kept before 'jurat archive expire' may delete them, or changes it. It is never less than 183 days: six months,
as Articles 19 and 26(6) of the EU AI Act ask at least of logs. The change is an act in the log.`
}

// Run says or changes how long records are kept.
func (c *archiveRetentionCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		if c.Keep != "" {
			days, err := parseDays(c.Keep)
			if err != nil {
				return fmt.Errorf("--keep: %w", err)
			}
			if c.Reason == "" || c.By == "" {
				return errors.New("--keep needs --reason and --by")
			}
			if err := i.Archivist.SetRetention(ctx, days, c.Reason, string(c.By)); err != nil {
				return err
			}
		}
		book, err := i.Archivist.Book(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return io.json(map[string]int64{"days": book.Days})
		}
		return io.line("records are kept for %s at least", plural.Of(book.Days, "day"))
	})
}

// parseDays reads a length of time in days, months or years, of which none is shorter than what it says.
func parseDays(text string) (int64, error) {
	for unit, days := range map[string]int64{"mo": 31, "d": 1, "y": 366} {
		number, ok := strings.CutSuffix(text, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 1 || n > 100_000 {
			break
		}
		return n * days, nil
	}
	return 0, fmt.Errorf("%q is not a length of time: want a whole number and d, mo or y, such as 24mo", text)
}

type holdCmd struct {
	Add     holdAddCmd     `cmd:"" help:"Hold a chain, a record or everything: nothing of it is deleted or erased."`
	List    holdListCmd    `cmd:"" help:"List what is on hold."`
	Release holdReleaseCmd `cmd:"" help:"End a hold."`
}

type holdAddCmd struct {
	What string `arg:"" optional:"" help:"The id of a record, a trial or a chain."`
	All  bool   `help:"Hold everything."`
	decidedFlags
}

// Help is shown by 'jurat hold add --help'.
func (*holdAddCmd) Help() string {
	return `Keeps 'jurat archive expire' from deleting records, and 'jurat erase' from erasing their texts, until the hold is released. It is an act
in the log. Several holds may be on one record; each is released by itself.

    jurat hold add trial-0199... --reason "case 17/2026" --by "legal department"`
}

// Run holds.
func (c *holdAddCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.All == (c.What != "") {
		return errors.New("name a record or a chain, or say --all")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		order := archive.HoldOrder{All: c.All, Reason: c.Reason, By: string(c.By)}
		if !c.All {
			if err := whatIs(ctx, i, c.What, &order); err != nil {
				return err
			}
		}
		id, err := i.Archivist.Hold(ctx, order)
		if err != nil {
			return err
		}
		return io.line("on hold: %s", id)
	})
}

// whatIs finds out whether a name is a record's or a chain's.
func whatIs(ctx context.Context, i *installation.Installation, name string, order *archive.HoldOrder) error {
	_, err := i.Ledger.KeptRow(ctx, name)
	if err == nil {
		order.RecordID = name
		return nil
	}
	if !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	there, err := i.Ledger.HasChain(ctx, name)
	if err != nil {
		return err
	}
	if !there {
		return hint(fmt.Errorf("%q: %w", name, ledger.ErrNotFound), "no record and no chain has this id")
	}
	order.Chain = name
	return nil
}

type holdListCmd struct {
	JSON bool `name:"json" help:"Print the list as JSON."`
}

// Run lists holds.
func (c *holdListCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		book, err := i.Archivist.Book(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return io.json(append([]archive.Hold{}, book.Holds...))
		}
		p := newPrinter(io.out)
		t := table{heads: []head{{name: "hold"}, {name: "what", rank: 2}, {name: "since", rank: 4}, {name: "why", rank: 3}, {name: "by", rank: 1}}}
		for _, h := range book.Holds {
			t.row(h.ID, h.What(), h.Since.UTC().Format(time.RFC3339), h.Reason, h.By)
		}
		p.table(&t)
		if len(book.Holds) == 0 {
			p.line("nothing is on hold")
		}
		return p.err
	})
}

type holdReleaseCmd struct {
	Hold string `arg:"" help:"The hold's id, as 'jurat hold list' shows it."`
	decidedFlags
}

// Run releases.
func (c *holdReleaseCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		act, err := i.Archivist.Release(ctx, c.Hold, c.Reason, string(c.By))
		if errors.Is(err, archive.ErrNoHold) {
			return hint(err, "'jurat hold list' shows what is on hold")
		}
		if err != nil {
			return err
		}
		return io.line("released: act %s", act)
	})
}
