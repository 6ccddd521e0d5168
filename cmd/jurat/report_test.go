package main

import (
	"strings"
	"testing"

	"jurat/internal/duties"
	"jurat/verify"
)

// TestReportsQuoteNobody: names from a log stand in code spans in Markdown, and obey nobody on a terminal.
func TestReportsQuoteNobody(t *testing.T) {
	t.Parallel()
	r := &duties.Report{Mapping: duties.AIAct(), Agent: "a`b|c\x1b[2J", Log: "log", Warnings: []string{"<b>no act</b>"}, Clauses: []duties.Clause{{ID: "12(1)", Lines: []duties.Line{
		{Shows: "decisions", Records: 1, First: &duties.Place{Record: "r1"}, Last: &duties.Place{Record: "r1"}, Guarantees: []verify.Guarantee{verify.Content}, Refuted: 1, People: []string{"in|es @all"}}}}}}
	text := markdownReport(r)
	if !strings.Contains(text, "agent ``") || !strings.Contains(text, "a`b¦c") || strings.Contains(text, "\x1b") || !strings.Contains(text, "; `in¦es @all` |") || !strings.Contains(text, "`<b>no act</b>`") || !strings.Contains(text, "1 REFUTED") {
		t.Error(text)
	}
	var out strings.Builder
	p := newPrinter(&out)
	p.duties(r)
	if p.err != nil || strings.Contains(out.String(), "\x1b[2J") {
		t.Errorf("%v: %q", p.err, out.String())
	}
	if err := reportCode(r); err != exitCode(exitBad) {
		t.Error(err)
	}
	r.Clauses[0].Lines[0].Refuted = 0
	if err := reportCode(r); err != exitCode(exitUndecided) {
		t.Error(err)
	}
	if r.Acts = 1; reportCode(r) != nil {
		t.Error(reportCode(r))
	}
}
