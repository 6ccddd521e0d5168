package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/ledger"
	"jurat/internal/trial"
	"jurat/jury"
)

// decisionSource begins the source of a label that is a person's decision.
const decisionSource = "decision of "

// Exported says what became of a log's decided trials.
type Exported struct {
	Cases   int      `json:"cases"`
	Good    int      `json:"good"`
	Failed  int      `json:"failed"`
	Skipped []string `json:"skipped"` // decided trials without a label, each with the reason
}

// Export writes a folder of cases with labels, from the trials of a log on which people decided: safe_pass is good, unsafe_fail is failed. The
// last decision on a trial counts. If decisions on trials of the same evidence contradict each other, the case is skipped. The folder must be
// missing or empty.
func Export(ctx context.Context, l *ledger.Ledger, dir string, progress func(done, total int64)) (*Exported, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: labels and cases go into a folder of their own", dir)
	}
	e := &exporter{dir: dir, cases: map[string]*exported{}, Exported: Exported{Skipped: []string{}}}
	size, err := l.Size(ctx)
	if err != nil {
		return nil, err
	}
	for r, err := range l.Records(ctx, 0) {
		if err != nil {
			return nil, err
		}
		progress(r.Index+1, size)
		if r.Payload.ActionType == evidence.TrialClosing {
			if err := e.add(ctx, l, r.Payload.ChainID); err != nil {
				return nil, err
			}
		}
	}
	return &e.Exported, e.write()
}

type exporter struct {
	Exported
	dir   string
	order []string // digests of evidence
	cases map[string]*exported
}

type exported struct {
	name, source string
	failed, torn bool
	material     jsontext.Value
}

func (e *exporter) skip(id, format string, args ...any) {
	e.Skipped = append(e.Skipped, id+": "+fmt.Sprintf(format, args...))
}

// add takes a trial if a person decided on it.
func (e *exporter) add(ctx context.Context, l *ledger.Ledger, id string) error {
	chain, err := l.Chain(ctx, id)
	if err != nil {
		return err
	}
	outcome, err := jury.OutcomeOf(chain)
	if err != nil || outcome == nil {
		e.skip(id, "its judgment cannot be read")
		return nil
	}
	switch {
	case outcome.Decision == nil:
		return nil
	case outcome.Decision.Position == "":
		e.skip(id, "the last decision leaves it open")
		return nil
	}
	reopened, err := trial.Reopen(ctx, l, id)
	if errors.Is(err, trial.ErrUnreadable) {
		e.skip(id, "its evidence cannot be read, perhaps because it was erased")
		return nil
	}
	if err != nil {
		return err
	}
	e.keep(id, outcome, reopened.Case.Digest().String(), reopened.Case.Material())
	return nil
}

func (e *exporter) keep(id string, outcome *jury.TrialOutcome, digest string, material []byte) {
	failed := outcome.Failed()
	if before := e.cases[digest]; before != nil {
		if before.torn = before.torn || before.failed != failed; before.torn {
			e.skip(id, "people decided otherwise on the same evidence in %s", before.name)
		}
		return
	}
	e.order = append(e.order, digest)
	e.cases[digest] = &exported{name: id, failed: failed, material: material, source: decisionSource + outcome.Decision.Reviewer}
}

// write writes the labels last: a folder with labels is whole.
func (e *exporter) write() error {
	type label struct {
		Outcome Outcome `json:"outcome"`
		Source  string  `json:"source"`
		Trial   string  `json:"trial"`
	}
	labels := map[string]label{}
	for _, digest := range e.order {
		c := e.cases[digest]
		if c.torn {
			continue
		}
		outcome := Good
		if c.failed {
			outcome = Failed
			e.Failed++
		} else {
			e.Good++
		}
		e.Cases++
		folder := filepath.Join(e.dir, c.name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("writing case: %w", err)
		}
		if err := atomicfile.Create(filepath.Join(folder, materialFile), c.material, 0o644); err != nil {
			return fmt.Errorf("writing case: %w", err)
		}
		labels[c.name] = label{outcome, strings.ToValidUTF8(c.source, "\uFFFD"), c.name}
	}
	if len(labels) == 0 {
		return nil
	}
	doc, err := json.Marshal(labels, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return atomicfile.Create(filepath.Join(e.dir, LabelsFile), append(doc, '\n'), 0o644)
}
