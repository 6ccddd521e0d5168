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
	"jurat/internal/stats"
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

// decided is a case on which a person decided, as labels.json has it.
type decided struct {
	Outcome  Outcome `json:"outcome"`
	Source   string  `json:"source"`
	Trial    string  `json:"trial"`
	material []byte
}

// Export writes a folder of cases with labels, from the trials of a log on which people decided: safe_pass is good, unsafe_fail is failed. The
// last decision on a trial counts. If decisions on trials of the same evidence contradict each other, the case is skipped. The folder must be
// missing or empty.
func Export(ctx context.Context, l *ledger.Ledger, dir string, progress func(done, total int64)) (*Exported, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: labels and cases go into a folder of their own", dir)
	}
	e, first, labels := &Exported{Skipped: []string{}}, map[evidence.Digest]*decided{}, map[string]*decided{}
	for chain, err := range stats.Closed(ctx, l, progress) {
		if err != nil {
			return nil, err
		}
		id := chain[0].Payload.ChainID
		one, on, why, err := decidedOn(ctx, l, id, chain)
		before := first[on]
		switch {
		case err != nil:
			return nil, err
		case before != nil && one != nil && before.Outcome != one.Outcome:
			delete(labels, before.Trial)
			why = "people decided otherwise on the same evidence in " + before.Trial
		case before == nil && one != nil:
			first[on], labels[id] = one, one
		}
		if why != "" {
			e.Skipped = append(e.Skipped, id+": "+why)
		}
	}
	return e, e.write(dir, labels)
}

// decidedOn returns what a person decided on a trial, and the digest of its evidence. It returns nil if nobody decided, and why a decision gives no label.
func decidedOn(ctx context.Context, l *ledger.Ledger, id string, chain []*evidence.Record) (one *decided, on evidence.Digest, why string, err error) {
	outcome, err := jury.OutcomeOf(chain)
	switch {
	case err != nil || outcome == nil:
		return nil, on, "its judgment cannot be read", nil
	case outcome.Decision == nil:
		return nil, on, "", nil
	case outcome.Decision.Position == "":
		return nil, on, "the last decision leaves it open", nil
	}
	reopened, err := trial.Reopen(ctx, l, id)
	if errors.Is(err, trial.ErrUnreadable) {
		return nil, on, "its evidence cannot be read, perhaps because it was erased", nil
	}
	if err != nil {
		return nil, on, "", err
	}
	one = &decided{Label{Failed: outcome.Failed()}.outcome(), strings.ToValidUTF8(decisionSource+outcome.Decision.Reviewer, "\uFFFD"), id, reopened.Case.Material()}
	return one, reopened.Case.Digest(), "", nil
}

// write writes the labels last: a folder with labels is whole.
func (e *Exported) write(dir string, labels map[string]*decided) error {
	if len(labels) == 0 {
		return nil
	}
	for name, one := range labels {
		e.Cases++
		if one.Outcome == Failed {
			e.Failed++
		} else {
			e.Good++
		}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return fmt.Errorf("writing case: %w", err)
		}
		if err := atomicfile.Create(filepath.Join(dir, name, materialFile), one.material, 0o644); err != nil {
			return fmt.Errorf("writing case: %w", err)
		}
	}
	doc, err := json.Marshal(labels, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return atomicfile.Create(filepath.Join(dir, LabelsFile), append(doc, '\n'), 0o644)
}
