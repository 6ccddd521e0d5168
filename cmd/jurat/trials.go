package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jurat/client"
	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/trial"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/plural"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/web/docket"
	"jurat/internal/web/find"
	"jurat/reputation"
	"jurat/verify"
)

type jsonFlag struct {
	JSON bool `name:"json" help:"Print JSON, and nothing else."`
}

// answer prints a value as JSON, or else for people, unless getting it failed.
func (f jsonFlag) answer(std stdio, value any, err error, people func(p *printer)) error {
	switch {
	case err != nil:
		return err
	case f.JSON:
		return std.json(value)
	}
	p := newPrinter(std.out)
	people(p)
	return p.err
}

// list prints things as JSON, or else as a table, unless getting them failed; none stands for a table without rows.
func (f jsonFlag) list(std stdio, things any, err error, t *table, none string) error {
	return f.answer(std, things, err, func(p *printer) {
		if p.table(t); len(t.rows) == 0 && none != "" {
			p.line("%s", none)
		}
	})
}

type tableFlags struct {
	JSON bool `name:"json" xor:"form" help:"Print JSON, as the server's API answers."`
	CSV  bool `name:"csv" xor:"form" help:"Print CSV. A cell that a spreadsheet would compute gets an apostrophe before it."`
}

func (f tableFlags) answer(std stdio, value any, err error, csv *docket.Table, people func(p *printer)) error {
	if f.CSV && err == nil {
		return csv.WriteCSV(std.documents())
	}
	return jsonFlag{f.JSON}.answer(std, value, err, people)
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
	Taken     string   `placeholder:"NAME" help:"Trials that this reviewer has taken at the desk; none: trials that wait for a person, taken by no reviewer."`
	Juror     string   `placeholder:"NAME" help:"Trials in which a juror with this in its name or role sat."`
	Model     string   `placeholder:"NAME" help:"Trials in which a model with this in its name sat."`
	Submitter string   `placeholder:"NAME" help:"Submitters with this in their name."`
	Text      string   `help:"Trials in which this text occurs, in any letter case: at least three letters, or two characters of a script without spaces."`
	Record    string   `placeholder:"ID" help:"The trial that has this record."`
	Sort      string   `placeholder:"ORDER" help:"newest, oldest, latest (by the last act), highest or lowest (by score), or agent. Default: newest."`
	searchFlags
}

func (c *trialsCmd) Run(ctx context.Context, a *app, std stdio) error {
	values := c.values(sought{"agent": c.Agent, "verdict": c.Verdict, "outcome": c.Outcome, "needs_person": c.Needs, "taken": c.Taken, "juror": c.Juror,
		"model": c.Model, "submitter": c.Submitter, "text": c.Text, "record": c.Record, "sort": c.Sort})
	if len(c.Trials) > 0 {
		return c.named(ctx, a, std, values)
	}
	q, err := find.ReadTrials(values.get)
	if err != nil {
		return flagError(err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		return a.indexed(ctx, std, i, q.NeedsIndex(), func(k *docket.Keeper, trials *trial.Index) error {
			list, err := k.Trials(ctx, values.get, trials, &docket.Reader{})
			return c.print(std, list, flagError(err))
		})
	})
}

// indexed does something with the index of words, if that is needed, and with that of trials.
func (a *app) indexed(ctx context.Context, std stdio, i *installation.Installation, words bool, do func(*docket.Keeper, *trial.Index) error) (err error) {
	k := &docket.Keeper{Ledger: i.Ledger}
	if words {
		k, err = a.words(ctx, std, i)
	}
	if err != nil {
		return err
	}
	x := trial.NewIndex(i.Ledger, nil)
	x.Progress = progress(std, "reading the trials of the log")
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

func (a *app) words(ctx context.Context, std stdio, i *installation.Installation) (*docket.Keeper, error) {
	k := &docket.Keeper{Ledger: i.Ledger, Path: filepath.Join(a.Data, indexFile)}
	x, err := k.Open(ctx)
	if err == nil {
		err = x.Follow(ctx, progress(std, "records read into the index of words"))
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

func (c *trialsCmd) print(std stdio, list api.TrialList, err error) error {
	t := table{heads: []head{{name: "submitted", rank: 2}, {name: "outcome"}, {name: "verdict"}, {name: "score", right: true}, {name: "agent", rank: 3}, {name: "submitter", rank: 4}, {name: "trial", rank: 1}}}
	for i := range list.Trials {
		t.trial(&list.Trials[i])
	}
	return c.answer(std, list, err, docket.TrialTable(list.Trials), func(p *printer) {
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

func (c *trialsCmd) named(ctx context.Context, a *app, std stdio, filters sought) error {
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
			return c.show(std, &both[0])
		}
		return c.compare(std, docket.Compare(both[0], both[1]))
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

func (c *trialsCmd) show(std stdio, s *api.TrialSheet) error {
	return c.answer(std, s, nil, docket.SeatTable(s), func(p *printer) {
		p.sheet(s)
		p.findings("Findings", s.Findings)
	})
}

func (c *trialsCmd) compare(std stdio, both api.TrialComparison) error {
	return jsonFlag{c.JSON}.answer(std, both, nil, func(p *printer) {
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

type reputationCmd struct {
	Agent string   `arg:"" help:"The agent's name, as its records give it."`
	Files []string `arg:"" optional:"" name:"file" help:"Case files of trials, and bundles of the agent's records. Without any: the log of this installation."`
	readerFlags
	Log string `name:"log" help:"Compute it from all entries of the log at this URL, such as https://jurat.example/log, with your trust file." placeholder:"URL"`
	tokenFlag
	CA         string `name:"ca" help:"The agent is the one whose keys this CA of your trust file certified, by the CA's name." placeholder:"NAME"`
	PolicyFile string `name:"policy" help:"Your policy: whose word counts. See docs/reputation.md." placeholder:"FILE"`
	Checkpoint string `help:"A checkpoint of the log, for --entries." placeholder:"FILE"`
	Entries    string `help:"All entries that your --checkpoint covers: they show whether a judgment is missing." placeholder:"FILE"`
	Explain    bool   `help:"Trace each digit back to records."`
	Facts      bool   `help:"Print what verification found, from which the result is computed."`
	jsonFlag
	Out string `help:"Also write what a stranger needs, to compute the same, into this new folder. Only from the log." placeholder:"DIR"`
}

func (c *reputationCmd) Run(ctx context.Context, a *app, std stdio) error {
	policy, err := c.policy()
	if err := cmp.Or(err, c.checkFlags()); err != nil {
		return err
	}
	b := c.bring()
	defer b.close()
	o, err := b.options()
	if err != nil {
		return err
	}
	config := reputation.Config{Agent: c.Agent, CA: c.CA, Policy: policy, Options: o}
	if c.Log != "" {
		return c.fromServer(ctx, std, config)
	}
	if len(c.Files) > 0 {
		return c.fromFiles(ctx, std, config)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		if config.Options.Trust == nil {
			if config.Options.Trust, err = i.Trust(ctx); err != nil {
				return err
			}
		}
		return c.fromLog(ctx, i, std, config)
	})
}

func (c *reputationCmd) policy() (*reputation.Policy, error) {
	if c.PolicyFile == "" {
		return reputation.DefaultPolicy(), nil
	}
	return parsed(c.PolicyFile, reputation.ParsePolicy)
}

func (c *reputationCmd) checkFlags() error {
	return cmp.Or(refuse((c.Entries == "") != (c.Checkpoint == ""), "--entries and --checkpoint go together: give the entries and a checkpoint that covers them"),
		refuse(c.Log != "" && len(c.Files)+len(c.Entries) > 0, "--log reads all that the log has: leave out files and --entries"),
		refuse(c.Log == "" && c.TokenFile != "", "--token-file is for --log, which names the server that wants the token"),
		refuse(c.Entries != "" && len(c.Files) == 0, "--entries are for files: without files the log of this installation is read, and it knows its entries"),
		refuse(c.Out != "" && len(c.Files) > 0, "--out writes what a log has: leave out the files"))
}

// gatherer makes a Gatherer, and says what to do if it is not known who the agent is.
func gatherer(config reputation.Config) (*reputation.Gatherer, error) {
	g, err := reputation.NewGatherer(config)
	return g, hintIf(reputation.ErrIdentity, err, "only agents that sealed records have a reputation, whatever trials of transcripts found; "+
		"--trust brings a trust file with the agent's key ('jurat trust' writes it), and --ca names the CA that certified it")
}

func (c *reputationCmd) fromFiles(ctx context.Context, std stdio, config reputation.Config) error {
	g, err := gatherer(config)
	if err == nil && c.Entries != "" {
		err = c.entries(g)
	}
	if err != nil {
		return err
	}
	told := progress(std, "files verified")
	for n, name := range c.Files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		doc, err := readFile(name)
		if err != nil {
			return err
		}
		report, err := g.File(doc)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		std.tellIf(lies(report), "%s: refuted; what of it is not proved does not count ('jurat verify' says why)", name)
		told(int64(n+1), int64(len(c.Files)))
	}
	return c.tell(std, g)
}

// lies reports whether something is refuted beside chains. Of a chain that several agents share, --out writes the records of one, so it is never whole.
func lies(report *verify.Report) bool {
	return slices.ContainsFunc(report.Guarantees, func(f verify.Finding) bool { return f.Status == verify.Refuted && f.Guarantee != verify.Chain })
}

func (c *reputationCmd) entries(g *reputation.Gatherer) error {
	checkpoint, err := readFile(c.Checkpoint)
	if err != nil {
		return err
	}
	file, err := os.Open(c.Entries)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := g.Entries(evidence.MendNote(string(checkpoint)), file); err != nil {
		return hint(fmt.Errorf("%s: %w", c.Entries, err), "'jurat log checkpoint' and 'jurat log checkpoint --entries' write both, one right after the other")
	}
	return nil
}

func (c *reputationCmd) fromLog(ctx context.Context, i *installation.Installation, std stdio, config reputation.Config) error {
	g, err := gatherer(config)
	if err != nil {
		return err
	}
	take, err := c.taking(std, g)
	if err != nil {
		return err
	}
	fact, err := docket.ReadConduct(ctx, i.Ledger, c.Agent, take)
	if err != nil {
		return err
	}
	if len(fact.Actor)+len(fact.Subject) == 0 {
		return noSuchAgent(c.Agent)
	}
	g.Log(fact)
	return c.tell(std, g)
}

func noSuchAgent(name string) error {
	return unknownAgent(fmt.Errorf("the log has no record of an agent %q, and no judgment about one", name))
}

func unknownAgent(err error) error {
	return hint(err,
		"names are compared letter by letter; records from before the log counted actors are not found by name, nor are acts that a recorder saw and nobody judged")
}

// fromServer asks another machine's log, for entries and files as of one checkpoint: what is sealed meanwhile would look like a missing judgment.
func (c *reputationCmd) fromServer(ctx context.Context, std stdio, config reputation.Config) error {
	log, err := openRemote(c.Log, c.Trust, c.tokenFlag)
	if err != nil {
		return err
	}
	server, is := strings.CutSuffix(log.URL(), "/log/")
	if !is {
		return whereLogsAre(fmt.Errorf("--log: %s is not the log of a jurat server, which alone has the records", c.Log))
	}
	asking, err := client.NewClient(client.Config{URL: server, Token: log.token})
	g, unknown := gatherer(config)
	if err := cmp.Or(err, unknown); err != nil {
		return err
	}
	signed, head, err := log.newest(ctx)
	if err != nil {
		return err
	}
	take, err := c.taking(std, g)
	if err != nil {
		return err
	}
	files := 0
	for bundle, err := range asking.Conduct(ctx, c.Agent, head.Size) {
		if errors.Is(err, api.ErrNotFound) {
			return unknownAgent(err)
		}
		if files++; err == nil {
			err = take(docket.ConductFile{Name: fmt.Sprintf("conduct-%04d", files), Bundle: bundle})
		}
		if err != nil {
			return err
		}
	}
	entries := log.lines(ctx, head, progress(std, "entries of the log"))
	defer entries.Close()
	if err := g.Entries(signed, entries); err != nil {
		return err
	}
	return c.tell(std, g)
}

// taking returns what has files count, and keeps them for a stranger if --out names a folder.
func (c *reputationCmd) taking(std stdio, g *reputation.Gatherer) (take func(docket.ConductFile) error, err error) {
	if c.Out != "" {
		err = os.Mkdir(c.Out, 0o750)
	}
	told, files := progress(std, "files verified"), int64(0)
	return func(f docket.ConductFile) error {
		g.Bundle(f.Bundle)
		files++
		if told(files, files); c.Out == "" {
			return nil
		}
		doc, err := f.Bundle.Marshal()
		if err != nil {
			return err
		}
		return atomicfile.Create(filepath.Join(c.Out, f.Name+".jurat"), doc, 0o640)
	}, err
}

func (c *reputationCmd) tell(std stdio, g *reputation.Gatherer) error {
	if c.Facts {
		doc, err := fileOf(g.Facts())
		if err != nil {
			return err
		}
		return std.line("%s", doc)
	}
	v, err := g.View()
	if err != nil {
		return err
	}
	if c.JSON {
		err = std.print(v, nil)
	} else {
		err = c.describe(std, v)
	}
	return cmp.Or(err, coded(codeOf(v.Outcome)))
}

func (c *reputationCmd) describe(std stdio, v *reputation.View) error {
	p := newPrinter(std.out)
	p.line("%s, as of %s", p.bold(inert(v.Identity.Name)), v.At)
	p.text("  ", whoseKeys(v))
	for i := range v.Classes {
		p.text("  ", classLine(&v.Classes[i], v))
	}
	p.textIf(len(v.Classes) == 0, "  ", "No sealed record of this agent was judged by anybody whose word counts.")
	p.text("  ", coverageLine(v))
	for i := range v.Completeness {
		p.text("  ", completenessLine(&v.Completeness[i]))
	}
	for _, one := range v.Incidents {
		p.text("  ", fmt.Sprintf("Incident: the key %s was revoked from %s on (%s). Records since do not count.", one.KeyID.Short(), one.From, one.Source))
	}
	n := len(v.Allegations)
	p.textIf(n > 0, "  ", "%s of transcripts, which anybody can write: allegations, not counted.", plural.Of(n, "trial"))
	for _, line := range leftOutLines(v) {
		p.text("  ", line)
	}
	if c.Explain {
		for _, line := range v.Explain() {
			p.line("%s", inert(line))
		}
	}
	p.text("  ", fmt.Sprintf("Formula %s, policy %s, trust file %s.", v.Formula, v.Policy.Short(), v.Trust.Short()))
	p.text("  ", "This says how a sealed past was judged. It does not say how the agent will behave, and numbers of two panels cannot be compared.")
	p.line("  %s", p.statusIn(v.Outcome, strings.ToUpper(string(v.Outcome))))
	return p.err
}

func whoseKeys(v *reputation.View) string {
	switch {
	case v.Identity.By == "cas":
		return "The agent whose keys the CA " + inert(v.Identity.CA) + " certified."
	case len(v.Identity.Keys) == 0:
		return "The agent as recorders name it: the trust file has no key of it."
	}
	return "The agent with the " + plural.Of(len(v.Identity.Keys), "key") + " that the trust file gives it."
}

func classLine(k *reputation.Class, v *reputation.View) string {
	counts := fmt.Sprintf("%d passed, %d failed, %d undecided", k.Good.Units, k.Bad.Units, k.Neither)
	what := "no number, as judgments are missing"
	switch k.Status {
	case reputation.Scored:
		what = fmt.Sprintf("between %s and %s", percent(k.Bounds.Lower), percent(k.Bounds.Upper))
	case reputation.TooFew:
		what = "too few for a number"
		counts += fmt.Sprintf("; old records and verdicts over many records weigh less; the least is %d", v.Minimum)
	case reputation.Uncounted:
		what = "no number, by the policy"
	case reputation.Unproved:
		what = "no number, as judgments are not proved to be in the log"
	}
	return fmt.Sprintf("%s: %s (%s)", k.Title(), what, counts)
}

func percent(perMyriad int64) string { return fmt.Sprintf("%d.%02d %%", perMyriad/100, perMyriad%100) }

func coverageLine(v *reputation.View) string {
	of := pick(v.Coverage.Total > 0, fmt.Sprintf("all %d", v.Coverage.Total), fmt.Sprintf("%d that are at hand and count", v.Coverage.Known))
	return fmt.Sprintf("Judged: %d of the agent's own records, of %s: %s. Chosen by the operator, not drawn.", v.Coverage.Judged, of, percent(v.Coverage.PerMyri))
}

func completenessLine(l *reputation.LogView) string {
	j := l.Judgments
	said := fmt.Sprintf("Log %s: %d of %s about the agent at hand: %s", inert(l.Origin), j.Known, plural.Of(j.Total, "judgment"), j.Status)
	why := map[string]string{
		"count":     "the log's entries number them falsely",
		"fork":      "two records have one number: the log shows two histories",
		"dropped":   fmt.Sprintf("the log has number %d, and the files do not: ask the operator for all ('jurat reputation AGENT --out DIR')", first(j.Missing)),
		"unproved":  fmt.Sprintf("number %d is not yet proved in the log: while a server runs, witnesses cosign it ('jurat log witness --ask')", first(j.Missing)),
		"doubted":   fmt.Sprintf("number %d does not count: its trial, or the record that it judged, is not proved or not at hand", first(j.Missing)),
		"hole":      fmt.Sprintf("number %d is missing: ask the operator for all ('jurat reputation AGENT --out DIR')", first(j.Missing)),
		"uncounted": "the log has older records that it did not count",
		"tail":      "later ones may exist: only the log's entries show that (--checkpoint and --entries)",
	}[j.Rule]
	return said + pick(why != "", "; "+why, "") + "."
}

func first(numbers []int64) int64 {
	if len(numbers) == 0 {
		return 0
	}
	return numbers[0]
}

func leftOutLines(v *reputation.View) (lines []string) {
	type kind struct{ what, rule string }
	many := map[kind]int{}
	var order []kind
	for _, o := range v.LeftOut {
		k := kind{string(o.What), o.Rule}
		if many[k]++; many[k] == 1 {
			order = append(order, k)
		}
	}
	for _, k := range order {
		lines = append(lines, fmt.Sprintf("Left out: %s, rule %s (--json lists them).", plural.Of(many[k], k.what), k.rule))
	}
	return lines
}
