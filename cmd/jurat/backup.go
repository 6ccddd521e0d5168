package main

import (
	"context"
	"errors"
	"fmt"

	"jurat/evidence/operator"
	"jurat/internal/installation"
	"jurat/internal/plural"
)

type backupCmd struct {
	Into      string `arg:"" help:"A folder that does not exist or is empty."`
	ApartKeys bool   `name:"apart-keys" help:"Copy the keys to what is sealed apart, too. A reader of the copy can then read what you erase later."`
	jsonFlag
}

// Run makes a backup.
func (c *backupCmd) Run(ctx context.Context, a *app, io stdio) error {
	m, err := installation.MakeBackup(ctx, a.config(), installation.BackupOrder{To: c.Into, ApartKeys: c.ApartKeys,
		Progress: progress(io, "bytes copied")})
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(m)
	}
	return io.line("%s: %s of the log %s, %s", c.Into, plural.Of(m.Size, "record"), m.Log, plural.Of(len(m.Files), "file"))
}

// restoreFlags say from which backup an installation is made.
type restoreFlags struct {
	From        string `placeholder:"DIR" help:"Make the installation from this backup, with --checkpoint or --none-later."`
	Checkpoint  string `help:"With --from: the latest known checkpoint of the log." placeholder:"FILE" xor:"later"`
	NoneLater   bool   `help:"With --from: the log has signed no checkpoint after the backup was made." xor:"later"`
	Consistency string `help:"With --from: a proof that leads from the backup's size to the checkpoint's ('jurat log checkpoint --since' of another copy)." placeholder:"FILE"`
}

// restore makes an installation from a backup.
func (c *restoreFlags) restore(ctx context.Context, a *app, io stdio) error {
	if c.Checkpoint == "" && !c.NoneLater {
		return errors.New("missing flags: --checkpoint=FILE or --none-later")
	}
	order := installation.RestoreOrder{From: c.From, NoneLater: c.NoneLater, Progress: progress(io, "examined")}
	if c.Checkpoint != "" {
		text, err := readFile(c.Checkpoint)
		if err != nil {
			return fmt.Errorf("--checkpoint: %w", err)
		}
		order.Checkpoint = string(text)
	}
	if c.Consistency != "" {
		text, err := readFile(c.Consistency)
		if err != nil {
			return fmt.Errorf("--consistency: %w", err)
		}
		if order.Consistency, err = operator.ParseConsistency(text); err != nil {
			return fmt.Errorf("--consistency: %s: %w", c.Consistency, err)
		}
	}
	r, err := installation.Restore(ctx, a.config(), order)
	var damaged *installation.DamagedBackupError
	if errors.As(err, &damaged) {
		for _, d := range damaged.Damages {
			fmt.Fprintf(io.err, "jurat: %s\n", d)
		}
	}
	if err != nil {
		return err
	}
	return c.tell(r, a, io)
}

func (c *restoreFlags) tell(r *installation.Restored, a *app, io stdio) error {
	lost := 0
	for _, d := range r.Damages {
		if !d.Kind.Harmless() {
			lost++
		}
	}
	p := newPrinter(io.out)
	p.line("%s: %s of the log %s, made %s", a.config().Where(), plural.Of(r.Manifest.Size, "record"), r.Manifest.Log, r.Manifest.Made)
	if !r.Manifest.ApartKeys && lost > 0 {
		fmt.Fprintln(io.err, "jurat: texts that are sealed apart cannot be read until apart-keys is put back, from where it is kept")
	}
	switch {
	case r.Missing > 0 && r.Prefix:
		p.line("it is proved to be the beginning of the published log and lacks the last %[2]d of its %[1]d records: you can read it, but it takes no new records", r.Known, r.Missing)
	case r.Missing > 0:
		p.line("of the %d records of the published log it lacks %d, and nothing shows that the others are the same: it can be read, and takes no new ones", r.Known, r.Missing)
	case r.Prefix:
		p.line("it holds everything of the published log of %s", plural.Of(r.Known, "record"))
	}
	if p.err == nil && r.Missing > 0 {
		return exitCode(exitUndecided)
	}
	return p.err
}
