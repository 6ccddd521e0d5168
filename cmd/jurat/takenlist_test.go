package main

import (
	"bytes"
	"strings"
	"testing"

	"jurat/api"
	"jurat/internal/must"
	"jurat/jury"
)

// TestTrialsListShowsWhoHasACase: below the trial, and in a column of the CSV. A name cannot steer the terminal.
func TestTrialsListShowsWhoHasACase(t *testing.T) {
	list := api.TrialList{Trials: []api.TrialLine{{ID: "trial-1", Outcome: jury.NeedsReview, NeedsPerson: true, Taken: &api.Taken{Reviewer: "m\x1bia", Since: "2026-01-01T00:00:00Z", By: "otto"}},
		{ID: "trial-2", Outcome: jury.SafePass}}}
	var out bytes.Buffer
	must.Do(t, (&trialsCmd{}).print(stdio{out: &out}, list))
	lines := strings.Split(out.String(), "\n")
	if len(lines) < 4 || !strings.Contains(lines[1], "trial-1") || !strings.Contains(lines[2], "taken by m\uFFFDia") || strings.Count(out.String(), "taken by") != 1 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", lines)
	}
	out.Reset()
	c := trialsCmd{}
	c.CSV = true
	must.Do(t, c.print(stdio{out: &out}, list))
	if lines = strings.Split(out.String(), "\n"); !strings.HasSuffix(strings.TrimSpace(lines[0]), ",taken_by") || !strings.HasSuffix(strings.TrimSpace(lines[2]), "trial-2,,") {
		t.Errorf("%q", lines)
	}
}
