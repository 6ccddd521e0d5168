package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/plural"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/web/words"
	"jurat/jury"
)

type trialCmd struct {
	Cases []string `arg:"" optional:"" name:"case" help:"Conversations (a folder, a file of one or several), or sealed records (a bundle, a record file)."`
	panelFlags
	Out string `placeholder:"FILE" help:"The case file, or the folder for it; of several cases the folder. Default: in the data folder, named for the trial."`
	jsonFlag
	Recorded    string  `placeholder:"CHAIN" xor:"mode" help:"Try a chain that a recorder sealed, with no transcript. 'jurat records --recorded' lists them."`
	Resume      string  `placeholder:"TRIAL|last" xor:"mode" help:"Go on with a trial that was broken off."`
	List        bool    `xor:"mode" help:"List the trials that have no verdict."`
	Outcome     string  `placeholder:"TRIAL" xor:"mode" help:"Say what a trial came to: what the jury judged, and what people decided on that."`
	Check       bool    `xor:"mode" help:"Show how jurat reads the case, all mistakes, who would sit and the cost. Asks no model and records nothing."`
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

func (c *trialCmd) Run(ctx context.Context, a *app, std stdio) error {
	if err := c.readBaseline(); err != nil {
		return err
	}
	switch {
	case c.Schema != nil && *c.Schema == "card":
		return std.document(subject.CardSchema, nil)
	case c.Schema != nil:
		return std.document(subject.ChatSchema, nil)
	case c.List && len(c.Cases) > 0:
		return errors.New("--list takes no CASE")
	case c.List:
		return c.list(ctx, a, std)
	case c.Outcome != "" && len(c.Cases) > 0:
		return errors.New("--outcome takes no CASE")
	case c.Outcome != "":
		return c.outcome(ctx, a, std)
	case c.Resume != "":
		return c.resume(ctx, a, std)
	case c.Recorded != "" && len(c.Cases) > 0:
		return errors.New("--recorded takes no CASE")
	case len(c.Cases) == 0 && c.Recorded == "":
		return hint(errors.New("expected CASE, --recorded, --resume, --outcome or --list"), "'jurat trial --help' says what a case is")
	}
	attempts, err := c.brought(ctx, a, std)
	if err != nil {
		return err
	}
	if c.Check {
		return c.dryRun(std, attempts)
	}
	ct, err := c.convene(std, attempts...)
	if err != nil {
		return err
	}
	ct.warn(std)
	return c.conclude(std, attempts, c.holdAll(ctx, a, std, ct, attempts))
}

// convene seats the jury, and refuses, before anything is recorded, what would be found wrong only later.
func (c *trialCmd) convene(std stdio, attempts ...*attempt) (*court, error) {
	if err := errors.Join(c.checkReports(), c.place(attempts)); err != nil {
		return nil, err
	}
	ct, err := c.court(std)
	if err != nil {
		return nil, err
	}
	for _, at := range attempts {
		at.noModel, at.alone = ct.plan.NoModel, ct.plan.Alone
	}
	c.settings = &ct.settings
	return ct, c.compare(ct.settings, attempts)
}

// try holds a trial, shows it, and leaves its case file. hold seats the jury with begin. What it waits for is said on said, of several at a
// time with the name about.
func (c *trialCmd) try(ctx context.Context, a *app, std stdio, i *installation.Installation, at *attempt, said stdio, about string,
	hold func(config trial.Config, begin func(to *trial.Config, seated trial.Config)) (*trial.Trial, error)) {
	show := newTranscript(std.out, c.JSON || std.hushed())
	var w *waiting
	at.began = time.Now()
	at.trial, at.err = hold(trial.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks}, func(to *trial.Config, seated trial.Config) {
		to.Settings, to.Jurors, to.Judge = seated.Settings, seated.Jurors, seated.Judge
		show.opening(at.title(), at.on, &to.Settings)
		w = await(said, about, to)
		to.OnEvent = func(e trial.Event) { w.beside(func() { show.event(e) }) }
	})
	w.end()
	at.took = time.Since(at.began)
	if at.err != nil {
		at.err = interrupted(at.err, at.trial)
		return
	}
	c.ending.Lock() // what follows is done for one trial at a time
	defer c.ending.Unlock()
	catchUp(ctx, std, i)
	if at.file, at.err = leave(ctx, i, at.trial.ID, at.out); at.err == nil {
		at.err = c.show(std, show, at, a.again())
	}
}

func interrupted(err error, partial *trial.Trial) error {
	if partial == nil || len(partial.Records) == 0 {
		return err
	}
	return hint(err, "%s of %s %s sealed in the log; 'jurat trial --resume %s' goes on from there", plural.Of(len(partial.Records), "act"), partial.ID,
		plural.Or(len(partial.Records), "is", "are"), partial.ID)
}

func (c *trialCmd) show(std stdio, show *transcript, at *attempt, again string) error {
	switch {
	case !c.JSON && std.hushed() && c.several:
		return nil // the summary has it
	case !c.JSON && std.hushed():
		return c.summary(std, []*attempt{at})
	case !c.JSON:
		return hint(show.conclusion(at.trial, at.file, again), "the trial is over, and its case file is %s", at.file)
	}
	if c.several {
		return c.line(std, at)
	}
	err := std.json(at.trial.Result)
	std.tellIf(err == nil, "%s: case file %s", at.trial.ID, at.file)
	return err
}

// verdictCode is the exit code of a verdict: 0 only for a safe_pass that nothing takes away from.
func verdictCode(r *jury.Result) exitCode {
	return codeIf(r.FinalVerdict == jury.UnsafeFail, !r.NeedsPerson())
}

// codeIf is the exit code of what is bad, or else as it should be, or else undecided.
func codeIf(bad, good bool) exitCode {
	switch {
	case bad:
		return exitBad
	case good:
		return 0
	}
	return exitUndecided
}

// lastTrial stands for the trial without a verdict that began last.
const lastTrial = "last"

func (c *trialCmd) resume(ctx context.Context, a *app, std stdio) error {
	at := new(attempt)
	var given *subject.Case
	if len(c.Cases) > 1 {
		return errors.New("--resume goes on with one trial, and takes one CASE at most")
	}
	for _, at.name = range c.Cases {
		list, err := c.load(ctx, std, at.name, false)
		several := refuse(len(list) > 1, "--resume goes on with one trial, and %s holds %d cases", at.name, len(list))
		if err := cmp.Or(err, hint(several, "leave CASE out: the trial knows its case")); err != nil {
			return err
		}
		if at.from, given = list[0].from, list[0].on; list[0].err != nil {
			return list[0].err
		}
	}
	ct, err := c.convene(std, at)
	if err != nil {
		return err
	}
	err = a.with(ctx, func(i *installation.Installation) error {
		id, err := c.resumed(ctx, i)
		if err != nil {
			return err
		}
		c.try(ctx, a, std, i, at, std, "", func(config trial.Config, begin func(*trial.Config, trial.Config)) (*trial.Trial, error) {
			read := false
			t, err := trial.Resume(ctx, config, id, func(t *trial.Trial, config *trial.Config) error {
				read = true
				if err := c.accept(ctx, std, i, t, given); err != nil {
					return err
				}
				at.on = cmp.Or(given, t.Case)
				begin(config, ct.sit(t.Case, t.Bill.Cost))
				return nil
			})
			if !read && errors.Is(err, ledger.ErrNotFound) {
				err = hint(fmt.Errorf("--resume: there is no %s in the log", id), "'jurat trial --list' lists the trials without a verdict")
			}
			return t, err
		})
		return nil
	})
	return c.conclude(std, []*attempt{at}, err)
}

// resumed is the id of the trial that goes on.
func (c *trialCmd) resumed(ctx context.Context, i *installation.Installation) (string, error) {
	id := c.Resume
	if id == lastTrial {
		list, err := trial.ListUnfinished(ctx, i.Ledger)
		if err != nil {
			return "", err
		}
		if len(list) == 0 {
			return "", hint(errors.New("--resume: every trial in the log has its verdict"), "'jurat log prove TRIAL' prints the case file of one")
		}
		id = list[len(list)-1].ID
	}
	if !strings.HasPrefix(id, evidence.TrialPrefix) {
		return "", hint(fmt.Errorf("--resume: %q is not a trial", id), "'jurat trial --list' lists those without a verdict")
	}
	return id, nil
}

// accept finds that a trial's records are this installation's, and says what going on with it means.
func (c *trialCmd) accept(ctx context.Context, std stdio, i *installation.Installation, t *trial.Trial, given *subject.Case) error {
	if err := i.Vouch(ctx, t.Records...); err != nil {
		return hint(fmt.Errorf("%s is not gone on with: %w", t.ID, err), "'jurat log fsck' examines the log")
	}
	if given != nil && given.Digest() != t.Case.Digest() {
		return fmt.Errorf("%s is about other evidence (%s) than %s (%s)", t.ID, t.Case.Digest().Short(), c.Cases[0], given.Digest().Short())
	}
	if t.Over {
		std.tell("%s has its verdict already; no juror is asked again", t.ID)
		std.tell("hint: 'jurat trial --outcome %s' says what people decided on it", t.ID)
		return nil
	}
	std.tell("going on with %s after %s; what is recorded is not asked for again", t.ID, plural.Of(len(t.Records), "act"))
	n, which := len(t.Waiting()), strings.Join(t.Waiting(), ", ")
	std.tellIf(n == 1, "one answer is missing that had been asked for (%s): if that call was made, it is paid for twice", which)
	std.tellIf(n > 1, "%s are missing that had been asked for (%s): as many calls as were made are paid for twice", plural.Of(n, "answer"), which)
	return nil
}

type unfinishedLine struct {
	ID        string          `json:"id"`
	Case      evidence.Digest `json:"case"`
	Acts      int             `json:"acts"`
	From      time.Time       `json:"from"`               // what its first act claims
	Last      time.Time       `json:"last"`               // what its last act claims
	Cancelled string          `json:"cancelled,omitzero"` // why it was stopped; "": it was not
	UnderWay  bool            `json:"underWay"`           // a process is at work on it
}

func (c *trialCmd) list(ctx context.Context, a *app, std stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		unfinished, err := trial.ListUnfinished(ctx, i.Ledger)
		if err != nil {
			return err
		}
		lines := []unfinishedLine{}
		t := table{heads: []head{{name: "trial", rank: 1}, {name: "state"}, {name: "acts", right: true}, {name: "from", rank: 4}, {name: "to", rank: 2}, {name: "evidence", rank: 3}}}
		for _, u := range unfinished {
			locked, err := i.Locks.Locked(ctx, u.ID)
			if err != nil {
				return err
			}
			line := unfinishedLine{ID: u.ID, Case: u.Case, Acts: u.Acts, From: u.Submitted, Last: u.Last, UnderWay: locked}
			if u.Cancelled != nil {
				line.Cancelled = u.Cancelled.Reason
			}
			lines = append(lines, line)
			state := pick(locked, "under way", pick(u.Cancelled != nil, "cancelled", "broken off"))
			t.row(u.ID, state, u.Acts, evidence.FormatTime(u.Submitted), evidence.FormatTime(u.Last), u.Case.Short())
		}
		return c.jsonFlag.list(std, lines, nil, &t, "every trial in the log has its verdict")
	})
}

func (c *trialCmd) outcome(ctx context.Context, a *app, std stdio) error {
	if !strings.HasPrefix(c.Outcome, evidence.TrialPrefix) {
		return hint(fmt.Errorf("--outcome: %q is not a trial", c.Outcome), "a trial's id begins with %q; 'jurat trial' and its page show it", evidence.TrialPrefix)
	}
	return a.with(ctx, func(i *installation.Installation) error {
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
		if err != nil {
			return err
		}
		result, err := v.Result()
		err = cmp.Or(refuse(v.Outcome == nil, "--outcome: %s has no verdict yet", c.Outcome), refuse(err != nil, "%s: %w", c.Outcome, err))
		if err != nil {
			return hint(err, "'jurat trial --resume %s' goes on with it if it was broken off", c.Outcome)
		}
		o := v.Outcome
		err = c.answer(std, o, nil, func(p *printer) { p.text("", words.Outcome(o, words.English)) })
		code := codeIf(o.Failed(), o.Passed()) // which no longer needs a person's decision
		if err == nil && code == 0 && result.Offline && o.By == jury.ByJury {
			code, err = c.rulesCode(std)
		}
		return cmp.Or(err, coded(code))
	})
}

// rulesCode is the exit code of a safe_pass that rules gave and no person: 0 only where rules are said to be wanted.
func (c *trialCmd) rulesCode(std stdio) (exitCode, error) {
	ct, err := c.court(std)
	if err != nil {
		return 0, err
	}
	if ct.plan.Offline && !ct.plan.NoModel {
		return 0, nil
	}
	std.tell("exit code 3 and not 0: rules sat, and no language model")
	std.tell("hint: %s", howToGetAJury)
	return exitUndecided, nil
}

// checkOut refuses a place for the case file that would be found wrong only when the trial is paid for, and one where something else would be lost.
func checkOut(file string) error {
	if file == "-" {
		return hint(errors.New("--out: the case file does not go to standard output"), "'jurat log prove TRIAL' prints it")
	}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--out: %s exists and is not a file", file)
	}
	switch there, err := os.ReadFile(file); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--out: %w", err)
	case len(there) > 0 && !bytes.Contains(there, []byte(evidence.BundleFormat)):
		return hint(fmt.Errorf("--out: %s exists and is not a case file", file), "name another file, or remove it yourself")
	}
	return checkFolder(filepath.Dir(file))
}

func checkFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	trial, err := os.CreateTemp(folder, ".new-*")
	if err != nil {
		return fmt.Errorf("--out: cannot write in %s: %w", folder, errors.Unwrap(err))
	}
	return errors.Join(trial.Close(), os.Remove(trial.Name()))
}

// leave writes the case file: everything that stands in the trial's chain, proved against one checkpoint.
func leave(ctx context.Context, i *installation.Installation, id, file string) (string, error) {
	records, err := i.Ledger.Chain(ctx, id)
	if err == nil {
		_, err = i.Witnesses.Cosign(ctx) // which takes no longer than a witness may; without witnesses nothing
	}
	if err != nil {
		return "", err
	}
	doc, err := fileOf(i.Ledger.Prove(ctx, records...))
	if err != nil {
		return "", err
	}
	file = cmp.Or(file, i.CaseFile(id))
	if err := atomicfile.Replace(file, doc, 0o644); err != nil {
		return "", hint(err, "the trial is in the log; 'jurat log prove %s' prints its case file", id)
	}
	return file, nil
}
