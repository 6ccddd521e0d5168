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
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/installation"
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

// identify reads the laboratory's id, or draws one for a new folder.
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
