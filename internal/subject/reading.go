package subject

import (
	"fmt"
	"slices"
	"strings"
)

// An Omission is something in a conversation that jurors are not shown.
type Omission struct {
	Kind  Left   `json:"kind"`
	What  string `json:"what"` // in English
	Count int    `json:"count"`
}

// A Left is a kind of what is left out.
type Left string

// What is left out of the messages.
const (
	// Reasoning is the inner reasoning of a vendor's model. It is not what the agent said.
	Reasoning Left = "reasoning"
	// Unreadable are images, sounds and files. In their place stands what they are.
	Unreadable Left = "unreadable"
	// Elsewhere is context that the log names, and does not have.
	Elsewhere Left = "elsewhere"
	// Judged are scores and verdicts of an evaluation. They are no evidence of what the agent did.
	Judged Left = "judged"
	// Alternatives are answers that the agent did not give.
	Alternatives Left = "alternatives"
)

// leftOut says in English what each kind is.
var leftOut = map[Left]string{
	Reasoning:    "inner reasoning of a model, which is not what the agent said",
	Unreadable:   "images, sounds or files, which no juror can read",
	Elsewhere:    "references to what is not in the log",
	Judged:       "scores and results of an evaluation, which are no evidence",
	Alternatives: "alternative answers",
}

// omits counts something that is left out of the messages.
func (c *Case) omits(kind Left) {
	i := slices.IndexFunc(c.LeftOut, func(o Omission) bool { return o.Kind == kind })
	if i < 0 {
		c.LeftOut = append(c.LeftOut, Omission{Kind: kind, What: leftOut[kind]})
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

// InWords says in English what is left out.
func (l Left) InWords() string { return leftOut[l] }

// A thing is what an item of a list must be.
type thing struct{ name, example string }

var (
	aMessage = thing{"a message (an object)", `{"role": "user", "content": "Hello"}`}
	anItem   = thing{"an item (an object)", `{"type": "message", "role": "user", "content": "Hello"}`}
	aContent = thing{"a content {role, parts}", `{"role": "user", "parts": [{"text": "Hello"}]}`}
)

// each reads the items of a list. While checking, it goes on after a mistake.
func (c *Case) each(list *node, what thing, read func(*node) error) error {
	if list.Absent() {
		return nil
	}
	if list.Kind != '[' {
		return list.Errorf("expected an array, found %s", list.KindName())
	}
	for _, item := range list.Members {
		err := error(nil)
		if item.Kind != '{' {
			err = item.Errorf("expected %s, found %s; for example %s", what.name, item.KindName(), what.example)
		} else {
			err = read(item)
		}
		if err := c.mistake(err); err != nil {
			return err
		}
	}
	return nil
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
func (c *Case) say(m Message, at *node) {
	m.Number = len(c.Messages) + 1
	c.Messages = append(c.Messages, m)
	c.stands(at)
}

// A turn collects what one speaker says and calls, until a result of a tool interrupts it.
type turn struct {
	c     *Case
	role  Role
	name  string
	at    *node // where it begins
	texts []string
	calls []ToolCall
}

func (t *turn) text(at *node, text string) {
	t.begin(at)
	t.texts = append(t.texts, text)
}

func (t *turn) call(at *node, call ToolCall) {
	t.begin(at)
	t.calls = append(t.calls, call)
}

func (t *turn) begin(at *node) {
	if t.at == nil {
		t.at = at
	}
}

// end appends the message, if there is something in it.
func (t *turn) end() {
	if t.at != nil {
		t.c.say(Message{Role: t.role, Name: t.name, Text: strings.Join(t.texts, "\n"), ToolCalls: t.calls}, t.at)
	}
	t.at, t.texts, t.calls = nil, nil, nil
}

// result ends the message, and appends the result of a tool.
func (t *turn) result(at *node, m Message) {
	t.end()
	m.Role = Tool
	t.c.say(m, at)
}

// newCall reads the name and the input of a call.
func newCall(n *node, id, name string, input *node) (ToolCall, error) {
	if name == "" {
		return ToolCall{}, n.Errorf("a tool call without a name: expected, for example, \"name\": \"get_order\"")
	}
	call := ToolCall{ID: id, Name: name}
	switch {
	case input.Absent():
	case input.Kind == '"':
		call.setArguments(input.Text)
	default:
		text, err := canonicalText(input)
		if err != nil {
			return call, err
		}
		call.setArguments(text)
	}
	return call, nil
}

// plainText returns a string as it is, and any other value in canonical form.
func plainText(n *node) (string, error) {
	switch {
	case n.Absent():
		return "", nil
	case n.Kind == '"':
		return n.Text, nil
	}
	return canonicalText(n)
}

// unread is the text that stands for an image, a sound or a file.
func (c *Case) unread(kind, name string) string {
	c.omits(Unreadable)
	if name = strings.TrimSpace(name); name != "" {
		kind += " " + name
	}
	return "[" + kind + "]"
}
