package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"jurat/internal/lab"
	"jurat/internal/plural"
)

// printLab prints the figures that one looks for first. The report has all.
func printLab(io streams, r *lab.Report, dir string) error {
	lines := []string{fmt.Sprintf("%s, %d good and %d failed; %s, %d of them held before", plural.Of(r.Labels.Cases, "case"), r.Labels.Good, r.Labels.Failed, plural.Of(len(r.Trials), "trial"), r.Settings.Earlier)}
	rows := [][]string{{"panel", "AUC", "accuracy", "precision", "good flagged", "failed flagged", "USD/trial"}}
	for _, one := range r.Panels {
		g := one.All
		rows = append(rows, []string{one.Name, figure(g.AUC), figure(g.Accuracy), figure(g.Precision), figure(g.FlaggedGood), figure(g.FlaggedFailed), fmt.Sprintf("%.4f", g.Costs.Cost/1e6)})
	}
	rows = append(rows, []string{"(bare length)", figure(r.Length)})
	err := errors.Join(io.say("%s", lines[0]), io.table(rows))
	lines = nil
	for _, one := range r.Panels {
		if one.Reused > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s were another panel's, and were not asked again", one.Name, plural.Of(one.Reused, "first answer")))
		}
	}
	for _, c := range r.Comparisons {
		better := "neither is shown to be better"
		if c.Better != "" {
			better = c.Better + " is better"
		}
		lines = append(lines, fmt.Sprintf("%s minus %s on %s: AUC %s, accuracy %s: %s", c.A, c.B, plural.Of(c.Cases, "case"), difference(c.AUC), difference(c.Accuracy), better))
	}
	lines = append(lines, "Not measured:")
	for _, text := range r.Unmeasured {
		lines = append(lines, "  "+text)
	}
	for _, line := range append(lines, fmt.Sprintf("Report: %s and report.json beside it", filepath.Join(dir, "report.html"))) {
		err = errors.Join(err, io.say("%s", line))
	}
	return err
}

// figure writes a number with its interval.
func figure(f lab.Figure) string { return interval("%.2f", f.Value, f.Low, f.High) }

func difference(d lab.Difference) string { return interval("%+.2f", d.Value, d.Low, d.High) }

func interval(format string, value, low, high *float64) string {
	switch {
	case value == nil:
		return "not defined"
	case low == nil:
		return fmt.Sprintf(format, *value)
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", *value, *low, *high)
}
