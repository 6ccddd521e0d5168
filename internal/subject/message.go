package subject

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/convo"
)

// Role says who a message is from.
type Role string

const (
	System    Role = "system" // also "developer"
	User      Role = "user"
	Assistant Role = "assistant" // the agent under trial
	Tool      Role = "tool"      // a tool's answer; in records also the context that the agent was given

	// These roles exist only in evidence that is made of records:
	Reviewer Role = "reviewer" // a person who decided on what the agent said
	Operator Role = "operator" // runs the installation, or delivers what the agent said
	Recorder Role = "recorder" // a program that saw what the agent did, and says what no message shows
)

// A Message is one message of a conversation.
type Message struct {
	Number     int // from 1, in the order of the file
	Role       Role
	Text       string     // text parts joined by line breaks
	Name       string     // of a participant, if the file gives one
	ToolCalls  []ToolCall // of the agent or, if Role is User, the user's own
	ToolCallID string     // of a tool's message: the call that it answers
	ToolName   string     // of a tool's message: the tool's name
	CallNumber int        // of a tool's message: the number of the message that made the call; 0: unknown
	CallPlace  int        // of a tool's message: which of that message's calls it answers, from 1; 0: unknown
	Beside     bool       // of a tool's message: the file has the result in one piece with its call, which is the last one before it
	AnswersTo  Role       // of a tool's message: who made the call, Assistant or User; "": unknown
	Failed     bool       // of a tool's message: the log marks it as an error, apart from its text

	// Of a message that comes from a record:
	Record evidence.Digest // zero if the evidence is a conversation
	Part   string          // the member of the payload that holds the text, such as "prompt"
	Head   string          // of a record's first message: the program's description of the record
}

// A ToolCall is one call that the agent or the user made. Its message says who: see [Message.Caller].
type ToolCall struct {
	ID        string
	Name      string
	Arguments string         // the string in the file, usually a JSON object; or the object in canonical form
	Args      jsontext.Value // Arguments as a JSON object in canonical form; nil if they are not one
	Result    int            // number of the message with its result, of several at once the last; 0 if there is none
}

// Caller returns who made the calls of a message or, of a tool's message, the call that it answers: Assistant, which
// is the agent under trial, or User. It returns "" if the message has no calls, or answers a call that is not known.
// Where the user has tools of their own (dual control), a juror must not attribute their calls to the agent.
func (m *Message) Caller() Role {
	if m.Role == Tool {
		return m.AnswersTo
	}
	if len(m.ToolCalls) == 0 {
		return ""
	}
	return m.Role
}

// AgentCalls returns the calls that the agent made in the message, and none that the user made.
func (m *Message) AgentCalls() []ToolCall {
	if m.Role != Assistant {
		return nil
	}
	return m.ToolCalls
}

// Holds reports whether a text occurs literally in the message's text, or in a name or the arguments of its calls.
func (m *Message) Holds(quote string) bool {
	if quote == "" {
		return false
	}
	if strings.Contains(m.Text, quote) {
		return true
	}
	for _, call := range m.ToolCalls {
		if strings.Contains(call.Arguments, quote) || strings.Contains(call.Name, quote) {
			return true
		}
	}
	return false
}

func callName(m *Message) string {
	if m.AnswersTo == User {
		return "of the user " + nameOfCall(m)
	}
	return nameOfCall(m)
}

func nameOfCall(m *Message) string {
	if m.ToolCallID != "" {
		return convo.Quote(m.ToolCallID)
	}
	if m.ToolName != "" {
		return "to " + convo.Quote(m.ToolName)
	}
	return "that it answers"
}

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
