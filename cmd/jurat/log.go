package main

import (
	"context"
	"fmt"
	"time"

	"jurat/internal/installation"
)

type logCmd struct {
	Checkpoint  logCheckpointCmd  `cmd:"" help:"Print the signed checkpoint of the log as it stands."`
	Consistency logConsistencyCmd `cmd:"" help:"Prove that the log as it was is the beginning of the log as it is."`
	Entries     logEntriesCmd     `cmd:"" help:"Print what the log hashed for each record, to count by."`
	Prove       logProveCmd       `cmd:"" help:"Print a record with the proof of its place in the log."`
	Case        logCaseCmd        `cmd:"" help:"Write a chain's or trial's records as one file again."`
	Anchor      logAnchorCmd      `cmd:"" help:"Have authorities outside stamp the log's checkpoint."`
	Pending     logPendingCmd     `cmd:"" help:"List the records that wait for time stamps."`
	Stamp       logStampCmd       `cmd:"" help:"Ask authorities for the time stamps that records wait for."`
	Renew       logRenewCmd       `cmd:"" help:"Renew time stamps before the certificates that they rest on end."`
	Fsck        logFsckCmd        `cmd:"" help:"Examine the log: rows, hashes, signatures, time stamps, checkpoint."`
}

type logCheckpointCmd struct{}

// Run prints the checkpoint.
func (*logCheckpointCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		checkpoint, err := i.Ledger.Checkpoint(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(io.out, checkpoint)
		return err
	})
}

type logProveCmd struct {
	Record string `arg:"" help:"The record's id."`
	withholdFlag
	latestFlag
}

// Help is shown by 'jurat log prove --help'.
func (*logProveCmd) Help() string { return withholdHelp + latestHelp }

// Run prints a record with its proof.
func (c *logProveCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		r, err := i.Ledger.Record(ctx, c.Record)
		if err != nil {
			return fmt.Errorf("record %q: %w", c.Record, err)
		}
		disclosed, err := c.disclose(i, r)
		if err != nil {
			return err
		}
		prove := i.Ledger.ProveOne
		if c.Latest {
			prove = i.Ledger.ProveOneLatest
		}
		proved, err := prove(ctx, disclosed[0])
		if err != nil {
			return err
		}
		return io.print(proved)
	})
}

type logCaseCmd struct {
	Chain string `arg:"" help:"The trial's id, or the chain_id of a chain."`
	withholdFlag
	latestFlag
}

// Help is shown by 'jurat log case --help'.
func (*logCaseCmd) Help() string { return withholdHelp + latestHelp }

// Run prints a bundle.
func (c *logCaseCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		records, err := i.Ledger.Chain(ctx, c.Chain)
		if err != nil {
			return fmt.Errorf("chain %q: %w", c.Chain, err)
		}
		if records, err = c.disclose(i, records...); err != nil {
			return err
		}
		prove := i.Ledger.Prove
		if c.Latest {
			prove = i.Ledger.ProveLatest
		}
		bundle, err := prove(ctx, records...)
		if err != nil {
			return err
		}
		return io.print(bundle)
	})
}

type logFsckCmd struct{}

// Help is shown by 'jurat log fsck --help'.
func (*logFsckCmd) Help() string {
	return `Recomputes everything that the log claims, and names each damage and what it means; so it does with the texts that are
sealed apart: lost ones, changed ones, and what should have been erased. What is named and harmless counts for nothing.
Exit code 0: the log is whole. 1: it is damaged. 2: it could not be examined.`
}

// Run examines the log.
func (*logFsckCmd) Run(ctx context.Context, a *app, io stdio) error {
	damages, size, err := installation.Fsck(ctx, installation.Config{Dir: a.Data}, progress(io, "examined"))
	if err != nil {
		return err
	}
	harmful := 0
	for _, d := range damages {
		if !d.Kind.Harmless() {
			harmful++
		}
		if _, err := fmt.Fprintln(io.out, inert(d.String())); err != nil {
			return err
		}
	}
	if harmful > 0 {
		fmt.Fprintf(io.err, "jurat: %d damages in a log of %d records\n", harmful, size)
		return exitCode(exitBad)
	}
	_, err = fmt.Fprintf(io.out, "the log is whole: %d records\n", size)
	return err
}

// progress tells how far something is that takes longer than a second.
func progress(io stdio, what string) func(done, total int64) {
	last := time.Now()
	return func(done, total int64) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			fmt.Fprintf(io.err, "jurat: %s: %d of %d\n", what, done, total)
		}
	}
}
