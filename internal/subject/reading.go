package subject

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/convo"
)

// An Omission is something in a conversation that jurors are not shown.
type Omission struct {
	Kind  Left   `json:"kind"`
	What  string `json:"what"` // in English
	Count int    `json:"count"`
}

// A Left is a kind of what is left out.
type Left = convo.Left

// What is left out of the messages.
const (
	Reasoning    = convo.Reasoning
	Unreadable   = convo.Unreadable
	Elsewhere    = convo.Elsewhere
	Judged       = convo.Judged
	Alternatives = convo.Alternatives
)

// omits counts something that is left out of the messages.
func (c *Case) omits(kind Left) {
	i := slices.IndexFunc(c.LeftOut, func(o Omission) bool { return o.Kind == kind })
	if i < 0 {
		c.LeftOut = append(c.LeftOut, Omission{Kind: kind, What: kind.InWords()})
		i = len(c.LeftOut) - 1
	}
	c.LeftOut[i].Count++
	c.omitted = append(c.omitted, omitted{kind, len(c.Messages) + 1})
}

// An omitted is something that is left out while a message is read: the one with this number, or one before it.
type omitted struct {
	kind   Left
	number int
}

// mistake keeps an error for later while checking, and returns it otherwise. It returns an error that ends the check
// when there are too many.
func (c *Case) mistake(err error) error {
	if err == nil || !c.checking {
		return err
	}
	if len(c.mistakes) == MaxMistakes {
		return fmt.Errorf("more mistakes: these are the first %d", MaxMistakes)
	}
	c.mistakes = append(c.mistakes, err)
	return nil
}

// MaxMistakes bounds what a check reports of a hostile file.
const MaxMistakes = 100

// say appends a message that stands at a node.
func (c *Case) say(m Message, at *convo.Node) {
	m.Number = len(c.Messages) + 1
	c.Messages = append(c.Messages, m)
	c.stands(at)
}

// reader reads the conversation of the case, in any vendor's form.
func (c *Case) reader() *convo.Reader {
	r := &convo.Reader{Say: func(m convo.Message, at *convo.Node) { c.say(messageOf(&m), at) }, Left: c.omits, Mistake: c.mistake}
	if c.part {
		r.Strange = func(kind string) { c.Strange = append(c.Strange, kind) }
	}
	return r
}

// messageOf is a message as jurors read it.
func messageOf(from *convo.Message) Message {
	m := Message{Role: Role(convo.RoleOf(from.Role)), Text: from.Content.Shown(), Name: from.Name, Beside: from.Beside, AnswersTo: Role(from.AnswersTo)}
	if m.Text == "" {
		m.Text = from.Refusal
	}
	if m.Role == Tool {
		m.ToolName, m.ToolCallID, m.Failed = from.Name, from.ToolCallID, from.IsError
		return m
	}
	for i := range from.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, callOf(&from.ToolCalls[i]))
	}
	if f := from.FunctionCall; f != nil {
		m.ToolCalls = append(m.ToolCalls, callOf(&convo.ChatToolCall{Function: *f}))
	}
	return m
}

func callOf(from *convo.ChatToolCall) ToolCall {
	name, arguments := from.Said()
	call := ToolCall{ID: from.ID, Name: name}
	call.setArguments(arguments)
	return call
}

func (call *ToolCall) setArguments(text string) {
	call.Arguments = text
	if object, err := evidence.Canonical([]byte(text)); err == nil && jsontext.Value(object).Kind() == '{' {
		call.Args = object
	}
}
