package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/fault"
	"jurat/internal/plural"
	"jurat/jury"
)

const baselineFormat = "jurat/baseline/v1"

const (
	newBaseline  = "'jurat trial CASE… --write-baseline FILE' makes a new one; look at what changed before you take it"
	mostBaseline = 16 << 20 // bytes
)

// A baseline is what cases came to before, and by which jury: later trials fail only where they are worse. It holds nothing that a trial
// was missing something in, so that an absent juror never becomes what is expected.
type baseline struct {
	Format   string         `json:"format"`
	Settings jury.Settings  `json:"settings"` // of the jury, but for what its calls may cost
	Cases    []baselineCase `json:"cases"`
}

type baselineCase struct {
	Case     string        `json:"case"`
	Verdict  jury.Position `json:"verdict"`
	Score    int           `json:"score"`
	Review   bool          `json:"review"`   // a person must decide
	Evidence string        `json:"evidence"` // the digest of what was judged
}

// badness is how bad an outcome is: 0 for one that passes, 1 where a person must decide, 2 for one that fails.
func badness(verdict jury.Position, review bool) int {
	switch {
	case verdict == jury.UnsafeFail:
		return 2
	case verdict != jury.SafePass || review:
		return 1
	}
	return 0
}

// worsened is how much worse a result is than what the baseline has; below 0: it is better.
func (b *baselineCase) worsened(r *jury.Result) int {
	return badness(r.FinalVerdict, needsPerson(r)) - badness(b.Verdict, b.Review)
}

// known reports whether a trial came to nothing worse than the baseline has. What is missing in a trial is never known.
func (c *trialCmd) known(at *attempt) bool {
	r, before := at.result(), c.before(at)
	if before == nil || at.noModel || r.Degraded || r.Inconclusive {
		return false
	}
	return before.worsened(r) <= 0
}

func (c *trialCmd) before(at *attempt) *baselineCase {
	if c.base == nil {
		return nil
	}
	name := caseName(at)
	i := slices.IndexFunc(c.base.Cases, func(b baselineCase) bool { return b.Case == name })
	if i < 0 {
		return nil
	}
	return &c.base.Cases[i]
}

// caseName is how a baseline names a case, on every machine if it was given by a relative name.
func caseName(at *attempt) string { return filepath.ToSlash(filepath.Clean(at.name)) }

func (c *trialCmd) compared(at *attempt) string {
	r, before := at.result(), c.before(at)
	switch {
	case c.base == nil || r == nil:
		return ""
	case before == nil:
		return "(not in the baseline)"
	}
	was := fmt.Sprintf("%s %d", before.Verdict, before.Score)
	same := pick(at.on != nil && at.on.Digest().String() == before.Evidence, ", with the same evidence", "")
	switch {
	case before.worsened(r) > 0:
		return fmt.Sprintf("(worse than the baseline: %s%s)", was, same)
	case before.worsened(r) < 0:
		return fmt.Sprintf("(better than the baseline: %s%s)", was, same)
	}
	return fmt.Sprintf("(as in the baseline: %s)", was)
}

func (c *trialCmd) readBaseline() error {
	if (c.Baseline != "" || c.WriteBaseline != "") && (c.Resume != "" || c.List || c.Outcome != "" || c.Check) {
		return errors.New("--baseline and --write-baseline go with cases that are tried, and not with --resume, --list, --outcome or --check")
	}
	if c.Baseline == "" {
		return nil
	}
	info, err := os.Stat(c.Baseline)
	if err != nil {
		return hint(fmt.Errorf("--baseline: %w", err), newBaseline)
	}
	if info.Size() > mostBaseline {
		return hint(fmt.Errorf("--baseline: %s is too large for a baseline (%d bytes)", c.Baseline, info.Size()), newBaseline)
	}
	c.base, err = parsed(c.Baseline, parseBaseline)
	fault.While(&err, "--baseline")
	return hint(err, newBaseline)
}

// parseBaseline refuses everything but a whole baseline.
func parseBaseline(doc []byte) (*baseline, error) {
	var base baseline
	if err := json.Unmarshal(doc, &base, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("this is no baseline, or a damaged one: %w", err)
	}
	switch {
	case base.Format != baselineFormat:
		return nil, fmt.Errorf("format: found %q, expected %q", base.Format, baselineFormat)
	case len(base.Cases) == 0:
		return nil, errors.New("cases: expected at least one")
	}
	if err := base.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	seen := map[string]bool{}
	for i, b := range base.Cases {
		switch {
		case b.Case == "" || seen[b.Case]:
			return nil, fmt.Errorf("cases/%d/case: %q is empty or there twice", i, b.Case)
		case b.Verdict != jury.SafePass && b.Verdict != jury.NeedsReview && b.Verdict != jury.UnsafeFail:
			return nil, fmt.Errorf("cases/%d/verdict: found %q, expected safe_pass, needs_review or unsafe_fail", i, b.Verdict)
		case b.Score < 0 || b.Score > 100:
			return nil, fmt.Errorf("cases/%d/score: found %d, expected 0 to 100", i, b.Score)
		}
		seen[b.Case] = true
	}
	return &base, nil
}

// compare refuses, before anything is tried, a baseline of another jury, and one with cases that are not to be tried.
func (c *trialCmd) compare(settings jury.Settings, attempts []*attempt) error {
	if c.base == nil {
		return nil
	}
	different, err := unlike(c.base.Settings, settings)
	if err != nil {
		return err
	}
	if len(different) > 0 {
		return hint(fmt.Errorf("--baseline: %s was made by another jury, and verdicts of two juries cannot be compared. These settings differ: %s", c.Baseline, strings.Join(different, ", ")),
			"seat the jury of the baseline again. If the change is wanted: %s", newBaseline)
	}
	var missing []string
	for _, b := range c.base.Cases {
		if !slices.ContainsFunc(attempts, func(at *attempt) bool { return caseName(at) == b.Case }) {
			missing = append(missing, b.Case)
		}
	}
	if len(missing) > 0 {
		return hint(fmt.Errorf("--baseline: %s of it %s not among the cases given: %s", plural.Of(len(missing), "case"), plural.Or(len(missing), "is", "are"), someOf(missing)),
			"a case that is left out cannot fail: give it, too. If it is gone for good: %s", newBaseline)
	}
	return nil
}

// sayCompared says on stderr which cases fail as they did before, because the exit code does not, and that some are better.
func (c *trialCmd) sayCompared(io stdio, attempts []*attempt) {
	var stay, better []string
	for _, at := range attempts {
		r, before := at.result(), c.before(at)
		if r == nil || before == nil {
			continue
		}
		if c.fails(r) != "" && c.known(at) {
			stay = append(stay, at.title())
		}
		if before.worsened(r) < 0 && c.known(at) {
			better = append(better, at.title())
		}
	}
	io.tellIf(len(stay) > 0, "no worse than in the baseline, so not counted as failing: %s", someOf(stay))
	if len(better) > 0 {
		io.tell("better than in the baseline: %s", someOf(better))
		io.tell("hint: --write-baseline FILE keeps that, so that going back to what was fails")
	}
}

func someOf(names []string) string {
	const few = 5
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

// unlike names the settings in which two juries differ.
func unlike(a, b jury.Settings) (names []string, err error) {
	left, err := membersOf(a)
	right, failed := membersOf(b)
	for _, members := range []map[string]jsontext.Value{left, right} {
		for name := range members {
			if !bytes.Equal(left[name], right[name]) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), errors.Join(err, failed)
}

// membersOf are settings by name, in canonical form. What calls may cost changes no verdict that stands.
func membersOf(s jury.Settings) (map[string]jsontext.Value, error) {
	s.CostCeiling = 0
	doc, err := json.Marshal(&s)
	if err != nil {
		return nil, err
	}
	if err := (*jsontext.Value)(&doc).Canonicalize(); err != nil {
		return nil, err
	}
	var members map[string]jsontext.Value
	err = json.Unmarshal(doc, &members)
	return members, err
}

// makeBaseline writes what the trials came to. It refuses trials in which something was missing.
func makeBaseline(settings *jury.Settings, attempts []*attempt) ([]byte, error) {
	if settings == nil {
		return nil, errors.New("no jury sat, so it is not written")
	}
	base := baseline{Format: baselineFormat, Settings: *settings}
	base.Settings.CostCeiling = 0
	seen := map[string]bool{}
	for _, at := range attempts {
		r, name := at.result(), caseName(at)
		why := ""
		switch {
		case r == nil:
			why = "was not tried"
		case at.noModel:
			why = "had no language model on its jury, as keys are missing"
		case r.Inconclusive:
			why = "is inconclusive"
		case r.Degraded:
			why = "is degraded: a juror was missing, or gave no answer of its own"
		case seen[name]:
			why = "was given twice"
		}
		if why != "" {
			return nil, fmt.Errorf("it is not written, because %s %s", at.title(), why)
		}
		seen[name] = true
		base.Cases = append(base.Cases, baselineCase{name, r.FinalVerdict, r.FinalScore, needsPerson(r), at.on.Digest().String()})
	}
	slices.SortFunc(base.Cases, func(a, b baselineCase) int { return strings.Compare(a.Case, b.Case) })
	return marshalIndented(&base)
}
