package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"jurat/evidence"
	"jurat/internal/archive"
	"jurat/internal/installation"
)

type eraseCmd struct {
	Record        string   `arg:"" help:"The record's id."`
	Field         []string `required:"" help:"The field whose text is destroyed: prompt, or /metadata/user_id. May be given several times." placeholder:"POINTER" sep:"none"`
	Reason        string   `required:"" help:"Why, for the act that says so. It stands in the log for ever, so name nobody in it." placeholder:"TEXT"`
	By            newName  `required:"" help:"Which person decided it." placeholder:"WHO"`
	DespiteQuotes bool     `help:"Erase although the text stands in other records, too, where it stays."`
}

// Help is shown by 'jurat erase --help'.
func (*eraseCmd) Help() string {
	return `Destroys the text of fields that were sealed apart. The record stays, with every proof: what was signed has commitments in
their place. An act of the operator in the log says what was erased, when, why and who decided it, and not what it said.

The text is first looked for in the whole log, in every payload and every text that is kept. Where it stands elsewhere,
too, or a part of it is quoted there, those records are named and nothing is erased, unless you say --despite-quotes. It is
looked for as it is: what says the same in other words is not found, nor is a text of less than 8 characters.

What can be destroyed is the key under which this installation keeps the text. A case file or record that was given out
with the text has it still, and so has a backup of the folder apart-keys.

    jurat erase RECORD --field prompt --field /metadata/user_id --reason "request of 12 May" --by "data protection officer"`
}

// Run erases.
func (c *eraseCmd) Run(ctx context.Context, a *app, io stdio) error {
	pointers, err := readPointers("--field", c.Field)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		done, err := i.Erase(ctx, installation.ErasureOrder{RecordID: c.Record, Pointers: pointers, Reason: c.Reason, By: string(c.By),
			DespiteQuotes: c.DespiteQuotes, Progress: progress(io, "looked for the text in")})
		if done != nil {
			c.told(io, done)
		}
		var quoted *installation.QuotedError
		var held *archive.HeldError
		switch {
		case errors.As(err, &quoted):
			return hint(err, "erase those first where they are sealed apart, or say --despite-quotes; nothing was erased")
		case errors.As(err, &held):
			return hint(err, "it can be erased when the hold is released: 'jurat hold release %s'; nothing was erased", held.Hold.ID)
		case errors.Is(err, evidence.ErrNotApart):
			return hint(err, "what may have to be erased is sealed apart at once: 'jurat seal --apart', 'jurat apart set'")
		case err != nil:
			return err
		}
		return c.say(io, done)
	})
}

// told says on stderr what the search found.
func (c *eraseCmd) told(io stdio, done *installation.Erased) {
	for _, q := range done.Quotes {
		what := "holds the text"
		switch {
		case q.Reason != "":
			what = "cannot be searched: " + q.Reason
		case q.Part:
			what = "quotes a part of the text"
		}
		fmt.Fprintf(io.err, "jurat: record %s: %s: %s of %s %q %s\n", q.RecordID, q.Member, plain(q.Action), q.Role, q.Actor, what)
	}
	for _, pointer := range done.TooShort {
		fmt.Fprintf(io.err, "jurat: %s: it holds no text of 8 characters or more, so it was not looked for in other records\n", pointer)
	}
}

// say prints what is gone.
func (c *eraseCmd) say(io stdio, done *installation.Erased) error {
	p := newPage(io.out)
	for _, pointer := range done.Now {
		p.line("erased %s of record %s: act %s", pointer, c.Record, done.Act)
	}
	for _, pointer := range slices.Sorted(maps.Keys(done.Before)) {
		if act := done.Before[pointer]; act != "" {
			p.line("%s of record %s was erased already: act %s", pointer, c.Record, act)
			continue
		}
		p.line("%s of record %s: an erasure that was broken off is finished", pointer, c.Record)
	}
	return p.err
}
