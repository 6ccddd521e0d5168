package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	source "io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/internal/court/panel"
	"jurat/internal/court/stats"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

type caseFlags struct {
	readerFlags
	Card   string `help:"With a file as CASE: the agent's card. Left out, the agent has none." placeholder:"FILE"`
	Format string `help:"The form, if the conversation does not show it: chat, a2a, anthropic, responses, gemini, inspect, promptfoo." placeholder:"FORM"`

	cardRead []byte // of Card, which may be a pipe
}

// load reads what CASE names: a folder, or a file with conversations or sealed records. whole: it finds every mistake, and not only the first.
func (f *caseFlags) load(ctx context.Context, std stdio, name string, whole bool) (list []*attempt, err error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("no such file or folder")
	case err != nil:
		return nil, err
	}
	form, err := subject.ParseForm(f.Format)
	if err != nil {
		return nil, fmt.Errorf("--format: %w", err)
	}
	from, o, found := name, subject.Options{Form: form, Check: whole}, []subject.Brought(nil)
	if info.IsDir() {
		from = filepath.Join(name, subject.ConversationFile)
		found, err = f.folder(name, o)
	} else {
		found, err = f.read(ctx, std, name, o)
	}
	for _, b := range found {
		list = append(list, &attempt{name: name + pick(b.Name != "", "#"+fileName(b.Name), ""), from: from, on: b.Case, err: b.Err(), mistakes: b.Mistakes})
	}
	return list, err
}

func (f *caseFlags) read(ctx context.Context, std stdio, name string, o subject.Options) ([]subject.Brought, error) {
	file, err := openCase(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if o.Form == "" {
		on, err := f.records(ctx, std, name, file)
		if !errors.Is(err, verify.ErrNotOurs) {
			return []subject.Brought{{Case: on}}, err
		}
	}
	return f.readTranscripts(name, file, o)
}

// openCase opens a file that is read more than once. What is no file on a disk, such as a pipe, is read into memory.
func openCase(name string) (source.ReadSeekCloser, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || info.Mode().IsRegular() {
		return file, err
	}
	defer file.Close()
	data, err := readAtMost(file, "-", subject.MaxTranscripts)
	if err == nil && len(data) > subject.MaxTranscripts {
		err = fmt.Errorf("not a regular file, and longer than %d MiB: save it first", subject.MaxTranscripts>>20)
	}
	fault.While(&err, "%s", name)
	return heldFile{bytes.NewReader(data)}, err
}

type heldFile struct{ *bytes.Reader }

func (heldFile) Close() error { return nil }

func (f *caseFlags) ofRecords() bool {
	return f.Trust != "" || f.CRL != nil || f.At != nil
}

func (f *caseFlags) folder(name string, o subject.Options) ([]subject.Brought, error) {
	if f.ofRecords() || f.Card != "" {
		return nil, fmt.Errorf("--trust, --at, --crl and --card go with a file as CASE, and %s is a folder", name)
	}
	b, err := subject.LoadFolder(name, o)
	return []subject.Brought{b}, err
}

func (f *caseFlags) readTranscripts(name string, file source.ReadSeeker, o subject.Options) ([]subject.Brought, error) {
	if f.ofRecords() {
		return nil, fmt.Errorf("--trust, --at and --crl go with sealed records as CASE, and %s holds none: %w", name, verify.ErrNotOurs)
	}
	if _, err := file.Seek(0, source.SeekStart); err != nil {
		return nil, err
	}
	data, err := source.ReadAll(source.LimitReader(file, subject.MaxTranscripts+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if o.Card, err = f.card(); err != nil {
		return nil, err
	}
	found, err := subject.ReadTranscripts(name, data, o)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: there is no conversation in it", name)
	}
	return found, err
}

func (f *caseFlags) records(ctx context.Context, std stdio, name string, file source.ReadSeeker) (*subject.Case, error) {
	o, err := f.options()
	card, noCard := f.card()
	if err := cmp.Or(err, noCard); err != nil {
		return nil, err
	}
	from := source.Reader(file)
	if onDisk, is := file.(*os.File); is {
		from = watch(ctx, std, onDisk)
	}
	return readCase(std, name, from, o, card)
}

// readCase verifies records, makes evidence of them, and says what the jurors are told of doubts.
func readCase(std stdio, name string, file source.Reader, o verify.Options, card []byte) (*subject.Case, error) {
	c, report, err := subject.ReadSealed(file, o, card)
	switch {
	case errors.Is(err, subject.ErrRefuted):
		return nil, hint(fmt.Errorf("%s: %w", name, err), "'jurat verify' says all that is wrong with it; nothing was recorded")
	case errors.Is(err, verify.ErrNotOurs):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	v := c.Recorded.Verification
	std.tell("%s: %s, proved: %s", name, plural.Of(c.Recorded.Records, "record"), strings.Join(v.Proved, ", "))
	for _, d := range v.NotProved {
		std.tell("%s: not proved, and the jurors are told: %s: %s", name, d.Guarantee, d.Reason)
	}
	std.tellIf(report.Trust == "", "hint: nothing is proved of records without --trust FILE")
	return c, nil
}

func (f *caseFlags) card() ([]byte, error) {
	if f.Card == "" || f.cardRead != nil {
		return f.cardRead, nil
	}
	var err error
	f.cardRead, err = readAtMost(nil, f.Card, subject.MaxFile)
	return f.cardRead, err
}

// readerFlags are the reader's own inputs to verification. None of them may come from the file under verification.
type readerFlags struct {
	Trust string         `help:"Your trust file. Without one nothing can be proved." placeholder:"FILE"`
	At    *time.Time     `help:"The time of checking (RFC 3339), with which expiry dates and future times are compared. Left out: now." placeholder:"TIME"`
	CRL   []string       `name:"crl" help:"A revocation list, PEM or DER, of a CA in your trust file or below one. May be repeated." placeholder:"FILE" sep:"none"`
	Grace *time.Duration `help:"How long after a record's proved time an outdated --crl must have been made to count. Default: 24h." placeholder:"DURATION"`
}

// brought is what the flags name. The files are open until close is called: entries are read while files are verified.
type brought struct {
	verify.Inputs
	files []*os.File
	err   error // the first of opening
}

func (f *readerFlags) bring() *brought {
	b := &brought{Inputs: verify.Inputs{At: f.At, Grace: f.Grace, Now: time.Now}}
	for _, name := range f.CRL {
		if file := b.open("--crl", name); file != nil {
			b.CRLs = append(b.CRLs, *file)
		}
	}
	b.Trust = b.open("--trust", f.Trust)
	return b
}

func (b *brought) open(flag, name string) *verify.InputFile {
	if name == "" || b.err != nil {
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		b.err = fmt.Errorf("%s: %w", flag, err)
		return nil
	}
	b.files = append(b.files, file)
	return &verify.InputFile{Name: name, From: file}
}

func (b *brought) close() {
	for _, file := range b.files {
		file.Close()
	}
}

func (b *brought) options() (verify.Options, error) {
	if b.err != nil {
		return verify.Options{}, b.err
	}
	return b.Inputs.Options()
}

func (f *readerFlags) options() (verify.Options, error) {
	b := f.bring()
	defer b.close()
	return b.options()
}

// readTrust reads a reader's trust file, which a flag names, or an argument. Without a name it returns an empty trust file, which trusts nothing.
func readTrust(flag, name string) (*trust.Trust, error) {
	b := new(brought)
	defer b.close()
	file := b.open(flag, name)
	if b.err != nil {
		return nil, b.err
	}
	return verify.ReadTrust(file)
}

// panelFlags say who sits and by which rules. They override the configuration file, and that overrides the defaults.
type panelFlags struct {
	Config        string   `placeholder:"FILE" help:"Who sits and how, as YAML. Default: jurat.yaml in the working directory, if it is there." env:"JURAT_CONFIG"`
	Jurors        string   `placeholder:"offline|llm" help:"Who sits: the panel of language models (llm), or rules (offline). Default: llm where a key of the panel is set, and otherwise rules, whose safe_pass then exits with 3." env:"JURAT_JURORS"`
	Panel         string   `placeholder:"thorough|quick" help:"How much work language models do: tables before scores, the judge's own reading, disputed seats asked twice (thorough, default), or none of it and a round less (quick). 'jurat trial --check' shows what each costs." env:"JURY_PANEL"`
	Method        *string  `placeholder:"METHOD" help:"How phase 3 decides: majority_vote, weighted_average, median, final_judge (default) or calibrated." env:"JURY_FINAL_JUDGMENT_METHOD"`
	JudgeModel    string   `placeholder:"MODEL" help:"The final judge's model. Default: gemini-3.8-flash." env:"JURY_FINAL_JUDGE_MODEL"`
	Calibration   string   `placeholder:"FILE" help:"A calibration file ('jurat-lab calibrate'): what the method calibrated weighs votes by."`
	Rounds        *int     `placeholder:"N" help:"The most rounds of discussion. Default: 3; 0 if only rules sit before a judge." env:"JURY_MAX_DISCUSSION_ROUNDS"`
	Threshold     *float64 `placeholder:"X" help:"Agreement that ends discussion: 0.67: two of three, 1: all, 2 (default): never." env:"JURY_CONSENSUS_THRESHOLD"`
	Collaborative *bool    `negatable:"" help:"Discuss before judging (default)." env:"JURY_USE_COLLABORATIVE"`
	CostCeiling   *float64 `placeholder:"USD" help:"Cost of all calls, above 0, that ends the trial as inconclusive. Default: no limit." env:"JURAT_COST_CEILING"`
}

const howToGetAJury = "set the keys of a jury of models, or choose rules: --jurors offline, JURAT_JURORS=offline or jurors: offline in the configuration"

type court struct {
	panel    *panel.Panel
	plan     *panel.Plan
	settings jury.Settings
	webhook  *panel.Webhook // is told by a server when a case needs a person; nil: nobody is
	unbound  []string       // jurors whose weights do not say on which model and template they were measured
}

func (c *panelFlags) court(std stdio) (*court, error) {
	kind, wrong := panel.Kind(c.Jurors), panel.Care(cmp.Or(c.Panel, string(panel.Thorough))).Check()
	err := cmp.Or(refuse(kind != "" && kind != panel.Offline && kind != panel.LLM, "--jurors: %q is neither %s nor %s", kind, panel.Offline, panel.LLM),
		refuse(wrong != nil, "--panel: %w", wrong))
	if err != nil {
		return nil, err
	}
	file, err := c.file(std)
	if err != nil {
		return nil, err
	}
	plan, err := panel.NewPlan(file, panel.Wishes{Jurors: kind, Care: panel.Care(c.Panel), Method: c.Method, Rounds: c.Rounds, Threshold: c.Threshold,
		Collaborative: c.Collaborative, JudgeModel: c.JudgeModel, CostCeiling: c.CostCeiling}, os.Getenv)
	if err != nil {
		return nil, hint(err, "'jurat trial --help' says where keys are looked for; nothing was recorded")
	}
	p, err := panel.New(plan, nil)
	if err != nil {
		return nil, hint(err, "nothing was recorded")
	}
	ct := &court{panel: p, plan: plan, settings: p.Settings(), webhook: file.Webhook}
	// The method that takes weights of seats gets those of the calibration.
	if ct.unbound, err = stats.WeighBy(c.Calibration, &ct.settings); err != nil {
		return nil, hint(err, "nothing was recorded")
	}
	if names := ct.unbound; len(names) > 0 {
		std.tell("%s does not say on which model and template %s were measured, and a weight holds for those alone", c.Calibration, strings.Join(names, ", "))
		std.tell("hint: put \"model\" and \"template\" on the lines of their votes, and calibrate again")
	}
	return ct, hint(ct.settings.Validate(), "'jurat trial --help' says what the flags take; nothing was recorded")
}

// file reads the configuration. It tells the user about a file that it found without being told its name, because the file decides
// where keys are sent. It does not look beside the case, which may come from the accused.
func (c *panelFlags) file(std stdio) (*panel.File, error) {
	name := cmp.Or(c.Config, panel.DefaultFile)
	doc, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) && c.Config == "" {
		return &panel.File{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	file, err := panel.Parse(doc)
	if err != nil {
		return nil, hint(fmt.Errorf("%s: %w", name, err), "nothing was recorded")
	}
	std.tellIf(c.Config == "", "the jury sits as %s in this folder says", name)
	return file, nil
}

// sit begins a trial before the jury, or goes on with one in which so much was spent.
func (ct *court) sit(on *subject.Case, spent int64) trial.Config {
	jurors, judge := ct.panel.Sit(on, spent)
	return trial.Config{Settings: ct.panel.AsOf(ct.settings, time.Now()), Jurors: jurors, Judge: judge}
}

// warn says on stderr which seats are empty, and which have another in them than was configured.
func (ct *court) warn(std stdio) {
	if ct.plan.NoModel {
		std.tell("no language model sits, as keys are missing (%s)", strings.Join(ct.plan.MissingKeys(), "; "))
		std.tell("hint: %s", howToGetAJury)
	}
	if ct.plan.Offline {
		return
	}
	for _, text := range ct.plan.Endings(time.Now()) {
		std.tell("%s: set it in the configuration", text)
	}
	for _, c := range ct.plan.Chairs() {
		switch {
		case c.Missing != nil:
			std.tell("the seat of %s stays empty: %v", c.ID, c.Missing)
		case c.InPlaceOf != "":
			std.tell("%s takes the seat of %s as a substitute for %s: %v", c.Name(), c.ID, c.InPlaceOf, c.Wanted)
		}
	}
}

func dollars(micro int64) string {
	text := fmt.Sprintf("$%d.%06d", micro/1_000_000, micro%1_000_000)
	cents := len(text) - 4 // up to here it stays
	return text[:cents] + strings.TrimRight(text[cents:], "0")
}

// dryRun says what the trials would be, and all that is wrong with cases. It asks and records nothing.
func (c *trialCmd) dryRun(std stdio, attempts []*attempt) error {
	seat := sync.OnceValues(func() (*court, error) { return c.court(std) })
	code := exitCode(0)
	for _, at := range attempts {
		read, seated, err := check(at.title(), at.brought()), (*court)(nil), error(nil)
		if len(read.Mistakes) > 0 {
			code = exitCannot
		} else if seated, err = seat(); err != nil {
			return err
		}
		if err := c.look(std, seated, read, at, len(attempts) > 1); err != nil {
			return err
		}
	}
	return coded(code)
}

// An outlook is what --check says of one case, as --json prints it.
type outlook struct {
	*panel.Outlook `json:",inline"` // nil: it cannot be tried
	Read           *checked         `json:"read"`
}

// look shows what one trial would be. Of a case that cannot be tried there is no court.
func (c *trialCmd) look(std stdio, ct *court, read *checked, at *attempt, several bool) error {
	o := outlook{Read: read}
	if ct != nil {
		var err error
		if o.Outlook, err = ct.panel.Look(at.on, c.ShowPrompts); err != nil {
			return err
		}
		o.Unbound = ct.unbound
	}
	if c.JSON && several {
		return std.jsonLine(o)
	}
	return c.answer(std, o, nil, func(p *printer) {
		if o.Outlook == nil {
			read.wrong(p)
		} else {
			showOutlook(p, at.title(), at.on, o)
		}
	})
}

func showOutlook(p *printer, name string, on *subject.Case, o outlook) {
	p.line("%s", p.bold("The case of "+nameOfAgent(on)))
	p.line("  %s: %s, evidence %s", name, plural.Of(o.Messages, "message"), o.Case)
	for _, line := range append(o.Read.lines(), aboutCase(on)...) {
		p.text("  ", line)
	}
	p.line("  no model is asked, and nothing is recorded")
	p.line("\n%s: %s", p.bold(pick(o.Jurors == panel.Offline, "Rules would sit, and no language models", "Language models would sit")), o.Why)
	for _, s := range o.Seats {
		showSeat(p, s)
	}
	if o.Judge != nil {
		showSeat(p, *o.Judge)
	}
	until := pick(o.Threshold <= 1, fmt.Sprintf("until the agreement is %.2f", o.Threshold), "at least one, until all agree")
	rounds := fmt.Sprintf("up to %s of discussion, %s", plural.Of(o.Rounds, "round"), until)
	if !o.Collaborative || o.Rounds == 0 {
		rounds = "no discussion" + pick(o.Jurors == panel.Offline && o.Collaborative, " (rules have nothing to say to each other)", "")
	}
	p.line("\n%s  %s, then %s", p.bold("Course"), rounds, o.Method)
	p.line("  %s for each answer; at most %s in all", o.Deadlines.Phase, o.Deadlines.Longest)
	if o.Shortened {
		p.text("  ", fmt.Sprintf("The evidence is longer than %d bytes, and is shown to all jurors shortened by the rule %s.", o.Shortening.Limit, o.Shortening.Rule))
	}
	for _, text := range o.Endings {
		p.warning("  ", text+": set it in the configuration.")
	}
	p.warnIf(o.Degraded, "  ", "A seat is empty: the trial would be degraded, and no safe_pass of it would exit with 0.")
	p.warnIf(len(o.Unbound) > 0, "  ", "A weight holds for one model and template, and the calibration names none for: %s.", strings.Join(o.Unbound, ", "))
	p.warnIf(o.NoModel, "  ", "No language model would sit, as keys are missing, so no safe_pass would exit with 0: %s.", howToGetAJury)
	if o.Jurors == panel.Offline {
		p.line("  it costs nothing")
		return
	}
	showChoices(p, o.Outlook)
	p.line("\n%s  about %s (%s) to at most %s (%s)", p.bold("Cost"), dollars(o.Lowest.Cost), plural.Of(o.Lowest.Calls, "call"), dollars(o.Highest.Cost), plural.Of(o.Highest.Calls, "call"))
	p.warnIf(len(o.Unpriced) > 0, "  ", "There is no price for %s: these calls are not counted.", strings.Join(o.Unpriced, ", "))
	p.line("  %s", pick(o.Ceiling > 0, "ceiling: "+dollars(o.Ceiling)+"; where it is reached the trial is inconclusive", "no ceiling"))
	p.text("  ", fmt.Sprintf("Built-in prices of %s (%s). The configuration can say others.", o.Prices.Date, o.Prices.Note))
}

// showChoices compares the panel with others, and says which jurors may favour the accused.
func showChoices(p *printer, o *panel.Outlook) {
	if len(o.SameVendor) > 0 {
		p.warning("  ", "The card or the records name the accused's model or vendor, and these are of that vendor: "+strings.Join(o.SameVendor, ", ")+
			". Models tend to favour their own kind: read their part with care, or seat others.")
	}
	p.line("\n%s", p.bold("Panels"))
	for _, c := range o.Choices {
		p.line("  %s %-9s about %-10s (%s) to at most %s (%s)", pick(c.Chosen, "*", " "), c.Panel, dollars(c.Lowest.Cost), plural.Of(c.Lowest.Calls, "call"), dollars(c.Highest.Cost), plural.Of(c.Highest.Calls, "call"))
	}
	p.text("  ", "thorough: tables before scores, the judge's own reading, disputed seats twice. quick: none of these, a round less. plain: quick with points.")
}

func showSeat(p *printer, s panel.SeatOutlook) {
	p.line("  %-24s %s %s", cmp.Or(s.Role, s.ID), s.Provider, s.Model)
	if s.Missing != "" {
		p.line("      %s", p.paint(yellow, "stays empty: "+s.Missing))
	} else if s.InPlaceOf != "" {
		p.line("      %s", p.paint(yellow, "substitute for "+s.InPlaceOf))
	}
	if s.Prompt == nil {
		return
	}
	p.lineIf(s.Key != "", "      key from %s", s.Key)
	p.line("      %s, %s for a call, %s", s.Parameters, s.Timeout, plural.Of(s.Attempts, "attempt"))
	p.line("      prompt: %d bytes of task, %d of evidence and question, about %d tokens", s.Prompt.SystemBytes, s.Prompt.MessageBytes, s.Prompt.Tokens)
	if s.Prompt.Message != "" {
		p.text("      | ", s.Prompt.System)
		p.line("      | --")
		p.text("      | ", s.Prompt.Message)
	}
}

// A checked case is how jurat reads a case, and everything that is wrong with it, as --check --json prints it.
type checked struct {
	Case     string             `json:"case"`
	Form     string             `json:"form,omitzero"` // or "records"
	Messages map[string]int     `json:"messages,omitzero"`
	Calls    *checkedCalls      `json:"calls,omitzero"`
	User     subject.Setting    `json:"user,omitzero"`
	Card     *checkedCard       `json:"card,omitzero"`
	Source   *subject.Source    `json:"source,omitzero"`
	LeftOut  []subject.Omission `json:"leftOut,omitzero"`
	Mistakes []checkedMistake   `json:"mistakes"`
}

type checkedCalls struct {
	Agent   int `json:"agent"`
	User    int `json:"user"`
	Results int `json:"results"`
}

type checkedCard struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	Skills  int    `json:"skills"`
}

type checkedMistake struct {
	File    string `json:"file,omitzero"`
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
	Pointer string `json:"pointer,omitzero"`
	Reason  string `json:"reason"`
	whole   string
}

func check(name string, b subject.Brought) *checked {
	one := &checked{Case: name, Mistakes: []checkedMistake{}}
	for _, err := range b.Mistakes {
		m := checkedMistake{Reason: err.Error(), whole: err.Error()}
		if at, is := errors.AsType[*subject.Error](err); is {
			m.File, m.Line, m.Column, m.Pointer, m.Reason = at.File, at.Line, at.Column, at.Pointer, at.Reason
		}
		one.Mistakes = append(one.Mistakes, m)
	}
	on := b.Case
	if on == nil {
		return one
	}
	one.Form, one.User, one.Source, one.LeftOut = string(on.Form), on.Setting(), on.Source, on.LeftOut
	if on.Recorded != nil {
		one.Form = "records"
	}
	if on.HasCard {
		one.Card = &checkedCard{on.Card.Name, on.Card.Version, len(on.Card.Skills)}
	}
	one.Messages, one.Calls = map[string]int{}, &checkedCalls{}
	for i := range on.Messages {
		m := &on.Messages[i]
		one.Messages[string(m.Role)]++
		switch {
		case m.Role == subject.Tool:
			one.Calls.Results++
		case m.Caller() == subject.User:
			one.Calls.User += len(m.ToolCalls)
		default:
			one.Calls.Agent += len(m.ToolCalls)
		}
	}
	return one
}

func (c *checked) wrong(p *printer) {
	p.line("%s", p.bold(c.Case))
	for _, m := range c.Mistakes {
		p.paragraph(red, "  ", m.whole)
	}
	p.text("  ", plural.Of(len(c.Mistakes), "mistake")+". docs/case.md describes each form, and 'jurat trial --schema conversation' prints a schema.")
}

func (c *checked) lines() []string {
	total := 0
	var from []string
	for _, role := range slices.Sorted(maps.Keys(c.Messages)) {
		total += c.Messages[role]
		from = append(from, fmt.Sprintf("%s %d", role, c.Messages[role]))
	}
	list := []string{"form: " + c.Form, fmt.Sprintf("%s: %s", plural.Of(total, "message"), strings.Join(from, ", ")),
		fmt.Sprintf("calls: %d by the agent, %d by the user; results: %d", c.Calls.Agent, c.Calls.User, c.Calls.Results), fmt.Sprintf("the user: %s", c.User)}
	if c.Card != nil {
		list = append(list, fmt.Sprintf("card: %s, %s", strings.TrimSpace(c.Card.Name+" "+c.Card.Version), plural.Of(c.Card.Skills, "skill")))
	}
	return list
}
