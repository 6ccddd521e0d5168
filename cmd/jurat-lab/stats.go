package main

import (
	"context"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/internal/stats"
	"jurat/jury"
)

type statsCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Case files. Without any: all finished trials of this installation."`
	JSON  bool     `name:"json" help:"Print JSON."`
}

// Help is shown by 'jurat-lab stats --help'.
func (*statsCmd) Help() string {
	return `Over many trials: how far jurors agree after phase 1 and after the discussion (mean level, Fleiss' kappa, Krippendorff's alpha
for nominal data, each with a 95 % interval from 1,000 bootstrap samples of trials), how often positions change, toward the
majority and without citing anything new, how often the discussion and the final judgment changed the outcome, and for each juror
how often it answered, what that cost and how long it took.

This command believes what case files say: use 'jurat verify' to check them.

    jurat-lab stats *.jurat --json`
}

// Run counts trials.
func (c *statsCmd) Run(ctx context.Context, a *app, io streams) error {
	tally := stats.New()
	err := c.read(ctx, a, io, tally)
	if err != nil {
		return err
	}
	s := tally.Stats()
	if s.Trials == 0 {
		return hint(errors.New("no trial has finished yet"), "'jurat trial CASE' tries one")
	}
	if c.JSON {
		return io.json(s)
	}
	return printStats(io, s)
}

func (c *statsCmd) read(ctx context.Context, a *app, io streams, tally *stats.Tally) error {
	if len(c.Files) == 0 {
		return a.with(ctx, func(i *installation.Installation) error {
			for chain, err := range stats.Closed(ctx, i.Ledger, io.progress("records read")) {
				if err != nil {
					return err
				}
				if err := tally.Add(chain); err != nil {
					return fmt.Errorf("%s: %w", chain[0].Payload.ChainID, err)
				}
			}
			return nil
		})
	}
	for _, file := range c.Files {
		doc, err := readFile(file)
		if err != nil {
			return err
		}
		b, _, err := evidence.ReadWholeBundle(doc)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := tally.Add(b.Records); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func printStats(io streams, s *stats.Stats) error {
	rows := [][]string{{"juror", "asked", "answered", "absent", "stand-in", "changes", "attempts", "tokens", "cost USD", "median ms"}}
	for _, j := range s.Jurors {
		row := []string{j.JurorID}
		for _, cell := range []any{j.Asked, j.Answered, j.Absences, j.Fallbacks, j.Changes, j.Attempts, j.InputTokens + j.OutputTokens, fmt.Sprintf("%.4f", float64(j.Cost)/1e6), j.Latency} {
			row = append(row, fmt.Sprint(cell))
		}
		rows = append(rows, row)
	}
	return errors.Join(
		io.say("juries judged %s: %d safe_pass, %d needs_review, %d unsafe_fail; %d degraded, %d inconclusive", plural.Of(s.Trials, "trial"),
			s.Verdicts[jury.SafePass], s.Verdicts[jury.NeedsReview], s.Verdicts[jury.UnsafeFail], s.Degraded, s.Inconclusive),
		io.say("outcomes: %d safe_pass, %d needs_review, %d unsafe_fail; people decided on %s, and differed from the jury in %d; %d wait for a person",
			s.Outcomes[jury.SafePass], s.Outcomes[jury.NeedsReview], s.Outcomes[jury.UnsafeFail], share(s.Decided, s.Trials), s.Changed, s.Open),
		io.agreement("after phase 1", s.AfterPhase1),
		io.agreement("after the discussion", s.AfterDiscussion),
		io.say("the discussion changed the majority's verdict in %s of %s that had one", share(s.ChangedByTalk, s.Discussed), plural.Of(s.Discussed, "trial")),
		io.say("the final judgment is another than the majority's in %s of %s that came to one", share(s.ChangedByVerdict, s.Judged), plural.Of(s.Judged, "trial")),
		io.say("%s, %s with a change of position; of %s %s went to the majority, %s cite nothing new", plural.Of(s.Statements, "statement"),
			share(s.Changes, s.Statements), plural.Of(s.Changes, "change"), share(s.ToMajority, s.Changes), share(s.Unsupported, s.Changes)),
		io.table(rows))
}

func (s streams) agreement(when string, a stats.Agreement) error {
	return s.say("agreement %s: level %.2f, Fleiss' kappa %s, Krippendorff's alpha %s", when, a.Level, a.Kappa.Text("%.2f", 1), a.Alpha.Text("%.2f", 1))
}

// share is a count with its part of the whole.
func share(k, n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.0f %%)", k, 100*float64(k)/float64(n))
}
