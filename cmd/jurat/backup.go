package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/plural"
)

type backupCmd struct {
	Into      string `arg:"" help:"A folder that does not exist or is empty."`
	ApartKeys bool   `name:"apart-keys" help:"Copy the keys to what is sealed apart, too. Then whoever has the copy can read what is erased later."`
	JSON      bool   `name:"json" help:"Print the backup's manifest."`
}

// Help is shown by 'jurat backup --help'.
func (*backupCmd) Help() string {
	return `Copies the data folder, also while it is in use: one committed state of the log, with the keys of that moment. The copy has
private keys in it: keep it as you keep those. The keys to texts that are sealed apart stay out, because an erasure must reach
every copy of them.

Keep beside it, and not in the same place, the checkpoints that the log signs afterwards ('jurat log checkpoint'): only they
tell, when the backup is restored, what it lacks.`
}

// Run makes a backup.
func (c *backupCmd) Run(ctx context.Context, a *app, io stdio) error {
	m, err := installation.Backup(ctx, a.config(), installation.BackupOrder{To: c.Into, ApartKeys: c.ApartKeys,
		Progress: progress(io, "bytes copied")})
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(m)
	}
	return io.line("%s: %s of the log %s, %s", c.Into, plural.Of(m.Size, "record"), m.Log, plural.Of(len(m.Files), "file"))
}

type restoreCmd struct {
	From        string `arg:"" help:"The backup's folder."`
	Checkpoint  string `help:"The last checkpoint that anybody has of the log." placeholder:"FILE" xor:"later" required:""`
	NoneLater   bool   `help:"The log has signed no checkpoint after the backup was made." xor:"later" required:""`
	Consistency string `help:"A proof that leads from the backup's size to the checkpoint's ('jurat log consistency' of another copy)." placeholder:"FILE"`
}

// Help is shown by 'jurat restore --help'.
func (*restoreCmd) Help() string {
	return `Makes the data folder of a backup (--data says which; it must not exist, or be empty), after looking at every record in it.

A log that came back from a backup may lack records of which it has signed that it holds them. Were it to take new ones in
their place, there would be two histories under one key. So say with --checkpoint what anybody knows of it: a restored log that is
behind that can be read, and takes nothing.`
}

// Run restores a backup.
func (c *restoreCmd) Run(ctx context.Context, a *app, io stdio) error {
	order := installation.RestoreOrder{From: c.From, NoneLater: c.NoneLater, Progress: progress(io, "examined")}
	if c.Checkpoint != "" {
		text, err := os.ReadFile(c.Checkpoint)
		if err != nil {
			return fmt.Errorf("--checkpoint: %w", err)
		}
		order.Checkpoint = string(text)
	}
	if c.Consistency != "" {
		text, err := os.ReadFile(c.Consistency)
		if err != nil {
			return fmt.Errorf("--consistency: %w", err)
		}
		if order.Consistency, err = evidence.ParseConsistency(text); err != nil {
			return fmt.Errorf("--consistency: %s: %w", c.Consistency, err)
		}
	}
	r, err := installation.Restore(ctx, a.config(), order)
	var damaged *installation.DamagedError
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

func (c *restoreCmd) tell(r *installation.Restored, a *app, io stdio) error {
	lost := 0
	for _, d := range r.Damages {
		if !d.Kind.Harmless() {
			lost++
		}
	}
	p := newPage(io.out)
	p.line("%s: %s of the log %s, made %s", a.config().Where(), plural.Of(r.Manifest.Size, "record"), r.Manifest.Log, r.Manifest.Made)
	if !r.Manifest.ApartKeys && lost > 0 {
		fmt.Fprintln(io.err, "jurat: texts that are sealed apart cannot be read until apart-keys is put back, from where it is kept")
	}
	switch {
	case r.Missing > 0 && r.Prefix:
		p.line("it is proved to be the beginning of the published log, of whose %d records it lacks the last %d: it can be read, and takes no new ones", r.Known, r.Missing)
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
