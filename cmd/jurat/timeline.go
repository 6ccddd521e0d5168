package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/words"
	"jurat/verify"
	"jurat/verify/trust"
)

// timeline prints records that follow each other, if the report has an answer about that.
func (p *printer) timeline(records []*evidence.Record, report *verify.Report) {
	asked := false
	for _, f := range report.Guarantees {
		asked = asked || f.Guarantee == verify.Chain || f.Guarantee == verify.HumanReview || f.Guarantee == verify.GivenOn
	}
	if !asked || len(records) < 2 {
		return
	}
	p.line("%s", p.bold("Timeline"))
	numbers := map[string]int{}
	for i, s := range verify.Timeline(records, report.Answers().TimeOf) {
		numbers[s.RecordID] = i + 1
		p.step(i+1, s, numbers)
	}
	for _, f := range report.Guarantees {
		if f.Guarantee == verify.Chain || f.Guarantee == verify.HumanReview || f.Guarantee == verify.GivenOn {
			p.finding("", report.Grouped(f)[0])
		}
	}
}

func (p *printer) step(number int, s verify.Step, numbers map[string]int) {
	p.line("%3d. %s", number, fmt.Sprintf("%s of %s %q%s", plain(s.Action), s.Role, s.Actor, placeOf(s)))
	proved := "no proved time"
	if s.Proved != nil {
		proved = fmt.Sprintf("existed at %s by %s", s.Proved.Time.UTC().Format(time.RFC3339Nano), s.Proved.Authority)
		if s.Proved.Clock == trust.OperatorClock {
			proved += " (the operator's own clock)"
		}
	}
	if s.Status != "" {
		p.text("     ", decisionIn(s))
	}
	p.text("     ", fmt.Sprintf("claims %s; %s", s.Claimed, proved))
	p.text("     ", fmt.Sprintf("record %s%s", s.RecordID, followed(s, numbers)))
}

// decisionIn says what a review decided, and what it makes of a verdict.
func decisionIn(s verify.Step) string {
	text := words.Of(words.English).Name("approval", string(s.Status))
	switch {
	case s.Verdict == nil:
		return text
	case s.Verdict.Position == "":
		return text + ", and leaves the verdict open"
	}
	return text + ": the verdict is " + string(s.Verdict.Position)
}

func placeOf(s verify.Step) string {
	switch {
	case s.ChainID != "" && s.Position > 0:
		return fmt.Sprintf(", at position %d of chain %q", s.Position, s.ChainID)
	case s.ChainID != "":
		return fmt.Sprintf(", in chain %q", s.ChainID)
	case s.Position > 0:
		return fmt.Sprintf(", at position %d", s.Position)
	}
	return ""
}

// followed names what a step follows by its number in the timeline, or, where ids go in a circle, by its id.
func followed(s verify.Step, numbers map[string]int) string {
	if len(s.Follows) == 0 {
		return ""
	}
	var names []string
	for _, id := range s.Follows {
		name := id
		if n := numbers[id]; n > 0 {
			name = fmt.Sprint(n)
		}
		names = append(names, name)
	}
	text := ", follows " + strings.Join(names, ", ")
	if s.ByNameOnly {
		text += " (by name only)"
	}
	return text
}

func plain(a evidence.ActionType) string { return strings.ReplaceAll(string(a), "_", " ") }

// whoSaid prints which record introduced a text.
func (p *printer) whoSaid(records []*evidence.Record, report *verify.Answers, text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("--who-said: the text is empty")
	}
	found := verify.Introduced(withWords(records), text)
	switch n := len(found.By); {
	case n > 0:
		p.text("", fmt.Sprintf("It was introduced by %s.", called(found.By[0], report)))
		for _, r := range found.By[1:] {
			p.text("", fmt.Sprintf("It was also brought in, without having been shown it by what it followed, by %s.", called(r, report)))
		}
	case len(found.Repeated) > 0:
		p.text("", "No agent here introduced it: each agent that gave it out had received it.")
	default:
		p.text("", "No agent here gave it out: no response in the file contains it.")
	}
	p.each("It was given from outside to", found.Given, report)
	p.each("It was repeated by", found.Repeated, report)
	p.each("It may also stand in what is withheld of", found.Withheld, report)
	return p.err
}

// each prints a sentence for each record.
func (p *printer) each(what string, records []*evidence.Record, report *verify.Answers) {
	for _, r := range records {
		p.text("", fmt.Sprintf("%s %s.", what, called(r, report)))
	}
}

// spokenIn names an act that a recorder saw by the agent. In what the agent used or asked, somebody else answers.
func spokenIn(p *evidence.Payload) string {
	agent := p.Observed.Agent
	switch {
	case p.ActionType == evidence.ObservedTool:
		return fmt.Sprintf("%s, which agent %q used", plain(p.ActionType), agent)
	case p.Observed.Side == evidence.Asked:
		return fmt.Sprintf("%s, in which agent %q asked another", plain(p.ActionType), agent)
	}
	return fmt.Sprintf("%s of agent %q", plain(p.ActionType), agent)
}

// called names a record and its actor, and says so where it is not proved that it is the actor's.
func called(r *evidence.Record, report *verify.Answers) string {
	p := &r.Payload
	text := fmt.Sprintf("record %s: %s of %s %q, who claims %s", p.RecordID, plain(p.ActionType), p.Role(), p.Actor(), p.Timestamp)
	rests := []verify.Guarantee{verify.Content, verify.Authentication}
	if p.Observed != nil {
		text = fmt.Sprintf("record %s: %s, %s, at %s", p.RecordID, spokenIn(p), verify.SeenFrom(p.Observed, p.Actor()), p.Timestamp)
		rests = append(rests, verify.Vantage)
	}
	for _, g := range rests {
		if f := report.For(g, p.RecordID); f.Status != verify.Proved {
			return fmt.Sprintf("%s (%s is %s: %s)", text, g, f.Status, f.Reason)
		}
	}
	return text
}
