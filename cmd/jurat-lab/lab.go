package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jurat/internal/atomicfile"
	"jurat/internal/config"
	"jurat/internal/fault"
	"jurat/internal/installation"
	"jurat/internal/lab"
	"jurat/internal/panel"
	"jurat/internal/plural"
	"jurat/internal/stats"
)

type runCmd struct {
	Cases       string            `arg:"" name:"folder" help:"A folder of cases: each a folder with agent-card.json and conversation.json."`
	Labels      string            `placeholder:"FILE" help:"What is known of each case, see above. Default: labels.json in the folder of cases."`
	PanelFile   []string          `placeholder:"FILE" help:"A panel, as --config of 'jurat trial' has it. May be given several times: panels are compared on the same cases." sep:"none"`
	Jurors      string            `placeholder:"offline" help:"offline: measure the rule jurors, too, as the panel 'rules'." enum:",offline" default:""`
	Calibration map[string]string `placeholder:"PANEL=FILE" help:"The calibration file of a panel whose method is calibrated."`
	Out         string            `required:"" placeholder:"DIR" help:"The laboratory: a folder for trials, report.json, report.html and votes. A run that was broken off goes on there."`
	Repeat      int               `placeholder:"N" help:"Try each case so often. Shows how steady verdicts are, and what one juror asked as often would do." default:"1"`
	Parallel    int               `placeholder:"N" help:"How many cases are tried at a time." default:"1"`
	CostCeiling *float64          `placeholder:"USD" help:"Begin no trial once all that were ever held in this laboratory have cost so much. Those under way still end. Default: no ceiling."`
	Seed        uint64            `placeholder:"N" help:"Of the bootstrap that makes intervals of differences." default:"1"`
	JSON        bool              `name:"json" help:"Print the report as JSON."`
}

// Help is shown by 'jurat-lab run --help'.
func (*runCmd) Help() string {
	return `Tries cases whose outcome is known, by one panel or several, and reports how good the verdicts are. labels.json says what is known, and no juror sees it:

    {"refund-01": {"outcome": "good"},
     "refund-02": {"outcome": "failed", "kind": "wrong amount", "trade": "shop"}}

"task_success" of true or false may stand for "outcome". kind and trade are words of yours. A panel is what its file says, and its name is the file's:
flags and environment of 'jurat trial' change nothing here but the keys. After Ctrl-C, a crash or the ceiling the same command goes on, and no sealed
answer is asked again. docs/quality.md explains the figures. votes-PANEL.jsonl is for 'jurat-lab calibrate'.

    jurat-lab run ./cases --jurors offline --out laboratory
    jurat-lab run ./cases --panel-file old.yaml --panel-file new.yaml --repeat 3 --parallel 4 --cost-ceiling 20 --out laboratory
    jurat-lab calibrate --votes laboratory/votes-new.jsonl --out calibration.json

Exit code 0: every trial has its verdict. 3: some are left, and the same command goes on with them. 2: it could not be done.`
}

func (c *runCmd) Run(ctx context.Context, io streams) error {
	cases, unlabelled, source, err := c.load(io)
	if err != nil {
		return err
	}
	config := lab.Config{Cases: cases, Repeat: c.Repeat, Parallel: c.Parallel, Progress: io.progress("trials")}
	if err := c.check(&config); err != nil {
		return err
	}
	if config.Panels, err = c.panels(io); err != nil {
		return err
	}
	l, err := lab.Open(ctx, c.Out)
	if err != nil {
		return hint(err, "--out takes a folder that is missing, empty, or a laboratory; one process works in it at a time")
	}
	err = c.hold(ctx, io, l, config, lab.Asked{Source: source, Unlabelled: unlabelled, Seed: c.Seed})
	return cmp.Or(l.Close(), err) // a failed close is not hidden by trials that are left
}

func (c *runCmd) load(io streams) (cases []lab.Case, unlabelled []string, source string, err error) {
	source = cmp.Or(c.Labels, filepath.Join(c.Cases, lab.LabelsFile))
	labels, err := lab.ReadLabels(source)
	if err != nil {
		return nil, nil, "", hint(err, "'jurat-lab run --help' shows a labels file; nothing was tried")
	}
	cases, unlabelled, err = lab.LoadCases(c.Cases, labels)
	if err != nil {
		return nil, nil, "", hint(err, "mend the cases or take their labels out; nothing was tried")
	}
	if n := len(unlabelled); n > 0 {
		io.note("%s no label and %s not tried: %s", plural.Of(n, "case")+plural.Or(n, " has", " have"), plural.Or(n, "is", "are"), strings.Join(unlabelled, ", "))
	}
	return cases, unlabelled, filepath.Base(source), nil
}

func (c *runCmd) check(config *lab.Config) error {
	switch {
	case c.Repeat < 1 || c.Repeat > 100:
		return fmt.Errorf("--repeat: %d: want 1 to 100", c.Repeat)
	case c.Parallel < 1 || c.Parallel > 256:
		return fmt.Errorf("--parallel: %d cases at a time: want 1 to 256", c.Parallel)
	case c.CostCeiling != nil && !(*c.CostCeiling > 0 && *c.CostCeiling <= 1e6):
		return fmt.Errorf("--cost-ceiling: %v: want US dollars, more than 0 and at most 1000000", *c.CostCeiling)
	case c.CostCeiling != nil:
		config.Ceiling = int64(math.Max(1, math.Floor(*c.CostCeiling*1e6+1e-6)))
	}
	return nil
}

// panels seats the juries that are measured. Each has the name of its file.
func (c *runCmd) panels(io streams) (panels []lab.Panel, err error) {
	files := map[string]*config.File{}
	names := []string{}
	for _, name := range c.PanelFile {
		doc, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("--panel-file: %w", err)
		}
		file, err := config.Parse(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		files[name], names = file, append(names, name)
	}
	if c.Jurors != "" {
		files["rules"], names = &config.File{}, append(names, "rules")
	}
	if len(names) == 0 {
		return nil, hint(errors.New("no panel is named"), "--panel-file FILE names one, --jurors offline the rule jurors")
	}
	if len(files) < len(names) {
		return nil, fmt.Errorf("two panels have the same name: rename a file (%s)", strings.Join(names, ", "))
	}
	for name := range c.Calibration {
		if files[name] == nil {
			return nil, fmt.Errorf("--calibration: there is no panel %q: want one of %s", name, strings.Join(names, ", "))
		}
	}
	for i, name := range names {
		kind := config.Kind("")
		if i == len(c.PanelFile) {
			kind = config.Kind(c.Jurors)
		}
		p, err := c.panel(io, name, files[name], kind)
		if err != nil {
			return nil, fmt.Errorf("panel %s: %w", name, err)
		}
		panels = append(panels, p)
	}
	return panels, nil
}

// panel seats one jury. It refuses rules in the place of models that have no key: the report would be about another jury.
func (c *runCmd) panel(io streams, name string, file *config.File, kind config.Kind) (p lab.Panel, err error) {
	plan, err := config.NewPlan(file, config.Wishes{Jurors: kind}, os.Getenv)
	if err != nil {
		return p, err
	}
	if plan.NoModel {
		return p, hint(fmt.Errorf("no language model of it can be asked, as keys are missing (%s)", strings.Join(plan.MissingKeys(), "; ")),
			"set the keys; a panel of rules says jurors: offline, or is --jurors offline")
	}
	seated, err := panel.New(plan, nil)
	if err != nil {
		return p, err
	}
	settings := seated.Settings()
	unbound, err := stats.WeighBy(c.Calibration[name], &settings)
	if err != nil {
		return p, err
	}
	if len(unbound) > 0 {
		io.note("the calibration does not say on which model and template %s were measured, and a weight holds for those alone", strings.Join(unbound, ", "))
	}
	for _, chair := range plan.Chairs() {
		switch {
		case plan.Offline:
		case chair.Missing != nil:
			io.note("the seat of %s stays empty: %v", chair.ID, chair.Missing)
		case chair.InPlaceOf != "":
			io.note("%s takes the seat of %s as a substitute for %s: %v", chair.Name(), chair.ID, chair.InPlaceOf, chair.Wanted)
		}
	}
	if names := plan.Unpriced(); c.CostCeiling != nil && !plan.Offline && len(names) > 0 {
		return p, fmt.Errorf("--cost-ceiling needs a price for %s: set one under price: or prices: in its file", strings.Join(names, ", "))
	}
	return lab.Panel{Name: name, Settings: settings, Sit: seated.Sit}, settings.Validate()
}

func (c *runCmd) hold(ctx context.Context, io streams, l *lab.Laboratory, config lab.Config, asked lab.Asked) error {
	run, err := l.Hold(ctx, config)
	if err != nil {
		return err
	}
	r := lab.Measure(config, run, asked)
	doc, err := c.write(r, config.Panels)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	c.tellLeft(io, r)
	if c.JSON {
		err = io.machine(doc)
	} else {
		err = io.show(r.Parts(), c.Out)
	}
	if err == nil && len(r.Left) > 0 {
		return errLeft
	}
	return err
}

// write writes report and votes, the report last.
func (c *runCmd) write(r *lab.Report, panels []lab.Panel) (doc []byte, err error) {
	for i := range panels {
		p := &panels[i]
		votes, err := lab.Votes(r.Trials, p)
		if err != nil {
			return nil, err
		}
		if err := atomicfile.Replace(filepath.Join(c.Out, "votes-"+p.Name+".jsonl"), votes, 0o644); err != nil {
			return nil, err
		}
	}
	html, err := lab.Render(r)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Replace(filepath.Join(c.Out, "report.html"), html, 0o644); err != nil {
		return nil, err
	}
	if doc, err = document(r); err != nil {
		return nil, err
	}
	return doc, atomicfile.Replace(filepath.Join(c.Out, "report.json"), doc, 0o644)
}

// tellLeft says what has no verdict, and how to go on.
func (c *runCmd) tellLeft(io streams, r *lab.Report) {
	if len(r.Left) == 0 {
		return
	}
	why := map[string]int{}
	var order []string
	for _, l := range r.Left {
		if why[l.Why]++; why[l.Why] == 1 {
			order = append(order, l.Why)
		}
	}
	for _, reason := range order {
		io.note("%s left without a verdict: %s", plural.Of(why[reason], "trial")+plural.Or(why[reason], " is", " are"), reason)
	}
	if r.Settings.Ceiling > 0 {
		io.note("spent in this laboratory so far: $%.4f of $%.2f", float64(r.Settings.Spent)/1e6, float64(r.Settings.Ceiling)/1e6)
	}
	io.note("hint: the same command goes on with them, and asks no sealed answer again")
}

type labelsCmd struct {
	Out  string `required:"" placeholder:"DIR" help:"A folder for the cases and their labels.json. It must be missing or empty."`
	JSON bool   `name:"json" help:"Print {cases, good, failed, skipped} as JSON."`
}

// Help is shown by 'jurat-lab labels --help'.
func (*labelsCmd) Help() string {
	return `Writes a folder that 'jurat-lab run' takes: each case on which a person decided, as the jury saw it, and the person's decision as its label. A
verdict that a person made safe_pass is good, one that is unsafe_fail failed. The last decision on a trial counts. Cases on which people contradict
each other, or whose evidence was erased, are skipped and named.

Remember when you read figures: the people had seen the verdict, and only disputed cases come before people. This
measures with them:

    jurat-lab run ./decided --jurors offline --out laboratory`
}

func (c *labelsCmd) Run(ctx context.Context, a *app, io streams) error {
	return a.with(ctx, func(i *installation.Installation) error {
		e, err := lab.Export(ctx, i.Ledger, c.Out, io.progress("records read"))
		if err != nil {
			return err
		}
		for _, skipped := range e.Skipped {
			io.note("skipped %s", skipped)
		}
		if e.Cases == 0 {
			return hint(errors.New("people have decided on no trial of this installation whose evidence is there: nothing was written"), "decisions are made at the desk (/reviews) of 'jurat serve'")
		}
		if c.JSON {
			return io.json(e)
		}
		return io.say("%s in %s: %d good, %d failed", plural.Of(e.Cases, "case"), c.Out, e.Good, e.Failed)
	})
}

const aboutVotes = `Votes are JSON Lines: {"item": "42", "juror": "juror-gpt", "vote": "unsafe_fail", "label": "unsafe_fail"}. A vote of null is an
abstention. The label, where the right answer is known, may stand on any line of an item. "confidence" (0 to 1) may stand on each
line, for the method weighted, and "model" and "template" (the digest of the seat's template) may say what gave the vote: weights then
hold for that model and template alone, and no other takes them.`

type calibrateCmd struct {
	Votes string `required:"" placeholder:"FILE" help:"Votes in JSON Lines; - is standard input."`
	Out   string `required:"" placeholder:"FILE" help:"The calibration file to write."`
	JSON  bool   `name:"json" help:"Print the calibration as JSON, too."`
}

// Help is shown by 'jurat-lab calibrate --help'.
func (*calibrateCmd) Help() string {
	return aboutVotes + `

Measured are, on items with a label: each juror's reliability, with a 95 % interval, and the weight that its vote gets (negative for a juror worse than chance, whose vote counts against its position); how the
errors of each pair go together (phi coefficient); and how many independent votes the jurors are worth given that.`
}

func (c *calibrateCmd) Run(io streams) error {
	ballots, err := readVotes(io.in, c.Votes)
	if err != nil {
		return err
	}
	measured, err := stats.Calibrate(ballots)
	if err != nil {
		return hint(err, "put the right answer as \"label\" on a line of each item that has one")
	}
	doc, err := document(measured)
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(c.Out, doc, 0o644); err != nil {
		return err
	}
	if c.JSON {
		return io.machine(doc)
	}
	tell := func(format string, args ...any) { err = errors.Join(err, io.say(format, args...)) }
	tell("%d items with a label, %d choices", measured.Items, measured.Choices)
	for _, j := range measured.Jurors {
		tell("%-20s correct %d of %d (95 %% interval %.2f to %.2f), %d abstentions, weight %.3f",
			j.Juror, j.Correct, j.Votes, j.Low, j.High, j.Abstentions, float64(j.Weight)/stats.Unit)
	}
	for _, pair := range measured.Pairs {
		tell("errors of %s and %s: correlation %+.2f on %d items", pair.A, pair.B, pair.Correlation, pair.Items)
	}
	tell("worth %.2f independent votes", measured.EffectiveVotes)
	if leader := measured.Leader(); leader != "" {
		tell("%s weighs more than all others together: its vote always decides, and to follow it alone is the best that these weights can do", leader)
	}
	return err
}

type aggregateCmd struct {
	Votes       string       `required:"" help:"Votes in JSON Lines; - is standard input."`
	Method      stats.Method `required:"" help:"majority, weighted (by stated confidence) or calibrated (by the log-odds of measured reliability)." enum:"majority,weighted,calibrated"`
	Calibration string       `help:"A calibration file, for the method calibrated. Without one, the labels among the votes are used."`
	JSON        bool         `name:"json" help:"Print {verdicts, accuracy, labelled, correct} as JSON."`
}

// Help is shown by 'jurat-lab aggregate --help'.
func (*aggregateCmd) Help() string {
	return aboutVotes + `

Each item gets one verdict: the choice whose votes weigh most, or null on a tie or if no vote weighs anything. With
labels the accuracy is told; an item without a verdict counts as wrong. For each item, the method calibrated uses weights that were
measured without that item's label, also if they come from a file.

    jurat-lab aggregate --votes votes.jsonl --method calibrated --calibration calibration.json --json`
}

func (c *aggregateCmd) Run(io streams) error {
	ballots, err := readVotes(io.in, c.Votes)
	if err != nil {
		return err
	}
	measured, err := stats.Load(c.Calibration)
	if err != nil {
		return hint(err, "'jurat-lab calibrate' writes such a file")
	}
	verdicts, err := stats.Aggregate(ballots, c.Method, measured)
	if err != nil {
		return hint(err, "measure the jurors with 'jurat-lab calibrate' and give --calibration FILE")
	}
	if c.JSON {
		return io.json(verdicts)
	}
	for _, item := range slices.Sorted(maps.Keys(verdicts.Verdicts)) {
		err = errors.Join(err, io.say("%s\t%s", item, verdicts.Verdicts[item].String()))
	}
	if verdicts.Accuracy != nil {
		io.note("accuracy %.4f: %d of %d labelled items", *verdicts.Accuracy, verdicts.Correct, verdicts.Labelled)
	}
	return err
}

func readVotes(stdin io.Reader, file string) ([]stats.Ballot, error) {
	if file == "-" {
		return stats.Read(stdin)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ballots, err := stats.Read(f)
	fault.While(&err, "%s", file)
	return ballots, err
}
