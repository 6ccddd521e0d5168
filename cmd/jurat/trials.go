package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"jurat/api"
	"jurat/internal/docket"
	"jurat/internal/find"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/plural"
	"jurat/internal/trial"
)

type jsonFlag struct {
	JSON bool `name:"json" help:"Print JSON, and nothing else."`
}

// answer prints a value as JSON, or else for people, unless getting it failed.
func (f jsonFlag) answer(io stdio, value any, err error, people func(p *printer)) error {
	switch {
	case err != nil:
		return err
	case f.JSON:
		return io.json(value)
	}
	p := newPrinter(io.out)
	people(p)
	return p.err
}

// list prints things as JSON, or else as a table, unless getting them failed; none stands for a table without rows.
func (f jsonFlag) list(io stdio, things any, err error, t *table, none string) error {
	return f.answer(io, things, err, func(p *printer) {
		if p.table(t); len(t.rows) == 0 && none != "" {
			p.line("%s", none)
		}
	})
}

type tableFlags struct {
	JSON bool `name:"json" xor:"form" help:"Print JSON, as the server's API answers."`
	CSV  bool `name:"csv" xor:"form" help:"Print CSV. A cell that a spreadsheet would compute gets an apostrophe before it."`
}

func (f tableFlags) answer(io stdio, value any, err error, csv *docket.Table, people func(p *printer)) error {
	if f.CSV && err == nil {
		return csv.WriteCSV(io.documents())
	}
	return jsonFlag{f.JSON}.answer(io, value, err, people)
}

type searchFlags struct {
	From  string `placeholder:"TIME" help:"From this time on, as it is claimed: a date (2026-01-31, in UTC) or an RFC 3339 time."`
	To    string `placeholder:"TIME" help:"Up to this day, or before this time."`
	After string `placeholder:"CURSOR" help:"The page after this cursor, which the page before names."`
	Limit string `placeholder:"N" help:"The largest number of lines: 1 to 500, by default 100."`
	tableFlags
}

// sought is what a search names, as the server's API takes it.
type sought map[string]string

func (s sought) get(name string) string { return s[name] }

func (f *searchFlags) values(more sought) sought {
	maps.Copy(more, sought{"from": f.From, "to": f.To, "after": f.After, "limit": f.Limit})
	return more
}

type trialsCmd struct {
	Trials    []string `arg:"" optional:"" name:"trial" help:"Show this trial, or compare two: a trial's id."`
	Agent     string   `placeholder:"NAME" help:"Agents with this in their name."`
	Verdict   string   `placeholder:"VERDICT" help:"The jury's verdict: safe_pass, needs_review, unsafe_fail, or none while there is none."`
	Outcome   string   `placeholder:"VERDICT" help:"What counts, after people's decisions: the same words."`
	Needs     string   `name:"needs-person" placeholder:"BOOL" help:"true: only trials that wait for a person's decision; false: only others."`
	Taken     string   `placeholder:"NAME" help:"Trials that this reviewer has taken at the desk; none: trials that wait for a person and that no reviewer has taken."`
	Juror     string   `placeholder:"NAME" help:"Trials in which a juror with this in its name or role sat."`
	Model     string   `placeholder:"NAME" help:"Trials in which a model with this in its name sat."`
	Submitter string   `placeholder:"NAME" help:"Submitters with this in their name."`
	Text      string   `help:"Trials in which this text occurs, in any letter case: at least three letters, or two characters of a script without spaces."`
	Record    string   `placeholder:"ID" help:"The trial that has this record."`
	Sort      string   `placeholder:"ORDER" help:"newest, oldest, latest (by the last act), highest or lowest (by score), or agent. Default: newest."`
	searchFlags
}

func (c *trialsCmd) Run(ctx context.Context, a *app, io stdio) error {
	values := c.values(sought{"agent": c.Agent, "verdict": c.Verdict, "outcome": c.Outcome, "needs_person": c.Needs, "taken": c.Taken, "juror": c.Juror, "model": c.Model,
		"submitter": c.Submitter, "text": c.Text, "record": c.Record, "sort": c.Sort})
	if len(c.Trials) > 0 {
		return c.named(ctx, a, io, values)
	}
	q, err := find.ReadTrials(values.get)
	if err != nil {
		return flagError(err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		return a.indexed(ctx, io, i, q.NeedsIndex(), func(k *docket.Keeper, trials *trial.Index) error {
			list, err := k.Trials(ctx, values.get, trials, &docket.Reader{})
			return c.print(io, list, flagError(err))
		})
	})
}

// indexed does something with the index of words, if that is needed, and with that of trials.
func (a *app) indexed(ctx context.Context, io stdio, i *installation.Installation, words bool, do func(*docket.Keeper, *trial.Index) error) (err error) {
	k := &docket.Keeper{Ledger: i.Ledger}
	if words {
		k, err = a.words(ctx, io, i)
	}
	if err != nil {
		return err
	}
	x := trial.NewIndex(i.Ledger, nil)
	x.Progress = progress(io, "reading the trials of the log")
	if err = x.Follow(ctx); err == nil {
		err = do(k, x)
	}
	return errors.Join(err, k.Close())
}

// Files in a data folder that are made again from the log: the index of words, and the queue.
const (
	indexFile = "find.db"
	workFile  = "work.db"
)

func (a *app) words(ctx context.Context, io stdio, i *installation.Installation) (*docket.Keeper, error) {
	k := &docket.Keeper{Ledger: i.Ledger, Path: filepath.Join(a.Data, indexFile)}
	x, err := k.Open(ctx)
	if err == nil {
		err = x.Follow(ctx, progress(io, "records read into the index of words"))
	}
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func flagError(err error) error {
	field, is := errors.AsType[*find.FieldError](err)
	if !is {
		return err
	}
	return hint(fmt.Errorf("--%s: %s", strings.ReplaceAll(field.Field, "_", "-"), field.Reason), "--help says what each flag takes")
}

func (c *trialsCmd) print(io stdio, list api.TrialList, err error) error {
	t := table{heads: []head{{name: "submitted", rank: 2}, {name: "outcome"}, {name: "verdict"}, {name: "score", right: true}, {name: "agent", rank: 3}, {name: "submitter", rank: 4}, {name: "trial", rank: 1}}}
	for i := range list.Trials {
		t.trial(&list.Trials[i])
	}
	return c.answer(io, list, err, docket.TrialTable(list.Trials), func(p *printer) {
		p.table(&t)
		p.line("%s%s%s", pick(list.Counts.AtMost, "at most ", ""), plural.Of(list.Counts.Total, "trial"), counted(list.Counts.Outcomes))
		p.rest(list.Next, list.Index)
	})
}

func (t *table) trial(l *api.TrialLine) {
	score := "-"
	if l.Score != nil {
		score = fmt.Sprint(*l.Score)
	}
	outcome := string(l.Outcome) + pick(l.NeedsPerson, "?", "")
	t.row(minute(l.Submitted), cell{cmp.Or(outcome, find.None), colours[l.Outcome]}, cell{cmp.Or(string(l.Verdict), find.None), colours[l.Verdict]}, score, l.Agent, l.Submitter, l.ID)
	if l.Taken != nil {
		t.below(true, "", "taken by %s", l.Taken.Reviewer)
	}
}

func (p *printer) rest(next string, index api.IndexState) {
	p.lineIf(next != "", "There may be more: --after %s", quote(next))
	p.lineIf(index.Behind > 0, "The index of words is %s behind, so this may be incomplete.", plural.Of(index.Behind, "record"))
}

func counted(by map[string]int) string {
	var parts remarks
	for _, name := range find.Positions() {
		parts.add(by[name] > 0, "%s %d", name, by[name])
	}
	return pick(parts == nil, "", ": outcomes "+strings.Join(parts, ", "))
}

func minute(at string) string {
	if len(at) < len("2006-01-02T15:04") {
		return at
	}
	return strings.Replace(at[:len("2006-01-02T15:04")], "T", " ", 1)
}

func (c *trialsCmd) named(ctx context.Context, a *app, io stdio, filters sought) error {
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		if filters[name] != "" {
			return fmt.Errorf("--%s: this is for lists, and not for trials that are named", strings.ReplaceAll(name, "_", "-"))
		}
	}
	if len(c.Trials) > 2 || len(c.Trials) == 2 && c.CSV {
		return errors.New("want one trial, or two without --csv")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		both, err := each(c.Trials, func(id string) (api.TrialSheet, error) { return sheet(ctx, i, id) })
		switch {
		case err != nil:
			return err
		case len(both) == 1:
			return c.show(io, &both[0])
		}
		return c.compare(io, docket.Compare(both[0], both[1]))
	})
}

func sheet(ctx context.Context, i *installation.Installation, id string) (api.TrialSheet, error) {
	s, err := docket.Sheet(ctx, i.Ledger, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return s, hint(fmt.Errorf("there is no trial %q in the log", id), "'jurat trials' lists the trials; --record finds the trial of a record")
	}
	return s, err
}

func (p *printer) sheet(s *api.TrialSheet) {
	p.line("%s", p.bold(cmp.Or(s.Agent, "(an agent without a name)")))
	p.line("  %s, submitted %s by %s, case %s", s.ID, s.Submitted, s.Submitter, s.Case)
	p.warnIf(s.Broken != "", "  ", "its acts contradict each other: %s", s.Broken)
	p.outcomeOf(s)
	p.line("")
	t := table{heads: []head{{name: "juror", rank: 1}, {name: "model", rank: 2}, {name: "position"}, {name: "score", right: true}}}
	for _, axis := range s.Axes {
		t.heads = append(t.heads, head{name: axis, right: true})
	}
	for _, seat := range s.Seats {
		row := []any{seat.JurorID, seat.Model, cell{cmp.Or(string(seat.Position), find.None), colours[seat.Position]}, seat.Score}
		for _, axis := range s.Axes {
			row = append(row, seat.Scores[axis])
		}
		t.row(row...)
	}
	p.table(&t)
	for _, seat := range s.Seats {
		if seat.Reason != "" {
			p.line("")
			p.line("%s:", seat.JurorID)
			p.text("  ", seat.Reason)
		}
	}
}

func (p *printer) outcomeOf(s *api.TrialSheet) {
	if s.Score == nil {
		p.line("  no judgment yet")
		return
	}
	by := "the " + string(s.By) + pick(s.Reviewer != "", " "+shorter(s.Reviewer, 40), "")
	note := pick(s.NeedsPerson, "; it waits for a person's decision", "")
	p.line("  outcome %s by %s%s; the jury's verdict %s %d/100 by %s", p.positionIn(s.Outcome, string(s.Outcome)), by, note, p.positionIn(s.Verdict, string(s.Verdict)), *s.Score, s.Method)
	p.lineIf(s.Calls > 0, "  %s, %s, %.1f s", plural.Of(s.Calls, "call"), fmt.Sprintf("%.4f USD", float64(s.Cost)/1e6), float64(s.Took)/1000)
	p.text("  ", s.Rationale)
}

func (p *printer) findings(title string, list []api.TrialFinding) {
	p.line("")
	p.line("%s: %d", title, len(list))
	for _, f := range list {
		stands := pick(f.Stands, "", " (the message does not have the quotation)")
		p.text("  ", fmt.Sprintf("%s, %s, %s, message %d, by %s%s", f.Rule, f.Axis, f.Severity, f.Message, strings.Join(f.Jurors, ", "), stands))
		p.text("    ", f.Quote)
	}
}

func (c *trialsCmd) show(io stdio, s *api.TrialSheet) error {
	return c.answer(io, s, nil, docket.SeatTable(s), func(p *printer) {
		p.sheet(s)
		p.findings("Findings", s.Findings)
	})
}

func (c *trialsCmd) compare(io stdio, both api.TrialComparison) error {
	return jsonFlag{c.JSON}.answer(io, both, nil, func(p *printer) {
		p.sheet(&both.A)
		p.line("")
		p.sheet(&both.B)
		p.line("")
		p.line("%s", pick(both.SameCase, "Both judged the same evidence.", "They judged different evidence."))
		p.findings("Found in both", both.Both)
		p.findings("Only in the first", both.OnlyA)
		p.findings("Only in the second", both.OnlyB)
	})
}
