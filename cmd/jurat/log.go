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
	Checkpoint  logCheckpointCmd  `cmd:"" help:"Print the signed checkpoint of the log as it stands."`
	Consistency logConsistencyCmd `cmd:"" help:"Prove that the log as it was is the beginning of the log as it is."`
	Monitor     logMonitorCmd     `cmd:"" help:"Watch another operator's log: has it only grown?"`
	Witness     logWitnessCmd     `cmd:"" help:"Those who cosign this log's checkpoints."`
	Entries     logEntriesCmd     `cmd:"" help:"Print what the log hashed for each record, to count by."`
	Prove       logProveCmd       `cmd:"" help:"Print a record with the proof of its place in the log."`
	Case        logCaseCmd        `cmd:"" help:"Write a chain's or trial's records as one file again."`
	Anchor      logAnchorCmd      `cmd:"" help:"Have authorities outside stamp the log's checkpoint."`
	Pending     logPendingCmd     `cmd:"" help:"List the records that wait for time stamps."`
	Stamp       logStampCmd       `cmd:"" help:"Ask authorities for the time stamps that records wait for."`
	Renew       logRenewCmd       `cmd:"" help:"Renew time stamps before the certificates that they rest on end."`
	Reindex     logReindexCmd     `cmd:"" help:"Make the index of records again, which lists and searches use."`
	Expire      logExpireCmd      `cmd:"" help:"Remove the content of old records; their hashes and every proof stay."`
	Fsck        logFsckCmd        `cmd:"" help:"Examine the log: rows, hashes, signatures, time stamps, checkpoint."`
}

type logCheckpointCmd struct{}

// Run prints the checkpoint.
func (*logCheckpointCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		cosign(ctx, i, io)
		checkpoint, err := i.Ledger.Checkpoint(ctx)
		if err != nil {
			return err
		}
		return io.document([]byte(checkpoint))
	})
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
	Record string `arg:"" help:"The record's id or digest; with --log also a record file."`
	withholdFlag
	logFlags
}

// recordOf finds a record by its id or by the digest of its payload.
func recordOf(ctx context.Context, l *ledger.Ledger, name string) (*evidence.Record, error) {
	var digest evidence.Digest
	if digest.UnmarshalText([]byte(name)) == nil {
		return l.RecordByDigest(ctx, digest)
	}
	return l.Record(ctx, name)
}

// elsewhere proves a record from another operator's log.
func (c *logProveCmd) elsewhere(ctx context.Context, io stdio) error {
	if len(c.Withhold) > 0 {
		return errors.New("--withhold is for the log of an installation here, and not for --log")
	}
	remote, err := c.open()
	if err != nil {
		return err
	}
	record, err := remote.record(ctx, c.Record)
	if err != nil {
		return err
	}
	if err := remote.prove(ctx, record); err != nil {
		return err
	}
	return io.print(record)
}

// Run prints a record with its proof.
func (c *logProveCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.Log != "" {
		return c.elsewhere(ctx, io)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		cosign(ctx, i, io)
		r, err := recordOf(ctx, i.Ledger, c.Record)
		if err != nil {
			return fmt.Errorf("record %q: %w", c.Record, err)
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
	})
}

type logCaseCmd struct {
	Chain string   `arg:"" help:"The trial's id, the chain_id of a chain, or the id of a record."`
	With  []string `placeholder:"RECORD" sep:"none" help:"Add this record too, by its id or digest. May be given several times."`
	withholdFlag
}

// records are those that belong to a chain or a record.
func (c *logCaseCmd) records(ctx context.Context, i *installation.Installation, io stdio) ([]*evidence.Record, error) {
	records, cut, err := i.Ledger.Linked(ctx, c.Chain)
	if errors.Is(err, ledger.ErrNotFound) {
		err = fmt.Errorf("%q: the log has no chain and no record of this name: %w", c.Chain, err)
	}
	if cut != nil {
		fmt.Fprintf(io.err, "jurat: %v\n", cut)
	}
	for _, name := range c.With {
		if err != nil {
			return nil, err
		}
		var one *evidence.Record
		if one, err = recordOf(ctx, i.Ledger, name); err != nil {
			return nil, fmt.Errorf("--with: %w", err)
		}
		records = append(records, one)
	}
	return records, err
}

// Run prints a bundle.
func (c *logCaseCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		cosign(ctx, i, io)
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

type logReindexCmd struct{}

// Run makes all briefs again.
func (*logReindexCmd) Run(ctx context.Context, a *app, io stdio) error {
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

type logFsckCmd struct {
	JSON bool `name:"json" help:"Print {records, whole, damages} as JSON."`
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
