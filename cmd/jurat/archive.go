package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/internal/archive"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/plural"
)

type archiveCmd struct {
	Create archiveCreateCmd `cmd:"" default:"withargs" help:"Move old records from the database into archive files (what 'jurat archive' does by itself)."`
	List   archiveListCmd   `cmd:"" help:"List the archive files of this log."`
	Verify archiveVerifyCmd `cmd:"" help:"Verify archive files from end to end: every record, signature, time stamp and place in the log."`
	Read   archiveReadCmd   `cmd:"" help:"Print a record from an archive file, without unpacking the rest."`

	Tidy archiveTidyCmd `cmd:"" help:"Set aside archive files that an interrupted run left, and that are no part of the log."`

	Retention archiveRetentionCmd `cmd:"" help:"Say or change for how long records are kept at least."`
	Expire    archiveExpireCmd    `cmd:"" help:"Delete archived records whose retention time is over; every other proof stands."`
}

// Help is shown by 'jurat archive --help'.
func (*archiveCmd) Help() string {
	return `Moves records from the database into immutable, compressed files. Each record in a file can still be read, proved and verified by
itself. The database keeps their hashes, ids and places, so every other command finds archived records as before, as long as the files are
in the folder 'archive' of the data folder. Copy the files to a safe place; jurat verifies each before anything leaves the database.`
}

type archiveCreateCmd struct {
	Before time.Time `required:"" placeholder:"DATE" format:"2006-01-02" help:"Archive records that are proved, by their time stamps, to have been sealed before this day (UTC)."`
	DryRun bool      `name:"dry-run" help:"Only say what would be archived, and what stands against more."`
	JSON   bool      `name:"json" help:"Print what was done as JSON."`
}

// Help is shown by 'jurat archive create --help'.
func (*archiveCreateCmd) Help() string {
	return `Archives whole tiles of 256 records from the beginning of the log: those that were sealed before the day and do not wait for a time stamp.
It writes each file, reads it again and compares it with the database byte for byte before it removes anything from the database. Then
it makes the database file smaller. It can run beside 'jurat serve'. You can interrupt it at any point: the next run goes on.`
}

// Run archives.
func (c *archiveCreateCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		done, err := i.Archivist.Archive(ctx, archive.Order{Before: c.Before, DryRun: c.DryRun, Progress: steps(io)})
		if err != nil {
			return hint(archiveError(err), "what was done stands, and nothing is lost: run it again to go on")
		}
		if c.JSON {
			return io.json(done)
		}
		p := newPrinter(io.out)
		switch {
		case c.DryRun && done.To > done.From:
			p.line("would archive %s: %d to %d", plural.Of(done.To-done.From, "record"), done.From, done.To-1)
		case len(done.Files) == 0 && done.Shed > 0:
			p.line("took %s out of the database that %s in archives already", plural.Of(done.Shed, "record"), plural.Or(done.Shed, "was", "were"))
		case len(done.Files) == 0:
			p.line("nothing to archive")
		}
		for _, f := range done.Files {
			p.line("%s: records %d to %d, verified", f.File, f.From, f.To-1)
		}
		p.line("went no further: %s", done.Stops)
		return p.err
	})
}

// steps tells how far each of several steps is.
func steps(io stdio) func(step string, done, total int64) {
	var now string
	var tell func(done, total int64)
	return func(step string, done, total int64) {
		if step != now {
			now, tell = step, progress(io, step)
		}
		tell(done, total)
	}
}

// archiveError adds what to do about a file that cannot be read.
func archiveError(err error) error {
	if errors.Is(err, ledger.ErrArchive) {
		return hint(err, "put the file back from where you keep copies of archives, or from a backup; 'jurat archive list' names all")
	}
	return err
}

type archiveListCmd struct {
	JSON bool `name:"json" help:"Print the list as JSON."`
}

// Run lists archives.
func (c *archiveListCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		list, err := i.Archivist.List(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return io.json(list)
		}
		p := newPrinter(io.out)
		bad := false
		t := table{heads: []head{{name: "file", rank: 1}, {name: "records", rank: 2}, {name: "digest", rank: 3}, {name: "state"}}}
		for _, f := range list {
			state := fmt.Sprintf("%d bytes", f.Bytes)
			if f.Problem != "" {
				state, bad = f.Problem, true
			}
			if f.Stray {
				t.row(f.File, "-", "-", "no part of the log: "+state)
				continue
			}
			t.row(f.File, fmt.Sprintf("%d to %d", f.From, f.To-1), f.Digest, state)
		}
		p.table(&t)
		if len(list) == 0 {
			p.line("there are no archives")
		}
		if p.err == nil && bad {
			return exitCode(exitBad)
		}
		return p.err
	})
}

type archiveTidyCmd struct {
	DryRun bool `name:"dry-run" help:"Only say what would be set aside."`
	JSON   bool `name:"json" help:"Print what was done as JSON."`
}

// Help is shown by 'jurat archive tidy --help'.
func (*archiveTidyCmd) Help() string {
	return `An interrupted run can leave a file that the log's database does not name. 'jurat archive list' shows such a file as no part of the log.
This command moves it into the folder 'aside' beside the archives if all its records are stored elsewhere, too. It moves nothing while a
run archives, on any machine. It also moves unfinished files (.new-…) that have not changed for a day. Delete the folder 'aside' once no
other installation, such as a restored backup, uses the same archives.

Exit code 0: no such file is left, except one that a run may still be writing. 3: some are kept; the output says why.`
}

// Run tidies up.
func (c *archiveTidyCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		done, err := i.Archivist.Tidy(ctx, c.DryRun)
		if errors.Is(err, archive.ErrArchiving) {
			return hint(err, "run it again when that is over; nothing was moved")
		}
		if err != nil {
			return archiveError(err)
		}
		if err := c.tell(io, done); err != nil || len(done.Kept) == 0 {
			return err
		}
		return exitCode(exitUndecided)
	})
}

func (c *archiveTidyCmd) tell(io stdio, done *archive.Tidied) error {
	if c.JSON {
		return io.json(done)
	}
	p, moved := newPrinter(io.out), "moved to "+done.Folder
	if c.DryRun {
		moved = "would be " + moved
	}
	for _, f := range done.SetAside {
		p.line("%s: %s", f, moved)
	}
	for _, f := range done.Kept {
		p.line("%s: kept: %s", f.File, f.Why)
	}
	if len(done.SetAside)+len(done.Kept) == 0 {
		p.line("every archive file is a part of the log")
	}
	return p.err
}
