package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jurat/api"
	"jurat/client"
	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/docket"
	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/reputation"
	"jurat/verify"
)

type reputationCmd struct {
	Agent string   `arg:"" help:"The agent's name, as its records give it."`
	Files []string `arg:"" optional:"" name:"file" help:"Case files of trials, and bundles of the agent's records. Without any: the log of this installation."`
	readerFlags
	Log string `name:"log" help:"Compute it from the log at this URL, such as https://jurat.example/log, with your own trust file: its checkpoint, all its entries, and what it has about the agent." placeholder:"URL"`
	tokenFlag
	CA         string `name:"ca" help:"The agent is the one whose keys this CA of your trust file certified, by the CA's name." placeholder:"NAME"`
	PolicyFile string `name:"policy" help:"Your policy: whose word counts. See docs/reputation.md." placeholder:"FILE"`
	Checkpoint string `help:"A checkpoint of the log, for --entries." placeholder:"FILE"`
	Entries    string `help:"All entries that your --checkpoint covers: they show whether a judgment is missing." placeholder:"FILE"`
	Explain    bool   `help:"Trace each digit back to records."`
	Facts      bool   `help:"Print what verification found, from which the result is computed."`
	jsonFlag
	Out string `help:"Also write what a stranger needs, to compute the same, into this new folder. Only from the log." placeholder:"DIR"`
}

func (c *reputationCmd) Run(ctx context.Context, a *app, io stdio) error {
	policy, err := c.policy()
	if err := cmp.Or(err, c.checkFlags()); err != nil {
		return err
	}
	b := c.bring()
	defer b.close()
	o, err := b.options()
	if err != nil {
		return err
	}
	config := reputation.Config{Agent: c.Agent, CA: c.CA, Policy: policy, Options: o}
	if c.Log != "" {
		return c.fromServer(ctx, io, config)
	}
	if len(c.Files) > 0 {
		return c.fromFiles(ctx, io, config)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		if config.Options.Trust == nil {
			if config.Options.Trust, err = i.Trust(ctx); err != nil {
				return err
			}
		}
		return c.fromLog(ctx, i, io, config)
	})
}

func (c *reputationCmd) policy() (*reputation.Policy, error) {
	if c.PolicyFile == "" {
		return reputation.DefaultPolicy(), nil
	}
	return parsed(c.PolicyFile, reputation.ParsePolicy)
}

func (c *reputationCmd) checkFlags() error {
	return cmp.Or(refuse((c.Entries == "") != (c.Checkpoint == ""), "--entries and --checkpoint belong together: bring the entries, and the checkpoint that covers them"),
		refuse(c.Log != "" && len(c.Files)+len(c.Entries) > 0, "--log reads all that the log has: leave out files and --entries"),
		refuse(c.Log == "" && c.TokenFile != "", "--token-file is for --log, which names the server that wants the token"),
		refuse(c.Entries != "" && len(c.Files) == 0, "--entries are for files: without files the log of this installation is read, and it knows its entries"),
		refuse(c.Out != "" && len(c.Files) > 0, "--out writes what a log has: leave out the files"))
}

// gatherer makes a Gatherer, and says what to do if it is not known who the agent is.
func gatherer(config reputation.Config) (*reputation.Gatherer, error) {
	g, err := reputation.NewGatherer(config)
	return g, hintIf(reputation.ErrIdentity, err, "only agents that sealed records have a reputation, whatever trials of transcripts found; "+
		"--trust brings a trust file with the agent's key ('jurat trust' writes it), and --ca names the CA that certified it")
}

func (c *reputationCmd) fromFiles(ctx context.Context, io stdio, config reputation.Config) error {
	g, err := gatherer(config)
	if err == nil && c.Entries != "" {
		err = c.entries(g)
	}
	if err != nil {
		return err
	}
	told := progress(io, "files verified")
	for n, name := range c.Files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		doc, err := readFile(name)
		if err != nil {
			return err
		}
		report, err := g.File(doc)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		io.tellIf(lies(report), "%s: refuted; what of it is not proved does not count ('jurat verify' says why)", name)
		told(int64(n+1), int64(len(c.Files)))
	}
	return c.tell(io, g)
}

// lies reports whether something is refuted beside chains. Of a chain that several agents share, --out writes the records of one, so it is never whole.
func lies(report *verify.Report) bool {
	return slices.ContainsFunc(report.Guarantees, func(f verify.Finding) bool { return f.Status == verify.Refuted && f.Guarantee != verify.Chain })
}

func (c *reputationCmd) entries(g *reputation.Gatherer) error {
	checkpoint, err := readFile(c.Checkpoint)
	if err != nil {
		return err
	}
	file, err := os.Open(c.Entries)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := g.Entries(evidence.MendNote(string(checkpoint)), file); err != nil {
		return hint(fmt.Errorf("%s: %w", c.Entries, err), "'jurat log checkpoint' and 'jurat log checkpoint --entries' write both, one right after the other")
	}
	return nil
}

func (c *reputationCmd) fromLog(ctx context.Context, i *installation.Installation, io stdio, config reputation.Config) error {
	g, err := gatherer(config)
	if err != nil {
		return err
	}
	take, err := c.taking(io, g)
	if err != nil {
		return err
	}
	fact, err := docket.ReadConduct(ctx, i.Ledger, c.Agent, take)
	if err != nil {
		return err
	}
	if len(fact.Actor)+len(fact.Subject) == 0 {
		return noSuchAgent(c.Agent)
	}
	g.Log(fact)
	return c.tell(io, g)
}

func noSuchAgent(name string) error {
	return unknownAgent(fmt.Errorf("the log has no record of an agent %q, and no judgment about one", name))
}

func unknownAgent(err error) error {
	return hint(err,
		"names are compared letter by letter; records that the log took in before it counted actors are not found by name, nor are acts that a recorder saw and nobody has judged")
}

// fromServer asks another machine's log. The entries are those of one checkpoint, and the files are asked for as of then: what is sealed
// meanwhile would look like a judgment that is missing.
func (c *reputationCmd) fromServer(ctx context.Context, io stdio, config reputation.Config) error {
	log, err := openRemote(c.Log, c.Trust, c.tokenFlag)
	if err != nil {
		return err
	}
	server, is := strings.CutSuffix(log.URL(), "/log/")
	if !is {
		return whereLogsAre(fmt.Errorf("--log: %s is not the log of a jurat server, which alone has the records", c.Log))
	}
	asking, err := client.NewClient(client.Config{URL: server, Token: log.token})
	g, unknown := gatherer(config)
	if err := cmp.Or(err, unknown); err != nil {
		return err
	}
	signed, head, err := log.newest(ctx)
	if err != nil {
		return err
	}
	take, err := c.taking(io, g)
	if err != nil {
		return err
	}
	files := 0
	for bundle, err := range asking.Conduct(ctx, c.Agent, head.Size) {
		if errors.Is(err, api.ErrNotFound) {
			return unknownAgent(err)
		}
		if files++; err == nil {
			err = take(docket.ConductFile{Name: fmt.Sprintf("conduct-%04d", files), Bundle: bundle})
		}
		if err != nil {
			return err
		}
	}
	entries := log.lines(ctx, head, progress(io, "entries of the log"))
	defer entries.Close()
	if err := g.Entries(signed, entries); err != nil {
		return err
	}
	return c.tell(io, g)
}

// taking returns what has files count, and keeps them for a stranger if --out names a folder.
func (c *reputationCmd) taking(io stdio, g *reputation.Gatherer) (take func(docket.ConductFile) error, err error) {
	if c.Out != "" {
		err = os.Mkdir(c.Out, 0o750)
	}
	told, files := progress(io, "files verified"), int64(0)
	return func(f docket.ConductFile) error {
		g.Bundle(f.Bundle)
		files++
		if told(files, files); c.Out == "" {
			return nil
		}
		doc, err := f.Bundle.Marshal()
		if err != nil {
			return err
		}
		return atomicfile.Create(filepath.Join(c.Out, f.Name+".jurat"), doc, 0o640)
	}, err
}

func (c *reputationCmd) tell(io stdio, g *reputation.Gatherer) error {
	if c.Facts {
		doc, err := fileOf(g.Facts())
		if err != nil {
			return err
		}
		return io.line("%s", doc)
	}
	v, err := g.View()
	if err != nil {
		return err
	}
	if c.JSON {
		err = io.print(v, nil)
	} else {
		err = c.describe(io, v)
	}
	return cmp.Or(err, coded(codeOf(v.Outcome)))
}

func (c *reputationCmd) describe(io stdio, v *reputation.View) error {
	p := newPrinter(io.out)
	p.line("%s, as of %s", p.bold(inert(v.Identity.Name)), v.At)
	p.text("  ", whoseKeys(v))
	for i := range v.Classes {
		p.text("  ", classLine(&v.Classes[i], v))
	}
	p.textIf(len(v.Classes) == 0, "  ", "No sealed record of this agent was judged by anybody whose word counts.")
	p.text("  ", coverageLine(v))
	for i := range v.Completeness {
		p.text("  ", completenessLine(&v.Completeness[i]))
	}
	for _, one := range v.Incidents {
		p.text("  ", fmt.Sprintf("Incident: the key %s was revoked from %s on (%s). Records since do not count.", one.KeyID.Short(), one.From, one.Source))
	}
	n := len(v.Allegations)
	p.textIf(n > 0, "  ", "%s of transcripts, which anybody can write: allegations, not counted.", plural.Of(n, "trial"))
	for _, line := range leftOutLines(v) {
		p.text("  ", line)
	}
	if c.Explain {
		for _, line := range v.Explain() {
			p.line("%s", inert(line))
		}
	}
	p.text("  ", fmt.Sprintf("Formula %s, policy %s, trust file %s.", v.Formula, v.Policy.Short(), v.Trust.Short()))
	p.text("  ", "This says how a sealed past was judged. It does not say how the agent will behave, and numbers of two panels cannot be compared.")
	p.line("  %s", p.statusIn(v.Outcome, strings.ToUpper(string(v.Outcome))))
	return p.err
}

func whoseKeys(v *reputation.View) string {
	switch {
	case v.Identity.By == "cas":
		return "The agent whose keys the CA " + inert(v.Identity.CA) + " certified."
	case len(v.Identity.Keys) == 0:
		return "The agent as recorders name it: the trust file has no key of it."
	}
	return "The agent with the " + plural.Of(len(v.Identity.Keys), "key") + " that the trust file gives it."
}

func classLine(k *reputation.Class, v *reputation.View) string {
	counts := fmt.Sprintf("%d passed, %d failed, %d undecided", k.Good.Units, k.Bad.Units, k.Neither)
	what := "no number, as judgments are missing"
	switch k.Status {
	case reputation.Scored:
		what = fmt.Sprintf("between %s and %s", percent(k.Bounds.Lower), percent(k.Bounds.Upper))
	case reputation.TooFew:
		what = "too few for a number"
		counts += fmt.Sprintf("; old records and verdicts over many records weigh less; the least is %d", v.Minimum)
	case reputation.Uncounted:
		what = "no number, by the policy"
	case reputation.Unproved:
		what = "no number, as judgments are not proved to be in the log"
	}
	return fmt.Sprintf("%s: %s (%s)", k.Title(), what, counts)
}

func percent(perMyriad int64) string { return fmt.Sprintf("%d.%02d %%", perMyriad/100, perMyriad%100) }

func coverageLine(v *reputation.View) string {
	of := pick(v.Coverage.Total > 0, fmt.Sprintf("all %d", v.Coverage.Total), fmt.Sprintf("%d that are at hand and count", v.Coverage.Known))
	return fmt.Sprintf("Judged: %d of the records that the agent sealed itself, of %s: %s. They were chosen by the operator, not drawn.", v.Coverage.Judged, of, percent(v.Coverage.PerMyri))
}

func completenessLine(l *reputation.LogView) string {
	j := l.Judgments
	said := fmt.Sprintf("Log %s: %d of %s about the agent at hand: %s", inert(l.Origin), j.Known, plural.Of(j.Total, "judgment"), j.Status)
	why := map[string]string{
		"count":     "the log's entries number them falsely",
		"fork":      "two records have one number: the log shows two histories",
		"dropped":   fmt.Sprintf("the log has number %d, which is not among the files: ask the operator for all ('jurat reputation AGENT --out DIR')", first(j.Missing)),
		"unproved":  fmt.Sprintf("number %d is at hand, but not proved to be in the log: witnesses cosign what is new within seconds, if a server runs ('jurat log witness --ask')", first(j.Missing)),
		"doubted":   fmt.Sprintf("number %d is at hand and does not count, as its trial, or the record that it judged, is not proved or not at hand", first(j.Missing)),
		"hole":      fmt.Sprintf("number %d is missing: ask the operator for all ('jurat reputation AGENT --out DIR')", first(j.Missing)),
		"uncounted": "the log has older records that it did not count",
		"tail":      "later ones may exist: only the log's entries show that (--checkpoint and --entries)",
	}[j.Rule]
	return said + pick(why != "", "; "+why, "") + "."
}

func first(numbers []int64) int64 {
	if len(numbers) == 0 {
		return 0
	}
	return numbers[0]
}

func leftOutLines(v *reputation.View) (lines []string) {
	type kind struct{ what, rule string }
	many := map[kind]int{}
	var order []kind
	for _, o := range v.LeftOut {
		k := kind{string(o.What), o.Rule}
		if many[k]++; many[k] == 1 {
			order = append(order, k)
		}
	}
	for _, k := range order {
		lines = append(lines, fmt.Sprintf("Left out: %s, rule %s (--json lists them).", plural.Of(many[k], k.what), k.rule))
	}
	return lines
}
