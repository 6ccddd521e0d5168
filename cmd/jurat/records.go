package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jurat/api"
	"jurat/internal/docket"
	"jurat/internal/find"
	"jurat/internal/incident"
	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/internal/words"
)

type recordsCmd struct {
	Text     string `arg:"" optional:"" name:"text" help:"Records in which this text occurs, in any letter case: at least three letters, or two characters of a script without spaces."`
	Show     string `xor:"what" placeholder:"CHAIN|RECORD" help:"Show what a recorder saw in this chain as a conversation, or one record of it."`
	Recorded bool   `xor:"what" help:"List the chains in which recorders saw something."`
	AIAct    bool   `name:"ai-act" xor:"what" help:"Say which clauses of the EU AI Act on records these answer: Articles 12, 19, 26, and what records can say of 50 and 86."`
	Markdown bool   `xor:"form" help:"With --ai-act: print it as Markdown."`
	Said     bool   `help:"Only where the actor said the text itself, and was not only given it."`
	Actor    string `placeholder:"NAME" help:"The whole name of the agent, juror or person who acted; with --recorded, agents with this in their name."`
	Action   string `placeholder:"TYPE" help:"The action type, such as recommendation."`
	Chain    string `placeholder:"NAME" help:"Only records of this chain, or of this trial."`
	Record   string `placeholder:"ID" help:"The record with this id."`
	Sort     string `placeholder:"ORDER" help:"newest or oldest first. Default: newest."`
	Lines    int    `placeholder:"N" default:"30" help:"With --show: how many lines of each message; 0: all."`
	searchFlags
}

// Run finds records, lists recorded chains, or shows one.
func (c *recordsCmd) Run(ctx context.Context, a *app, io stdio) error {
	values := c.values()
	for name, value := range map[string]string{"text": c.Text, "actor": c.Actor, "action": c.Action, "chain": c.Chain, "record": c.Record, "sort": c.Sort} {
		values[name] = value
	}
	if c.Said {
		values["said"] = "true"
	}
	if c.CSV && (c.AIAct || c.Recorded || c.Show != "") || c.Markdown && !c.AIAct {
		return errors.New("--csv is for records that are found, and --markdown for --ai-act")
	}
	switch {
	case c.AIAct:
		return c.report(ctx, a, io, values)
	case c.Recorded:
		return c.recorded(ctx, a, io, values)
	case c.Show != "":
		return c.show(ctx, a, io, values)
	}
	get := func(name string) string { return values[name] }
	if _, err := find.ReadRecords(get); err != nil {
		return flagError(err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		list, err := c.find(ctx, a, io, i, get)
		if err != nil {
			return err
		}
		return c.print(io, list)
	})
}

func (c *recordsCmd) find(ctx context.Context, a *app, io stdio, i *installation.Installation, get func(string) string) (list api.HitList, err error) {
	k, err := a.words(ctx, io, i)
	if err != nil {
		return list, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	by, err := i.Trust(ctx)
	if err != nil {
		return list, err
	}
	trials, err := a.trials(ctx, io, i)
	if err != nil {
		return list, err
	}
	return k.Records(ctx, get, trials, everything(), by)
}

// everything is a reader who may read everything.
func everything() *docket.Reader { return &docket.Reader{Scope: find.Scope{All: true}} }

func (c *recordsCmd) print(io stdio, list api.HitList) error {
	switch {
	case c.JSON:
		return io.json(list)
	case c.CSV:
		return docket.HitTable(list.Hits).WriteCSV(io.documents())
	}
	p := newPrinter(io.out)
	t := table{heads: []head{{name: "proved", rank: 2}, {name: "role"}, {name: "who", rank: 3}, {name: "record", rank: 1}}}
	for _, h := range list.Hits {
		t.row(cmp.Or(h.Proved, "not proved"), h.Role, h.Actor, h.Record)
		if h.Agent != "" {
			t.below(fmt.Sprintf("it saw an act of the agent %q", h.Agent), "")
		}
		if h.Why != "" {
			t.below(h.Why, yellow)
		}
		if o := h.Outcome; o != nil {
			t.below("its trial: "+incident.Outcome(o, words.English), "")
		}
		if h.Line != "" {
			t.below(fmt.Sprintf("%s %s: %s", given(h.Said), h.Place, h.Line), "")
		}
	}
	p.table(&t)
	p.line("%s on this page", plural.Of(len(list.Hits), "record"))
	p.rest(io, list.Next, list.Index)
	return p.err
}

func given(said bool) string {
	if said {
		return "said in"
	}
	return "given in"
}

// only returns an error if a flag is given that does not go with another.
func only(flag string, values map[string]string, taken ...string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" && !slices.Contains(taken, name) {
			return fmt.Errorf("%s goes with --%s only", flag, strings.Join(taken, ", --"))
		}
	}
	return nil
}
