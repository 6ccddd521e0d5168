package subject

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Role is who says a message.
type Role string

const (
	System    Role = "system" // also "developer"
	User      Role = "user"
	Assistant Role = "assistant" // the agent under trial
	Tool      Role = "tool"      // what a tool answered
)

// A Message is one message of a conversation.
type Message struct {
	Number     int // from 1, in the order of the file
	Role       Role
	Text       string // text parts joined by line breaks
	Name       string // of a participant, where the file gives one
	ToolCalls  []ToolCall
	ToolCallID string // of a tool's message: the call that it answers
	ToolName   string // of a tool's message: the tool's name
	CallNumber int    // of a tool's message: the number of the message that made the call
}

// A ToolCall is one call that the agent made.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string         // the string that the file has, usually a JSON object; or the object in canonical form
	Args      jsontext.Value // Arguments as a JSON object in canonical form; nil if it is none
	Result    int            // number of the message with its result; 0 if there is none
}

// Holds reports whether a text stands to the letter in the message's text, or in a name or the arguments of its calls.
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

// link ties each tool result to the latest call that it can answer.
func (c *Case) link(conversation *node) error {
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role != Tool {
			continue
		}
		call, number := c.openCall(m)
		if call == nil {
			return conversation.errorf("message %d is the result of a tool, but no earlier message makes the call %s", m.Number, callName(m))
		}
		call.Result = m.Number
		m.CallNumber = number
		if m.ToolName == "" {
			m.ToolName = call.Name
		}
	}
	return nil
}

func callName(m *Message) string {
	if m.ToolCallID != "" {
		return quote(m.ToolCallID)
	}
	if m.ToolName != "" {
		return "to " + quote(m.ToolName)
	}
	return "that it answers"
}

func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return "\"" + s + "\""
}

// openCall looks back for a call without a result that m names. Ids may repeat within a long log, so the latest counts.
func (c *Case) openCall(m *Message) (*ToolCall, int) {
	for i := m.Number - 2; i >= 0; i-- {
		calls := c.Messages[i].ToolCalls
		for j := range calls {
			if calls[j].Result == 0 && answers(m, &calls[j]) {
				return &calls[j], i + 1
			}
		}
	}
	return nil, 0
}

func answers(m *Message, call *ToolCall) bool {
	if m.ToolCallID != "" {
		return m.ToolCallID == call.ID
	}
	return m.ToolName == "" || m.ToolName == call.Name
}
