package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"

	"jurat/internal/installation"
	"jurat/internal/ledger"
)

type logConsistencyCmd struct {
	Old string  `arg:"" help:"The log as it was: a checkpoint file, or a number of entries."`
	New *string `arg:"" optional:"" help:"The log as it was later, likewise. Default: its last checkpoint, made now if need be."`
	logFlags
}

// Run prints the proof.
func (c *logConsistencyCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.Log != "" {
		return c.elsewhere(ctx, io)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		from, err := sizeOf(ctx, i.Ledger, c.Old)
		if err != nil {
			return err
		}
		to, err := c.newSize(ctx, i.Ledger)
		if err != nil {
			return err
		}
		proof, err := i.Ledger.Consistency(ctx, min(from, to), max(from, to))
		if err != nil {
			return err
		}
		return io.print(proof)
	})
}

func (c *logConsistencyCmd) elsewhere(ctx context.Context, io stdio) error {
	remote, err := c.open()
	if err != nil {
		return err
	}
	proof, err := remote.consistency(ctx, c.Old, c.New)
	if err != nil {
		return err
	}
	return io.print(proof)
}

func (c *logConsistencyCmd) newSize(ctx context.Context, l *ledger.Ledger) (int64, error) {
	if c.New != nil {
		return sizeOf(ctx, l, *c.New)
	}
	signed, err := l.Checkpoint(ctx)
	if err != nil {
		return 0, err
	}
	return l.SizeAt(ctx, signed)
}

// sizeOf reads a number of entries, or the file of a checkpoint, which must be one that the log has not gone back on.
func sizeOf(ctx context.Context, l *ledger.Ledger, text string) (int64, error) {
	if size, ok := wholeNumber(text); ok {
		return size, nil
	}
	signed, err := readFile(text)
	if err != nil {
		return 0, err
	}
	size, err := l.SizeAt(ctx, string(signed))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", text, err)
	}
	return size, nil
}

// wholeNumber reads a number of entries.
func wholeNumber(text string) (int64, bool) {
	size, err := strconv.ParseInt(text, 10, 64)
	return size, err == nil
}

type logEntriesCmd struct {
	From int64  `help:"The first entry, counted from 0." default:"0"`
	To   *int64 `help:"Up to this many entries in all. Default: as many as the last checkpoint covers, made now if need be." placeholder:"SIZE"`
}

// Run prints the entries.
func (c *logEntriesCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		to, err := c.to(ctx, i.Ledger)
		if err != nil {
			return err
		}
		out, tell := bufio.NewWriter(io.documents()), progress(io, "entries")
		done := c.From
		for entry, err := range i.Ledger.Entries(ctx, c.From, to) {
			if err != nil {
				return err
			}
			out.Write(entry)
			if err := out.WriteByte('\n'); err != nil { // which a bufio.Writer repeats once it has failed
				return err
			}
			done++
			tell(done, to)
		}
		return out.Flush()
	})
}

func (c *logEntriesCmd) to(ctx context.Context, l *ledger.Ledger) (int64, error) {
	if c.To != nil {
		return *c.To, nil
	}
	signed, err := l.Checkpoint(ctx)
	if err != nil {
		return 0, err
	}
	return l.SizeAt(ctx, signed)
}
