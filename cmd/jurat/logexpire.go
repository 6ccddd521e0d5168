package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/internal/plural"
	"jurat/internal/trial"
)

// decidedFlags give the reason of a decision, and who decided.
type decidedFlags struct {
	Reason string  `required:"" help:"Why, for the act that says so. It stays in the log for ever, so do not name a person in it." placeholder:"TEXT"`
	By     newName `required:"" help:"Which person decided it." placeholder:"WHO"`
}

type logExpireCmd struct {
	Before time.Time `required:"" placeholder:"DATE" format:"2006-01-02" help:"Records that are proved, by their time stamps, to have been sealed before this day (UTC)."`
	decidedFlags
	Except []string `sep:"none" placeholder:"CHAIN" help:"Leave this chain or trial. May be given several times."`
	DryRun bool     `name:"dry-run" help:"Only count."`
	jsonFlag
}

// Run removes the content of old records.
func (c *logExpireCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		for _, chain := range c.Except {
			if there, err := i.Ledger.HasChain(ctx, chain); err != nil || !there {
				return errors.Join(err, hint(fmt.Errorf("--except: %q: %w", chain, ledger.ErrNotFound), "no chain has this id"))
			}
		}
		done, err := i.Expirer.Expire(ctx, installation.ExpiryOrder{Before: c.Before, Except: c.Except, Reason: c.Reason, By: string(c.By), DryRun: c.DryRun,
			Stays: func(ctx context.Context) (*installation.ExpiryStaying, error) { return stays(ctx, i.Ledger) }, Progress: steps(io)})
		switch {
		case errors.Is(err, installation.ErrTooYoung):
			return hint(err, "less than %d days is not possible. If nothing was sealed lately, seal something: the clock counts no further than the log's newest time stamp", operator.MinRetention)
		case errors.Is(err, lock.ErrTaken):
			return hint(err, "run it again when that is over")
		case err != nil && done.Act != "":
			return hint(err, "what an act says is gone is removed by the next run")
		case err != nil:
			return err
		}
		if !c.DryRun {
			if err := a.forgetExpired(ctx, io, i); err != nil {
				return err
			}
		}
		return c.tell(io, done)
	})
}

// stays returns what somebody still needs: trials that are open or wait for a person, and the records that they are
// about.
func stays(ctx context.Context, l *ledger.Ledger) (*installation.ExpiryStaying, error) {
	x := trial.NewIndex(l, nil)
	if err := x.Follow(ctx); err != nil {
		return nil, err
	}
	s := &installation.ExpiryStaying{Chains: map[string]bool{}, Records: map[evidence.Digest]bool{}}
	for _, t := range x.List(func(t *trial.Summary) bool { return !t.Over || t.NeedsPerson() }) {
		s.Chains[t.ID] = true
		acts, err := l.Chain(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		for _, act := range acts {
			for _, saw := range act.Payload.Saw {
				s.Records[saw] = true
			}
		}
	}
	return s, nil
}

// forgetExpired removes what the files that are made of the log say of expired records: the case files of trials, and
// the list of trials and the index of words, which the next command that needs them makes again or brings up to date.
func (a *app) forgetExpired(ctx context.Context, io stdio, i *installation.Installation) error {
	files, err := os.ReadDir(filepath.Dir(i.CaseFile("")))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, f := range files {
		id := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))
		if _, err := i.Ledger.Briefs().FirstOfChain(ctx, id); !errors.Is(err, ledger.ErrExpired) {
			continue // a file of no trial of this log stays
		}
		if err := os.Remove(i.CaseFile(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(filepath.Join(a.Data, trialsFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(filepath.Join(a.Data, indexFile)); err != nil {
		return nil //nolint:nilerr // there is no index of words
	}
	k, err := a.words(ctx, io, i)
	if err != nil {
		return err
	}
	return k.Close()
}

// steps tells how far each of several steps is.
func steps(io stdio) func(step string, done, total int64) {
	var now string
	var tell func(done, total int64)
	return func(step string, done, total int64) {
		if step != now {
			now, tell = step, progress(io, step)
		}
		tell(done, total)
	}
}

func (c *logExpireCmd) tell(io stdio, done *installation.ExpiryDone) error {
	if c.JSON {
		return io.json(done)
	}
	p := newPrinter(io.out)
	if done.Finished > 0 {
		p.line("finished an interrupted run: %s", plural.Of(done.Finished, "record"))
	}
	if c.DryRun {
		p.line("would remove the content of %s", plural.Of(done.Records, "record"))
	} else {
		p.line("removed the content of %s; the log keeps their ids and hashes", plural.Of(done.Records, "record"))
	}
	if done.Act != "" {
		p.line("act: %s", done.Act)
	}
	for _, kept := range []struct {
		n   int64
		why string
	}{{done.Excepted, "of excepted chains"}, {done.Needed, "that a trial or a person needs"}, {done.Waiting, "that wait for a time stamp"},
		{done.Unproved, "of which it is not proved when they were sealed"}} {
		if kept.n > 0 {
			p.line("left %s %s", plural.Of(kept.n, "record"), kept.why)
		}
	}
	return p.err
}
