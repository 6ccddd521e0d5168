package main

import (
	"fmt"
	"path/filepath"

	"jurat/internal/lab"
	"jurat/internal/lab/measure"
	"jurat/internal/plural"
)

// printLab prints the figures that one looks for first. The report has all.
func printLab(io stdio, r *lab.Report, dir string) error {
	p := newPrinter(io.out)
	p.line("%s, %d good and %d failed; %s, %d of them held before", plural.Of(r.Labels.Cases, "case"), r.Labels.Good, r.Labels.Failed, plural.Of(len(r.Trials), "trial"), r.Settings.Earlier)
	t := table{heads: []head{{name: "panel", rank: 1}, {name: "AUC", rank: 2}, {name: "accuracy", rank: 3}, {name: "precision", rank: 6}, {name: "good flagged", rank: 4}, {name: "failed flagged", rank: 5}, {name: "USD/trial", right: true}}}
	for _, one := range r.Panels {
		g := one.All
		t.row(one.Name, figure(g.AUC), figure(g.Accuracy), figure(g.Precision), figure(g.FlaggedGood), figure(g.FlaggedFailed), fmt.Sprintf("%.4f", g.Costs.Cost/1e6))
		if one.Reused > 0 {
			t.below(plural.Of(one.Reused, "first answer")+" were another panel's, and were not asked again", "")
		}
	}
	t.row("(bare length)", figure(r.Length), "", "", "", "", "")
	p.table(&t)
	for _, c := range r.Comparisons {
		better := "neither is shown to be better"
		if c.Better != "" {
			better = c.Better + " is better"
		}
		p.line("%s minus %s on %s: AUC %s, accuracy %s: %s", c.A, c.B, plural.Of(c.Cases, "case"), difference(c.AUC), difference(c.Accuracy), better)
	}
	p.line("Not measured:")
	for _, text := range r.Unmeasured {
		p.text("  ", text)
	}
	p.line("Report: %s and report.json beside it", filepath.Join(dir, "report.html"))
	return p.err
}

// figure writes a number with its interval.
func figure(f measure.Figure) string { return interval("%.2f", f.Value, f.Low, f.High) }

func difference(d measure.Difference) string { return interval("%+.2f", d.Value, d.Low, d.High) }

func interval(format string, value, low, high *float64) string {
	switch {
	case value == nil:
		return "not defined"
	case low == nil:
		return fmt.Sprintf(format, *value)
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", *value, *low, *high)
}
