package subject

import (
	"jurat/internal/subject/tree"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Role says who a message is from.
type Role string

const (
	System    Role = "system" // also "developer"
	User      Role = "user"
	Assistant Role = "assistant" // the agent under trial
	Tool      Role = "tool"      // a tool's answer; in records also the context that the agent was given

	Statement Role = "statement" // another party, by a SCITT statement that was brought with the case

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
	Result    int            // number of the message with its result; 0 if there is none
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

// link assigns each tool result to the latest call that it can answer, and returns the results without a call.
func (c *Case) link() (unanswering []*Message) {
	calls := openCalls{}
	for i := range c.Messages {
		m := &c.Messages[i]
		for j := range m.ToolCalls {
			calls.add(madeCall{&m.ToolCalls[j], m.Number, m.Role})
		}
		if m.Role != Tool {
			continue
		}
		made, ok := calls.answeredBy(m)
		if !ok {
			unanswering = append(unanswering, m)
			continue
		}
		made.call.Result, m.CallNumber, m.AnswersTo = m.Number, made.number, made.by
		if m.ToolName == "" {
			m.ToolName = made.call.Name
		}
	}
	return unanswering
}

// openCalls holds calls, the latest last, under each key by which a result may name them. answeredBy drops calls that
// have a result when it finds them.
type openCalls map[callKey][]madeCall

type madeCall struct {
	call   *ToolCall
	number int // of its message
	by     Role
}

// A callKey is what a result may say of its call. What it does not say is "".
type callKey struct {
	by       Role
	id, name string
}

func (o openCalls) add(made madeCall) {
	for _, by := range []Role{"", made.by} {
		keys := []callKey{{by: by}, {by: by, id: made.call.ID}, {by: by, name: made.call.Name}}
		if made.call.ID == "" {
			keys = slices.Delete(keys, 1, 2)
		}
		for _, key := range keys {
			o[key] = append(o[key], made)
		}
	}
}

// answeredBy finds the latest call without a result that a message names. Ids may repeat in a long log.
func (o openCalls) answeredBy(m *Message) (madeCall, bool) {
	key := callKey{by: m.AnswersTo}
	switch {
	case m.ToolCallID != "":
		key.id = m.ToolCallID
	case m.ToolName != "":
		key.name = m.ToolName
	}
	list := o[key]
	for len(list) > 0 && list[len(list)-1].call.Result != 0 {
		list = list[:len(list)-1]
	}
	if len(list) == 0 {
		delete(o, key)
		return madeCall{}, false
	}
	o[key] = list[:len(list)-1]
	return list[len(list)-1], true
}

func callName(m *Message) string {
	if m.AnswersTo == User {
		return "of the user " + nameOfCall(m)
	}
	return nameOfCall(m)
}

func nameOfCall(m *Message) string {
	if m.ToolCallID != "" {
		return tree.Quote(m.ToolCallID)
	}
	if m.ToolName != "" {
		return "to " + tree.Quote(m.ToolName)
	}
	return "that it answers"
}
