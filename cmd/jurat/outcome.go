package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/trial"
	"jurat/internal/words"
	"jurat/jury"
)

// outcome says what a trial came to, and ends with its exit code.
func (c *trialCmd) outcome(ctx context.Context, a *app, io stdio) error {
	if !strings.HasPrefix(c.Outcome, evidence.TrialPrefix) {
		return hint(fmt.Errorf("--outcome: %q is not a trial", c.Outcome), "a trial's id begins with %q; 'jurat trial' and the trial's page show it", evidence.TrialPrefix)
	}
	var found *jury.TrialOutcome
	rules := false
	err := a.with(ctx, func(i *installation.Installation) error {
		chain, err := i.Ledger.Chain(ctx, c.Outcome)
		if errors.Is(err, ledger.ErrNotFound) {
			return hint(fmt.Errorf("--outcome: there is no %s in the log", c.Outcome), "'jurat trial --list' lists the trials without a verdict")
		}
		if err != nil {
			return err
		}
		if err := i.Vouch(ctx, chain...); err != nil {
			return hint(fmt.Errorf("%s: its outcome is not told: %w", c.Outcome, err), "'jurat log fsck' examines the log")
		}
		v, err := trial.ViewOf(nil, chain)
		if err != nil || v.Outcome == nil {
			return err
		}
		found = v.Outcome
		result, err := v.Result()
		if err != nil {
			return hint(fmt.Errorf("%s: %w", c.Outcome, err), "'jurat trial --resume %s' goes on with it if it was broken off", c.Outcome)
		}
		rules = result.Offline
		return nil
	})
	if err != nil {
		return err
	}
	if found == nil {
		return hint(fmt.Errorf("--outcome: %s has no verdict yet", c.Outcome), "'jurat trial --resume %s' goes on with it if it was broken off", c.Outcome)
	}
	if err := c.printOutcome(io, found); err != nil {
		return err
	}
	code := outcomeCode(found)
	if code == 0 && rules && found.By == jury.ByJury {
		if code, err = c.rulesCode(io); err != nil {
			return err
		}
	}
	return coded(code)
}

// rulesCode is the exit code of a safe_pass that rules gave and no person: 0 only where rules are said to be wanted.
func (c *trialCmd) rulesCode(io stdio) (exitCode, error) {
	ct, err := c.court(io)
	if err != nil {
		return 0, err
	}
	if ct.plan.Offline && !ct.plan.NoModel {
		return 0, nil
	}
	fmt.Fprintln(io.err, "jurat: exit code 3 and not 0: rules sat, and no language model")
	fmt.Fprintf(io.err, "jurat: hint: %s\n", howToGetAJury)
	return exitUndecided, nil
}

func (c *trialCmd) printOutcome(io stdio, o *jury.TrialOutcome) error {
	if c.JSON {
		return io.json(o)
	}
	p := newPrinter(io.out)
	p.text("", incident.Outcome(o, words.English))
	return p.err
}

// outcomeCode returns the exit code of an outcome: 0 only for a safe_pass that no longer needs a person's decision.
func outcomeCode(o *jury.TrialOutcome) exitCode {
	switch {
	case o.Failed():
		return exitBad
	case o.Passed():
		return 0
	}
	return exitUndecided
}
