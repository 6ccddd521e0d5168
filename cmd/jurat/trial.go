package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jury"
)

type trialCmd struct {
	Cases []string `arg:"" optional:"" name:"case" help:"A conversation (a folder, or a file), a file with several, or sealed records of an agent: a .jurat bundle or a record file. Several are tried in order."`
	panelFlags
	Out string `placeholder:"FILE" help:"The case file, or the folder for it; of several cases always the folder. Default: in the data folder, named for the trial."`
	jsonFlag
	Recorded    string  `placeholder:"CHAIN" xor:"mode" help:"Try a chain of this log that a recorder sealed, with no transcript. 'jurat records --recorded' lists them."`
	Resume      string  `placeholder:"TRIAL|last" xor:"mode" help:"Go on with a trial that was broken off."`
	List        bool    `xor:"mode" help:"List the trials that have no verdict."`
	Outcome     string  `placeholder:"TRIAL" xor:"mode" help:"Say what a trial came to: what the jury judged, and what people decided on that."`
	Check       bool    `xor:"mode" help:"Show how jurat reads the case, with all mistakes, who would sit and what the trial would cost. Asks no model and records nothing."`
	Schema      *string `placeholder:"conversation|card" xor:"mode" enum:"conversation,card" help:"Print the JSON schema of a conversation in the plain form, or of an agent's card as far as jurat reads it."`
	ShowPrompts bool    `help:"With --check: the prompts, whole."`
	caseFlags
	batchFlags
	keyFlags
	stampFlags

	ending  sync.Mutex
	several bool // cases

	base     *baseline      // what cases came to before; nil: no baseline is named
	settings *jury.Settings // of the jury that sits
}

// Run tries one case.
func (c *trialCmd) Run(ctx context.Context, a *app, io stdio) error {
	if err := c.readBaseline(); err != nil {
		return err
	}
	switch {
	case c.Schema != nil && *c.Schema == "card":
		return io.document(subject.CardSchema)
	case c.Schema != nil:
		return io.document(subject.ChatSchema)
	case c.List && len(c.Cases) > 0:
		return errors.New("--list takes no CASE")
	case c.List:
		return c.list(ctx, a, io)
	case c.Outcome != "" && len(c.Cases) > 0:
		return errors.New("--outcome takes no CASE")
	case c.Outcome != "":
		return c.outcome(ctx, a, io)
	case c.Resume != "":
		return c.resume(ctx, a, io)
	case c.Recorded != "" && len(c.Cases) > 0:
		return errors.New("--recorded takes no CASE")
	case len(c.Cases) == 0 && c.Recorded == "":
		return hint(errors.New("expected CASE, --recorded, --resume, --outcome or --list"), "'jurat trial --help' says what a case is")
	}
	attempts, err := c.brought(ctx, a, io)
	if err != nil {
		return err
	}
	if c.Check {
		return c.dryRun(io, attempts)
	}
	ct, err := c.convene(io, attempts...)
	if err != nil {
		return err
	}
	ct.warn(io)
	return c.conclude(io, attempts, c.holdAll(ctx, a, io, ct, attempts))
}

// convene seats the jury, and refuses, before anything is recorded, what would be found wrong only later.
func (c *trialCmd) convene(io stdio, attempts ...*attempt) (*court, error) {
	if err := errors.Join(c.batchFlags.check(), c.place(attempts)); err != nil {
		return nil, err
	}
	ct, err := c.court(io)
	if err != nil {
		return nil, err
	}
	for _, at := range attempts {
		at.noModel, at.alone = ct.plan.NoModel, ct.plan.Alone
	}
	c.settings = &ct.settings
	return ct, c.compare(ct.settings, attempts)
}

// try holds a trial, shows it, and leaves its case file. What it waits for is said by wait.
func (c *trialCmd) try(ctx context.Context, a *app, io stdio, i *installation.Installation, config trial.Config, at *attempt,
	wait func(*trial.Config) *waiting, hold func(trial.Config) (*trial.Trial, error)) {
	config.Ledger, config.Keys, config.Locks = i.Ledger, i.Keys, i.Locks()
	show := newTranscript(io.out, c.JSON || io.hushed())
	show.opening(at.title(), at.on, &config.Settings)
	w := wait(&config)
	config.OnEvent = func(e trial.Event) { w.beside(func() { show.event(e) }) }
	at.began = time.Now()
	at.trial, at.err = hold(config)
	w.end()
	at.took = time.Since(at.began)
	if at.err != nil {
		at.err = interrupted(at.err, at.trial)
		return
	}
	c.ending.Lock() // what follows is done for one trial at a time
	defer c.ending.Unlock()
	catchUp(ctx, io, i)
	if at.file, at.err = leave(ctx, i, at.trial.ID, at.out); at.err == nil {
		at.err = c.show(io, show, at, a.again())
	}
}

func interrupted(err error, partial *trial.Trial) error {
	if partial == nil || len(partial.Records) == 0 {
		return err
	}
	return hint(err, "%s of %s %s sealed in the log; 'jurat trial --resume %s' goes on from there", plural.Of(len(partial.Records), "act"), partial.ID,
		plural.Or(len(partial.Records), "is", "are"), partial.ID)
}

// show prints the verdict.
func (c *trialCmd) show(io stdio, show *transcript, at *attempt, again string) error {
	switch {
	case !c.JSON && io.hushed() && c.several:
		return nil // the summary has it
	case !c.JSON && io.hushed():
		return c.summary(io, []*attempt{at})
	case !c.JSON:
		return hint(show.conclusion(at.trial, at.file, again), "the trial is over, and its case file is %s", at.file)
	}
	if c.several {
		return c.line(io, at)
	}
	if err := io.json(at.trial.Result); err != nil {
		return err
	}
	_, err := fmt.Fprintf(io.err, "jurat: %s: case file %s\n", at.trial.ID, at.file)
	return err
}

// needsPerson reports whether a person must decide on a result that no person has decided on yet.
func needsPerson(r *jury.Result) bool {
	v := r.Phase3Judgment.Summary()
	return v.NeedsPerson() || r.Degraded || r.Inconclusive
}

// verdictCode is the exit code of a verdict: 0 only for a safe_pass that nothing takes away from.
func verdictCode(r *jury.Result) exitCode {
	switch {
	case r.FinalVerdict == jury.UnsafeFail:
		return exitBad
	case !needsPerson(r):
		return 0
	}
	return exitUndecided
}
