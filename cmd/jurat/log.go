package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/plural"
)

type logCmd struct {
	Checkpoint logCheckpointCmd `cmd:"" help:"Print the signed checkpoint of the log, a proof that it has only grown since another, or its entries."`
	Prove      logProveCmd      `cmd:"" help:"Print a record, a chain or a trial, with the proof of its place in the log."`
	Monitor    logMonitorCmd    `cmd:"" help:"Watch another operator's log: has it only grown?"`
	Witness    logWitnessCmd    `cmd:"" help:"List those who cosign this log's checkpoints; add, remove or ask them."`
	Stamp      logStampCmd      `cmd:"" help:"Ask authorities for the time stamps that records or the log's checkpoint lack."`
	Expire     logExpireCmd     `cmd:"" help:"Remove the content of old records; their hashes and every proof stay."`
	Fsck       logFsckCmd       `cmd:"" help:"Examine the log: rows, hashes, signatures, time stamps, checkpoint."`
}

// cosign asks the witnesses to cosign what the command is about to print. A witness that does not answer does not stop the command.
func cosign(ctx context.Context, i *installation.Installation, io stdio) {
	c, err := i.Witnesses.Cosign(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		fmt.Fprintf(io.err, "jurat: %v\n", err)
	case c != nil && !c.Met():
		fmt.Fprintf(io.err, "jurat: %d of the %d witnesses that are demanded have cosigned the checkpoint over %s\n", c.Cosigned(), c.Quorum, plural.Of(c.Size, "record"))
	}
}

type logProveCmd struct {
	Name   string   `arg:"" help:"A trial's id, a chain_id, or a record's id or digest; with --log a record's id or file."`
	Linked bool     `help:"Of a record: add all records that are linked with it."`
	With   []string `placeholder:"RECORD" sep:"none" help:"Add this record too, by its id or digest. May be given several times."`
	withholdFlag
	logFlags
}

// Run prints a record or a bundle with its proofs.
func (c *logProveCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.Log != "" {
		return c.elsewhere(ctx, io)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		cosign(ctx, i, io)
		chain, err := i.Ledger.HasChain(ctx, c.Name)
		if err != nil {
			return err
		}
		if !chain && !c.Linked && c.With == nil {
			return c.alone(ctx, i, io)
		}
		records, err := c.records(ctx, i, io)
		if err != nil {
			return err
		}
		if records, err = c.disclose(ctx, i, records...); err != nil {
			return err
		}
		bundle, err := i.Ledger.Prove(ctx, records...)
		if err != nil {
			return err
		}
		return io.print(bundle)
	})
}

// alone proves one record.
func (c *logProveCmd) alone(ctx context.Context, i *installation.Installation, io stdio) error {
	r, err := recordOf(ctx, i.Ledger, c.Name)
	if err != nil {
		return c.unknown(err)
	}
	disclosed, err := c.disclose(ctx, i, r)
	if err != nil {
		return err
	}
	proved, err := i.Ledger.ProveOne(ctx, disclosed[0])
	if err != nil {
		return err
	}
	return io.print(proved)
}

// records are those that belong to a chain or a record, and those that --with names.
func (c *logProveCmd) records(ctx context.Context, i *installation.Installation, io stdio) ([]*evidence.Record, error) {
	records, cut, err := i.Ledger.Linked(ctx, c.Name)
	if err != nil {
		return nil, c.unknown(err)
	}
	if cut != nil {
		fmt.Fprintf(io.err, "jurat: %v\n", cut)
	}
	for _, name := range c.With {
		one, err := recordOf(ctx, i.Ledger, name)
		if err != nil {
			return nil, fmt.Errorf("--with: %w", err)
		}
		records = append(records, one)
	}
	return records, nil
}

func (c *logProveCmd) unknown(err error) error {
	if errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("%q: the log has no chain and no record of this name: %w", c.Name, err)
	}
	return fmt.Errorf("%q: %w", c.Name, err)
}

// elsewhere proves a record from another operator's log.
func (c *logProveCmd) elsewhere(ctx context.Context, io stdio) error {
	if len(c.Withhold)+len(c.With) > 0 || c.Linked {
		return errors.New("--withhold, --with and --linked are for the log of an installation here, and not for --log")
	}
	remote, err := c.open()
	if err != nil {
		return err
	}
	record, err := remote.record(ctx, c.Name)
	if err != nil {
		return err
	}
	if err := remote.prove(ctx, record); err != nil {
		return err
	}
	return io.print(record)
}

// recordOf finds a record by its id or by the digest of its payload.
func recordOf(ctx context.Context, l *ledger.Ledger, name string) (*evidence.Record, error) {
	var digest evidence.Digest
	if digest.UnmarshalText([]byte(name)) == nil {
		return l.RecordByDigest(ctx, digest)
	}
	return l.Record(ctx, name)
}

type logFsckCmd struct {
	Reindex bool `help:"In place of this, make the index of records again, which lists and searches use."`
	jsonFlag
}

// reindex makes all briefs again.
func reindex(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		if err := i.Ledger.Briefs().Reindex(ctx, progress(io, "records indexed")); err != nil {
			return err
		}
		size, err := i.Ledger.Size(ctx)
		if err != nil {
			return err
		}
		return io.line("indexed: %d records", size)
	})
}

// examined is what 'jurat log fsck --json' prints.
type examined struct {
	Records int64         `json:"records"`
	Whole   bool          `json:"whole"` // what is harmless does not count
	Damages []namedDamage `json:"damages"`
}

type namedDamage struct {
	Kind     fsck.Kind `json:"kind"`
	Meaning  string    `json:"meaning"`
	Detail   string    `json:"detail"`
	Harmless bool      `json:"harmless"`
	Index    *int64    `json:"index,omitzero"` // not there: it is not about one record
	RecordID string    `json:"record_id,omitzero"`
}

func nameDamages(damages []fsck.Damage, size int64) (e examined) {
	e = examined{Records: size, Whole: true, Damages: []namedDamage{}}
	for _, d := range damages {
		n := namedDamage{Kind: d.Kind, Meaning: d.Kind.Meaning(), Detail: d.Detail, Harmless: d.Kind.Harmless(), RecordID: d.RecordID}
		if d.Index >= 0 {
			n.Index = &d.Index
		}
		e.Damages, e.Whole = append(e.Damages, n), e.Whole && n.Harmless
	}
	return e
}

// Run examines the log.
func (c *logFsckCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.Reindex && c.JSON {
		return errors.New("--json does not go with --reindex")
	}
	if c.Reindex {
		return reindex(ctx, a, io)
	}
	damages, size, err := installation.Fsck(ctx, a.config(), progress(io, "examined"))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(damages, func(d fsck.Damage) bool { return d.Kind == fsck.DamageBehind || d.Kind == fsck.DamageCut }) {
		fmt.Fprintf(io.err, "jurat: hint: %s\n", whenBehind)
	}
	if c.JSON {
		named := nameDamages(damages, size)
		if err := io.json(named); err != nil || named.Whole {
			return err
		}
		return exitCode(exitBad)
	}
	harmful := 0
	for _, d := range damages {
		if !d.Kind.Harmless() {
			harmful++
		}
		if err := io.line("%s", d); err != nil {
			return err
		}
	}
	if harmful > 0 {
		fmt.Fprintf(io.err, "jurat: %s in a log of %s\n", plural.Of(harmful, "damage"), plural.Of(size, "record"))
		return exitCode(exitBad)
	}
	return io.line("the log is whole: %s", plural.Of(size, "record"))
}
