package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/court/stats"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/log/ledger"
	"jurat/jury"
)

type Case struct {
	Name string
	On   *subject.Case
	Label
}

// loadCases reads a folder of cases with their labels. Folders without a label are returned by name: they are not tried, because nothing could be
// measured on them. The error joins all problems: a label without a case, a case that cannot be read, two cases with the same evidence.
func loadCases(folder string, labels Labels) (cases []Case, unlabelled []string, err error) {
	var problems []error
	seen := map[evidence.Digest]string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		on, err := loadCase(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("it has a label, and there is no such folder in %s", folder)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("case %s: %w", name, err))
			continue
		}
		if twin, twice := seen[on.Digest()]; twice {
			problems = append(problems, fmt.Errorf("case %s: it holds the same evidence as %s: a case counts once, so remove one of them", name, twin))
			continue
		}
		seen[on.Digest()] = name
		cases = append(cases, Case{Name: name, On: on, Label: labels[name]})
	}
	if len(problems) > maxProblems {
		problems = append(problems[:maxProblems], fmt.Errorf("and %d more problems of this kind", len(problems)-maxProblems))
	}
	if unlabelled, err = others(folder, labels); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, nil, err
	}
	return cases, unlabelled, nil
}

func others(folder string, labels Labels) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading cases: %w", err)
	}
	for _, entry := range entries {
		if _, labelled := labels[entry.Name()]; labelled || !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		for _, file := range []string{subject.ConversationFile, materialFile} {
			if _, err := os.Stat(filepath.Join(folder, entry.Name(), file)); err == nil {
				names = append(names, entry.Name())
				break
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// materialFile holds the evidence of a case that was exported from a log, exactly as its trial had it.
const materialFile = "material.json"

// loadCase reads a case's folder: card and conversation, or the evidence of a trial.
func loadCase(dir string) (on *subject.Case, err error) {
	info, err := os.Lstat(filepath.Join(dir, materialFile))
	if err != nil {
		return subject.Load(dir)
	}
	if !info.Mode().IsRegular() || info.Size() > 2*subject.MaxFile+64 {
		return nil, fmt.Errorf("%s: want a regular file of at most %d MiB (links are not followed)", materialFile, 2*subject.MaxFile>>20)
	}
	doc, err := os.ReadFile(filepath.Join(dir, materialFile))
	if err != nil {
		return nil, fmt.Errorf("reading case: %w", err)
	}
	canonical, err := evidence.Canonical(doc)
	if err == nil {
		on, err = subject.Parse(canonical)
	}
	fault.While(&err, materialFile)
	return on, err
}

type Outcome string

const (
	Good   Outcome = "good"
	Failed Outcome = "failed" // what the agent did was wrong
)

// A Label is what is known of a case. No juror sees it.
type Label struct {
	Outcome Outcome `json:"-"`
	Kind    string  `json:"kind"`   // of failure or of case, such as "injection"; "": not said
	Trade   string  `json:"trade"`  // the field in which the agent works, such as "airline"; "": not said
	Source  string  `json:"source"` // who or what decided on the outcome; "": not said
}

type Labels map[string]Label

const (
	maxProblems = 20  // that are told at once
	maxWord     = 200 // bytes of a kind, a trade, a source
)

const labelsFile = "labels.json"

// told is a label in a file. The laboratory ignores the last three members.
type told struct {
	Label
	Outcome     *Outcome       `json:"outcome"`
	TaskSuccess *bool          `json:"task_success"`
	Why         string         `json:"why"`
	Task        jsontext.Value `json:"task"`
	Trial       jsontext.Value `json:"trial"`
}

// parseLabels reads labels: an object with a member for each case, named as the case's folder. Each has either "outcome" or "task_success", and may
// have "kind", "trade", "source", "why", "task" and "trial". Everything else is a problem. The error joins up to 20 problems.
func parseLabels(doc []byte) (Labels, error) {
	var all map[string]told
	if err := json.Unmarshal(doc, &all, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf(`%w: want {"CASE": {"outcome": "good" or "failed", "kind": "…", "trade": "…"}, …}, a member for each case`, evidence.Steady(err))
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
	if t.Label.Outcome = Good; t.Outcome != nil && *t.Outcome == Failed || t.TaskSuccess != nil && !*t.TaskSuccess {
		t.Label.Outcome = Failed
	}
	return t.Label, nil
}

func isWord(text string) bool {
	return len(text) <= maxWord && !strings.ContainsFunc(text, unicode.IsControl)
}

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

// export writes cases with labels into a missing or empty folder, from the trials on which people decided: safe_pass is good, unsafe_fail is failed.
// The last decision on a trial counts. If decisions on trials of the same evidence contradict each other, the case is skipped.
func export(ctx context.Context, l *ledger.Ledger, dir string, progress func(done, total int64)) (*Exported, error) {
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
	one = &decided{Good, strings.ToValidUTF8(decisionSource+outcome.Decision.Reviewer, "\uFFFD"), id, reopened.Case.Material()}
	if outcome.Failed() {
		one.Outcome = Failed
	}
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
		err := os.MkdirAll(filepath.Join(dir, name), 0o755)
		if err == nil {
			err = atomicfile.Create(filepath.Join(dir, name, materialFile), one.material, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing case: %w", err)
		}
	}
	doc, err := document(labels)
	if err != nil {
		return err
	}
	return atomicfile.Create(filepath.Join(dir, labelsFile), doc, 0o644)
}

// A Trial is what the records of one trial say, beside what is known of its case.
type Trial struct {
	Panel   string  `json:"panel"`
	Case    string  `json:"case"`
	Repeat  int     `json:"repeat"` // from 1
	ID      string  `json:"id"`     // of its chain in the laboratory's log
	Outcome Outcome `json:"outcome"`
	Kind    string  `json:"kind,omitzero"`
	Trade   string  `json:"trade,omitzero"`
	Length  int     `json:"messages"` // of the conversation

	Position    jury.Position `json:"position"`
	Score       int           `json:"score"`
	Degraded    bool          `json:"degraded"`
	AfterPhase1 jury.Position `json:"afterPhase1"` // the majority's
	AfterTalk   jury.Position `json:"afterTalk"`
	Rounds      int           `json:"rounds"`
	Changes     int           `json:"changes"` // of positions, in the rounds

	Alone    []Voice `json:"alone"` // in phase 1, by seat
	Final    []Voice `json:"final"` // the last votes, by seat, whichever the method counted
	Findings []Found `json:"findings"`

	Answers      int   `json:"answers"` // of jurors and the judge
	Calls        int   `json:"calls"`
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	Cost         int64 `json:"costMicroUSD"`
	Waited       int64 `json:"waitedMillis"` // for the slowest answer of each phase and round

	mean     float64 // the score, where averaged is set: of several answers of one juror
	averaged bool
}

type Voice struct {
	Juror      string        `json:"juror"`
	Position   jury.Position `json:"position,omitzero"` // "": it was absent, or a stand-in spoke for it
	Score      int           `json:"score"`
	Confidence float64       `json:"confidence"`
	Abstained  bool          `json:"abstained,omitzero"` // asked again, it took another position
}

// Found is a finding with a quotation that stands in the evidence.
type Found struct {
	Rule     string        `json:"rule"`
	Severity jury.Severity `json:"severity"`
	Juror    string        `json:"juror"`
	Axis     string        `json:"axis"`
}

func observe(c *cell, held *trial.Trial) (*Trial, error) {
	result, err := held.View.Result()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.trial(), err)
	}
	held.Check(c.on.On)
	t := &Trial{Panel: c.panel.name, Case: c.on.Name, Repeat: c.repeat, ID: c.trial(), Outcome: c.on.Outcome, Kind: c.on.Kind, Trade: c.on.Trade,
		Length: len(c.on.On.Messages), Position: result.FinalVerdict, Score: result.FinalScore, Degraded: result.Degraded,
		AfterPhase1: result.Phase1Verdict, AfterTalk: result.DiscussionVerdict, Rounds: result.TotalRounds, Changes: len(result.Changes),
		Findings: []Found{}, Calls: held.Bill.Calls, InputTokens: held.Bill.InputTokens, OutputTokens: held.Bill.OutputTokens, Cost: held.Bill.Cost}
	t.votes(result, held.Votes.AfterDiscussion)
	t.said(held.Said)
	return t, nil
}

// votes takes each seat's first and last vote. talked are the votes after the discussion; nil: there was none.
func (t *Trial) votes(r *jury.Result, talked *jury.Ballot) {
	last := r.Phase3Judgment.Votes
	if talked != nil { // the method may count the votes before the discussion
		last = talked.Votes
	}
	for _, vote := range last {
		alone, final := Voice{Juror: vote.JurorID, Abstained: slices.Contains(r.Abstentions, vote.JurorID)}, Voice{Juror: vote.JurorID, Abstained: vote.Abstained}
		for _, e := range r.Phase1Evaluations {
			if e.JurorID == vote.JurorID && !e.Fallback {
				alone.Position, alone.Score, alone.Confidence = e.Position, e.TotalScore, e.Confidence
			}
		}
		if vote.Position != nil && !vote.Fallback && !vote.Abstained {
			final.Position, final.Score, final.Confidence = *vote.Position, vote.TotalScore, vote.Confidence
		}
		t.Alone, t.Final = append(t.Alone, alone), append(t.Final, final)
	}
}

func (t *Trial) said(all []*trial.Said) {
	type moment struct {
		round int
		kind  string
	}
	slowest := map[moment]int64{}
	for _, s := range all {
		if _, absent := s.Body.(*jury.Absent); !absent {
			t.Answers++
		}
		for _, f := range s.Findings {
			if f.Stands {
				t.Findings = append(t.Findings, Found{f.Rule, f.Severity, s.Juror, f.Axis})
			}
		}
		var bill jury.Bill
		bill.Add(s.Effort)
		at := moment{s.Round, fmt.Sprintf("%T", s.Body)}
		slowest[at] = max(slowest[at], bill.Latency)
	}
	for _, latency := range slowest {
		t.Waited += latency
	}
}
