package lab

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/jsonform"
)

// A Label is what is known of a case. No juror sees it.
type Label struct {
	Failed bool   // what the agent did was wrong
	Kind   string // of failure or of case, such as "injection"; "": not said
	Trade  string // the field in which the agent works, such as "airline"; "": not said
	Source string // who or what decided on the outcome; "": not said
}

// Labels are labels by the names of cases.
type Labels map[string]Label

const (
	maxProblems = 20  // that are told at once
	maxWord     = 200 // bytes of a kind, a trade, a source
)

// LabelsFile is the name of the labels file in a folder of cases.
const LabelsFile = "labels.json"

// ReadLabels reads a labels file.
func ReadLabels(file string) (Labels, error) {
	doc, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading labels: %w", err)
	}
	labels, err := ParseLabels(jsonform.CutMark(doc))
	if err != nil {
		return nil, fmt.Errorf("reading labels: %s: %w", file, err)
	}
	return labels, nil
}

// told is a label in a file. The laboratory ignores the last three members.
type told struct {
	Outcome     *Outcome       `json:"outcome"`
	TaskSuccess *bool          `json:"task_success"`
	Kind        string         `json:"kind"`
	Trade       string         `json:"trade"`
	Source      string         `json:"source"`
	Why         string         `json:"why"`
	Task        jsontext.Value `json:"task"`
	Trial       jsontext.Value `json:"trial"`
}

// ParseLabels reads labels: an object with a member for each case, named as the case's folder. Each has either "outcome", "good" or
// "failed", or "task_success", true or false. It may have "kind", "trade", "source", "why", "task" and "trial". Everything else is a problem.
// The error joins up to 20 problems.
func ParseLabels(doc []byte) (Labels, error) {
	var all map[string]told
	if err := json.Unmarshal(doc, &all, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf(`%w: want {"CASE": {"outcome": "good" or "failed", "kind": "…", "trade": "…"}, …}, with a member for each folder of a case`, evidence.Steady(err))
	}
	labels, problems := Labels{}, []error{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		label, err := all[name].label()
		if !filepath.IsLocal(name) || name == "." || strings.ContainsAny(name, `/\`) || !isWord(name) {
			err = errors.New("want the name of a folder beside the labels, without a path")
		}
		if err != nil && len(problems) < maxProblems {
			problems = append(problems, fmt.Errorf("%q: %w", name, err))
		}
		labels[name] = label
	}
	if len(labels) == 0 {
		problems = append(problems, errors.New("it labels no case"))
	}
	return labels, errors.Join(problems...)
}

func (t told) label() (Label, error) {
	switch {
	case (t.Outcome == nil) == (t.TaskSuccess == nil):
		return Label{}, errors.New(`want "outcome": "good" or "failed", or "task_success": true or false, and not both`)
	case t.Outcome != nil && *t.Outcome != Good && *t.Outcome != Failed:
		return Label{}, fmt.Errorf(`outcome: %q: want "good" or "failed"`, *t.Outcome)
	case !isWord(t.Kind) || !isWord(t.Trade) || !isWord(t.Source):
		return Label{}, fmt.Errorf("want a kind, a trade and a source of at most %d bytes without control characters", maxWord)
	}
	failed := t.Outcome != nil && *t.Outcome == Failed || t.TaskSuccess != nil && !*t.TaskSuccess
	return Label{failed, t.Kind, t.Trade, t.Source}, nil
}

func isWord(text string) bool {
	return len(text) <= maxWord && !strings.ContainsFunc(text, unicode.IsControl)
}
