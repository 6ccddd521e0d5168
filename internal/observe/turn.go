package observe

import "slices"

// A turn collects what one speaker says and calls, until the result of a tool interrupts it. Vendors other than OpenAI
// put results of tools into a turn; a chat has a message for each.
type turn struct {
	role string
	said []message
	open bool // the last message may still grow
}

// grow returns the message that the speaker is at.
func (t *turn) grow() *message {
	if !t.open {
		t.said, t.open = append(t.said, message{Role: t.role}), true
	}
	return &t.said[len(t.said)-1]
}

func (t *turn) say(p part) {
	m := t.grow()
	m.Content = append(m.Content, p)
}

func (t *turn) call(c call) {
	m := t.grow()
	m.ToolCalls = append(m.ToolCalls, c)
}

// result adds what a tool returned.
func (t *turn) result(m message) {
	m.Role = "tool"
	t.said, t.open = append(t.said, m), false
}

// end returns the messages.
func (t *turn) end() []message {
	for i := range t.said {
		if m := &t.said[i]; m.Role == "assistant" {
			m.Content = m.Content.joined()
		}
	}
	return t.said
}

// spoken leaves out messages with nothing in them.
func spoken(said []message) []message {
	return slices.DeleteFunc(said, func(m message) bool {
		return len(m.Content) == 0 && m.Refusal == "" && len(m.ToolCalls) == 0 && m.FunctionCall == nil && m.ToolCallID == ""
	})
}
