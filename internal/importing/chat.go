package importing

import (
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/subject"
)

// chatMessage is a message as acts have it.
type chatMessage struct {
	Role       subject.Role `json:"role"`
	Content    string       `json:"content"`
	Name       string       `json:"name,omitzero"`
	ToolCalls  []chatCall   `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitzero"`
	IsError    bool         `json:"is_error,omitzero"`
}

type chatCall struct {
	ID       string       `json:"id,omitzero"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func chatOf(m *subject.Message) chatMessage {
	c := chatMessage{Role: m.Role, Content: m.Text, Name: m.Name, ToolCallID: m.ToolCallID, IsError: m.Failed}
	if m.Role == subject.Tool {
		c.Name = m.ToolName
	}
	for _, call := range m.ToolCalls {
		c.ToolCalls = append(c.ToolCalls, chatCall{call.ID, "function", chatFunction{call.Name, call.Arguments}})
	}
	return c
}

// chat writes messages as a payload has them; nil: there are none.
func chat(messages []subject.Message) jsontext.Value {
	if len(messages) == 0 {
		return nil
	}
	list := make([]chatMessage, len(messages))
	for i := range messages {
		list[i] = chatOf(&messages[i])
	}
	return jsonOf(list)
}

// answer writes what the agent answered: a text if that is all, or else its messages; nil: it did not answer.
func answer(messages []subject.Message) jsontext.Value {
	if len(messages) == 1 && messages[0].ToolCalls == nil && messages[0].Name == "" && !messages[0].Failed {
		return jsonOf(messages[0].Text)
	}
	return chat(messages)
}
