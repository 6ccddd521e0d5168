// Command jurat-lab measures juries: panels on cases whose outcome is known, trials in a log, and votes of any jurors. docs/quality.md explains the
// figures.
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
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	_ "golang.org/x/crypto/x509roots/fallback" // where the system has no root certificates, such as in a container

	"jurat/evidence"
	"jurat/evidence/jsonform"
	"jurat/internal/court/stats"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/installation"
	"jurat/jury"
)

// Exit codes, beside 0 for "as it should be".
const (
	exitCannot      = 2
	exitUndecided   = 3 // some trials are left
	exitInterrupted = 130
)

type app struct {
	Data        string `help:"The data folder of the installation that is read." default:"./jurat-data" env:"JURAT_DATA"`
	DB          string `name:"db" placeholder:"URL" help:"A shared PostgreSQL instead of the folder." env:"JURAT_DB"`
	WrappingKey string `name:"wrapping-key" placeholder:"FILE" help:"With --db: the key that wraps its keys and settings." env:"JURAT_WRAPPING_KEY"`

	Run       runCmd       `cmd:"" help:"Measure how good panels' verdicts are, on cases whose outcome is known."`
	Labels    labelsCmd    `cmd:"" help:"Write labelled cases from the trials of an installation on which people decided."`
	Stats     statsCmd     `cmd:"" help:"Say what trials have in common: agreement, who moves, what changes, what it costs."`
	Calibrate calibrateCmd `cmd:"" help:"Measure how reliable jurors are, from votes on items whose answer is known."`
	Aggregate aggregateCmd `cmd:"" help:"Make one verdict for each item of many votes."`
}

const about = `jurat-lab measures juries.

  jurat-lab run ./cases --jurors offline --out laboratory
  jurat-lab calibrate --votes laboratory/votes-rules.jsonl --out calibration.json

Exit codes: 0 as asked, 2 it could not be done, 3 some trials are left without a verdict, 130 interrupted.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, std streams) int {
	var a app
	code := -1
	parser, err := kong.New(&a, kong.Name("jurat-lab"), kong.Description(about), kong.Writers(std.out, std.err), kong.Exit(func(c int) { code = c }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std, &a))
	if err != nil {
		return std.report(ctx, err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if code >= 0 { // --help has been answered
		return code
	}
	if err != nil {
		return std.report(ctx, hint(err, "run 'jurat-lab --help' to see what there is"))
	}
	return std.report(ctx, parsed.Run())
}

func (a *app) with(ctx context.Context, do func(*installation.Installation) error) error {
	i, err := installation.Open(ctx, installation.Config{Dir: a.Data, DB: a.DB, WrappingKey: a.WrappingKey})
	if err != nil {
		return err
	}
	return errors.Join(do(i), i.Close())
}

// errLeft ends the program with exitUndecided and no further word.
var errLeft = errors.New("some trials are left without a verdict")

type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

func hint(err error, text string) error { return hinted{err, text} }

// streams are what the program reads and writes. What it writes may come from files of others, and so no terminal and no runner obeys it.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

type sheet struct{ text strings.Builder }

func (s *sheet) say(format string, args ...any) {
	fmt.Fprintln(&s.text, inert(fmt.Sprintf(format, args...)))
}

func (s *sheet) table(rows [][]string) {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = inert(cell)
		}
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	_ = columns.Flush() // into memory
	for line := range strings.Lines(text.String()) {
		s.say("%s", strings.TrimRight(line, " \n"))
	}
}

func (s streams) answer(asJSON bool, value any, people func(*sheet)) error {
	if asJSON {
		doc, err := document(value)
		if err != nil {
			return err
		}
		return s.machine(doc)
	}
	var t sheet
	people(&t)
	_, err := io.WriteString(s.out, t.text.String())
	return err
}

func (s streams) note(format string, args ...any) {
	fmt.Fprintln(s.err, inert("jurat-lab: "+fmt.Sprintf(format, args...)))
}

func (s streams) report(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errLeft):
		return exitUndecided
	}
	s.note("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	if h, is := errors.AsType[hinted](err); is {
		s.note("hint: %s", h.hint)
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return exitCannot
}

// machine prints a document for machines. What a terminal or a runner would obey is only inside of its strings, and is escaped.
func (s streams) machine(doc []byte) error {
	var text strings.Builder
	for _, c := range string(doc) {
		if c > '~' && obeyed(c) {
			fmt.Fprintf(&text, `\u%04x`, c)
		} else {
			text.WriteRune(c)
		}
	}
	_, err := io.WriteString(s.out, strings.ReplaceAll(text.String(), "##", `#\u0023`))
	return err
}

func document(value any) ([]byte, error) {
	doc, err := json.Marshal(value, json.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent("  "))
	return append(doc, '\n'), err
}

func (s streams) progress(what string) func(done, total int64) {
	last := time.Now()
	return func(done, total int64) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			s.note("%s: %d of %d", what, done, total)
		}
	}
}

// inert changes what a terminal would obey in a line, and what a CI runner would take for a command.
func inert(line string) string {
	line = strings.Map(func(c rune) rune {
		if c != '\t' && obeyed(c) {
			return unicode.ReplacementChar
		}
		return c
	}, line)
	line = strings.NewReplacer("##[", "# #[", "##vso[", "# #vso[").Replace(line)
	unseen := func(c rune) bool { return unicode.IsSpace(c) || c == '\ufeff' || c == unicode.ReplacementChar } // a runner skips it
	if strings.HasPrefix(strings.TrimLeftFunc(line, unseen), "::") {
		line = "'" + line
	}
	return line
}

func obeyed(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || unicode.Is(unicode.Zl, c) || unicode.Is(unicode.Zp, c)
}

func readFile(file string) ([]byte, error) {
	doc, err := os.ReadFile(file)
	return jsonform.CutMark(doc), err
}

// parts prints the parts of a report that one looks for first. The page has all.
func (t *sheet) parts(parts []Part, dir string) {
	for _, p := range parts {
		if p.Detail {
			continue
		}
		if p.Heading != "" {
			t.say("%s", p.Heading)
		}
		for _, text := range p.Text {
			t.say("  %s", text)
		}
		t.table(p.Table)
	}
	t.say("Report: %s and report.json beside it", filepath.Join(dir, "report.html"))
}

type statsCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Case files. Without any: all finished trials of this installation."`
	JSON  bool     `name:"json" help:"Print JSON."`
}

func (*statsCmd) Help() string {
	return `Over many trials: how far jurors agree after phase 1 and after the discussion (mean level, Fleiss' kappa, Krippendorff's alpha
for nominal data, each with a 95 % interval from 1,000 bootstrap samples of trials), how often positions change, toward the
majority and without citing anything new, how often the discussion and the final judgment changed the outcome, and for each juror
how often it answered, what that cost and how long it took.

This command believes what case files say: use 'jurat verify' to check them.

    jurat-lab stats *.jurat --json`
}

func (c *statsCmd) Run(ctx context.Context, a *app, std streams) error {
	tally := stats.New()
	if err := c.read(ctx, a, std, tally); err != nil {
		return err
	}
	s := tally.Stats()
	if s.Trials == 0 {
		return hint(errors.New("no trial has finished yet"), "'jurat trial CASE' tries one")
	}
	return std.answer(c.JSON, s, func(t *sheet) { t.stats(s) })
}

func (c *statsCmd) read(ctx context.Context, a *app, std streams, tally *stats.Tally) error {
	if len(c.Files) == 0 {
		return a.with(ctx, func(i *installation.Installation) error {
			for chain, err := range stats.Closed(ctx, i.Ledger, std.progress("records read")) {
				if err != nil {
					return err
				}
				if err := tally.Add(chain); err != nil {
					return fmt.Errorf("%s: %w", chain[0].Payload.ChainID, err)
				}
			}
			return nil
		})
	}
	for _, file := range c.Files {
		doc, err := readFile(file)
		if err != nil {
			return err
		}
		b, _, err := evidence.ReadWholeBundle(doc)
		if err == nil {
			err = tally.Add(b.Records)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func (t *sheet) stats(s *stats.Stats) {
	rows := [][]string{{"juror", "asked", "answered", "absent", "stand-in", "changes", "attempts", "tokens", "cost USD", "median ms"}}
	for _, j := range s.Jurors {
		row := []string{j.JurorID}
		tokens, cost := j.InputTokens+j.OutputTokens, fmt.Sprintf("%.4f", float64(j.Cost)/1e6)
		for _, cell := range []any{j.Asked, j.Answered, j.Absences, j.Fallbacks, j.Changes, j.Attempts, tokens, cost, j.Latency} {
			row = append(row, fmt.Sprint(cell))
		}
		rows = append(rows, row)
	}
	t.say("juries judged %s: %d safe_pass, %d needs_review, %d unsafe_fail; %d degraded, %d inconclusive", plural.Of(s.Trials, "trial"),
		s.Verdicts[jury.SafePass], s.Verdicts[jury.NeedsReview], s.Verdicts[jury.UnsafeFail], s.Degraded, s.Inconclusive)
	t.say("outcomes: %d safe_pass, %d needs_review, %d unsafe_fail; people decided on %s, and differed from the jury in %d; %d wait for a person",
		s.Outcomes[jury.SafePass], s.Outcomes[jury.NeedsReview], s.Outcomes[jury.UnsafeFail], partOf(s.Decided, s.Trials), s.Changed, s.Open)
	agreement := func(when string, a stats.Agreement) {
		t.say("agreement %s: level %.2f, Fleiss' kappa %s, Krippendorff's alpha %s", when, a.Level, a.Kappa.Text("%.2f", 1), a.Alpha.Text("%.2f", 1))
	}
	agreement("after phase 1", s.AfterPhase1)
	agreement("after the discussion", s.AfterDiscussion)
	t.say("the discussion changed the majority's verdict in %s of %s that had one", partOf(s.ChangedByTalk, s.Discussed), plural.Of(s.Discussed, "trial"))
	t.say("the final judgment is another than the majority's in %s of %s that came to one", partOf(s.ChangedByVerdict, s.Judged), plural.Of(s.Judged, "trial"))
	t.say("%s, %s with a change of position; of %s %s went to the majority, %s cite nothing new", plural.Of(s.Statements, "statement"),
		partOf(s.Changes, s.Statements), plural.Of(s.Changes, "change"), partOf(s.ToMajority, s.Changes), partOf(s.Unsupported, s.Changes))
	t.table(rows)
}

func partOf(k, n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.0f %%)", k, 100*float64(k)/float64(n))
}

type labelsCmd struct {
	Out  string `required:"" placeholder:"DIR" help:"A folder for the cases and their labels.json. It must be missing or empty."`
	JSON bool   `name:"json" help:"Print {cases, good, failed, skipped} as JSON."`
}

func (*labelsCmd) Help() string {
	return `Writes a folder that 'jurat-lab run' takes: each case on which a person decided, as the jury saw it, and the person's decision as its label. A
verdict that a person made safe_pass is good, one that is unsafe_fail failed. The last decision on a trial counts. Cases on which people contradict
each other, or whose evidence was erased, are skipped and named.

Remember when you read figures: the people had seen the verdict, and only disputed cases come before people. This
measures with them:

    jurat-lab run ./decided --jurors offline --out laboratory`
}

func (c *labelsCmd) Run(ctx context.Context, a *app, std streams) error {
	return a.with(ctx, func(i *installation.Installation) error {
		e, err := export(ctx, i.Ledger, c.Out, std.progress("records read"))
		if err != nil {
			return err
		}
		for _, skipped := range e.Skipped {
			std.note("skipped %s", skipped)
		}
		if e.Cases == 0 {
			return hint(errors.New("people decided on no trial here whose evidence is there: nothing was written"), "people decide at /reviews of 'jurat serve'")
		}
		return std.answer(c.JSON, e, func(t *sheet) {
			t.say("%s in %s: %d good, %d failed", plural.Of(e.Cases, "case"), c.Out, e.Good, e.Failed)
		})
	})
}

const aboutVotes = `Votes are JSON Lines: {"item": "42", "juror": "juror-gpt", "vote": "unsafe_fail", "label": "unsafe_fail"}. A vote of null is an
abstention. The label, where the right answer is known, may stand on any line of an item. "confidence" (0 to 1) may stand on each
line, for the method weighted, and "model" and "template" (the digest of the seat's template) may say what gave the vote: weights then
hold for that model and template alone, and no other takes them.`

type calibrateCmd struct {
	Votes string `required:"" placeholder:"FILE" help:"Votes in JSON Lines; - is standard input."`
	Out   string `required:"" placeholder:"FILE" help:"The calibration file to write."`
	JSON  bool   `name:"json" help:"Print the calibration as JSON, too."`
}

func (*calibrateCmd) Help() string {
	return aboutVotes + `

Measured are, on items with a label: each juror's reliability, with a 95 % interval, and its vote's weight (negative for a juror worse than chance,
whose vote counts against its position); how the errors of each pair go together (phi coefficient); and how many independent votes the jurors are worth.`
}

func (c *calibrateCmd) Run(std streams) error {
	ballots, err := readVotes(std.in, c.Votes)
	if err != nil {
		return err
	}
	measured, err := stats.Calibrate(ballots)
	if err != nil {
		return hint(err, "put the right answer as \"label\" on a line of each item that has one")
	}
	doc, err := document(measured)
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(c.Out, doc, 0o644); err != nil {
		return err
	}
	return std.answer(c.JSON, measured, func(t *sheet) { t.calibration(measured) })
}

func (t *sheet) calibration(measured *stats.Calibration) {
	t.say("%d items with a label, %d choices", measured.Items, measured.Choices)
	for _, j := range measured.Jurors {
		t.say("%-20s correct %d of %d (95 %% interval %.2f to %.2f), %d abstentions, weight %.3f",
			j.Juror, j.Correct, j.Votes, j.Low, j.High, j.Abstentions, float64(j.Weight)/stats.Unit)
	}
	for _, pair := range measured.Pairs {
		t.say("errors of %s and %s: correlation %+.2f on %d items", pair.A, pair.B, pair.Correlation, pair.Items)
	}
	t.say("worth %.2f independent votes", measured.EffectiveVotes)
	if leader := measured.Leader(); leader != "" {
		t.say("%s weighs more than all others together: its vote always decides, and to follow it alone is the best that these weights can do", leader)
	}
}

type aggregateCmd struct {
	Votes       string       `required:"" help:"Votes in JSON Lines; - is standard input."`
	Method      stats.Method `required:"" help:"majority, weighted (by confidence), calibrated (by log-odds of reliability)." enum:"majority,weighted,calibrated"`
	Calibration string       `help:"A calibration file, for the method calibrated. Without one, the labels among the votes are used."`
	JSON        bool         `name:"json" help:"Print {verdicts, accuracy, labelled, correct} as JSON."`
}

func (*aggregateCmd) Help() string {
	return aboutVotes + `

Each item gets one verdict: the choice whose votes weigh most, or null on a tie or if no vote weighs anything. With
labels the accuracy is told; an item without a verdict counts as wrong. For each item, the method calibrated uses weights that were
measured without that item's label, also if they come from a file.

    jurat-lab aggregate --votes votes.jsonl --method calibrated --calibration calibration.json --json`
}

func (c *aggregateCmd) Run(std streams) error {
	ballots, err := readVotes(std.in, c.Votes)
	if err != nil {
		return err
	}
	measured, err := stats.Load(c.Calibration)
	if err != nil {
		return hint(err, "'jurat-lab calibrate' writes such a file")
	}
	verdicts, err := stats.Aggregate(ballots, c.Method, measured)
	if err != nil {
		return hint(err, "measure the jurors with 'jurat-lab calibrate' and give --calibration FILE")
	}
	return std.answer(c.JSON, verdicts, func(t *sheet) {
		if verdicts.Accuracy != nil {
			std.note("accuracy %.4f: %d of %d labelled items", *verdicts.Accuracy, verdicts.Correct, verdicts.Labelled)
		}
		for _, item := range slices.Sorted(maps.Keys(verdicts.Verdicts)) {
			t.say("%s\t%s", item, verdicts.Verdicts[item].String())
		}
	})
}

func readVotes(stdin io.Reader, file string) ([]stats.Ballot, error) {
	if file == "-" {
		return stats.Read(stdin)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ballots, err := stats.Read(f)
	fault.While(&err, "%s", file)
	return ballots, err
}
