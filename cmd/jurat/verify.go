package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/internal/plural"
	"jurat/internal/words"
	"jurat/verify"
	"jurat/verify/assurance"
	"jurat/verify/trust"
)

type verifyCmd struct {
	Files []string `arg:"" name:"file" help:"Record files, case files, statements (SCITT) and checkpoints."`
	readerFlags
	Before *time.Time `placeholder:"TIME" help:"Also ask: did it exist before this time (RFC 3339)?"`
	jsonFlag

	Policy   string   `help:"How much must be proved: default, strict, or your policy file." default:"default" placeholder:"FILE"`
	Require  []string `sep:"none" placeholder:"WHAT" help:"What must be proved, too: a level (signed, operator, independent, independent-qualified); a part of what the proof rests on (keys=, time=, log=); a guarantee (configuration, non-repudiation, human-review, given-on, qualified, property); or a demand, such as in:/metadata/action=refund,quote. May be given several times."`
	Audience string   `placeholder:"NAME" help:"Demands count proofs that were made for this reader, and no others."`

	knownLogFlags
}

func (c *verifyCmd) Run(ctx context.Context, io stdio) error {
	b := c.bring()
	defer b.close()
	b.bringKnownLog(&c.knownLogFlags)
	b.Before = c.Before
	o, err := b.options()
	if err != nil {
		return err
	}
	if err := c.requires(&o); err != nil {
		return err
	}
	worst := exitCode(0)
	o.Together = verify.NewTogether(o)
	var open []*verify.Report // that others of the files may prove
	for _, file := range c.Files {
		r, code, err := c.one(ctx, io, file, o)
		if ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		if err != nil {
			code = exitCode(report(io, err))
		}
		if r != nil && r.OpenAlone(o.Require...) {
			open, code = append(open, r), 0
		}
		worst = worse(worst, code)
	}
	together, err := c.together(io, o.Together.Reports(), open)
	if err != nil {
		return err
	}
	worst = worse(worst, together)
	if err := c.exchanges(io, o.Together.Exchanges()); err != nil {
		return err
	}
	if o.Trust == nil && worst != exitCannot {
		fmt.Fprintln(io.err, "jurat: hint: nothing can be proved without --trust FILE; the operator who keeps the log writes one with 'jurat trust'")
	}
	return coded(worst)
}

func (c *verifyCmd) requires(o *verify.Options) error {
	for _, text := range c.Require {
		if verify.IsDemand(text) {
			demand, err := verify.ParseDemand(text)
			if err != nil {
				return fmt.Errorf("--require: %w", err)
			}
			demand.Audience = c.Audience
			o.Demands = append(o.Demands, demand)
			continue
		}
		if assurance.IsNeed(text) {
			need, err := assurance.ParseNeed(text)
			if err == nil {
				o.Need, err = o.Need.With(need)
			}
			if err != nil {
				return fmt.Errorf("--require: %w", err)
			}
			continue
		}
		g := verify.Guarantee(strings.ReplaceAll(text, "-", "_"))
		if !slices.Contains(verify.Guarantees(), g) {
			return fmt.Errorf("--require: %q is unknown: want a level (%v), keys=, time= or log=, a guarantee (%v), or a demand such as in:/metadata/action=refund,quote",
				text, assurance.Levels(), verify.Guarantees())
		}
		o.Require = append(o.Require, g)
	}
	if err := c.policy(o); err != nil {
		return err
	}
	switch n := len(o.Demands); {
	case n > verify.MaxDemands:
		return fmt.Errorf("--require: %d demands: want at most %d", n, verify.MaxDemands)
	case n == 0 && c.Audience != "":
		return hint(errors.New("--audience says more of a demand, and there is none"), "demand something: --require 'in:/metadata/action=refund,quote'")
	}
	return nil
}

// policy takes over what --policy names: a named policy, or a file.
func (c *verifyCmd) policy(o *verify.Options) error {
	switch c.Policy {
	case "default":
		return nil
	case string(verify.Strict):
		o.Policy = verify.Strict
		return nil
	}
	b := new(brought)
	defer b.close()
	file := b.open("--policy", c.Policy)
	if b.err != nil {
		return hint(b.err, "--policy takes default, strict, or the name of a policy file")
	}
	policy, err := verify.ReadPolicy(file)
	if err == nil {
		err = o.Adopt(policy)
	}
	if err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	return nil
}

// together prints the joint report on the files of each log. It returns the exit code of these reports and of the files that alone leave something open.
func (c *verifyCmd) together(io stdio, joint, open []*verify.Report) (exitCode, error) {
	worst := exitCode(0)
	for _, r := range joint {
		if err := c.print(io, "together, "+plural.Of(r.Records, "record"), r, new(apartTexts)); err != nil {
			return 0, err
		}
		worst = worse(worst, codeOf(r))
	}
	for _, r := range open {
		proved := func(j *verify.Report) bool {
			return r.Log != nil && j.Log.Origin == r.Log.Origin && j.Outcome == verify.Proved
		}
		if !slices.ContainsFunc(joint, proved) {
			worst = worse(worst, codeOf(r))
		}
	}
	return worst, nil
}

// exchanges prints what the files show together of exchanges between agents. It changes no exit code.
func (c *verifyCmd) exchanges(io stdio, r *verify.Exchanges) error {
	if r == nil {
		return nil
	}
	if c.JSON {
		return io.machineOf(r)
	}
	p := newPrinter(io.out)
	p.line("%s", p.bold("Exchanges between agents, by what both sides recorded:"))
	for _, line := range words.Exchanges(words.English, r, "") {
		p.text("  ", inert(line))
	}
	return p.err
}

func codeOf(r *verify.Report) exitCode { return codeOfStatus(r.Outcome) }

func codeOfStatus(s verify.Status) exitCode {
	switch s {
	case verify.Proved:
		return 0
	case verify.Refuted:
		return exitBad
	}
	return exitUndecided
}

func worse(a, b exitCode) exitCode {
	if severity(b) > severity(a) {
		return b
	}
	return a
}

// severity orders exit codes.
func severity(code exitCode) int {
	return map[exitCode]int{0: 0, exitUndecided: 1, exitCannot: 2, exitBad: 3}[code]
}

func (c *verifyCmd) one(ctx context.Context, io stdio, name string, o verify.Options) (*verify.Report, exitCode, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	apart := new(apartTexts)
	o.Each = apart.see
	r, err := verify.Read(watch(ctx, io, file), o)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	return r, codeOf(r), c.print(io, name, r, apart)
}

func (c *verifyCmd) print(io stdio, file string, r *verify.Report, apart *apartTexts) error {
	if c.JSON {
		return io.machineOf(r)
	}
	p := newPrinter(io.out)
	p.line("%s: %s", p.bold(file), describe(r))
	if line := words.RestsOn(words.English, r); line != "" {
		p.text("  ", line)
	}
	for _, line := range words.Wanted(words.English, r) {
		p.text("  ", inert(line))
	}
	if r.Log != nil && r.Kind != verify.OneCheckpoint {
		p.text("  ", fmt.Sprintf("taken from the log %s when it had %s", r.Log.Origin, plural.Of(r.Log.Size, "entry")))
	}
	if r.Policy == verify.Strict {
		p.text("  ", "under the policy strict: all that such a file can have must be proved")
	}
	if r.Mended {
		p.text("  ", verify.MendedMeans)
	}
	if o := r.TrialOutcome; o != nil {
		p.text("  ", incident.Outcome(o, words.English))
	}
	p.statement(r.Statement)
	for _, f := range r.Guarantees {
		for i, g := range r.Grouped(f) {
			indent := "  "
			if i > 0 { // it was found beside the answer
				indent = "    "
			}
			p.finding(indent, g)
		}
		if f.Guarantee == verify.Property {
			p.first("      ", incident.Proofs(r, words.English), 20, "%s", "And %d more: see --json.")
		}
	}
	if r.Records > 0 { // otherwise it did not open
		p.apart("  ", apart, r.Records > 1)
	}
	if r.LeftOut > 0 {
		p.text("  ", fmt.Sprintf("%d further findings are left out, as there are more than a report holds. Of each record the worst under each guarantee is kept.", r.LeftOut))
	}
	for _, d := range r.Demands {
		p.text("  ", fmt.Sprintf("Demanded %s: %s: shown of %d of %s.", d.Demand, pick(d.Met, "met", "not met"), d.Proved, plural.Of(d.Asked, "record")))
	}
	for _, g := range r.Uncounted {
		p.text("  ", fmt.Sprintf("%s is not proved and does not count here: %s. --require %[1]s makes it count.", strings.ReplaceAll(string(g), "_", "-"), assurance.WhyUncounted(r.Kind, g)))
	}
	p.times(r)
	p.first("  ", words.Identities(words.English, r.Identities), 10, "%s", "%d more agents, reviewers and recorders signed (--json lists them).")
	var changes []string
	for _, c := range r.ToolsChanged {
		changes = append(changes, c.InWords())
	}
	p.first("  ", changes, 10, "Note: %s.", "%d more changes of tools are in the file (--json lists them).")
	p.text("  ", "None of this proves "+strings.Join(r.NotShown, ", or ")+".")
	if r.Trust != "" {
		p.text("  ", "All this rests on the trust file "+r.Trust+". Compare this fingerprint with its giver's, over another channel.")
	}
	p.line("  %s", p.statusIn(r.Outcome, strings.ToUpper(string(r.Outcome))))
	return p.err
}

// first prints the first of a list, each within a form, and how many more there are.
func (p *printer) first(indent string, list []string, most int, form, more string) {
	for _, one := range list[:min(len(list), most)] {
		p.text(indent, inert(fmt.Sprintf(form, one)))
	}
	if left := len(list) - most; left > 0 {
		p.text(indent, fmt.Sprintf(more, left))
	}
}

// times prints by when the records existed, as far as that is proved: the earliest and the latest of the proved times.
func (p *printer) times(r *verify.Report) {
	var proved []trust.ProvedTime
	for _, t := range r.Times {
		if r.OfClock() && t.Independent != nil {
			t.ProvedTime = *t.Independent
		}
		if !t.Time.IsZero() && (!r.OfClock() || t.Clock == trust.Independent) {
			proved = append(proved, t.ProvedTime)
		}
	}
	if len(proved) == 0 {
		return
	}
	order := func(a, b trust.ProvedTime) int { return a.Time.Compare(b.Time) }
	first, last := slices.MinFunc(proved, order), slices.MaxFunc(proved, order)
	if first.Time.Equal(last.Time) {
		p.text("  ", "Proved to exist by "+momentOf(first)+".")
		return
	}
	p.text("  ", fmt.Sprintf("The first record with a proved time existed by %s, the last by %s.", momentOf(first), momentOf(last)))
}

// momentOf writes a proved time, and says if it is the operator's word.
func momentOf(t trust.ProvedTime) string {
	if t.Clock == trust.OperatorClock {
		return evidence.FormatTime(t.Time) + " (by the operator's clock)"
	}
	return evidence.FormatTime(t.Time)
}

// finding prints one answer, and how many more records it is the answer for.
func (p *printer) finding(indent string, f verify.Group) {
	text := f.Reason
	if f.Record != "" {
		text = fmt.Sprintf("record %s: %s", f.Record, f.Reason)
	}
	if f.More > 0 {
		text += fmt.Sprintf(" (so for %d more; --json lists them)", f.More)
	}
	const column = 28 // after status and guarantee
	rows := wrap(inert(text), max(p.width-len(indent)-column, 40))
	for i, row := range rows {
		if i == 0 {
			p.line("%s%s %-16s %s", indent, p.status(f.Status), strings.ReplaceAll(string(f.Guarantee), "_", "-"), row)
			continue
		}
		p.line("%s%*s%s", indent, column, "", row)
	}
}

func describe(r *verify.Report) string {
	switch r.Kind {
	case verify.Trial:
		return "the case file of a trial, " + plural.Of(r.Records, "record")
	case verify.SeveralFiles:
		return "what the files of this log say of each other"
	case verify.ManyRecords:
		return "a bundle of " + plural.Of(r.Records, "record")
	case verify.OneCheckpoint:
		return "a checkpoint of a log"
	}
	return "one record"
}
