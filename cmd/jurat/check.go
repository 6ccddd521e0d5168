package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/internal/config"
	"jurat/internal/panel"
	"jurat/internal/plural"
	"jurat/internal/subject"
)

// dryRun says what the trials would be, and all that is wrong with cases. It asks and records nothing.
func (c *trialCmd) dryRun(io stdio, attempts []*attempt) error {
	var ct *court
	var failed error
	for _, at := range attempts {
		read := check(at.title(), at.brought())
		if len(read.Mistakes) > 0 {
			failed = exitCode(exitCannot)
			if err := c.look(io, nil, read, at, len(attempts) > 1); err != nil {
				return err
			}
			continue
		}
		if ct == nil {
			var err error
			if ct, err = c.court(io); err != nil {
				return err
			}
		}
		if err := c.look(io, ct, read, at, len(attempts) > 1); err != nil {
			return err
		}
	}
	return failed
}

// An outlook is what --check says of one case, as --json prints it.
type outlook struct {
	*panel.Outlook `json:",inline"` // nil: it cannot be tried
	Read           *checked         `json:"read"`
}

// look shows what one trial would be. Of a case that cannot be tried there is no court.
func (c *trialCmd) look(io stdio, ct *court, read *checked, at *attempt, several bool) error {
	o := outlook{Read: read}
	if ct != nil {
		look, err := ct.panel.Look(at.on, c.ShowPrompts)
		if err != nil {
			return err
		}
		look.Unbound = ct.unbound
		o.Outlook = look
	}
	switch {
	case c.JSON && several: // an object in one line for each
		doc, err := json.Marshal(o, json.Deterministic(true))
		if err != nil {
			return err
		}
		return io.machine(append(doc, '\n'))
	case c.JSON:
		return io.json(o)
	}
	p := newPrinter(io.out)
	if o.Outlook == nil {
		read.wrong(p)
	} else {
		showOutlook(p, at.title(), at.on, o)
	}
	return p.err
}

func showOutlook(p *printer, name string, on *subject.Case, o outlook) {
	p.line("%s", p.bold("The case of "+nameOfAgent(on)))
	p.line("  %s: %s, evidence %s", name, plural.Of(o.Messages, "message"), o.Case)
	for _, line := range append(o.Read.lines(), aboutCase(on)...) {
		p.text("  ", line)
	}
	p.line("  no model is asked, and nothing is recorded")
	who := "Language models would sit"
	if o.Jurors == config.Offline {
		who = "Rules would sit, and no language models"
	}
	p.line("\n%s: %s", p.bold(who), o.Why)
	for _, s := range o.Seats {
		showSeat(p, s)
	}
	if o.Judge != nil {
		showSeat(p, *o.Judge)
	}
	rounds := fmt.Sprintf("up to %s of discussion, at least one, until all agree", plural.Of(o.Rounds, "round"))
	if o.Threshold <= 1 {
		rounds = fmt.Sprintf("up to %s of discussion, until the agreement is %.2f", plural.Of(o.Rounds, "round"), o.Threshold)
	}
	if !o.Collaborative || o.Rounds == 0 {
		rounds = "no discussion"
		if o.Jurors == config.Offline && o.Collaborative {
			rounds += " (rules have nothing to say to each other)"
		}
	}
	p.line("\n%s  %s, then %s", p.bold("Course"), rounds, o.Method)
	p.line("  %s for each answer; at most %s in all", o.Deadlines.Phase, o.Deadlines.Longest)
	if o.Shortened {
		p.text("  ", fmt.Sprintf("The evidence is longer than %d bytes, and is shown to all jurors shortened by the rule %s.", o.Shortening.Limit, o.Shortening.Rule))
	}
	for _, text := range o.Endings {
		p.warning("  ", text+": set it in the configuration.")
	}
	if o.Degraded {
		p.warning("  ", "A seat is empty: the trial would be degraded, and no safe_pass of it would exit with 0.")
	}
	if len(o.Unbound) > 0 {
		p.warning("  ", "The calibration does not say on which model and template these were measured, and a weight holds for those alone: "+strings.Join(o.Unbound, ", ")+".")
	}
	if o.NoModel {
		p.warning("  ", "No language model would sit, as keys are missing, so no safe_pass would exit with 0: "+howToGetAJury+".")
	}
	if o.Jurors == config.Offline {
		p.line("  it costs nothing")
		return
	}
	showChoices(p, o.Outlook)
	p.line("\n%s  about %s (%s) to at most %s (%s)", p.bold("Cost"), dollars(o.Lowest.Cost), plural.Of(o.Lowest.Calls, "call"), dollars(o.Highest.Cost), plural.Of(o.Highest.Calls, "call"))
	if len(o.Unpriced) > 0 {
		p.warning("  ", "There is no price for "+strings.Join(o.Unpriced, ", ")+": these calls are not counted.")
	}
	if o.Ceiling > 0 {
		p.line("  ceiling: %s; where it is reached the trial is inconclusive", dollars(o.Ceiling))
	} else {
		p.line("  no ceiling")
	}
	p.text("  ", fmt.Sprintf("Built-in prices of %s (%s). The configuration can say others.", o.Prices.Date, o.Prices.Note))
}

// showChoices compares the panel with others, and says which jurors may favour the accused.
func showChoices(p *printer, o *panel.Outlook) {
	if len(o.SameVendor) > 0 {
		p.warning("  ", "The card or the records name the accused's model or vendor, and these are of that vendor: "+strings.Join(o.SameVendor, ", ")+
			". Models tend to favour their own kind: read their part with care, or seat others.")
	}
	p.line("\n%s", p.bold("Panels"))
	for _, c := range o.Choices {
		mark := " "
		if c.Chosen {
			mark = "*"
		}
		p.line("  %s %-9s about %-10s (%s) to at most %s (%s)", mark, c.Panel, dollars(c.Lowest.Cost), plural.Of(c.Lowest.Calls, "call"), dollars(c.Highest.Cost), plural.Of(c.Highest.Calls, "call"))
	}
	p.text("  ", "thorough: tables before scores, the judge reads by itself, disputed seats are asked twice. quick: none of these, and a round less. plain: quick, with points instead of levels.")
}

func showSeat(p *printer, s panel.SeatOutlook) {
	p.line("  %-24s %s %s", cmp.Or(s.Role, s.ID), s.Provider, s.Model)
	if s.Missing != "" {
		p.line("      %s", p.paint(yellow, "stays empty: "+s.Missing))
	} else if s.InPlaceOf != "" {
		p.line("      %s", p.paint(yellow, "substitute for "+s.InPlaceOf))
	}
	if s.Prompt == nil {
		return
	}
	if s.Key != "" {
		p.line("      key from %s", s.Key)
	}
	p.line("      %s, %s for a call, %s", s.Parameters, s.Timeout, plural.Of(s.Attempts, "attempt"))
	p.line("      prompt: %d bytes of task, %d of evidence and question, about %d tokens", s.Prompt.SystemBytes, s.Prompt.MessageBytes, s.Prompt.Tokens)
	if s.Prompt.Message != "" {
		p.text("      | ", s.Prompt.System)
		p.line("      | --")
		p.text("      | ", s.Prompt.Message)
	}
}
