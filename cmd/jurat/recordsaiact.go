package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/duties"
	"jurat/internal/find"
	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/verify"
)

func (c *recordsCmd) report(ctx context.Context, a *app, io stdio, values map[string]string) error {
	if err := only("--ai-act", values, "actor", "from", "to"); err != nil {
		return err
	}
	q, err := find.ReadRecords(func(name string) string { return values[name] })
	if err != nil {
		return flagError(err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		r, err := answers(ctx, i, io, duties.Selection{Agent: q.Actor, From: q.From, To: q.To})
		if err != nil {
			return err
		}
		return closing(reportCode(r), jsonFlag{c.JSON}.answer(io, r, func(p *printer) { p.duties(r) }))
	})
}

// answers gathers what the records answer, and verifies them.
func answers(ctx context.Context, i *installation.Installation, io stdio, s duties.Selection) (*duties.Report, error) {
	facts, err := duties.Gather(ctx, i.Ledger, s, progress(io, "records read"))
	if err != nil {
		return nil, err
	}
	trusted, err := i.Trust(ctx)
	if err != nil {
		return nil, err
	}
	fingerprint, err := trusted.Fingerprint()
	if err != nil {
		return nil, err
	}
	expired, err := i.Expirer.Expired(ctx)
	if err != nil {
		return nil, err
	}
	v := duties.Verifier{Ledger: i.Ledger, Options: verify.Options{Trust: trusted, At: time.Now()}, Progress: progress(io, "records verified"),
		Disclose: func(ctx context.Context, records []*evidence.Record) ([]*evidence.Record, error) {
			return new(withholdFlag).disclose(ctx, i, records...)
		}}
	found, err := v.Verify(ctx, facts)
	if err != nil {
		return nil, err
	}
	return facts.Report(duties.AIAct(), found, expired, i.Ledger.Origin(), fingerprint.String()), nil
}

// reportCode is the exit code of a report; nil: 0.
func reportCode(r *duties.Report) error {
	refuted := func(l duties.Line) bool { return l.Refuted > 0 }
	if slices.ContainsFunc(r.Clauses, func(c duties.Clause) bool { return slices.ContainsFunc(c.Lines, refuted) }) {
		return exitCode(exitBad)
	}
	return when(r.Acts == 0, exitUndecided)
}

func reportHead(r *duties.Report) string {
	of := "every agent"
	if r.Agent != "" {
		of = fmt.Sprintf("the agent %q", r.Agent)
	}
	text := fmt.Sprintf("%s (mapping %s, version %d): records of %s in the log %s", r.Mapping.Of, r.Mapping.ID, r.Mapping.Version, of, r.Log)
	if r.From != "" {
		text += ", from " + r.From
	}
	if r.To != "" {
		text += ", before " + r.To
	}
	return text + ", " + plural.Of(r.Acts, "act")
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
		if clause.Applies != "" {
			p.text("  ", "Applies "+clause.Applies+".")
		}
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
	text := fmt.Sprintf("%s (%s): %s, from %s (%s) to %s (%s); %s", l.Shows, l.Members, plural.Of(l.Records, "record"), l.First.Record, l.First.Time, l.Last.Record, l.Last.Time, dutyProof(l))
	if len(l.People) > 0 {
		text += "; by " + strings.Join(l.People, ", ")
	}
	if l.Note != "" {
		text += "; " + l.Note
	}
	return text
}

func dutyProof(l *duties.Line) string {
	names := make([]string, len(l.Guarantees))
	for i, g := range l.Guarantees {
		names[i] = string(g)
	}
	text := fmt.Sprintf("%s of %d: %d proved", strings.Join(names, ", "), l.Records, l.Proved)
	if l.NotProved > 0 {
		text += fmt.Sprintf(", %d not proved", l.NotProved)
	}
	if l.Refuted > 0 {
		text += fmt.Sprintf(", %d REFUTED", l.Refuted)
	}
	return text
}
