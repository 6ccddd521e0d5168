package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jurat/internal/plural"
	"jurat/internal/subject"
)

// A checked case is how jurat reads a case, and everything that is wrong with it, as --check --json prints it.
type checked struct {
	Case     string             `json:"case"`
	Form     string             `json:"form,omitzero"` // or "records"
	Messages map[string]int     `json:"messages,omitzero"`
	Calls    *checkedCalls      `json:"calls,omitzero"`
	User     subject.Setting    `json:"user,omitzero"`
	Card     *checkedCard       `json:"card,omitzero"`
	Source   *subject.Source    `json:"source,omitzero"`
	LeftOut  []subject.Omission `json:"leftOut,omitzero"`
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

func mistakeOf(err error) checkedMistake {
	m := checkedMistake{Reason: err.Error(), whole: err.Error()}
	var at *subject.Error
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
	one.Form, one.User, one.Source, one.LeftOut = string(on.Form), on.Setting(), on.Source, on.LeftOut
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

// wrong shows the mistakes of a case that cannot be tried.
func (c *checked) wrong(p *printer) {
	p.line("%s", p.bold(c.Case))
	for _, m := range c.Mistakes {
		p.paragraph(red, "  ", m.whole)
	}
	p.text("  ", plural.Of(len(c.Mistakes), "mistake")+". docs/case.md describes each form, and 'jurat trial --schema conversation' prints a schema.")
}

// lines say how the case is read.
func (c *checked) lines() []string {
	total := 0
	var from []string
	for _, role := range slices.Sorted(maps.Keys(c.Messages)) {
		total += c.Messages[role]
		from = append(from, fmt.Sprintf("%s %d", role, c.Messages[role]))
	}
	list := []string{"form: " + c.Form, fmt.Sprintf("%s: %s", plural.Of(total, "message"), strings.Join(from, ", ")),
		fmt.Sprintf("calls: %d by the agent, %d by the user; results: %d", c.Calls.Agent, c.Calls.User, c.Calls.Results), fmt.Sprintf("the user: %s", c.User)}
	if c.Card != nil {
		list = append(list, fmt.Sprintf("card: %s, %s", strings.TrimSpace(c.Card.Name+" "+c.Card.Version), plural.Of(c.Card.Skills, "skill")))
	}
	return list
}
