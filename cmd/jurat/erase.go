package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"jurat/evidence"
	"jurat/internal/erasure"
	"jurat/internal/installation"
)

type eraseCmd struct {
	Record        string   `arg:"" help:"The record's id."`
	Field         []string `required:"" help:"The field whose text to destroy: prompt, or /metadata/user_id. May be given several times." placeholder:"POINTER" sep:"none"`
	Reason        string   `required:"" help:"Why, for the act that says so. It stays in the log for ever, so do not name a person in it." placeholder:"TEXT"`
	By            newName  `required:"" help:"Which person decided it." placeholder:"WHO"`
	DespiteQuotes bool     `help:"Erase although the text stands in other records, too, where it stays."`
}

// Run erases.
func (c *eraseCmd) Run(ctx context.Context, a *app, io stdio) error {
	pointers, err := readPointers("--field", c.Field)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		done, err := i.Eraser.Erase(ctx, erasure.Order{RecordID: c.Record, Pointers: pointers, Reason: c.Reason, By: string(c.By),
			DespiteQuotes: c.DespiteQuotes, Progress: progress(io, "looked for the text in")})
		if done != nil {
			c.told(io, done)
		}
		var quoted *erasure.QuotedError
		switch {
		case errors.As(err, &quoted):
			return hint(err, "erase those first where they are sealed apart, or say --despite-quotes; nothing was erased")
		case errors.Is(err, evidence.ErrNotApart):
			return hint(err, "what may have to be erased is sealed apart at once: 'jurat seal --apart', 'jurat apart'")
		case err != nil:
			return err
		}
		return c.say(io, done)
	})
}

// told says on stderr what the search found.
func (c *eraseCmd) told(io stdio, done *erasure.Erased) {
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
func (c *eraseCmd) say(io stdio, done *erasure.Erased) error {
	p := newPrinter(io.out)
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
