package main

import (
	"context"
	"fmt"
	"time"

	"jurat/internal/installation"
	"jurat/internal/witness"
)

type logWitnessCmd struct {
	Add    logWitnessAddCmd    `cmd:"" help:"Have a witness cosign the log's checkpoints from now on."`
	List   logWitnessListCmd   `cmd:"" help:"List the witnesses, and what they have cosigned."`
	Remove logWitnessRemoveCmd `cmd:"" help:"Stop asking a witness."`
	Ask    logWitnessAskCmd    `cmd:"" help:"Have all witnesses cosign a checkpoint over all that is in the log, now."`
}

// quorumFlag says how many witnesses make a checkpoint count.
type quorumFlag struct {
	Quorum int `placeholder:"N" help:"How many of the witnesses must have cosigned a checkpoint for it to count. Left out: more than half."`
}

type logWitnessAddCmd struct {
	URL string `arg:"" help:"Where the witness takes checkpoints: what comes before /add-checkpoint."`
	Key string `required:"" placeholder:"KEY" help:"Its verifier key, which its operator gives you: name+hash+base64."`
	quorumFlag
}

// Run adds a witness.
func (c *logWitnessAddCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		if err := i.Witnesses.Add(ctx, witness.Address{URL: c.URL, Key: c.Key}, c.Quorum); err != nil {
			return err
		}
		_, err := fmt.Fprintln(io.err, "jurat: give the new trust file ('jurat trust') to the people who verify; 'jurat log witness ask' asks at once")
		return err
	})
}

type logWitnessListCmd struct{}

// Run lists witnesses.
func (*logWitnessListCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		settings, err := i.Witnesses.Settings(ctx)
		if err != nil {
			return err
		}
		if len(settings.List) == 0 {
			return io.line("no witness cosigns this log's checkpoints")
		}
		kept, err := i.Witnesses.LastCosigned(ctx)
		if err != nil {
			return err
		}
		size, err := i.Ledger.Size(ctx)
		if err != nil {
			return err
		}
		if kept == nil {
			kept = &witness.Cosigning{Quorum: settings.Quorum}
			for _, w := range settings.List {
				kept.Answers = append(kept.Answers, witness.Answer{Address: w, Err: fmt.Errorf("it has cosigned nothing yet")})
			}
		}
		return printCosigning(io, kept, size)
	})
}

// printCosigning prints which witnesses cosigned which checkpoint.
func printCosigning(io stdio, c *witness.Cosigning, size int64) error {
	p := newPrinter(io.out)
	met := "which counts"
	if !c.Met() {
		met = "which is too few"
	}
	p.line("checkpoint of %d of %d records: cosigned by %d of %d witnesses, %d are demanded, %s", c.Size, size, c.Cosigned(), len(c.Answers), c.Quorum, met)
	t := table{heads: []head{{name: "witness"}, {name: "address", rank: 2}, {name: "cosigned", rank: 1}}}
	for _, a := range c.Answers {
		said := "at " + a.At.Format(time.RFC3339)
		if a.Err != nil {
			said = "not: " + a.Err.Error()
		}
		t.row(a.Name(), a.URL, said)
	}
	p.table(&t)
	return p.err
}

type logWitnessRemoveCmd struct {
	Name string `arg:"" help:"The witness's name or URL."`
	quorumFlag
}

// Run removes a witness.
func (c *logWitnessRemoveCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		if err := i.Witnesses.Remove(ctx, c.Name, c.Quorum); err != nil {
			return hint(err, "'jurat log witness list' names them")
		}
		_, err := fmt.Fprintln(io.err, "jurat: trust files that you gave out still demand it; replace them")
		return err
	})
}

type logWitnessAskCmd struct{}

// Run asks.
func (*logWitnessAskCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		c, err := i.Witnesses.Cosign(ctx)
		if err != nil {
			return err
		}
		if c == nil {
			return hint(fmt.Errorf("this log has no witness"), "'jurat log witness add URL --key KEY' adds one")
		}
		if err := printCosigning(io, c, c.Size); err != nil || c.Met() {
			return err
		}
		return exitCode(exitUndecided)
	})
}
