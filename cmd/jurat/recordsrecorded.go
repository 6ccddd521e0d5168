package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/find"
	"jurat/internal/installation"
	"jurat/internal/plural"
)

// recorded lists chains.
func (c *recordsCmd) recorded(ctx context.Context, a *app, io stdio, values map[string]string) error {
	if err := only("--recorded", values, "text", "actor", "from", "to", "after", "limit"); err != nil {
		return err
	}
	values["agent"] = values["actor"]
	get := func(name string) string { return values[name] }
	if _, err := find.ReadRecordings(get); err != nil {
		return flagError(err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		list, err := c.chains(ctx, a, io, i, get)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return io.json(list)
		}
		p := newPrinter(io.out)
		p.chains(&list)
		p.rest(io, list.Next, list.Index)
		return p.err
	})
}

func (c *recordsCmd) chains(ctx context.Context, a *app, io stdio, i *installation.Installation, get func(string) string) (list api.Recordings, err error) {
	k, err := a.words(ctx, io, i)
	if err != nil {
		return list, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	trials, err := a.trials(ctx, io, i)
	if err != nil {
		return list, err
	}
	return k.Recordings(ctx, get, trials, everything())
}

// chains prints a list of recorded chains.
func (p *printer) chains(list *api.Recordings) {
	t := table{heads: []head{{name: "first", rank: 4}, {name: "last", rank: 2}, {name: "agent", rank: 3}, {name: "acts", right: true}, {name: "seen", rank: 5}, {name: "chain", rank: 1}}}
	for i := range list.Recordings {
		r := &list.Recordings[i]
		t.row(minute(r.First), minute(r.Last), strings.Join(r.Agents, ", "), r.Acts, from(r.Vantages), r.Chain)
		if gaps := gapsIn(r); gaps != "" {
			t.below(gaps, yellow)
		}
		if len(r.Models) > 0 || r.Tokens != nil {
			t.below(strings.Join(r.Models, ", ")+tokensOf(r), "")
		}
		for n := range r.Trials {
			t.below("tried: "+r.Trials[n].ID, "")
		}
	}
	p.table(&t)
	p.line("%s on this page", plural.Of(len(list.Recordings), "chain"))
}

// tokensOf are a chain's tokens.
func tokensOf(r *api.Recording) string {
	if r.Tokens == nil {
		return ""
	}
	return fmt.Sprintf("; %s read, %d written", plural.Of(r.Tokens.Input, "token"), r.Tokens.Output)
}

// from says from where a chain was seen, in a word for each.
func from(list []evidence.Vantage) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = map[evidence.Vantage]string{evidence.Proxy: "bytes", evidence.ProxyMITM: "bytes", evidence.InProcess: "in the program", evidence.Telemetry: "second hand", evidence.Examiner: "asked"}[v]
	}
	return strings.Join(words, ", ")
}

// gapsIn says what of a chain is missing.
func gapsIn(r *api.Recording) string {
	var parts []string
	for _, lack := range []struct {
		n    int64
		what string
	}{{r.Broken - r.Lost, "did not come to the end"}, {r.Lost, "lost in a crash"}, {r.Missed, "passed without a record in this time"}} {
		if lack.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", lack.n, lack.what))
		}
	}
	return strings.Join(parts, ", ")
}
