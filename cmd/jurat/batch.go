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

	"jurat/internal/atomicfile"
	"jurat/internal/fault"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jury"
)

type batchFlags struct {
	Parallel int      `help:"How many cases are tried at a time." default:"1"`
	FailOn   []string `help:"What fails beside unsafe_fail: needs_review, inconclusive, degraded. May be given several times. Changes the exit code, see above." enum:"unsafe_fail,needs_review,inconclusive,degraded" placeholder:"KIND"`
	JUnit    string   `name:"junit" help:"Write a JUnit report: a test case for each case." placeholder:"FILE"`
	SARIF    string   `name:"sarif" help:"Write a SARIF 2.1.0 report: a result for each finding." placeholder:"FILE"`

	Markdown  string `name:"markdown" help:"Write a report in Markdown, which fits into a comment on a pull request." placeholder:"FILE"`
	SARIFHelp string `name:"sarif-help" env:"JURAT_SARIF_HELP" help:"With --sarif: the URL of docs/rules.md of this version, to which the report's rules then point." placeholder:"URL"`

	Baseline      string `help:"Only what is worse than in this file fails: an earlier --write-baseline of the same jury." placeholder:"FILE"`
	WriteBaseline string `help:"Write what the cases come to, for a later --baseline. Refuses trials in which something was missing." placeholder:"FILE"`
}

// check refuses what would be found wrong only when the trials are over.
func (f *batchFlags) check() error {
	if f.Parallel < 1 || f.Parallel > 256 {
		return fmt.Errorf("--parallel: %d cases at a time: want 1 to 256", f.Parallel)
	}
	if err := checkHelpURL(f.SARIFHelp); err != nil {
		return fmt.Errorf("--sarif-help: %w", err)
	}
	named := map[string]string{}
	for flag, file := range f.reports() {
		if file == "" {
			continue
		}
		if other, ok := named[filepath.Clean(file)]; ok {
			return fmt.Errorf("%s and %s name the same file", min(flag, other), max(flag, other))
		}
		named[filepath.Clean(file)] = flag
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s: %s exists and is not a file", flag, file)
		}
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

func (f *batchFlags) reports() map[string]string {
	return map[string]string{"--junit": f.JUnit, "--sarif": f.SARIF, "--markdown": f.Markdown, "--write-baseline": f.WriteBaseline}
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

// named is the error with the name of the case before it.
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

func (c *trialCmd) brought(ctx context.Context, a *app, io stdio) ([]*attempt, error) {
	if c.Recorded == "" {
		return c.loadAll(ctx, io), nil
	}
	on, err := c.recorded(ctx, a, io)
	return []*attempt{{name: c.Recorded, on: on}}, err
}

// recorded makes a case of a chain of this log that a recorder sealed. It is verified as a reader would, by this installation's trust file unless
// another is given.
func (c *trialCmd) recorded(ctx context.Context, a *app, io stdio) (on *subject.Case, err error) {
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
			on, err = readCase(io, c.Recorded, bytes.NewReader(file), o, card)
		}
		return err
	})
}

// loadAll reads the cases. One that cannot be read does not keep the others from being tried.
func (c *trialCmd) loadAll(ctx context.Context, io stdio) []*attempt {
	var attempts []*attempt
	for _, name := range c.Cases {
		list, err := c.load(ctx, io, name, c.Check)
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
	if err == nil && !info.IsDir() {
		return fmt.Errorf("--out: %s is not a folder, which several cases need", c.Out)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--out: %w", err)
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

func (c *trialCmd) holdAll(ctx context.Context, a *app, io stdio, ct *court, attempts []*attempt) error {
	ready := slices.DeleteFunc(slices.Clone(attempts), func(at *attempt) bool { return at.err != nil })
	if len(ready) == 0 {
		return nil
	}
	return a.withStamps(ctx, io, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		todo := make(chan *attempt)
		var telling sync.Mutex
		var working sync.WaitGroup
		for range min(c.Parallel, len(ready)) {
			working.Go(func() {
				for at := range todo {
					c.holdOne(ctx, a, io, i, ct, at, &telling)
				}
			})
		}
		for _, at := range ready {
			select {
			case todo <- at:
			case <-ctx.Done():
			}
		}
		close(todo)
		working.Wait()
		return nil
	})
}

// holdOne tries a case. If several run at a time, it prints each one's transcript whole, when the trial is over.
func (c *trialCmd) holdOne(ctx context.Context, a *app, io stdio, i *installation.Installation, ct *court, at *attempt, telling *sync.Mutex) {
	if ctx.Err() != nil {
		return
	}
	config, err := ct.sit(0)
	if err != nil {
		at.err = err
		return
	}
	run := func(config trial.Config) (*trial.Trial, error) { return trial.Run(ctx, config, at.on) }
	if c.Parallel == 1 || !c.several {
		c.try(ctx, a, io, i, config, at, io, "", run)
		return
	}
	var out, errs bytes.Buffer
	inner := stdio{in: io.in, out: &out, err: &errs}.guarded()
	if io.hushed() {
		inner.hush()
	}
	c.try(ctx, a, inner, i, config, at, io, at.title(), run)
	telling.Lock()
	defer telling.Unlock()
	failed := io.document(out.Bytes())
	for message := range bytes.Lines(errs.Bytes()) {
		_, err := io.err.Write(message)
		failed = errors.Join(failed, err)
	}
	at.err = cmp.Or(at.err, failed)
}

// conclude writes the reports, also after an error or Ctrl-C, and returns the command's result.
func (c *trialCmd) conclude(io stdio, attempts []*attempt, failed error) error {
	for _, at := range attempts {
		if at.result() == nil && at.err == nil {
			at.err = failed
		}
	}
	written := errors.Join(c.write("--junit", c.JUnit, func() ([]byte, error) { return c.junit(attempts) }),
		c.write("--sarif", c.SARIF, func() ([]byte, error) { return sarif(attempts, c.SARIFHelp) }),
		c.write("--markdown", c.Markdown, func() ([]byte, error) { return c.markdown(attempts) }),
		c.write("--write-baseline", c.WriteBaseline, func() ([]byte, error) { return makeBaseline(c.settings, attempts) }))
	if slices.ContainsFunc(attempts, func(at *attempt) bool { return at.result() != nil && c.failure(at) == noModel }) {
		io.tell("exit code 3 and not 0, because no language model sat")
		io.tell("hint: %s", howToGetAJury)
	}
	c.sayCompared(io, attempts)
	if len(attempts) == 1 {
		if err := closing(attempts[0].named(), written); err != nil {
			return err
		}
		return coded(c.code(attempts[0]))
	}
	worst := exitCode(0)
	for _, at := range attempts {
		if at.err != nil {
			report(io, at.named())
			if c.JSON {
				written = errors.Join(written, c.line(io, at))
			}
		}
		worst = worse(worst, c.code(at))
	}
	if !c.JSON {
		written = errors.Join(written, c.summary(io, attempts))
	}
	return cmp.Or(failed, written, coded(worst))
}

func coded(code exitCode) error { return when(code != 0, code) }

// when is how a command ends of which something is so.
func when(so bool, code exitCode) error {
	if so {
		return code
	}
	return nil
}

func (c *trialCmd) write(flag, file string, doc func() ([]byte, error)) error {
	if file == "" {
		return nil
	}
	text, err := doc()
	if err == nil {
		err = atomicfile.Replace(file, text, 0o644)
	}
	fault.While(&err, "%s", flag)
	return err
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

// noModel is as what a trial fails that nothing else is said against, but that no language model sat in: a missing key must not
// make a pipeline pass.
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

// fails says as what a trial fails; "" if it does not. Unless told otherwise, everything fails but a safe_pass from which
// nothing takes away.
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

func (c *trialCmd) line(io stdio, at *attempt) error {
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
	return io.jsonLine(&one)
}

func (c *trialCmd) summary(io stdio, attempts []*attempt) error {
	p := newPrinter(io.out)
	p.lineIf(!io.hushed(), "\n%s", p.bold("Summary"))
	for _, at := range attempts {
		r := at.result()
		switch {
		case r != nil:
			p.line("  %s %3d/100  %s%s", p.position(r.FinalVerdict), r.FinalScore, at.title(), p.paint(yellow, c.notes(at)))
		case at.err != nil:
			p.line("  %s %s", p.paint(red, fmt.Sprintf("%-20s", "could not be tried")), at.title())
		default:
			p.line("  %s %s", p.paint(yellow, fmt.Sprintf("%-20s", "not tried")), at.title())
		}
	}
	return p.err
}
