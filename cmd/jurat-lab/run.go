package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"jurat/evidence"
	seats "jurat/internal/court/panel"
	"jurat/internal/court/stats"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/jury"
)

type runCmd struct {
	Cases       string            `arg:"" name:"folder" help:"A folder of cases: each a folder with agent-card.json and conversation.json."`
	Labels      string            `placeholder:"FILE" help:"What is known of each case, see above. Default: labels.json in the folder of cases."`
	PanelFile   []string          `placeholder:"FILE" help:"A panel, as for 'jurat trial --config'. May be repeated: panels try the same cases." sep:"none"`
	Jurors      string            `placeholder:"offline" help:"offline: measure the rule jurors, too, as the panel 'rules'." enum:",offline" default:""`
	Calibration map[string]string `placeholder:"PANEL=FILE" help:"The calibration file of a panel whose method is calibrated."`
	Out         string            `required:"" placeholder:"DIR" help:"The folder for trials, report.json, report.html and votes. A broken-off run goes on there."`
	Repeat      int               `placeholder:"N" help:"Tries of each case. Shows how steady verdicts are, and what one juror asked as often does." default:"1"`
	Parallel    int               `placeholder:"N" help:"How many cases are tried at a time." default:"1"`
	CostCeiling *float64          `placeholder:"USD" help:"Begin no trial once all in this laboratory have cost so much. Those under way end. Default: no limit."`
	Seed        uint64            `placeholder:"N" help:"Of the bootstrap that makes intervals of differences." default:"1"`
	JSON        bool              `name:"json" help:"Print the report as JSON."`
}

func (*runCmd) Help() string {
	return `Tries cases whose outcome is known, by one or more panels, and reports how good the verdicts are. labels.json says what is known, and no juror sees it:

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

const samples = 2000

func (c *runCmd) Run(ctx context.Context, std streams) error {
	o := &order{repeat: c.Repeat, parallel: c.Parallel, draw: stats.Bootstrap{Seed: c.Seed, Samples: samples}, progress: std.progress("trials")}
	err := c.load(std, o)
	if err == nil {
		err = c.check(o)
	}
	if err == nil {
		o.panels, err = c.panels(std)
	}
	if err != nil {
		return err
	}
	l, err := openLaboratory(ctx, c.Out)
	if err != nil {
		return hint(err, "--out takes a folder that is missing, empty, or a laboratory; one process works in it at a time")
	}
	err = c.measure(ctx, std, l, o)
	l.release()
	return cmp.Or(l.log.Close(), err) // a failed close is not hidden by trials that are left
}

func (c *runCmd) load(std streams, o *order) error {
	file := cmp.Or(c.Labels, filepath.Join(c.Cases, labelsFile))
	doc, err := readFile(file)
	labels := Labels(nil)
	if err == nil {
		labels, err = parseLabels(doc)
		fault.While(&err, "%s", file)
	}
	if fault.While(&err, "reading labels"); err != nil {
		return hint(err, "'jurat-lab run --help' shows a labels file; nothing was tried")
	}
	if o.cases, o.unlabelled, err = loadCases(c.Cases, labels); err != nil {
		return hint(err, "mend the cases or take their labels out; nothing was tried")
	}
	if n := len(o.unlabelled); n > 0 {
		std.note("%s no label and %s not tried: %s", plural.Of(n, "case")+plural.Or(n, " has", " have"), plural.Or(n, "is", "are"), strings.Join(o.unlabelled, ", "))
	}
	o.source = filepath.Base(file)
	return nil
}

func (c *runCmd) check(o *order) error {
	switch {
	case c.Repeat < 1 || c.Repeat > 100:
		return fmt.Errorf("--repeat: %d: want 1 to 100", c.Repeat)
	case c.Parallel < 1 || c.Parallel > 256:
		return fmt.Errorf("--parallel %d: want 1 to 256", c.Parallel)
	case c.CostCeiling != nil && !(*c.CostCeiling > 0 && *c.CostCeiling <= 1e6):
		return fmt.Errorf("--cost-ceiling: %v: want US dollars above 0, up to 1000000", *c.CostCeiling)
	case c.CostCeiling != nil:
		o.ceiling = int64(math.Max(1, math.Floor(*c.CostCeiling*1e6+1e-6)))
	}
	return nil
}

// panels seats the juries that are measured. Each has the name of its file.
func (c *runCmd) panels(std streams) (panels []panel, err error) {
	files, names := map[string]*seats.File{}, []string{}
	for _, path := range c.PanelFile {
		doc, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("--panel-file: %w", err)
		}
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if files[name], err = seats.Parse(doc); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		names = append(names, name)
	}
	if c.Jurors != "" {
		files["rules"], names = &seats.File{}, append(names, "rules")
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
		kind := seats.Kind("")
		if i == len(c.PanelFile) {
			kind = seats.Kind(c.Jurors)
		}
		p, err := c.panel(std, name, files[name], kind)
		if err != nil {
			return nil, fmt.Errorf("panel %s: %w", name, err)
		}
		if twin := slices.IndexFunc(panels, func(other panel) bool { return other.digest == p.digest }); twin >= 0 {
			return nil, fmt.Errorf("panels %s and %s have the same settings: repeat one of them instead", panels[twin].name, name)
		}
		panels = append(panels, p)
	}
	return panels, nil
}

// panel seats one jury. It refuses rules in the place of models that have no key: the report would be about another jury.
func (c *runCmd) panel(std streams, name string, file *seats.File, kind seats.Kind) (p panel, err error) {
	plan, err := seats.NewPlan(file, seats.Wishes{Jurors: kind}, os.Getenv)
	if err != nil {
		return p, err
	}
	if plan.NoModel {
		return p, hint(fmt.Errorf("no language model of it can be asked, as keys are missing (%s)", strings.Join(plan.MissingKeys(), "; ")),
			"set the keys; a panel of rules says jurors: offline, or is --jurors offline")
	}
	seated, err := seats.New(plan, nil)
	if err != nil {
		return p, err
	}
	settings := seated.Settings()
	unbound, err := stats.WeighBy(c.Calibration[name], &settings)
	if err != nil {
		return p, err
	}
	if len(unbound) > 0 {
		std.note("the calibration does not say on which model and template %s were measured, and a weight holds for those alone", strings.Join(unbound, ", "))
	}
	for _, chair := range plan.Chairs() {
		switch {
		case plan.Offline:
		case chair.Missing != nil:
			std.note("the seat of %s stays empty: %v", chair.ID, chair.Missing)
		case chair.InPlaceOf != "":
			std.note("%s takes the seat of %s as a substitute for %s: %v", chair.Name(), chair.ID, chair.InPlaceOf, chair.Wanted)
		}
	}
	if names := plan.Unpriced(); c.CostCeiling != nil && !plan.Offline && len(names) > 0 {
		return p, fmt.Errorf("--cost-ceiling needs a price for %s: set one under price: or prices: in its file", strings.Join(names, ", "))
	}
	doc, err := json.Marshal(settings, json.Deterministic(true))
	return panel{name, settings, evidence.DigestOf(doc), seated.Sit}, cmp.Or(err, settings.Validate())
}

func (c *runCmd) measure(ctx context.Context, std streams, l *laboratory, o *order) error {
	r, err := l.hold(ctx, o)
	if err != nil {
		return err
	}
	r.measure(o)
	if err := c.write(r, o.panels); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	c.tellLeft(std, r)
	err = std.answer(c.JSON, r, func(t *sheet) { t.parts(r.parts(), c.Out) })
	if err == nil && len(r.Left) > 0 {
		return errLeft
	}
	return err
}

// write writes report and votes, the report last.
func (c *runCmd) write(r *Report, panels []panel) error {
	put := func(name string, content []byte, err error) error {
		if err != nil {
			return err
		}
		return atomicfile.Replace(filepath.Join(c.Out, name), content, 0o644)
	}
	for i := range panels {
		votes, err := votesOf(r.Trials, &panels[i])
		if err := put("votes-"+panels[i].name+".jsonl", votes, err); err != nil {
			return err
		}
	}
	html, err := render(r)
	if err := put("report.html", html, err); err != nil {
		return err
	}
	doc, err := document(r)
	return put("report.json", doc, err)
}

func (c *runCmd) tellLeft(std streams, r *Report) {
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
		std.note("%s left without a verdict: %s", plural.Of(why[reason], "trial")+plural.Or(why[reason], " is", " are"), reason)
	}
	if r.Settings.Ceiling > 0 {
		std.note("spent in this laboratory so far: $%.4f of $%.2f", float64(r.Settings.Spent)/1e6, float64(r.Settings.Ceiling)/1e6)
	}
	std.note("hint: the same command goes on with them, and asks no sealed answer again")
}

type order struct {
	panels     []panel
	cases      []Case
	unlabelled []string // cases that are not tried
	source     string   // the labels file
	repeat     int      // trials of each case by each panel
	parallel   int      // cases at a time
	ceiling    int64    // no trial begins once all answers that were ever sealed in the laboratory have cost so many millionths of a US dollar; 0: none
	draw       stats.Bootstrap
	progress   func(done, total int64) // called after each trial, by one goroutine at a time
}

// A panel is a jury that is measured.
type panel struct {
	name     string
	settings jury.Settings
	digest   evidence.Digest // of what decides its verdicts

	// sit begins a trial, or continues one that has already spent an amount.
	sit func(on *subject.Case, spent int64) (jurors []jury.Juror, judge jury.Juror)
}

// idFormat is the version of lab.json.
const idFormat = "jurat/laboratory/v1"

type identity struct {
	Format string `json:"format"`
	ID     string `json:"id"`
}

type laboratory struct {
	id      string
	log     *installation.Installation
	release func()

	mu      sync.Mutex // held while the fields below are read or written
	counted int64      // how many records of the log have their costs in spent
	spent   int64
	done    int64 // trials of this run
}

// openLaboratory opens a laboratory, or makes one if the folder is missing or empty. It fails if another process is at work in it.
func openLaboratory(ctx context.Context, dir string) (*laboratory, error) {
	id, err := identify(dir)
	if err != nil {
		return nil, err
	}
	log, _, err := installation.OpenOrCreate(ctx, installation.Config{Dir: filepath.Join(dir, "data")})
	if err != nil {
		return nil, fmt.Errorf("opening laboratory: %w", err)
	}
	_, release, err := log.Locks.Lock(ctx, "laboratory")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening laboratory %s: %w", dir, err), log.Close())
	}
	return &laboratory{id: id, log: log, release: release}, nil
}

func identify(dir string) (string, error) {
	file := filepath.Join(dir, "lab.json")
	doc, err := os.ReadFile(file)
	if err == nil {
		var known identity
		if err := json.Unmarshal(doc, &known, json.RejectUnknownMembers(true)); err != nil {
			return "", fmt.Errorf("reading %s: %w", file, evidence.Steady(err))
		}
		if known.Format != idFormat || evidence.CheckRecordID(known.ID) != nil {
			return "", fmt.Errorf("%s: format %q with id %q is not one that this program writes", file, known.Format, known.ID)
		}
		return known.ID, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("opening laboratory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making laboratory: %w", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return "", errors.Join(err, fmt.Errorf("%s is neither empty nor a laboratory: it has no lab.json", dir))
	}
	id, err := evidence.NewRecordID(time.Now(), nil)
	if err == nil {
		doc, err = json.Marshal(identity{idFormat, id})
	}
	if err != nil {
		return "", err
	}
	return id, atomicfile.Create(file, append(doc, '\n'), 0o644)
}

// A cell is one trial to hold, and what became of it.
type cell struct {
	panel  *panel
	on     *Case
	repeat int // from 1
	id     string

	found   *Trial // nil: there is no verdict
	earlier bool   // it had been finished before this run
	why     string // there is no verdict
}

func (c *cell) trial() string { return evidence.TrialPrefix + c.id }

// plan lists the trials, in units: one case in one repeat, by each panel in turn. So a run that stops early has each case by all panels.
func (l *laboratory) plan(o *order) (units [][]*cell) {
	for n := range o.repeat {
		for i := range o.cases {
			unit, on := make([]*cell, len(o.panels)), &o.cases[i]
			for j := range unit {
				p := &o.panels[j]
				unit[j] = &cell{panel: p, on: on, repeat: n + 1,
					id: evidence.RecordIDFor(l.id, "jurat laboratory", l.id, p.digest.String(), on.On.Digest().String(), strconv.Itoa(n+1))}
			}
			units = append(units, unit)
		}
	}
	return units
}

const (
	leftInterrupted = "the run was interrupted"
	leftCeiling     = "the ceiling on cost is reached"
)

var errCeiling = errors.New(leftCeiling)

// hold holds the trials that are missing, and reads all. If ctx ends or the ceiling is reached, the report has what there is, and what is left;
// ctx's end is not an error. It returns an error if the laboratory's own records cannot be read.
func (l *laboratory) hold(ctx context.Context, o *order) (*Report, error) {
	units := l.plan(o)
	var work errgroup.Group
	work.SetLimit(o.parallel)
	for _, unit := range units {
		work.Go(func() error {
			for _, c := range unit {
				l.one(ctx, o, c, int64(len(units)*len(unit)))
			}
			return nil
		})
	}
	if err := errors.Join(work.Wait(), l.count(context.WithoutCancel(ctx))); err != nil {
		return nil, err
	}
	r := o.report()
	for j := range o.panels {
		for _, unit := range units {
			r.add(unit[j])
		}
	}
	switch r.Settings.Spent = l.spent; {
	case ctx.Err() != nil:
		r.Settings.Stopped = leftInterrupted
	case len(r.Left) > 0 && o.ceiling > 0 && l.spent >= o.ceiling:
		r.Settings.Stopped = leftCeiling
	}
	return r, nil
}

// count adds what the answers cost that were sealed since it was called last.
func (l *laboratory) count(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for record, err := range l.log.Ledger.Records(ctx, l.counted) {
		if err != nil {
			return err
		}
		effort, err := jury.ReadEffort(record.Payload.Metadata)
		if err != nil {
			return fmt.Errorf("record %s: %w", record.Payload.RecordID, err)
		}
		var bill jury.Bill
		bill.Add(effort)
		l.spent += bill.Cost
		l.counted = record.Index + 1
	}
	return nil
}

func (l *laboratory) afford(ctx context.Context, ceiling int64) error {
	if ceiling == 0 {
		return ctx.Err()
	}
	err := l.count(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.spent >= ceiling {
		err = errCeiling
	}
	return cmp.Or(ctx.Err(), err)
}

func (l *laboratory) one(ctx context.Context, o *order, c *cell, total int64) {
	var err error
	c.found, err = l.try(ctx, o, c)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done++
	switch {
	case err == nil:
		o.progress(l.done, total)
	case ctx.Err() != nil:
		c.why = leftInterrupted
	default:
		c.why = evidence.Steady(err).Error()
	}
}

// try reads a trial that is over, continues one that is not, or begins it.
func (l *laboratory) try(ctx context.Context, o *order, c *cell) (*Trial, error) {
	t, err := trial.Reopen(context.WithoutCancel(ctx), l.log.Ledger, c.trial())
	begins := errors.Is(err, ledger.ErrNotFound)
	if err == nil && t.Over {
		c.earlier = true
		return observe(c, t)
	}
	if err != nil && !begins {
		return nil, err
	}
	if err := l.afford(ctx, o.ceiling); err != nil {
		return nil, err
	}
	config := trial.Config{Ledger: l.log.Ledger, Keys: l.log.Keys, Locks: l.log.Locks, ID: c.id, Settings: c.panel.settings}
	if begins {
		config.Jurors, config.Judge = c.panel.sit(c.on.On, 0)
		t, err = trial.Run(ctx, config, c.on.On)
	} else {
		t, err = trial.Resume(ctx, config, t.ID, func(t *trial.Trial, config *trial.Config) error {
			config.Jurors, config.Judge = c.panel.sit(t.Case, t.Bill.Cost)
			return l.log.Vouch(ctx, t.Records...)
		})
	}
	if err != nil {
		return nil, err
	}
	return observe(c, t)
}
