package main

import (
	"context"
	"errors"
	"fmt"
	"jurat/internal/subject/forms"
	"maps"
	"os"
	"slices"
	"strings"

	"jurat/internal/plural"
	"jurat/internal/subject"
	"jurat/internal/subject/tree"
)

type caseCmd struct {
	Check  caseCheckCmd  `cmd:"" help:"Show how jurat reads a case, and everything that is wrong with it."`
	Schema caseSchemaCmd `cmd:"" help:"Print the JSON schema of a conversation, or of an agent card."`
}

type caseCheckCmd struct {
	Cases []string `arg:"" name:"case" help:"What 'jurat trial' takes: a folder, a file with one or several conversations, or sealed records."`
	caseFlags
	JSON bool `name:"json" help:"Print an object {\"cases\": […]} and nothing else."`
}

// Run checks the cases.
func (c *caseCheckCmd) Run(ctx context.Context, io stdio) error {
	var list []*checked
	for _, name := range c.Cases {
		list = append(list, c.examine(ctx, io, name)...)
	}
	wrong := slices.ContainsFunc(list, func(one *checked) bool { return len(one.Mistakes) > 0 })
	err := error(nil)
	if c.JSON {
		err = io.json(map[string]any{"cases": list})
	} else {
		p := newPrinter(io.out)
		for _, one := range list {
			one.show(p)
		}
		err = p.err
	}
	if err == nil && wrong {
		err = exitCode(exitCannot)
	}
	return err
}

// A checked case, as --json prints it.
type checked struct {
	Case     string             `json:"case"`
	Form     string             `json:"form,omitzero"` // or "records"
	Messages map[string]int     `json:"messages,omitzero"`
	Calls    *checkedCalls      `json:"calls,omitzero"`
	User     subject.Setting    `json:"user,omitzero"`
	Card     *checkedCard       `json:"card,omitzero"`
	Source   *subject.Source    `json:"source,omitzero"`
	LeftOut  []subject.Omission `json:"leftOut,omitzero"`
	Evidence string             `json:"evidence,omitzero"`
	Mistakes []checkedMistake   `json:"mistakes"`
}

type checkedCalls struct {
	Agent   int `json:"agent"`
	User    int `json:"user"`
	Results int `json:"results"`
}

type checkedCard struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	Skills  int    `json:"skills"`
}

// A checkedMistake is one mistake and its place.
type checkedMistake struct {
	File    string `json:"file,omitzero"`
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
	Pointer string `json:"pointer,omitzero"`
	Reason  string `json:"reason"`
	whole   string
}

// examine reads what CASE names, with all mistakes.
func (c *caseCheckCmd) examine(ctx context.Context, io stdio, name string) []*checked {
	failed := func(err error) []*checked {
		return []*checked{{Case: name, Mistakes: []checkedMistake{mistakeOf(err)}}}
	}
	form, err := forms.Parse(c.Format)
	if err != nil {
		return failed(fmt.Errorf("--format: %w", err))
	}
	o := subject.Options{Form: form, Check: true}
	info, err := os.Stat(name)
	if err != nil {
		return failed(err)
	}
	var found []subject.Brought
	if info.IsDir() {
		var one subject.Brought
		one, err = subject.LoadFolder(name, o)
		found = []subject.Brought{one}
	} else {
		found, err = c.read(ctx, io, name, o)
	}
	if err != nil {
		return failed(err)
	}
	var list []*checked
	for _, b := range found {
		list = append(list, check(nameOf(name, b.Name), b))
	}
	return list
}

func mistakeOf(err error) checkedMistake {
	m := checkedMistake{Reason: err.Error(), whole: err.Error()}
	var at *tree.Error
	if errors.As(err, &at) {
		m.File, m.Line, m.Column, m.Pointer, m.Reason = at.File, at.Line, at.Column, at.Pointer, at.Reason
	}
	return m
}

// check says what jurat reads of a case.
func check(name string, b subject.Brought) *checked {
	one := &checked{Case: name, Mistakes: []checkedMistake{}}
	for _, err := range b.Mistakes {
		one.Mistakes = append(one.Mistakes, mistakeOf(err))
	}
	on := b.Case
	if on == nil {
		return one
	}
	one.Form, one.User, one.Source, one.LeftOut, one.Evidence = string(on.Form), on.Setting(), on.Source, on.LeftOut, on.Digest().String()
	if on.Recorded != nil {
		one.Form = "records"
	}
	if on.HasCard {
		one.Card = &checkedCard{on.Card.Name, on.Card.Version, len(on.Card.Skills)}
	}
	one.Messages, one.Calls = map[string]int{}, &checkedCalls{}
	for i := range on.Messages {
		m := &on.Messages[i]
		one.Messages[string(m.Role)]++
		switch {
		case m.Role == subject.Tool:
			one.Calls.Results++
		case m.Caller() == subject.User:
			one.Calls.User += len(m.ToolCalls)
		default:
			one.Calls.Agent += len(m.ToolCalls)
		}
	}
	return one
}

func (c *checked) show(p *printer) {
	p.line("%s", p.bold(c.Case))
	for _, m := range c.Mistakes {
		p.paragraph(red, "  ", m.whole)
	}
	if c.Form == "" {
		p.text("  ", plural.Of(len(c.Mistakes), "mistake")+". 'jurat case check --help' shows the smallest case, and docs/case.md each form.")
		return
	}
	total := 0
	var from []string
	for _, role := range slices.Sorted(maps.Keys(c.Messages)) {
		total += c.Messages[role]
		from = append(from, fmt.Sprintf("%s %d", role, c.Messages[role]))
	}
	p.text("  ", fmt.Sprintf("form: %s", c.Form))
	p.text("  ", fmt.Sprintf("%s: %s", plural.Of(total, "message"), strings.Join(from, ", ")))
	p.text("  ", fmt.Sprintf("calls: %d by the agent, %d by the user; results: %d", c.Calls.Agent, c.Calls.User, c.Calls.Results))
	p.text("  ", fmt.Sprintf("the user: %s", c.User))
	if c.Card != nil {
		p.text("  ", fmt.Sprintf("card: %s %s, %s", c.Card.Name, c.Card.Version, plural.Of(c.Card.Skills, "skill")))
	} else {
		p.text("  ", "card: none, so what the agent may do by its own word is not checked")
	}
	if c.Source != nil {
		p.text("  ", fmt.Sprintf("source: %s %q", c.Source.Kind, c.Source))
	}
	for _, o := range c.LeftOut {
		p.text("  ", fmt.Sprintf("not shown to jurors: %s (%d)", o.What, o.Count))
	}
	p.text("  ", "evidence: "+c.Evidence)
}

type caseSchemaCmd struct {
	Of string `arg:"" optional:"" enum:"conversation,card" default:"conversation" help:"conversation: chat messages, the plain form. card: the agent's card, as far as jurat reads it."`
}

// Run prints the schema.
func (c *caseSchemaCmd) Run(io stdio) error {
	if c.Of == "card" {
		return io.document(subject.CardSchema)
	}
	return io.document(subject.ChatSchema)
}
