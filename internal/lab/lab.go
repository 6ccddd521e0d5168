// Package lab runs labelled cases through panels, and measures how good their verdicts are.
//
// # A laboratory is a folder
//
//	lab.json      its id, from which the ids of its trials follow
//	data/         an installation of its own: no trial here is in another installation's log
//	report.json   what was measured (Report), with every trial's figures
//	report.html   the same as a page
//	votes-PANEL.jsonl  the jurors' first votes, as 'jurat-lab calibrate' reads them
//
// # The sealed trials are the memory
//
// The id of a trial follows from the laboratory, the panel's settings, the evidence and the number of the repeat. There is no other list of what
// was done. A run that was killed therefore goes on where it stopped: finished trials are read, unfinished ones resumed, and only
// the others asked. A panel whose settings changed has other trials.
//
// # The ceiling is kept before a trial
//
// What was spent is what the sealed answers cost. Once that is the ceiling, no trial begins. Those that are under way end, each within its panel's own
// ceiling, so that no answer is lost.
//
// # The unit is a case
//
// A case that was tried five times is still one case. Every interval counts cases, not trials: a case's part of a share is its mean over
// its trials. So repeating trials makes a figure steadier, and never pretends to more cases than there are.
//
// # What is exact, and what is drawn
//
// Shares have the score interval of Wilson (1927). An area under a curve has the score interval (Newcombe 2006) with the variance of
// Hanley and McNeil (1982); it does not shrink to a point at 0 or 1. Differences between two panels on the same cases have percentile
// intervals of a bootstrap that draws cases, the good and the failed ones separately. Its random numbers come from a stated seed, so the
// same trials give the same interval. All intervals are 95 %.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/trial"
	"jurat/jury"
)

// A Panel is a jury that is measured.
type Panel struct {
	Name     string
	Settings jury.Settings

	// Sit begins a trial, or continues one that has already spent an amount.
	Sit func(spent int64) (jurors []jury.Juror, judge jury.Juror, err error)
}

// digest names the panel by what decides its verdicts.
func (p *Panel) digest() (evidence.Digest, error) {
	doc, err := json.Marshal(p.Settings, json.Deterministic(true))
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("panel %s: %w", p.Name, err)
	}
	return evidence.DigestOf(doc), nil
}

// idFormat is the version of lab.json.
const idFormat = "jurat/laboratory/v1"

// Files and folders of a laboratory.
const (
	idFile     = "lab.json"
	dataFolder = "data"
)

type identity struct {
	Format string `json:"format"`
	ID     string `json:"id"`
}

// A Laboratory is an open folder. Close closes it.
type Laboratory struct {
	dir     string
	id      string
	log     *installation.Installation
	release func()
}

// Open opens a laboratory, or makes one if the folder is missing or empty. It fails if another process is at work in it.
func Open(ctx context.Context, dir string) (*Laboratory, error) {
	id, err := identify(dir)
	if err != nil {
		return nil, err
	}
	log, _, err := installation.OpenOrCreate(ctx, installation.Config{Dir: filepath.Join(dir, dataFolder)})
	if err != nil {
		return nil, fmt.Errorf("opening laboratory: %w", err)
	}
	_, release, err := log.Locks().Lock(ctx, "laboratory")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening laboratory %s: %w", dir, err), log.Close())
	}
	return &Laboratory{dir: dir, id: id, log: log, release: release}, nil
}

// Close closes the laboratory.
func (l *Laboratory) Close() error {
	l.release()
	return l.log.Close()
}

func identify(dir string) (string, error) {
	doc, err := os.ReadFile(filepath.Join(dir, idFile))
	if err == nil {
		var known identity
		if err := json.Unmarshal(doc, &known, json.RejectUnknownMembers(true)); err != nil {
			return "", fmt.Errorf("reading %s: %w", filepath.Join(dir, idFile), evidence.Steady(err))
		}
		if known.Format != idFormat || evidence.CheckRecordID(known.ID) != nil {
			return "", fmt.Errorf("%s: format %q with id %q is not one that this program writes", filepath.Join(dir, idFile), known.Format, known.ID)
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
		return "", errors.Join(err, fmt.Errorf("%s is neither empty nor a laboratory: it has no %s", dir, idFile))
	}
	id, err := evidence.NewRecordID(time.Now(), nil)
	if err != nil {
		return "", err
	}
	doc, err = json.Marshal(identity{idFormat, id})
	if err != nil {
		return "", err
	}
	return id, atomicfile.Create(filepath.Join(dir, idFile), append(doc, '\n'), 0o644)
}

// A cell is one trial to hold: a panel, a case and a repeat.
type cell struct {
	panel  *Panel
	on     *Case
	repeat int // from 1
	id     string
}

func (c *cell) trial() string { return evidence.TrialPrefix + c.id }

// plan lists the trials, in units: one case in one repeat, by each panel in turn. So a run that stops early has each case by all panels.
func (l *Laboratory) plan(panels []Panel, cases []Case, repeat int) (units [][]*cell, err error) {
	digests := make([]evidence.Digest, len(panels))
	seen := map[evidence.Digest]string{}
	for i := range panels {
		if digests[i], err = panels[i].digest(); err != nil {
			return nil, err
		}
		if twin, twice := seen[digests[i]]; twice {
			return nil, fmt.Errorf("panels %s and %s have the same settings: repeat one of them instead", twin, panels[i].Name)
		}
		seen[digests[i]] = panels[i].Name
	}
	for n := range repeat {
		for c := range cases {
			var unit []*cell
			for p := range panels {
				id := evidence.RecordIDFor(l.id, "jurat laboratory", l.id, digests[p].String(), cases[c].On.Digest().String(), strconv.Itoa(n+1))
				unit = append(unit, &cell{panel: &panels[p], on: &cases[c], repeat: n + 1, id: id})
			}
			units = append(units, unit)
		}
	}
	return units, nil
}

// Config says what is measured.
type Config struct {
	Panels   []Panel
	Cases    []Case
	Repeat   int   // trials of each case by each panel; 0: 1
	Parallel int   // cases at a time; 0: 1
	Ceiling  int64 // no trial begins once all sealed answers of this laboratory have cost so many millionths of a US dollar; 0: none

	Progress func(done, total int64) // called after each trial, by one goroutine at a time; nil: not told
}

// A Run is what a laboratory has of the trials that were asked for.
type Run struct {
	Trials  []Trial
	Left    []Left
	Earlier int    // of Trials, those that had been finished before this run
	Spent   int64  // on all answers that were ever sealed in this laboratory
	Stopped string // why the run ended early; "": it did not
}

// Left is a trial without a verdict.
type Left struct {
	Panel  string `json:"panel"`
	Case   string `json:"case"`
	Repeat int    `json:"repeat"`
	Why    string `json:"why"`
}

type runner struct {
	*Laboratory
	config Config

	mu    sync.Mutex // held while the fields below are read or written
	run   Run
	done  int64
	total int64
}

// Hold holds the trials that are missing, and reads all. If ctx ends or the ceiling is reached, it returns what there is, and what is left;
// ctx's end is not an error. It returns an error if the laboratory's own records cannot be read.
func (l *Laboratory) Hold(ctx context.Context, c Config) (*Run, error) {
	c.Repeat, c.Parallel = max(1, c.Repeat), max(1, c.Parallel)
	units, err := l.plan(c.Panels, c.Cases, c.Repeat)
	if err != nil {
		return nil, err
	}
	r := &runner{Laboratory: l, config: c, total: int64(len(units) * len(c.Panels))}
	if r.run.Spent, err = l.spent(ctx); err != nil {
		return nil, err
	}
	r.holdAll(ctx, units)
	order := map[string]int{}
	for i, unit := range units {
		for j, c := range unit {
			order[c.trial()] = j*len(units) + i
		}
	}
	r.run.sort(order)
	if r.run.Spent, err = l.spent(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	switch {
	case ctx.Err() != nil:
		r.run.Stopped = leftInterrupted
	case len(r.run.Left) > 0 && r.full():
		r.run.Stopped = leftCeiling
	}
	return &r.run, nil
}

func (l *Laboratory) spent(ctx context.Context) (sum int64, err error) {
	for record, err := range l.log.Ledger.Records(ctx, 0) {
		if err != nil {
			return 0, err
		}
		effort, err := jury.ReadEffort(record.Payload.Metadata)
		if err != nil {
			return 0, fmt.Errorf("record %s: %w", record.Payload.RecordID, err)
		}
		for _, attempt := range effort.Attempts {
			sum += attempt.Cost
		}
	}
	return sum, nil
}

func (r *runner) holdAll(ctx context.Context, units [][]*cell) {
	todo := make(chan []*cell)
	var working sync.WaitGroup
	for range min(r.config.Parallel, len(units)) {
		working.Go(func() {
			for unit := range todo {
				for _, c := range unit {
					r.one(ctx, c)
				}
			}
		})
	}
	for _, unit := range units {
		todo <- unit
	}
	close(todo)
	working.Wait()
}

const (
	leftInterrupted = "the run was interrupted"
	leftCeiling     = "the ceiling on cost is reached"
)

var errCeiling = errors.New(leftCeiling)

func (r *runner) one(ctx context.Context, c *cell) {
	found, cost, earlier, err := r.hold(ctx, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.run.Spent += cost
	if err != nil {
		why := evidence.Steady(err).Error()
		if ctx.Err() != nil {
			why = leftInterrupted
		}
		r.run.Left = append(r.run.Left, Left{Panel: c.panel.Name, Case: c.on.Name, Repeat: c.repeat, Why: why})
		return
	}
	r.run.Trials = append(r.run.Trials, *found)
	if earlier {
		r.run.Earlier++
	}
	if r.config.Progress != nil {
		r.config.Progress(r.done, r.total)
	}
}

func (r *runner) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.Ceiling > 0 && r.run.Spent >= r.config.Ceiling
}

// hold returns what became of a trial, what it cost in this run, and whether it was over before.
func (r *runner) hold(ctx context.Context, c *cell) (found *Trial, cost int64, earlier bool, err error) {
	reopened, err := trial.Reopen(context.WithoutCancel(ctx), r.log.Ledger, c.trial())
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		reopened = nil
	case err != nil:
		return nil, 0, false, err
	case reopened.State.Finished:
		found, err = observe(c, reopened.Records)
		return found, 0, true, err
	}
	if r.full() {
		return nil, 0, false, errCeiling
	}
	if ctx.Err() != nil {
		return nil, 0, false, ctx.Err()
	}
	before := int64(0)
	if reopened != nil {
		before = reopened.Spent
	}
	held, err := r.try(ctx, c, reopened)
	if err != nil { // what was answered until then has its price
		if again, unread := trial.Reopen(context.WithoutCancel(ctx), r.log.Ledger, c.trial()); unread == nil {
			cost = again.Spent - before
		}
		return nil, cost, false, err
	}
	if found, err = observe(c, held.Records); err != nil {
		return nil, 0, false, err
	}
	return found, found.Cost - before, false, nil
}

func (r *runner) try(ctx context.Context, c *cell, from *trial.Reopened) (*trial.Trial, error) {
	spent := int64(0)
	if from != nil {
		spent = from.Spent
	}
	jurors, judge, err := c.panel.Sit(spent)
	if err != nil {
		return nil, err
	}
	config := trial.Config{Ledger: r.log.Ledger, Keys: r.log.Keys, Locks: r.log.Locks(), ID: c.id, Settings: c.panel.Settings, Jurors: jurors, Judge: judge}
	if from == nil {
		return trial.Run(ctx, config, c.on.On)
	}
	if err := r.log.Vouch(ctx, from.Records...); err != nil {
		return nil, err
	}
	return trial.Resume(ctx, config, from)
}
