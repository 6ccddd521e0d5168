package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/plural"
	"jurat/internal/subject"
	"jurat/internal/trial"
)

// lastTrial stands for the trial without a verdict that began last.
const lastTrial = "last"

// resume goes on with a trial that was broken off.
func (c *trialCmd) resume(ctx context.Context, a *app, io stdio) error {
	at := new(attempt)
	var given *subject.Case
	switch len(c.Cases) {
	case 0:
	case 1:
		at.name = c.Cases[0]
		list, err := c.load(ctx, io, at.name, false)
		if err != nil {
			return err
		}
		if len(list) > 1 {
			return hint(fmt.Errorf("--resume goes on with one trial, and %s holds %d cases", at.name, len(list)), "leave CASE out: the trial knows its case")
		}
		at.from = list[0].from
		if given = list[0].on; list[0].err != nil {
			return list[0].err
		}
	default:
		return errors.New("--resume goes on with one trial, and takes one CASE at most")
	}
	ct, err := c.convene(io, at)
	if err != nil {
		return err
	}
	err = a.with(ctx, func(i *installation.Installation) error {
		r, err := c.reopen(ctx, io, i, given)
		if err != nil {
			return err
		}
		config, err := ct.sit(r.Spent)
		if err != nil {
			return err
		}
		if at.on = given; given == nil {
			at.on = r.Case
		}
		c.try(ctx, a, io, i, config, at, awaiting(io, ""), func(config trial.Config) (*trial.Trial, error) {
			done, err := trial.Resume(ctx, config, r)
			return done, different(err)
		})
		return nil
	})
	return c.conclude(io, []*attempt{at}, err)
}

// reopen reads the trial, finds that its records are this installation's, and says what going on with it means.
func (c *trialCmd) reopen(ctx context.Context, io stdio, i *installation.Installation, given *subject.Case) (*trial.Reopened, error) {
	id := c.Resume
	if id == lastTrial {
		list, err := trial.ListUnfinished(ctx, i.Ledger)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, hint(errors.New("--resume: every trial in the log has its verdict"), "'jurat log prove TRIAL' prints the case file of one")
		}
		id = list[len(list)-1].ID
	}
	if !strings.HasPrefix(id, evidence.TrialPrefix) {
		return nil, hint(fmt.Errorf("--resume: %q is not a trial", id), "'jurat trial --list' lists those without a verdict")
	}
	r, err := trial.Reopen(ctx, i.Ledger, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, hint(fmt.Errorf("--resume: there is no %s in the log", id), "'jurat trial --list' lists the trials without a verdict")
	}
	if err != nil {
		return nil, err
	}
	if err := i.Vouch(ctx, r.Records...); err != nil {
		return nil, hint(fmt.Errorf("%s is not gone on with: %w", id, err), "'jurat log fsck' examines the log")
	}
	if given != nil && given.Digest() != r.Case.Digest() {
		return nil, fmt.Errorf("%s is about other evidence (%s) than %s (%s)", id, r.Case.Digest().Short(), c.Cases[0], given.Digest().Short())
	}
	c.announce(io, r)
	return r, nil
}

// announce says how far the trial got.
func (c *trialCmd) announce(io stdio, r *trial.Reopened) {
	if r.State.Finished {
		fmt.Fprintf(io.err, "jurat: %s has its verdict already; no juror is asked again\n", r.ID)
		fmt.Fprintf(io.err, "jurat: hint: 'jurat trial --outcome %s' says what people decided on it\n", r.ID)
		return
	}
	fmt.Fprintf(io.err, "jurat: going on with %s after %s; what is recorded is not asked for again\n", r.ID, plural.Of(len(r.Records), "act"))
	switch n := len(r.State.Waiting); {
	case n == 1:
		fmt.Fprintf(io.err, "jurat: one answer is missing that had been asked for (%s): if that call was made, it is paid for twice\n", r.State.Waiting[0])
	case n > 1:
		fmt.Fprintf(io.err, "jurat: %s missing that had been asked for (%s): as many calls as were made are paid for twice\n", plural.Of(n, "answer")+plural.Or(n, " is", " are"), strings.Join(r.State.Waiting, ", "))
	}
}

// different gives advice where the settings are not those of the trial.
func different(err error) error {
	if errors.Is(err, trial.ErrSettings) {
		return hint(err, "a trial goes on by the settings with which it began: give the same flags, environment and configuration")
	}
	return err
}

// unfinishedLine is a trial without a verdict, as it is listed.
type unfinishedLine struct {
	ID        string          `json:"id"`
	Case      evidence.Digest `json:"case"`
	Acts      int             `json:"acts"`
	From      time.Time       `json:"from"`               // what its first act claims
	Last      time.Time       `json:"last"`               // what its last act claims
	Cancelled string          `json:"cancelled,omitzero"` // why it was stopped; "": it was not
	UnderWay  bool            `json:"underWay"`           // a process is at work on it
}

// list shows the trials that have no verdict.
func (c *trialCmd) list(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		unfinished, err := trial.ListUnfinished(ctx, i.Ledger)
		if err != nil {
			return err
		}
		lines := []unfinishedLine{}
		for _, u := range unfinished {
			locked, err := i.Locks().Locked(ctx, u.ID)
			if err != nil {
				return err
			}
			line := unfinishedLine{ID: u.ID, Case: u.Case, Acts: u.Acts, From: u.Submitted, Last: u.Last, UnderWay: locked}
			if u.Cancelled != nil {
				line.Cancelled = u.Cancelled.Reason
			}
			lines = append(lines, line)
		}
		if c.JSON {
			return io.json(lines)
		}
		p := newPrinter(io.out)
		t := table{heads: []head{{name: "trial", rank: 1}, {name: "state"}, {name: "acts", right: true}, {name: "from", rank: 4}, {name: "to", rank: 2}, {name: "evidence", rank: 3}}}
		for _, l := range lines {
			state := "broken off"
			switch {
			case l.UnderWay:
				state = "under way"
			case l.Cancelled != "":
				state = "cancelled"
			}
			t.row(l.ID, state, l.Acts, evidence.FormatTime(l.From), evidence.FormatTime(l.Last), l.Case.Short())
		}
		p.table(&t)
		if len(lines) == 0 {
			p.line("every trial in the log has its verdict")
		}
		return p.err
	})
}
