package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/internal/installation"
	"jurat/internal/witness"
)

type logWitnessCmd struct {
	URL    string `arg:"" optional:"" help:"Add the witness that takes checkpoints there: what comes before /add-checkpoint. With --remove, a witness's URL or name."`
	Key    string `placeholder:"KEY" help:"The verifier key of the new witness, which its operator gives you: name+hash+base64."`
	Quorum int    `placeholder:"N" help:"How many of the witnesses must have cosigned a checkpoint for it to count. Left out: more than half."`
	Remove bool   `xor:"what" help:"Stop asking this witness."`
	Ask    bool   `xor:"what" help:"Have all witnesses cosign a checkpoint over all that is in the log, now."`
}

// Run lists, adds, removes or asks witnesses.
func (c *logWitnessCmd) Run(ctx context.Context, a *app, io stdio) error {
	do := c.list
	switch {
	case c.Ask && c.URL != "" || !c.Ask && c.Remove != (c.URL != "" && c.Key == ""):
		return hint(errors.New("want a URL and --key KEY, a name and --remove, --ask alone, or nothing"), "'jurat log witness' lists the witnesses")
	case c.URL == "" && (c.Key != "" || c.Quorum != 0):
		return errors.New("--key and --quorum go with a witness")
	case c.Ask:
		do = c.ask
	case c.Remove:
		do = c.remove
	case c.URL != "":
		do = c.add
	}
	return a.with(ctx, func(i *installation.Installation) error { return do(ctx, i, io) })
}

func (c *logWitnessCmd) add(ctx context.Context, i *installation.Installation, io stdio) error {
	if err := i.Witnesses.Add(ctx, witness.Address{URL: c.URL, Key: c.Key}, c.Quorum); err != nil {
		return err
	}
	_, err := fmt.Fprintln(io.err, "jurat: give the new trust file ('jurat trust') to the people who verify; 'jurat log witness --ask' asks at once")
	return err
}

func (c *logWitnessCmd) remove(ctx context.Context, i *installation.Installation, io stdio) error {
	if err := i.Witnesses.Remove(ctx, c.URL, c.Quorum); err != nil {
		return hint(err, "'jurat log witness' names them")
	}
	_, err := fmt.Fprintln(io.err, "jurat: trust files that you gave out still demand it; replace them")
	return err
}

func (c *logWitnessCmd) list(ctx context.Context, i *installation.Installation, io stdio) error {
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
}

func (c *logWitnessCmd) ask(ctx context.Context, i *installation.Installation, io stdio) error {
	asked, err := i.Witnesses.Cosign(ctx)
	if err != nil {
		return err
	}
	if asked == nil {
		return hint(fmt.Errorf("this log has no witness"), "'jurat log witness URL --key KEY' adds one")
	}
	if err := printCosigning(io, asked, asked.Size); err != nil || asked.Met() {
		return err
	}
	return exitCode(exitUndecided)
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
