package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/incident"
	"jurat/internal/observe"
	"jurat/internal/server"
	"jurat/internal/words"
	"jurat/verify"
	"jurat/verify/trust"
)

// langFlag says in which language a statement is written.
type langFlag struct {
	Lang string `help:"The statement's language: ${enum}." default:"en" enum:"en,ja,ru"`
}

type explainCmd struct {
	File string `arg:"" help:"A record file or a case file."`
	readerFlags
	langFlag
	Origin  string  `help:"The public address of the server that keeps the record, such as https://jurat.example: the statement names the record's page there." placeholder:"URL" env:"JURAT_ORIGIN"`
	WhoSaid *string `help:"Instead, find the record that introduced this text." placeholder:"TEXT"`
}

func (c *explainCmd) Run(io stdio) error {
	if c.Origin != "" {
		var err error
		if c.Origin, err = server.ParseOrigin(c.Origin); err != nil {
			return fmt.Errorf("--origin %w", err)
		}
	}
	doc, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	r, err := verify.File(doc, o)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	records, err := openRecords(doc)
	if err != nil {
		return hint(fmt.Errorf("%s: %w", c.File, err), "the file is damaged, so nothing can be stated from it; 'jurat verify' says more")
	}
	if o.Trust == nil {
		defer fmt.Fprintln(io.err, "jurat: hint: nothing can be stated as proved without --trust FILE")
	}
	p := newPrinter(io.out)
	if c.WhoSaid != nil {
		return p.whoSaid(records, r.Answers(), *c.WhoSaid)
	}
	for _, paragraph := range incident.Site(c.Origin).Statement(records, r, words.Lang(c.Lang)) {
		p.text("", paragraph)
		p.line("")
	}
	apart := new(apartTexts)
	for _, r := range records {
		apart.see(r)
	}
	p.apart("", apart, len(records) > 1)
	p.timeline(records, r)
	return p.err
}

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

// withWords returns the records with what recorders saw said in prompt and response: it is in the bytes of these records alone.
func withWords(records []*evidence.Record) []*evidence.Record {
	list, window := slices.Clone(records), new(observed.Window)
	for i, r := range records {
		if o := r.Payload.Observed; o != nil {
			list[i] = wordsOf(r, o, window.Read(observed.Open(r)))
		}
	}
	return list
}

func wordsOf(r *evidence.Record, o *evidence.Observed, read observed.Reading) *evidence.Record {
	said, _ := observe.Project(observe.CallOf(o, read.Request, read.Response)) // where it cannot be read, the bytes are looked through
	made := *r
	p := &made.Payload
	p.SealedApart = slices.Clone(p.SealedApart)
	fill(p, "/prompt", &p.Prompt, said.Prompt, o.Request, read.Request)
	output := said.Output
	for _, m := range said.Answered {
		for i := range m.ToolCalls { // their texts stand in a text, with its escapes
			_, arguments := m.ToolCalls[i].Said()
			output = alongside(output, jsontext.Value(arguments))
		}
		if m.FunctionCall != nil {
			output = alongside(output, jsontext.Value(m.FunctionCall.Arguments))
		}
	}
	fill(p, "/response", &p.Response, output, o.Response, read.Response)
	return &made
}

// fill sets a member to what was read: the record's own value stays where nothing was, and else the bytes stand in for it, as a text and as the
// JSON that they may be. If the bytes are not in the file, the member is withheld.
func fill(p *evidence.Payload, pointer string, member *jsontext.Value, read jsontext.Value, stated *evidence.ObservedBody, body []byte) {
	switch {
	case read != nil:
		*member = read
		p.SealedApart = slices.DeleteFunc(p.SealedApart, func(at string) bool { return at == pointer })
	case *member != nil || p.Observed.Vantage == evidence.Telemetry:
	case body != nil:
		text, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(body), "\uFFFD"))
		*member = alongside(text, body)
	case stated != nil && stated.Bytes > 0:
		p.SealedApart = append(p.SealedApart, pointer)
	}
}

// alongside puts a value beside another; either may be none.
func alongside(value, more jsontext.Value) jsontext.Value {
	switch {
	case !more.IsValid():
		return value
	case value == nil:
		return more
	}
	return slices.Concat(jsontext.Value("["), value, jsontext.Value(","), bytes.TrimSpace(more), jsontext.Value("]"))
}
