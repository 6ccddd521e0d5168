package subject

import (
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
