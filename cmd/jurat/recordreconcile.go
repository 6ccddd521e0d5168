package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/installation"
	"jurat/internal/ledger/brief"
	"jurat/internal/observe"
	"jurat/internal/plural"
	"jurat/internal/reconcile"
	tally "jurat/verify/counted"
)

type recordReconcileCmd struct {
	File    string        `arg:"" help:"The provider's account of usage."`
	From    *time.Time    `placeholder:"TIME" help:"Compare from this time on (RFC 3339). Default: all that the file covers."`
	To      *time.Time    `placeholder:"TIME" help:"Compare up to this time (RFC 3339)."`
	Agent   string        `placeholder:"NAME" help:"Compare this agent's calls alone: the file must be of its key alone."`
	Origin  string        `placeholder:"URL" help:"Compare calls to this address alone, such as https://api.openai.com. Default: all calls in the protocols of the file's provider."`
	Slack   time.Duration `default:"5s" placeholder:"TIME" help:"How far the clocks here and at the provider may differ. A call so near to an edge is undecided."`
	Zone    string        `placeholder:"ZONE" help:"Where times without a zone in a list of calls are from, such as UTC or Europe/Berlin."`
	KeyHeld bool          `name:"key-held" help:"The operator states that the recorder held the provider's key in that time, and agents had none. The report says whose word it is."`
	Seal    bool          `help:"Seal the outcome, as an act of the operator (usage_comparison)."`
	Keep    bool          `name:"keep-file" help:"With --seal: seal the file with it, apart, so that 'jurat erase' can destroy it."`
	By      newName       `placeholder:"NAME" help:"With --seal: who compared. It goes into the log. Default: the name of the account."`
	JSON    bool          `name:"json" help:"Print the report as JSON, with the digests of the file, of the records that it names and of the log."`
}

// Help is shown by 'jurat record reconcile --help'.
func (*recordReconcileCmd) Help() string {
	return `Compares the calls that recorders sealed with what the provider counted in the same time, and names each difference: calls that the provider counts and the log has
not, which went around the recorder; calls that the log has and the provider does not count; other numbers of tokens.

The file is one of these; it is known by its members or columns:

    OpenAI      the pages of GET /v1/organization/usage/completions, or the CSV of the usage dashboard
    Anthropic   the pages of GET /v1/organizations/usage_report/messages, or the CSV of the Console
    others      CSV or JSON lines with request_id, time, model, input_tokens, output_tokens: one line for each call

Ask the provider for buckets as narrow as it has them, grouped by model, and for the key of the agents alone. A call on the edge of a bucket, or without a count of
tokens in its answer, is said to be undecided, as far as sums do not decide it.

    jurat record reconcile usage.csv --agent support-agent --from 2026-11-01T00:00:00Z

Even if all agrees, this shows nothing of other providers, accounts or keys.

With --seal the log says that it was compared: the file's digest, the time, what both sides count, and the differences. 'jurat verify' counts the calls of a file
again, and refutes such an act if it has more of them. What the provider counts stays the operator's word:

    jurat record reconcile usage.csv --seal
    jurat log case recorded/support-agent/monday --with RECORD > case.jurat     with the id that --seal printed

Exit code 0: all agrees. 1: something differs. 3: nothing differs, and something is undecided. 2: it could not be compared.`
}

// reconciled is the report with what it rests on.
type reconciled struct {
	File struct {
		Name   string          `json:"name"`
		SHA256 evidence.Digest `json:"sha256"`
		Format string          `json:"format"`
	} `json:"file"`
	Log struct {
		Checkpoint string   `json:"checkpoint"` // signed; the records named below are in the log up to there
		Origins    []string `json:"origins"`    // where the calls went that were compared
		Agents     []string `json:"agents"`
	} `json:"sealed"`
	Coverage string `json:"coverage"`
	Act      string `json:"act,omitzero"` // the record that --seal made
	*reconcile.Report
}

// Run compares.
func (c *recordReconcileCmd) Run(ctx context.Context, a *app, io stdio) error {
	if (c.Keep || c.By != "") && !c.Seal {
		return errors.New("--keep-file and --by go with --seal")
	}
	text, err := readFile(c.File)
	if err != nil {
		return err
	}
	var zone *time.Location
	if c.Zone != "" {
		if zone, err = time.LoadLocation(c.Zone); err != nil {
			return fmt.Errorf("--zone: %w", err)
		}
	}
	export, err := reconcile.Parse(text, zone)
	if err != nil {
		return hint(fmt.Errorf("%s: %w", c.File, err), "'jurat record reconcile --help' says which files are known")
	}
	order := reconcile.Order{From: timeOr(c.From), To: timeOr(c.To), Slack: c.Slack}
	return a.with(ctx, func(i *installation.Installation) error {
		r := &reconciled{Coverage: c.coverage()}
		r.File.Name, r.File.SHA256, r.File.Format = c.File, export.SHA256, export.Format
		if r.Log.Checkpoint, err = i.Ledger.Checkpoint(ctx); err != nil {
			return err
		}
		calls, err := c.calls(ctx, i, io, export, order, r)
		if err != nil {
			return err
		}
		r.Report = reconcile.Compare(export, calls.compared, order)
		if c.Seal {
			if r.Act, err = c.seal(ctx, i, export, text, calls, r); err != nil {
				return err
			}
			defer catchUp(ctx, io, i)
		}
		code := map[reconcile.Kind]error{reconcile.Undecided: error(exitCode(exitUndecided)), "": nil}
		exit, known := code[r.Worst()]
		if !known {
			exit = exitCode(exitBad)
		}
		if c.JSON {
			return closing(exit, io.json(r))
		}
		p := newPrinter(io.out)
		p.reconciled(r)
		return closing(exit, p.err)
	})
}

func timeOr(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// coverage says what is known of other ways.
func (c *recordReconcileCmd) coverage() string {
	if c.KeyHeld {
		return "stated by the operator: key held by recorder"
	}
	return "not proved: nothing shows that the agent spoke to models by this way alone; the file covers one account of one provider"
}

// logged are the calls of a log.
type logged struct {
	size     int64 // of the log
	compared []reconcile.Call
	counted  []tally.Call // the same ones, in the same order
}

// calls reads the calls of the log that may be in the file's time.
func (c *recordReconcileCmd) calls(ctx context.Context, i *installation.Installation, io stdio, e *reconcile.Export, o reconcile.Order, r *reconciled) (*logged, error) {
	from, _ := e.Window(o)
	since := evidence.FormatTime(from.Add(-c.Slack - time.Second)) // a second more, since fractions are written in several ways
	size, err := i.Ledger.Size(ctx)
	if err != nil {
		return nil, err
	}
	found := &logged{size: size}
	tell := progress(io, "records looked at")
	var places []int64
	for b, err := range i.Ledger.Briefs().List(ctx, brief.Listing{}) {
		if err != nil {
			return nil, err
		}
		if b.Index >= size {
			break
		}
		tell(b.Index, size)
		if b.Action == evidence.ObservedCall && b.Timestamp >= since { // a call is sealed when it has ended
			places = append(places, b.Index)
		}
	}
	for page := range slices.Chunk(places, 100) {
		rows, err := i.Ledger.RowsAt(ctx, page)
		if err != nil {
			return nil, err
		}
		for n := range rows {
			record, err := rows[n].Record()
			if err != nil {
				return nil, err
			}
			o := record.Payload.Observed
			if !c.wants(o, e.Vendor) {
				continue
			}
			one, is := tally.Of(&record.Payload, record.Digest, rows[n].Index)
			if !is {
				continue
			}
			call, err := callOf(ctx, i, record, one, len(e.Rows) > 0)
			if err != nil {
				return nil, err
			}
			found.compared, found.counted = append(found.compared, call), append(found.counted, one)
			r.Log.Agents = with(r.Log.Agents, o.Agent)
			if o.Upstream != nil {
				r.Log.Origins = with(r.Log.Origins, o.Upstream.Origin)
			}
		}
	}
	return found, nil
}

// wants reports whether the provider of a file may count a call.
func (c *recordReconcileCmd) wants(o *evidence.Observed, vendor string) bool {
	if c.Agent != "" && o.Agent != c.Agent || c.Origin != "" && (o.Upstream == nil || o.Upstream.Origin != strings.TrimSuffix(c.Origin, "/")) {
		return false
	}
	protocol, _, _ := strings.Cut(o.Protocol, ".")
	switch protocol {
	case "openai", "anthropic", "gemini":
		return vendor == "" || vendor == protocol
	}
	return false
}

// callOf is what a record says of a call. ids also reads the answer's own id from its bytes, if they are kept.
func callOf(ctx context.Context, i *installation.Installation, r *evidence.Record, c tally.Call, ids bool) (reconcile.Call, error) {
	p := &r.Payload
	o := p.Observed
	call := reconcile.Call{Record: r.Digest, Began: c.Began, Ended: c.Ended, Model: p.Model, Version: p.ModelVersion, Status: int(o.Status), Lost: o.Ended == evidence.LostInCrash}
	if c.Known {
		call.Usage = &reconcile.Tokens{Input: c.Input, Output: c.Output}
	}
	if o.ProviderRequestID != "" {
		call.RequestIDs = append(call.RequestIDs, o.ProviderRequestID)
	}
	if !ids {
		return call, nil
	}
	whole, err := i.Apart.Disclose(ctx, r, nil)
	if err != nil {
		return call, err
	}
	if id := idIn(whole); id != "" && id != o.ProviderRequestID {
		call.RequestIDs = append(call.RequestIDs, id)
	}
	return call, nil
}

// idIn is the id that the provider's answer has in its bytes, or "".
func idIn(r *evidence.Record) string {
	answer, withheld := r.Said("/response_body", r.Payload.ResponseBody)
	if withheld || answer == nil {
		return "" // there are none, or they are erased
	}
	pieces, err := evidence.ParseBody(answer)
	if err != nil {
		return ""
	}
	body, err := new(observed.Window).Rebuild(pieces)
	if err != nil {
		return ""
	}
	said, err := observe.Project(observed.Call(&r.Payload, []byte(`{"messages":[]}`), body)) // whatever was asked: the id is in the answer
	if err != nil {
		return ""
	}
	return said.ProviderID
}

// with adds a text to a list that has each once.
func with(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// mostShown is how many findings of a kind are shown to people.
const mostShown = 20

// reconciled prints a report.
func (p *printer) reconciled(r *reconciled) {
	p.line("file      %s (%s)", r.File.Name, r.File.Format)
	p.line("time      %s to %s", r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339))
	requests := ""
	if r.Counted.Requests != nil {
		requests = plural.Of(*r.Counted.Requests, "request") + ", "
	}
	p.line("provider  %s%d tokens in, %d out", requests, r.Counted.Input, r.Counted.Output)
	p.line("log       %s, %d tokens in, %d out (%d without usage, %d failed), of %s, to %s", plural.Of(r.Calls, "call"), r.Sealed.Input, r.Sealed.Output, r.Silent, r.Failed,
		listed(r.Log.Agents), listed(r.Log.Origins))
	if r.Skipped > 0 {
		p.line("skipped   %s, not wholly in that time", plural.Of(r.Skipped, "bucket"))
	}
	p.line("coverage  %s", r.Coverage)
	if r.Act != "" {
		p.line("sealed    record %s", r.Act)
	}
	shown := map[reconcile.Kind]int{}
	for _, f := range r.Findings {
		if shown[f.Kind]++; shown[f.Kind] > mostShown {
			continue
		}
		colour := red
		if f.Kind == reconcile.Undecided {
			colour = yellow
		}
		p.line("")
		p.line("%s %s", p.paint(colour, fmt.Sprintf("%-9s", f.Kind)), whereOf(&f))
		p.text("          ", f.What)
	}
	for kind, n := range shown {
		if n > mostShown {
			p.line("and %d more of %s: --json shows all", n-mostShown, kind)
		}
	}
	if len(r.Findings) == 0 {
		p.line("")
		p.line("%s", p.paint(green, "All agrees."))
	}
}

// whereOf says where a finding is.
func whereOf(f *reconcile.Finding) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if f.Line > 0 {
		add("line %d", f.Line)
	}
	if f.ID != "" {
		add("%s", f.ID)
	}
	if f.Model != "" {
		add("%s", f.Model)
	}
	if !f.From.IsZero() {
		when := f.From.UTC().Format(time.RFC3339)
		if !f.To.IsZero() {
			when += " to " + f.To.UTC().Format(time.RFC3339)
		}
		add("%s", when)
	}
	if !f.Record.IsZero() {
		add("record %s", f.Record)
	}
	return strings.Join(parts, ", ")
}

// listed joins names for a line.
func listed(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}
