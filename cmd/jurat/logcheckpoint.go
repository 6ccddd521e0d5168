package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"

	"jurat/internal/installation"
	"jurat/internal/ledger"
)

type logCheckpointCmd struct {
	Since   *string `placeholder:"OLD" help:"Prove that the log as it was then is the beginning of the log: a checkpoint file, or a number of entries. With --entries: print only those after it."`
	To      *string `placeholder:"NEW" help:"With --since or --entries: the log as it was later, likewise. Default: its last checkpoint, made now if need be."`
	Entries bool    `help:"Print what the log hashed for each record, to count by."`
	logFlags
}

// Run prints the checkpoint, or the proof or the entries that are asked for.
func (c *logCheckpointCmd) Run(ctx context.Context, a *app, io stdio) error {
	switch {
	case c.To != nil && c.Since == nil && !c.Entries:
		return errors.New("--to goes with --since or --entries")
	case c.Log != "" && (c.Entries || c.Since == nil):
		return errors.New("--log goes with --since, and not with --entries")
	case c.Log != "":
		return c.elsewhere(ctx, io)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		switch {
		case c.Entries:
			return c.entries(ctx, i.Ledger, io)
		case c.Since != nil:
			return c.consistency(ctx, i.Ledger, io)
		}
		cosign(ctx, i, io)
		checkpoint, err := i.Ledger.Checkpoint(ctx)
		if err != nil {
			return err
		}
		return io.document([]byte(checkpoint))
	})
}

// consistency prints a proof that the log has only grown.
func (c *logCheckpointCmd) consistency(ctx context.Context, l *ledger.Ledger, io stdio) error {
	from, err := sizeOf(ctx, l, *c.Since)
	if err != nil {
		return err
	}
	to, err := c.size(ctx, l)
	if err != nil {
		return err
	}
	proof, err := l.Consistency(ctx, min(from, to), max(from, to))
	if err != nil {
		return err
	}
	return io.print(proof)
}

// elsewhere prints such a proof of another operator's log.
func (c *logCheckpointCmd) elsewhere(ctx context.Context, io stdio) error {
	remote, err := c.open()
	if err != nil {
		return err
	}
	proof, err := remote.consistency(ctx, *c.Since, c.To)
	if err != nil {
		return err
	}
	return io.print(proof)
}

// entries prints the log's entries.
func (c *logCheckpointCmd) entries(ctx context.Context, l *ledger.Ledger, io stdio) error {
	from := int64(0)
	if c.Since != nil {
		var err error
		if from, err = sizeOf(ctx, l, *c.Since); err != nil {
			return err
		}
	}
	to, err := c.size(ctx, l)
	if err != nil {
		return err
	}
	out, tell := bufio.NewWriter(io.documents()), progress(io, "entries")
	for entry, err := range l.Entries(ctx, from, to) {
		if err != nil {
			return err
		}
		out.Write(entry)
		if err := out.WriteByte('\n'); err != nil { // which a bufio.Writer repeats once it has failed
			return err
		}
		from++
		tell(from, to)
	}
	return out.Flush()
}

// size is how many entries the log has, or had when --to says.
func (c *logCheckpointCmd) size(ctx context.Context, l *ledger.Ledger) (int64, error) {
	if c.To != nil {
		return sizeOf(ctx, l, *c.To)
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
