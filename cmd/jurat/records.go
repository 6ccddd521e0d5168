package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/panel"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/plural"
	"jurat/internal/log/duties"
	"jurat/internal/log/erasure"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/web/docket"
	"jurat/internal/web/find"
	"jurat/internal/web/words"
	"jurat/verify"
)

type recordsCmd struct {
	Text     string `arg:"" optional:"" name:"text" help:"Records with this text, in any letter case: at least three letters, or two of a script without spaces."`
	Show     string `xor:"what" placeholder:"CHAIN|RECORD" help:"Show what a recorder saw in this chain as a conversation, or one record of it."`
	Recorded bool   `xor:"what" help:"List the chains in which recorders saw something."`
	AIAct    bool   `name:"ai-act" xor:"what" help:"Say which clauses of the EU AI Act these answer: Articles 12, 19, 26, and what records can say of 50 and 86."`
	Said     bool   `help:"Only where the actor said the text itself, and was not only given it."`
	Actor    string `placeholder:"NAME" help:"The whole name of the agent, juror or person who acted; with --recorded, agents with this in their name."`
	Action   string `placeholder:"TYPE" help:"The action type, such as recommendation."`
	Chain    string `placeholder:"NAME" help:"Only records of this chain, or of this trial."`
	Record   string `placeholder:"ID" help:"The record with this id."`
	Sort     string `placeholder:"ORDER" help:"newest or oldest first. Default: newest."`
	Lines    int    `placeholder:"N" default:"30" help:"With --show: how many lines of each message; 0: all."`
	searchFlags
}

func (c *recordsCmd) Run(ctx context.Context, a *app, std stdio) error {
	values := c.values(sought{"text": c.Text, "actor": c.Actor, "action": c.Action, "chain": c.Chain, "record": c.Record, "sort": c.Sort, "said": pick(c.Said, "true", "")})
	if c.CSV && (c.AIAct || c.Recorded || c.Show != "") {
		return errors.New("--csv is for records that are found")
	}
	switch {
	case c.AIAct:
		return c.report(ctx, a, std, values)
	case c.Recorded:
		return c.recorded(ctx, a, std, values)
	case c.Show != "":
		return c.show(ctx, a, std, values)
	}
	if _, err := find.ReadRecords(values.get); err != nil {
		return flagError(err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		by, err := i.Trust(ctx)
		if err != nil {
			return err
		}
		return a.indexed(ctx, std, i, true, func(k *docket.Keeper, trials *trial.Index) error {
			list, err := k.Records(ctx, values.get, trials, everything(), by)
			return c.print(std, list, err)
		})
	})
}

func everything() *docket.Reader { return &docket.Reader{Scope: find.Scope{All: true}} }

func (c *recordsCmd) print(std stdio, list api.HitList, err error) error {
	t := table{heads: []head{{name: "proved", rank: 2}, {name: "role"}, {name: "who", rank: 3}, {name: "record", rank: 1}}}
	for _, h := range list.Hits {
		t.row(cmp.Or(h.Proved, "not proved"), h.Role, h.Actor, h.Record)
		t.below(h.Agent != "", "", "it saw an act of the agent %q", h.Agent)
		t.below(h.Why != "", yellow, "%s", h.Why)
		if o := h.Outcome; o != nil {
			t.below(true, "", "its trial: %s", words.Outcome(o, words.English))
		}
		t.below(h.Line != "", "", "%s %s: %s", pick(h.Said, "said in", "given in"), h.Place, h.Line)
	}
	return c.answer(std, list, err, docket.HitTable(list.Hits), func(p *printer) {
		p.table(&t)
		p.line("%s on this page", plural.Of(len(list.Hits), "record"))
		p.rest(list.Next, list.Index)
	})
}

func only(flag string, values sought, taken ...string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" && !slices.Contains(taken, name) {
			return fmt.Errorf("%s goes with --%s only", flag, strings.Join(taken, ", --"))
		}
	}
	return nil
}

func (c *recordsCmd) recorded(ctx context.Context, a *app, std stdio, values sought) error {
	if err := only("--recorded", values, "text", "actor", "from", "to", "after", "limit"); err != nil {
		return err
	}
	values["agent"] = values["actor"]
	if _, err := find.ReadRecordings(values.get); err != nil {
		return flagError(err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		return a.indexed(ctx, std, i, true, func(k *docket.Keeper, trials *trial.Index) error {
			list, err := k.Recordings(ctx, values.get, trials, everything())
			return jsonFlag{c.JSON}.answer(std, list, err, func(p *printer) {
				p.chains(&list)
				p.rest(list.Next, list.Index)
			})
		})
	})
}

func (p *printer) chains(list *api.Recordings) {
	t := table{heads: []head{{name: "first", rank: 4}, {name: "last", rank: 2}, {name: "agent", rank: 3}, {name: "acts", right: true}, {name: "seen", rank: 5}, {name: "chain", rank: 1}}}
	for i := range list.Recordings {
		r := &list.Recordings[i]
		t.row(minute(r.First), minute(r.Last), strings.Join(r.Agents, ", "), r.Acts, from(r.Vantages), r.Chain)
		var gaps remarks
		gaps.add(r.Broken > r.Lost, "%d did not come to the end", r.Broken-r.Lost)
		gaps.add(r.Lost > 0, "%d lost in a crash", r.Lost)
		gaps.add(r.Missed > 0, "%d passed without a record in this time", r.Missed)
		t.below(gaps != nil, yellow, "%s", strings.Join(gaps, ", "))
		t.below(len(r.Models) > 0 || r.Tokens != nil, "", "%s%s", strings.Join(r.Models, ", "), tokensOf(r))
		for n := range r.Trials {
			t.below(true, "", "tried: %s", r.Trials[n].ID)
		}
	}
	p.table(&t)
	p.line("%s on this page", plural.Of(len(list.Recordings), "chain"))
}

func tokensOf(r *api.Recording) string {
	if r.Tokens == nil {
		return ""
	}
	return fmt.Sprintf("; %s read, %d written", plural.Of(r.Tokens.Input, "token"), r.Tokens.Output)
}

func from(list []evidence.Vantage) string {
	return joined(list, ", ", func(v evidence.Vantage) string {
		return map[evidence.Vantage]string{evidence.Proxy: "bytes", evidence.ProxyMITM: "bytes", evidence.InProcess: "in the program", evidence.Telemetry: "second hand", evidence.Examiner: "asked"}[v]
	})
}

func (c *recordsCmd) show(ctx context.Context, a *app, std stdio, values sought) error {
	if err := only("--show", values, "after", "limit"); err != nil {
		return err
	}
	after, fine := wholeNumber(cmp.Or(values["after"], "0"))
	limit, also := wholeNumber(cmp.Or(values["limit"], "100"))
	if !fine || !also || after < 0 || limit < 1 || c.Lines < 0 {
		return errors.New("--limit is from 1, --after and --lines from 0")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		chain, number, err := docket.FindChain(ctx, i.Ledger, c.Show)
		if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, docket.ErrNotRecorded) {
			return hint(fmt.Errorf("%q: there is nothing that a recorder saw: %w", c.Show, err), "'jurat records --recorded' lists what there is")
		}
		if err != nil {
			return err
		}
		o := docket.PartOrder{From: after + 1, N: limit}
		if number > 0 {
			o.From, o.N = number, 1
		}
		part, err := c.read(ctx, a, std, i, chain, o)
		return jsonFlag{c.JSON}.answer(std, part, err, func(p *printer) { p.recorded(part, c.Lines) })
	})
}

const lookForMore = "'jurat log fsck' looks for more of the kind"

func (*recordsCmd) read(ctx context.Context, a *app, std stdio, i *installation.Installation, chain string, o docket.PartOrder) (*docket.ChainPart, error) {
	table, err := panel.BuiltInPrices(time.Now())
	if err != nil {
		return nil, err
	}
	o.Prices, o.Open = table.Prices, func(r *evidence.Record) (*evidence.Record, error) {
		disclosed, err := i.Apart.Disclose(ctx, r, nil)
		err = hintIf(erasure.ErrDamaged, err, lookForMore)
		return disclosed, hintIf(evidence.ErrDisclosure, err, lookForMore)
	}
	part, err := docket.ReadPart(chain, i.Ledger.ChainRecords(ctx, chain), o)
	if err != nil || !slices.ContainsFunc(part.Acts, func(a docket.RecordedAct) bool { return a.Withheld != nil }) {
		return part, err
	}
	k, err := a.words(ctx, std, i)
	if err != nil {
		return nil, err
	}
	x, err := k.Open(ctx)
	if err == nil {
		err = part.FindErased(ctx, x)
	}
	return part, errors.Join(err, k.Close())
}

func (p *printer) recorded(part *docket.ChainPart, lines int) {
	s := part.Sum()
	p.line("%s", p.bold(part.Chain))
	if len(part.Acts) == 0 {
		p.line("  it has no record with this number")
		return
	}
	p.text("  ", fmt.Sprintf("the agent %q: %s from %s to %s%s", s.Agent, plural.Of(s.Calls, "act"), s.First, s.Last, totals(&s)))
	for _, seen := range s.Seen {
		p.text("  ", fmt.Sprintf("%s: %s", inWords(part.Acts, seen), plural.Of(seen.Records, "record")))
	}
	p.warnIf(s.Gaps > 0, "  ", "%s %s that something is missing", plural.Of(s.Gaps, "record"), plural.Or(s.Gaps, "says", "say"))
	told := map[string]bool{} // what is missing: the same is said once
	for i := range part.Acts {
		a := &part.Acts[i]
		p.line("")
		p.act(a, lines)
		if o := a.Observed; o != nil {
			fresh := slices.DeleteFunc(slices.Clone(o.Missing), func(text string) bool { return told[text] })
			for _, text := range fresh {
				told[text] = true
			}
			p.textIf(len(fresh) > 0, "   ", "not seen: %s", strings.Join(fresh, "; "))
		}
	}
	if part.Next > 0 {
		p.line("")
		p.line("There is more: --after %d", part.Next-1)
	}
}

func inWords(acts []docket.RecordedAct, seen verify.Seen) string {
	for i := range acts {
		if o := acts[i].Observed; o != nil && acts[i].Recorder == seen.Recorder && o.Vantage == seen.Vantage && o.Fidelity == seen.Fidelity {
			return verify.SeenFrom(o, seen.Recorder)
		}
	}
	return verify.VantageInWords(seen.Vantage, seen.Recorder)
}

func totals(s *docket.ChainSummary) string {
	var r remarks
	r.add(len(s.Models) > 0, "%s", strings.Join(s.Models, ", "))
	r.add(s.Failed > 0, "%d failed", s.Failed)
	text := r.behind("; ") + tokens(s.Tokens)
	if s.Cost == nil {
		return text
	}
	return text + "; " + dollars(*s.Cost) + pick(s.Unpriced > 0, fmt.Sprintf(" without %s whose price is not known", plural.Of(s.Unpriced, "act")), "")
}

func tokens(t *docket.Tokens) string {
	if t == nil {
		return ""
	}
	cached := pick(t.Cached > 0, fmt.Sprintf(" (%d from a cache)", t.Cached), "")
	return fmt.Sprintf("; %s read%s, %d written", plural.Of(t.Input, "token"), cached, t.Output)
}

func (p *printer) act(a *docket.RecordedAct, lines int) {
	p.line("%s", p.bold(fmt.Sprintf("%d. %s  %s", a.Number, a.Time, plain(a.Action))))
	p.text("   ", a.Record+facts(a))
	p.text("   ", file(a))
	p.warnIf(a.Fault != "", "   ", "it cannot be read: %s", a.Fault)
	p.textIf(a.Repeats > 0, "   ", "its prompt repeats %s", plural.Of(a.Repeats, "message"))
	for i := range a.Messages {
		if m := &a.Messages[i]; m.Part != "observed" { // what the jury is told of it stands below
			p.message(m, lines)
		}
	}
	p.textIf(a.Again > 0, "   ", "the answer is again that of message %d", a.Again)
	for _, text := range troubles(a) {
		p.warning("   ", text)
	}
}

func facts(a *docket.RecordedAct) string {
	o := a.Observed
	if o == nil {
		return ""
	}
	var r remarks
	other := a.Model != "" && a.ModelVersion != "" && a.Model != a.ModelVersion
	r.add(other, "%s, answered by %s", a.Model, a.ModelVersion)
	r.add(!other && a.Model+a.ModelVersion != "", "%s", cmp.Or(a.ModelVersion, a.Model))
	r.add(o.Status != 0, "status %d", o.Status)
	if o.FirstByteMS != nil {
		r.add(true, "first byte after %s", milliseconds(*o.FirstByteMS))
	}
	if o.EndedMS != nil {
		r.add(true, "took %s", milliseconds(*o.EndedMS))
	}
	text := "  " + o.Protocol + r.behind("; ") + tokens(a.Tokens)
	if a.Cost != nil {
		text += "; " + dollars(*a.Cost)
	}
	return text + pick(a.Finish == "", "", "; "+a.Finish)
}

// file says where an imported act stands in which file; "": it is none.
func file(a *docket.RecordedAct) string {
	if o := a.Observed; o == nil || o.Request == nil || !strings.HasPrefix(o.Protocol, observed.Imported) {
		return ""
	}
	var h struct {
		File   string `json:"file"`
		SHA256 string `json:"file-sha256"`
		Place  string `json:"place"`
		SaidAt string `json:"said-at"`
	}
	if json.Unmarshal(a.Observed.Request.Headers, &h) != nil {
		return ""
	}
	return fmt.Sprintf("from %s, %s, of the file %s%s", h.File, h.Place, h.SHA256, pick(h.SaidAt != "", "; by its word said at "+h.SaidAt, ""))
}

func milliseconds(n int64) string { return (time.Duration(n) * time.Millisecond).String() }

func troubles(a *docket.RecordedAct) []string {
	var r remarks
	if o := a.Observed; o != nil {
		r.add(o.Ended != evidence.Complete, "%s", subject.EndingInWords(o.Ended))
		r.add(o.ContextByReference != nil, "the provider had more, which is not in the bytes: %s", strings.Join(o.ContextByReference, ", "))
		r.add(o.RetryOf != "", "another attempt of the request %s", o.RetryOf)
	}
	r.add(a.Error != "", "the provider's error: %s", a.Error)
	r.add(a.Problem != "", "not wholly read: %s", a.Problem)
	for _, lack := range a.Lacks {
		r.add(true, "bytes of the %s: %s", lack.Direction, lack.Why)
	}
	r.add(a.Alternatives > 0, "the agent got %s more", plural.Of(a.Alternatives, "answer"))
	r.add(a.Erased != nil, "erased: %s", strings.Join(a.Erased, ", "))
	return r
}

// message prints a message, and at most so many lines of it; 0: all.
func (p *printer) message(m *subject.Message, most int) {
	who := string(m.Role)
	if more := cmp.Or(m.ToolName, m.Name); more != "" && m.Role != subject.Assistant {
		who += " " + more
	}
	who += pick(m.CallNumber > 0, fmt.Sprintf(", for call %d in message %d", m.CallPlace, m.CallNumber), "") + pick(m.Failed, ", failed", "")
	p.line("   %s", p.dim(pick(m.Number > 0, fmt.Sprintf("%d ", m.Number), "")+who))
	text := strings.TrimRight(m.Text, "\n")
	left := 0
	if rows := strings.Split(text, "\n"); most > 0 && len(rows) > most {
		text, left = strings.Join(rows[:most], "\n"), len(rows)-most
	}
	p.textIf(text != "", "     ", "%s", text)
	p.lineIf(left > 0, "     %s", p.dim(fmt.Sprintf("… %s more: --lines 0 shows them", plural.Of(left, "line"))))
	for _, call := range m.ToolCalls {
		result := pick(call.Result > 0, fmt.Sprintf("  (answered by message %d)", call.Result), "")
		p.text("     ", fmt.Sprintf("calls %s %s%s", call.Name, call.Arguments, result))
	}
}

func (c *recordsCmd) report(ctx context.Context, a *app, std stdio, values sought) error {
	if err := only("--ai-act", values, "actor", "from", "to"); err != nil {
		return err
	}
	q, err := find.ReadRecords(values.get)
	if err != nil {
		return flagError(err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		r, err := answers(ctx, i, std, duties.Selection{Agent: q.Actor, From: q.From, To: q.To})
		if err != nil {
			return err
		}
		return closing(reportCode(r), jsonFlag{c.JSON}.answer(std, r, nil, func(p *printer) { p.duties(r) }))
	})
}

func answers(ctx context.Context, i *installation.Installation, std stdio, s duties.Selection) (*duties.Report, error) {
	facts, err := duties.Gather(ctx, i.Ledger, s, progress(std, "records read"))
	expired, unknown := i.Expired(ctx)
	trusted, untrusted := i.Trust(ctx)
	if err := cmp.Or(err, unknown, untrusted); err != nil {
		return nil, err
	}
	fingerprint, err := trusted.Fingerprint()
	if err != nil {
		return nil, err
	}
	v := duties.Verifier{Ledger: i.Ledger, Options: verify.Options{Trust: trusted, At: time.Now()}, Progress: progress(std, "records verified"),
		Disclose: func(ctx context.Context, records []*evidence.Record) ([]*evidence.Record, error) {
			return new(withholdFlag).disclose(ctx, i, records...)
		}}
	found, err := v.Verify(ctx, facts)
	if err != nil {
		return nil, err
	}
	return facts.Report(duties.AIAct(), found, expired, i.Ledger.Origin(), fingerprint.String()), nil
}

func reportCode(r *duties.Report) error {
	refuted := func(l duties.Line) bool { return l.Refuted > 0 }
	if slices.ContainsFunc(r.Clauses, func(c duties.Clause) bool { return slices.ContainsFunc(c.Lines, refuted) }) {
		return exitCode(exitBad)
	}
	return when(r.Acts == 0, exitUndecided)
}

func reportHead(r *duties.Report) string {
	var when remarks
	when.add(r.From != "", "from %s", r.From)
	when.add(r.To != "", "before %s", r.To)
	return fmt.Sprintf("%s (mapping %s, version %d): records of %s in the log %s%s, %s", r.Mapping.Of, r.Mapping.ID, r.Mapping.Version,
		pick(r.Agent != "", fmt.Sprintf("the agent %q", r.Agent), "every agent"), r.Log, when.behind(", "), plural.Of(r.Acts, "act"))
}

func (p *printer) duties(r *duties.Report) {
	p.text("", inert(reportHead(r)))
	for _, w := range r.Warnings {
		p.text("  ", inert("! "+w))
	}
	p.text("  ", r.Claims)
	for i := range r.Clauses {
		clause := &r.Clauses[i]
		p.line("")
		p.line("%s", p.bold("Article "+clause.ID))
		p.text("  ", clause.Asks)
		p.textIf(clause.Applies != "", "  ", "Applies %s.", clause.Applies)
		for n := range clause.Lines {
			p.text("  ", inert("- "+dutyLine(&clause.Lines[n])))
		}
		for _, s := range clause.Settings {
			p.text("  ", s+".")
		}
		for _, s := range clause.NotShown {
			p.text("  ", "Not shown: "+s+".")
		}
	}
	p.line("")
	p.text("", r.Mapping.Dates+".")
	for _, d := range r.Mapping.Drafts {
		p.text("", d+".")
	}
	p.text("", "Verified by this installation's own trust file "+r.Trust+".")
}

func dutyLine(l *duties.Line) string {
	if l.Records == 0 {
		return strings.TrimSuffix(fmt.Sprintf("%s (%s): no record. %s", l.Shows, l.Members, l.Note), " ")
	}
	var more remarks
	more.add(len(l.People) > 0, "by %s", strings.Join(l.People, ", "))
	more.add(l.Note != "", "%s", l.Note)
	return fmt.Sprintf("%s (%s): %s, from %s (%s) to %s (%s); %s%s", l.Shows, l.Members, plural.Of(l.Records, "record"), l.First.Record, l.First.Time,
		l.Last.Record, l.Last.Time, dutyProof(l), more.behind("; "))
}

func dutyProof(l *duties.Line) string {
	var not remarks
	not.add(l.NotProved > 0, "%d not proved", l.NotProved)
	not.add(l.Refuted > 0, "%d REFUTED", l.Refuted)
	names := joined(l.Guarantees, ", ", func(g verify.Guarantee) string { return string(g) })
	return fmt.Sprintf("%s of %d: %d proved%s", names, l.Records, l.Proved, not.behind(", "))
}
