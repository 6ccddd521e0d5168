package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/jury"
)

type batchFlags struct {
	Parallel int      `help:"How many cases are tried at a time." default:"1"`
	FailOn   []string `help:"What fails beside unsafe_fail: needs_review, inconclusive, degraded. May be repeated. Changes the exit code, see above." enum:"unsafe_fail,needs_review,inconclusive,degraded" placeholder:"KIND"`
	JUnit    string   `name:"junit" help:"Write a JUnit report: a test case for each case." placeholder:"FILE"`
	SARIF    string   `name:"sarif" help:"Write a SARIF 2.1.0 report: a result for each finding." placeholder:"FILE"`

	Markdown  string `name:"markdown" help:"Write a report in Markdown, which fits into a comment on a pull request." placeholder:"FILE"`
	SARIFHelp string `name:"sarif-help" env:"JURAT_SARIF_HELP" help:"With --sarif: the URL of this version's docs/rules.md; rules link to it." placeholder:"URL"`

	Baseline      string `help:"Only what is worse than in this file fails: an earlier --write-baseline of the same jury." placeholder:"FILE"`
	WriteBaseline string `help:"Write what the cases come to, for a later --baseline. Refuses trials in which something was missing." placeholder:"FILE"`
}

// A reportFile is what is written of the trials when they are over.
type reportFile struct {
	flag, file string
	make       func([]*attempt) ([]byte, error)
}

func (c *trialCmd) reports() []reportFile {
	all := []reportFile{{"--junit", c.JUnit, c.junit}, {"--markdown", c.Markdown, c.markdown}, {"--sarif", c.SARIF, c.sarif}, {"--write-baseline", c.WriteBaseline, c.makeBaseline}}
	return slices.DeleteFunc(all, func(r reportFile) bool { return r.file == "" })
}

// checkReports refuses what would be found wrong only when the trials are over.
func (c *trialCmd) checkReports() error {
	wrong := checkHelpURL(c.SARIFHelp)
	err := cmp.Or(refuse(c.Parallel < 1 || c.Parallel > 256, "--parallel %d: want 1 to 256", c.Parallel), refuse(wrong != nil, "--sarif-help: %w", wrong))
	if err != nil {
		return err
	}
	named := map[string]string{}
	for _, r := range c.reports() {
		info, err := os.Stat(r.file)
		_, nowhere := os.Stat(filepath.Dir(r.file))
		switch other := named[filepath.Clean(r.file)]; {
		case other != "":
			return fmt.Errorf("%s and %s name the same file", other, r.flag)
		case err == nil && !info.Mode().IsRegular():
			return fmt.Errorf("%s: %s exists and is not a file", r.flag, r.file)
		case nowhere != nil:
			return fmt.Errorf("%s: %w", r.flag, nowhere)
		}
		named[filepath.Clean(r.file)] = r.flag
	}
	return nil
}

func (c *trialCmd) writeReports(attempts []*attempt) (failed error) {
	for _, r := range c.reports() {
		doc, err := r.make(attempts)
		if err == nil {
			err = atomicfile.Replace(r.file, doc, 0o644)
		}
		fault.While(&err, "%s", r.flag)
		failed = errors.Join(failed, err)
	}
	return failed
}

// An attempt is one case, and what became of it. It has a result, an error, or neither if its turn did not come.
type attempt struct {
	name  string // as it was given; "": a trial is gone on with, and no CASE was given
	from  string // the file in which its evidence stands; "": there is none
	on    *subject.Case
	out   string // where its case file is to go; "": to the data folder
	trial *trial.Trial
	file  string // the case file
	began time.Time
	took  time.Duration
	err   error

	mistakes []error // of its file: the first, or with --check all of them

	noModel bool // no language model sits, and only because keys are missing
	alone   bool // one model takes the seats of others, because keys are missing
}

func (at *attempt) brought() subject.Brought {
	b := subject.Brought{Case: at.on, Mistakes: at.mistakes}
	if b.Mistakes == nil && at.err != nil {
		b.Mistakes = []error{at.err}
	}
	return b
}

func (at *attempt) title() string {
	if at.name == "" && at.trial != nil {
		return at.trial.ID
	}
	return at.name
}

func (at *attempt) named() error {
	if at.err == nil || at.title() == "" || strings.HasPrefix(at.err.Error(), at.title()+":") {
		return at.err
	}
	return fmt.Errorf("%s: %w", at.title(), at.err)
}

// result is nil unless the trial was held and its case file is there.
func (at *attempt) result() *jury.Result {
	if at.err != nil || at.trial == nil {
		return nil
	}
	return at.trial.Result
}

func (at *attempt) flags() string {
	words := flags(at.result())
	words.add(at.alone, "one model took the seats of others: keys are missing")
	words.add(at.noModel && !at.alone, "no key of a model was there")
	return words.inBrackets()
}

// notes say what takes away from a result, and how it compares with the baseline.
func (c *trialCmd) notes(at *attempt) string {
	compared := c.compared(at)
	return at.flags() + pick(compared != "", "  "+compared, "")
}

func (c *trialCmd) brought(ctx context.Context, a *app, std stdio) ([]*attempt, error) {
	if c.Recorded == "" {
		return c.loadAll(ctx, std), nil
	}
	on, err := c.recorded(ctx, a, std)
	return []*attempt{{name: c.Recorded, on: on}}, err
}

// recorded makes a case of a recorded chain of this log. It verifies the chain as a reader would, by this installation's trust file or a given one.
func (c *trialCmd) recorded(ctx context.Context, a *app, std stdio) (on *subject.Case, err error) {
	if c.Format != "" {
		return nil, errors.New("--format goes with a conversation, and --recorded takes records")
	}
	return on, a.with(ctx, func(i *installation.Installation) error {
		records, err := i.Ledger.Chain(ctx, c.Recorded)
		if errors.Is(err, ledger.ErrNotFound) {
			return hint(fmt.Errorf("--recorded: the log has no chain %q", c.Recorded), "'jurat records --recorded' lists what recorders sealed")
		}
		if err == nil {
			records, err = new(withholdFlag).disclose(ctx, i, records...)
		}
		if err != nil {
			return err
		}
		file, err := fileOf(i.Ledger.Prove(ctx, records...))
		if err != nil {
			return err
		}
		o, err := c.options()
		if err == nil && c.Trust == "" {
			o.Trust, err = i.Trust(ctx)
		}
		if err != nil {
			return err
		}
		card, err := c.card()
		if err == nil {
			on, err = readCase(std, c.Recorded, bytes.NewReader(file), o, card)
		}
		return err
	})
}

// loadAll reads the cases. One that cannot be read does not keep the others from being tried.
func (c *trialCmd) loadAll(ctx context.Context, std stdio) []*attempt {
	var attempts []*attempt
	for _, name := range c.Cases {
		list, err := c.load(ctx, std, name, c.Check)
		if err != nil {
			list = []*attempt{{name: name, err: err}}
		}
		for _, at := range list {
			at.err = hint(at.err, "--check tells all that is wrong with a case; nothing was recorded")
		}
		attempts = append(attempts, list...)
	}
	c.several = len(attempts) > 1
	return attempts
}

// place says where case files go, and refuses places where they cannot.
func (c *trialCmd) place(attempts []*attempt) error {
	if c.Out == "" {
		return nil
	}
	info, err := os.Stat(c.Out)
	if len(attempts) == 1 && (err != nil || !info.IsDir()) {
		attempts[0].out = c.Out
		return checkOut(c.Out)
	}
	err = cmp.Or(refuse(err == nil && !info.IsDir(), "--out: %s is not a folder, which several cases need", c.Out),
		refuse(err != nil && !errors.Is(err, fs.ErrNotExist), "--out: %w", err))
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, at := range attempts {
		whole, err := filepath.Abs(at.name) // "." has a name, too
		if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		base := fileName(strings.TrimSuffix(filepath.Base(whole), ".jurat"))
		name := base
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[name] = true
		at.out = filepath.Join(c.Out, name+".jurat")
		if err := checkOut(at.out); err != nil {
			return err
		}
	}
	return nil
}

// fileName replaces what a name from inside a file must not bring into the name of another file.
func fileName(name string) string {
	const most = 120
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.#, ()+@", r) {
			return r
		}
		return '-'
	}, name)
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "")
	}
	return name
}

func (c *trialCmd) holdAll(ctx context.Context, a *app, std stdio, ct *court, attempts []*attempt) error {
	ready := slices.DeleteFunc(slices.Clone(attempts), func(at *attempt) bool { return at.err != nil })
	if len(ready) == 0 {
		return nil
	}
	return a.withStamps(ctx, std, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		var telling sync.Mutex
		var working sync.WaitGroup
		places := make(chan struct{}, c.Parallel)
		for _, at := range ready {
			places <- struct{}{}
			working.Go(func() {
				c.holdOne(ctx, a, std, i, ct, at, &telling)
				<-places
			})
		}
		working.Wait()
		return nil
	})
}

// holdOne tries a case. If several run at a time, it prints each one's transcript whole, when the trial is over.
func (c *trialCmd) holdOne(ctx context.Context, a *app, std stdio, i *installation.Installation, ct *court, at *attempt, telling *sync.Mutex) {
	if ctx.Err() != nil {
		return
	}
	run := func(config trial.Config, begin func(*trial.Config, trial.Config)) (*trial.Trial, error) {
		begin(&config, ct.sit(at.on, 0))
		return trial.Run(ctx, config, at.on)
	}
	if c.Parallel == 1 || !c.several {
		c.try(ctx, a, std, i, at, std, "", run)
		return
	}
	var out, errs bytes.Buffer
	inner := stdio{in: std.in, out: &out, err: &errs}.guarded()
	if std.hushed() {
		inner.hush()
	}
	c.try(ctx, a, inner, i, at, std, at.title(), run)
	telling.Lock()
	defer telling.Unlock()
	failed := std.document(out.Bytes(), nil)
	for message := range bytes.Lines(errs.Bytes()) {
		_, err := std.err.Write(message)
		failed = errors.Join(failed, err)
	}
	at.err = cmp.Or(at.err, failed)
}

// conclude writes the reports, also after an error or Ctrl-C, and returns the command's result.
func (c *trialCmd) conclude(std stdio, attempts []*attempt, failed error) error {
	for _, at := range attempts {
		if at.result() == nil && at.err == nil {
			at.err = failed
		}
	}
	written := c.writeReports(attempts)
	if slices.ContainsFunc(attempts, func(at *attempt) bool { return at.result() != nil && c.failure(at) == noModel }) {
		std.tell("exit code 3 and not 0, because no language model sat")
		std.tell("hint: %s", howToGetAJury)
	}
	c.sayCompared(std, attempts)
	if len(attempts) == 1 {
		if err := closing(attempts[0].named(), written); err != nil {
			return err
		}
		return coded(c.code(attempts[0]))
	}
	worst := exitCode(0)
	for _, at := range attempts {
		if at.err != nil {
			report(std, at.named())
			if c.JSON {
				written = errors.Join(written, c.line(std, at))
			}
		}
		worst = worse(worst, c.code(at))
	}
	if !c.JSON {
		written = errors.Join(written, c.summary(std, attempts))
	}
	return cmp.Or(failed, written, coded(worst))
}

func coded(code exitCode) error { return when(code != 0, code) }

func when(so bool, code exitCode) error {
	if so {
		return code
	}
	return nil
}

func (c *trialCmd) code(at *attempt) exitCode {
	if at.result() == nil {
		return exitCannot
	}
	switch kind := c.failure(at); {
	case kind == "":
		return 0
	case kind == noModel:
		return exitUndecided
	case c.FailOn == nil:
		return verdictCode(at.result())
	}
	return exitBad
}

// noModel is as what a trial fails in which no language model sat, if nothing else is against it: a missing key must not make a pipeline pass.
const noModel = "no_model"

// failure says as what a trial that was held fails; "" if it does not.
func (c *trialCmd) failure(at *attempt) string {
	kind := c.fails(at.result())
	if kind == "" && at.alone && slices.Contains(c.FailOn, "degraded") {
		kind = "degraded"
	}
	if kind != "" && c.known(at) {
		return ""
	}
	if kind != "" || !at.noModel {
		return kind
	}
	return noModel
}

// fails says as what a trial fails; "" if it does not. Without --fail-on, everything fails but a safe_pass from which nothing takes away.
func (f *batchFlags) fails(r *jury.Result) string {
	named := func(kind string) bool { return f.FailOn == nil || slices.Contains(f.FailOn, kind) }
	switch {
	case r.FinalVerdict == jury.UnsafeFail:
		return "unsafe_fail"
	case r.Inconclusive && (named("inconclusive") || named("needs_review")):
		return "inconclusive"
	case r.FinalVerdict == jury.NeedsReview && named("needs_review"):
		return "needs_review"
	case r.Degraded && named("degraded"):
		return "degraded"
	case len(r.Phase3Judgment.Review) > 0 && named("needs_review"):
		return "needs_review"
	}
	return ""
}

func (c *trialCmd) line(std stdio, at *attempt) error {
	one := struct {
		Case     string       `json:"case"`
		Trial    string       `json:"trial,omitempty"`
		CaseFile string       `json:"caseFile,omitempty"`
		ExitCode int          `json:"exitCode"`
		Error    string       `json:"error,omitempty"`
		Result   *jury.Result `json:"result,omitempty"`
	}{Case: at.name, CaseFile: at.file, ExitCode: int(c.code(at)), Result: at.result()}
	if at.trial != nil {
		one.Trial = at.trial.ID
	}
	if at.err != nil {
		one.Error = at.err.Error()
	}
	return std.jsonLine(&one)
}

func (c *trialCmd) summary(std stdio, attempts []*attempt) error {
	p := newPrinter(std.out)
	p.lineIf(!std.hushed(), "\n%s", p.bold("Summary"))
	for _, at := range attempts {
		if r := at.result(); r != nil {
			p.line("  %s %3d/100  %s%s", p.position(r.FinalVerdict), r.FinalScore, at.title(), p.paint(yellow, c.notes(at)))
		} else {
			p.line("  %s %s", p.paint(pick(at.err != nil, red, yellow), fmt.Sprintf("%-20s", pick(at.err != nil, "could not be tried", "not tried"))), at.title())
		}
	}
	return p.err
}

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
	return badness(r.FinalVerdict, r.NeedsPerson()) - badness(b.Verdict, b.Review)
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
	if err == nil && info.Size() > mostBaseline {
		err = fmt.Errorf("%s is too large for a baseline (%d bytes)", c.Baseline, info.Size())
	}
	if err == nil {
		c.base, err = parsed(c.Baseline, parseBaseline)
	}
	fault.While(&err, "--baseline")
	return hint(err, newBaseline)
}

func parseBaseline(doc []byte) (*baseline, error) {
	var base baseline
	if err := json.Unmarshal(doc, &base, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("this is no baseline, or a damaged one: %w", err)
	}
	wrong := base.Settings.Validate()
	err := cmp.Or(refuse(base.Format != baselineFormat, "format: found %q, expected %q", base.Format, baselineFormat),
		refuse(len(base.Cases) == 0, "cases: expected at least one"), refuse(wrong != nil, "settings: %w", wrong))
	seen := map[string]bool{}
	for i, b := range base.Cases {
		err = cmp.Or(err, refuse(b.Case == "" || seen[b.Case], "cases/%d/case: %q is empty or there twice", i, b.Case),
			refuse(!slices.Contains([]jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail}, b.Verdict), "cases/%d/verdict: found %q, expected safe_pass, needs_review or unsafe_fail", i, b.Verdict),
			refuse(b.Score < 0 || b.Score > 100, "cases/%d/score: found %d, expected 0 to 100", i, b.Score))
		seen[b.Case] = true
	}
	return &base, err
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
	other := refuse(len(different) > 0, "--baseline: %s was made by another jury, and verdicts of two juries cannot be compared. These settings differ: %s",
		c.Baseline, strings.Join(different, ", "))
	var missing []string
	for _, b := range c.base.Cases {
		if !slices.ContainsFunc(attempts, func(at *attempt) bool { return caseName(at) == b.Case }) {
			missing = append(missing, b.Case)
		}
	}
	n := len(missing)
	absent := refuse(n > 0, "--baseline: %s of it %s not among the cases given: %s", plural.Of(n, "case"), plural.Or(n, "is", "are"), someOf(missing))
	return cmp.Or(hint(other, "seat the jury of the baseline again. If the change is wanted: %s", newBaseline),
		hint(absent, "a case that is left out cannot fail: give it, too. If it is gone for good: %s", newBaseline))
}

// sayCompared says on stderr which cases fail as they did before, because the exit code does not, and that some are better.
func (c *trialCmd) sayCompared(std stdio, attempts []*attempt) {
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
	std.tellIf(len(stay) > 0, "no worse than in the baseline, so not counted as failing: %s", someOf(stay))
	if len(better) > 0 {
		std.tell("better than in the baseline: %s", someOf(better))
		std.tell("hint: --write-baseline FILE keeps that, so that going back to what was fails")
	}
}

func someOf(names []string) string {
	const few = 5
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

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
func (c *trialCmd) makeBaseline(attempts []*attempt) ([]byte, error) {
	if c.settings == nil {
		return nil, errors.New("no jury sat, so it is not written")
	}
	base := baseline{Format: baselineFormat, Settings: *c.settings}
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
		base.Cases = append(base.Cases, baselineCase{name, r.FinalVerdict, r.FinalScore, r.NeedsPerson(), at.on.Digest().String()})
	}
	slices.SortFunc(base.Cases, func(a, b baselineCase) int { return strings.Compare(a.Case, b.Case) })
	return marshalIndented(&base)
}
