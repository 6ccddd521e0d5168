package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/tap/traffic"
	"jurat/internal/web/server"
	"jurat/internal/web/words"
	"jurat/verify"
	"jurat/verify/trust"
)

type verifyCmd struct {
	Files []string `arg:"" name:"file" help:"Record files, case files, statements (SCITT) and checkpoints."`
	readerFlags
	Before *time.Time `placeholder:"TIME" help:"Also ask: did it exist before this time (RFC 3339)?"`
	jsonFlag

	Policy   string   `help:"How much must be proved: default, strict, or your policy file." default:"default" placeholder:"FILE"`
	Require  []string `sep:"none" placeholder:"WHAT" help:"What must be proved, too: a level (signed, operator, independent, independent-qualified); a part of what the proof rests on (keys=, time=, log=); a guarantee (configuration, non-repudiation, human-review, given-on, qualified, property); or a demand, such as in:/metadata/action=refund,quote. May be repeated."`
	Audience string   `placeholder:"NAME" help:"Demands count proofs that were made for this reader, and no others."`

	// What the reader knows of a log from elsewhere.
	Checkpoint  string `help:"A checkpoint of the log that you got elsewhere: is the file's log the same, and whole?" placeholder:"FILE"`
	Consistency string `help:"The proof that your checkpoint and the file's are of one history." placeholder:"FILE"`
	Entries     string `help:"All entries that your checkpoint covers (without one, the file's): is anything of the file's chains missing?" placeholder:"FILE"`
}

func (c *verifyCmd) Run(ctx context.Context, std stdio) error {
	b := c.bring()
	defer b.close()
	b.Before, b.Checkpoint, b.Consistency = c.Before, b.open("--checkpoint", c.Checkpoint), b.open("--consistency", c.Consistency)
	if b.open("--entries", c.Entries) != nil {
		b.Entries = b.files[len(b.files)-1]
	}
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
		r, code, err := c.one(ctx, std, file, o)
		if ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		if err != nil {
			code = exitCode(report(std, err))
		}
		if r != nil && r.OpenAlone(o.Require...) {
			open, code = append(open, r), 0
		}
		worst = worse(worst, code)
	}
	together, err := c.together(std, o.Together.Reports(), open)
	if err != nil {
		return err
	}
	worst = worse(worst, together)
	if err := c.exchanges(std, o.Together.Exchanges()); err != nil {
		return err
	}
	std.tellIf(o.Trust == nil && worst != exitCannot, "hint: nothing can be proved without --trust FILE; the log's operator writes one with 'jurat trust'")
	return coded(worst)
}

func (c *verifyCmd) requires(o *verify.Options) error {
	for _, text := range c.Require {
		if err := c.require(o, text); err != nil {
			return fmt.Errorf("--require: %w", err)
		}
	}
	if err := c.policy(o); err != nil {
		return err
	}
	n := len(o.Demands)
	return cmp.Or(refuse(n > verify.MaxDemands, "--require: %d demands: want at most %d", n, verify.MaxDemands),
		hint(refuse(n == 0 && c.Audience != "", "--audience needs a demand"), "demand something: --require 'in:/metadata/action=refund,quote'"))
}

func (c *verifyCmd) require(o *verify.Options, text string) error {
	g := verify.Guarantee(strings.ReplaceAll(text, "-", "_"))
	switch {
	case verify.IsDemand(text):
		demand, err := verify.ParseDemand(text)
		if err != nil {
			return err
		}
		demand.Audience = c.Audience
		o.Demands = append(o.Demands, demand)
		return nil
	case verify.IsNeed(text):
		need, err := verify.ParseNeed(text)
		if err == nil {
			o.Need, err = o.Need.With(need)
		}
		return err
	case !slices.Contains(verify.Guarantees(), g):
		return fmt.Errorf("%q is unknown: want a level (%v), keys=, time= or log=, a guarantee (%v), or a demand such as in:/metadata/action=refund,quote",
			text, verify.Levels(), verify.Guarantees())
	}
	o.Require = append(o.Require, g)
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
	fault.While(&err, "--policy")
	return err
}

// together prints the joint report on the files of each log. It returns the exit code of these reports and of the files that alone leave something open.
func (c *verifyCmd) together(std stdio, joint, open []*verify.Report) (exitCode, error) {
	worst := exitCode(0)
	for _, r := range joint {
		if err := c.print(std, "together, "+plural.Of(r.Records, "record"), r, new(apartTexts)); err != nil {
			return 0, err
		}
		worst = worse(worst, codeOf(r.Outcome))
	}
	for _, r := range open {
		proved := func(j *verify.Report) bool {
			return r.Log != nil && j.Log.Origin == r.Log.Origin && j.Outcome == verify.Proved
		}
		if !slices.ContainsFunc(joint, proved) {
			worst = worse(worst, codeOf(r.Outcome))
		}
	}
	return worst, nil
}

// exchanges prints what the files show together of exchanges between agents. It changes no exit code.
func (c *verifyCmd) exchanges(std stdio, r *verify.Exchanges) error {
	if r == nil {
		return nil
	}
	if c.JSON {
		return std.machineOf(r)
	}
	p := newPrinter(std.out)
	p.line("%s", p.bold("Exchanges between agents, by what both sides recorded:"))
	for _, line := range words.Exchanges(words.English, r, "") {
		p.text("  ", inert(line))
	}
	return p.err
}

func codeOf(s verify.Status) exitCode { return codeIf(s == verify.Refuted, s == verify.Proved) }

func worse(a, b exitCode) exitCode {
	if severity(b) > severity(a) {
		return b
	}
	return a
}

func severity(code exitCode) int {
	return map[exitCode]int{0: 0, exitUndecided: 1, exitCannot: 2, exitBad: 3}[code]
}

func (c *verifyCmd) one(ctx context.Context, std stdio, name string, o verify.Options) (*verify.Report, exitCode, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	apart := new(apartTexts)
	o.Each = apart.see
	r, err := verify.Read(watch(ctx, std, file), o)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	return r, codeOf(r.Outcome), c.print(std, name, r, apart)
}

func (c *verifyCmd) print(std stdio, file string, r *verify.Report, apart *apartTexts) error {
	if c.JSON {
		return std.machineOf(r)
	}
	p := newPrinter(std.out)
	p.line("%s: %s", p.bold(file), describe(r))
	view := words.ViewOf(words.English, r)
	p.text("  ", view.Rests)
	for _, line := range view.Wanted {
		p.text("  ", inert(line))
	}
	if r.Log != nil && r.Kind != verify.OneCheckpoint {
		p.text("  ", fmt.Sprintf("taken from the log %s when it had %s", r.Log.Origin, plural.Of(r.Log.Size, "entry")))
	}
	p.textIf(r.Policy == verify.Strict, "  ", "under the policy strict: all that such a file can have must be proved")
	p.textIf(r.Mended, "  ", "%s", verify.MendedMeans)
	p.text("  ", view.Came)
	p.statement(r.Statement)
	for _, f := range view.Guarantees {
		p.finding("  ", f)
		for _, other := range f.Others {
			p.finding("    ", other)
		}
		if f.Guarantee == verify.Property {
			p.first("      ", words.Proofs(r, words.English), 20, "%s", "And %d more: see --json.")
		}
	}
	if r.Records > 0 { // otherwise it did not open
		p.apart("  ", apart, r.Records > 1)
	}
	p.textIf(r.LeftOut > 0, "  ", "%d further findings are left out, as a report holds no more. Each record keeps the worst under each guarantee.", r.LeftOut)
	for _, d := range r.Demands {
		p.text("  ", fmt.Sprintf("Demanded %s: %s: shown of %d of %s.", d.Demand, pick(d.Met, "met", "not met"), d.Proved, plural.Of(d.Asked, "record")))
	}
	for _, g := range r.Uncounted {
		p.text("  ", fmt.Sprintf("%s is not proved and does not count here: %s. --require %[1]s makes it count.", strings.ReplaceAll(string(g), "_", "-"), verify.WhyUncounted(r.Kind, g)))
	}
	p.times(r)
	p.first("  ", view.Identities, 10, "%s", "%d more agents, reviewers and recorders signed (--json lists them).")
	var changes []string
	for _, c := range r.ToolsChanged {
		changes = append(changes, c.InWords())
	}
	p.first("  ", changes, 10, "Note: %s.", "%d more changes of tools are in the file (--json lists them).")
	p.text("  ", "None of this proves "+strings.Join(r.NotShown, ", or ")+".")
	p.textIf(r.Trust != "", "  ", "All this rests on the trust file %s. Compare this fingerprint with its giver's, over another channel.", r.Trust)
	p.line("  %s", p.statusIn(r.Outcome, strings.ToUpper(string(r.Outcome))))
	return p.err
}

func (p *printer) first(indent string, list []string, most int, form, more string) {
	for _, one := range list[:min(len(list), most)] {
		p.text(indent, inert(fmt.Sprintf(form, one)))
	}
	p.textIf(len(list) > most, indent, more, len(list)-most)
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

func momentOf(t trust.ProvedTime) string {
	return evidence.FormatTime(t.Time) + pick(t.Clock == trust.OperatorClock, " (by the operator's clock)", "")
}

// finding prints one answer, and how many more records it is the answer for.
func (p *printer) finding(indent string, f words.Line) {
	text := pick(f.Record != "", "record "+f.Record+": ", "") + f.Reason + pick(f.More > 0, fmt.Sprintf(" (so for %d more; --json lists them)", f.More), "")
	const column = 28 // after status and guarantee
	for i, row := range wrap(inert(text), max(p.width-len(indent)-column, 40)) {
		p.lineIf(i == 0, "%s%s %-16s %s", indent, p.status(f.Status), strings.ReplaceAll(string(f.Guarantee), "_", "-"), row)
		p.lineIf(i > 0, "%s%*s%s", indent, column, "", row)
	}
}

func describe(r *verify.Report) string {
	return cmp.Or(map[verify.Kind]string{verify.Trial: "the case file of a trial, " + plural.Of(r.Records, "record"), verify.ManyRecords: "a bundle of " + plural.Of(r.Records, "record"),
		verify.SeveralFiles: "what the files of this log say of each other", verify.OneCheckpoint: "a checkpoint of a log"}[r.Kind], "one record")
}

type langFlag struct {
	Lang string `help:"The statement's language: ${enum}." default:"en" enum:"en,ja,ru"`
}

type explainCmd struct {
	File string `arg:"" help:"A record file or a case file."`
	readerFlags
	langFlag
	Origin  string  `help:"The server's public address, such as https://jurat.example: it names the record's page." placeholder:"URL" env:"JURAT_ORIGIN"`
	WhoSaid *string `help:"Instead, find the record that introduced this text." placeholder:"TEXT"`
}

func (c *explainCmd) Run(std stdio) error {
	if c.Origin != "" {
		var err error
		if c.Origin, err = server.ParseOrigin(c.Origin); err != nil {
			return fmt.Errorf("--origin %w", err)
		}
	}
	doc, err := os.ReadFile(c.File)
	o, wrong := c.options()
	if err := cmp.Or(err, wrong); err != nil {
		return err
	}
	r, err := verify.File(doc, o)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	records, err := openRecords(doc)
	if err != nil {
		return hint(fmt.Errorf("%s: %w", c.File, err), "the file is damaged, so nothing can be stated from it; 'jurat verify' says more")
	}
	if o.Trust == nil {
		defer fmt.Fprintln(std.err, "jurat: hint: nothing can be stated as proved without --trust FILE")
	}
	p := newPrinter(std.out)
	if c.WhoSaid != nil {
		return p.whoSaid(records, r.Answers(), *c.WhoSaid)
	}
	for _, paragraph := range words.Site(c.Origin).Statement(records, r, words.Lang(c.Lang)) {
		p.text("", paragraph)
		p.line("")
	}
	apart := new(apartTexts)
	for _, r := range records {
		apart.see(r)
	}
	p.apart("", apart, len(records) > 1)
	p.timeline(records, r)
	return p.err
}

func (p *printer) timeline(records []*evidence.Record, report *verify.Report) {
	asked := slices.DeleteFunc(slices.Clone(report.Guarantees), func(f verify.Finding) bool {
		return f.Guarantee != verify.Chain && f.Guarantee != verify.HumanReview && f.Guarantee != verify.GivenOn
	})
	if len(asked) == 0 || len(records) < 2 {
		return
	}
	p.line("%s", p.bold("Timeline"))
	numbers := map[string]int{}
	for i, s := range verify.Timeline(records, report.Answers().TimeOf) {
		numbers[s.RecordID] = i + 1
		p.step(i+1, s, numbers)
	}
	for _, f := range asked {
		p.finding("", words.LineOf(words.English, report.Grouped(f)[0]))
	}
}

func (p *printer) step(number int, s verify.Step, numbers map[string]int) {
	p.line("%3d. %s", number, fmt.Sprintf("%s of %s %q%s", plain(s.Action), s.Role, s.Actor, placeOf(s)))
	proved := "no proved time"
	if s.Proved != nil {
		proved = fmt.Sprintf("existed at %s by %s%s", s.Proved.Time.UTC().Format(time.RFC3339Nano), s.Proved.Authority,
			pick(s.Proved.Clock == trust.OperatorClock, " (the operator's own clock)", ""))
	}
	p.textIf(s.Status != "", "     ", "%s", decisionIn(s))
	p.text("     ", fmt.Sprintf("claims %s; %s", s.Claimed, proved))
	p.text("     ", fmt.Sprintf("record %s%s", s.RecordID, followed(s, numbers)))
}

func decisionIn(s verify.Step) string {
	text := words.Of(words.English).Name("approval", string(s.Status))
	switch {
	case s.Verdict == nil:
		return text
	case s.Verdict.Position == "":
		return text + ", and leaves the verdict open"
	}
	return text + ": the verdict is " + string(s.Verdict.Position)
}

func placeOf(s verify.Step) string {
	if s.Position > 0 {
		return fmt.Sprintf(", at position %d", s.Position) + pick(s.ChainID != "", fmt.Sprintf(" of chain %q", s.ChainID), "")
	}
	return pick(s.ChainID != "", fmt.Sprintf(", in chain %q", s.ChainID), "")
}

// followed names what a step follows by its number in the timeline, or, where ids go in a circle, by its id.
func followed(s verify.Step, numbers map[string]int) string {
	if len(s.Follows) == 0 {
		return ""
	}
	names := joined(s.Follows, ", ", func(id string) string { return pick(numbers[id] > 0, fmt.Sprint(numbers[id]), id) })
	return ", follows " + names + pick(s.ByNameOnly, " (by name only)", "")
}

func plain(a evidence.ActionType) string { return strings.ReplaceAll(string(a), "_", " ") }

func (p *printer) whoSaid(records []*evidence.Record, report *verify.Answers, text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("--who-said: the text is empty")
	}
	found := verify.Introduced(withWords(records), text)
	switch n := len(found.By); {
	case n > 0:
		p.text("", fmt.Sprintf("It was introduced by %s.", called(found.By[0], report)))
		for _, r := range found.By[1:] {
			p.text("", fmt.Sprintf("It was also brought in, without having been shown it by what it followed, by %s.", called(r, report)))
		}
	case len(found.Repeated) > 0:
		p.text("", "No agent here introduced it: each agent that gave it out had received it.")
	default:
		p.text("", "No agent here gave it out: no response in the file contains it.")
	}
	p.each("It was given from outside to", found.Given, report)
	p.each("It was repeated by", found.Repeated, report)
	p.each("It may also stand in what is withheld of", found.Withheld, report)
	return p.err
}

func (p *printer) each(what string, records []*evidence.Record, report *verify.Answers) {
	for _, r := range records {
		p.text("", fmt.Sprintf("%s %s.", what, called(r, report)))
	}
}

// spokenIn names an act that a recorder saw by the agent. In what the agent used or asked, somebody else answers.
func spokenIn(p *evidence.Payload) string {
	agent := p.Observed.Agent
	switch {
	case p.ActionType == evidence.ObservedTool:
		return fmt.Sprintf("%s, which agent %q used", plain(p.ActionType), agent)
	case p.Observed.Side == evidence.Asked:
		return fmt.Sprintf("%s, in which agent %q asked another", plain(p.ActionType), agent)
	}
	return fmt.Sprintf("%s of agent %q", plain(p.ActionType), agent)
}

// called names a record and its actor, and says so where it is not proved that it is the actor's.
func called(r *evidence.Record, report *verify.Answers) string {
	p := &r.Payload
	text := fmt.Sprintf("record %s: %s of %s %q, who claims %s", p.RecordID, plain(p.ActionType), p.Role(), p.Actor(), p.Timestamp)
	rests := []verify.Guarantee{verify.Content, verify.Authentication}
	if p.Observed != nil {
		text = fmt.Sprintf("record %s: %s, %s, at %s", p.RecordID, spokenIn(p), verify.SeenFrom(p.Observed, p.Actor()), p.Timestamp)
		rests = append(rests, verify.Vantage)
	}
	for _, g := range rests {
		if f := report.For(g, p.RecordID); f.Status != verify.Proved {
			return fmt.Sprintf("%s (%s is %s: %s)", text, g, f.Status, f.Reason)
		}
	}
	return text
}

// withWords returns the records with what recorders saw said in prompt and response: it is in the bytes of these records alone.
func withWords(records []*evidence.Record) []*evidence.Record {
	list, window := slices.Clone(records), new(observed.Window)
	for i, r := range records {
		if o := r.Payload.Observed; o != nil {
			list[i] = wordsOf(r, o, window.Read(observed.Open(r)))
		}
	}
	return list
}

func wordsOf(r *evidence.Record, o *evidence.Observed, read observed.Reading) *evidence.Record {
	said, _ := traffic.Project(traffic.CallOf(o, read.Request, read.Response)) // where it cannot be read, the bytes are looked through
	made := *r
	p := &made.Payload
	p.SealedApart = slices.Clone(p.SealedApart)
	fill(p, "/prompt", &p.Prompt, said.Prompt, o.Request, read.Request)
	output := said.Output
	for _, m := range said.Answered {
		for i := range m.ToolCalls { // their texts stand in a text, with its escapes
			_, arguments := m.ToolCalls[i].Said()
			output = alongside(output, jsontext.Value(arguments))
		}
		if m.FunctionCall != nil {
			output = alongside(output, jsontext.Value(m.FunctionCall.Arguments))
		}
	}
	fill(p, "/response", &p.Response, output, o.Response, read.Response)
	return &made
}

// fill sets a member to what was read: the record's own value stays where nothing was, and else the bytes stand in for it, as a text and as the
// JSON that they may be. If the bytes are not in the file, the member is withheld.
func fill(p *evidence.Payload, pointer string, member *jsontext.Value, read jsontext.Value, stated *evidence.ObservedBody, body []byte) {
	switch {
	case read != nil:
		*member = read
		p.SealedApart = slices.DeleteFunc(p.SealedApart, func(at string) bool { return at == pointer })
	case *member != nil || p.Observed.Vantage == evidence.Telemetry:
	case body != nil:
		text, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(body), "\uFFFD"))
		*member = alongside(text, body)
	case stated != nil && stated.Bytes > 0:
		p.SealedApart = append(p.SealedApart, pointer)
	}
}

// alongside puts a value beside another; either may be none.
func alongside(value, more jsontext.Value) jsontext.Value {
	switch {
	case !more.IsValid():
		return value
	case value == nil:
		return more
	}
	return slices.Concat(jsontext.Value("["), value, jsontext.Value(","), bytes.TrimSpace(more), jsontext.Value("]"))
}
