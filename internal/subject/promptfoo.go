package subject

import "jurat/internal/convo"

// readPromptfoo reads {"prompt", "output"}, or an array of them.
func (c *Case) readPromptfoo(n *convo.Node) error {
	if n.Kind == '[' {
		return c.reader().Each(n, convo.Thing{Name: "a turn {prompt, output} (an object)", Example: `{"prompt": "Hello", "output": "Hello!"}`}, c.readExchange)
	}
	return c.readExchange(n)
}

func (c *Case) readExchange(n *convo.Node) error {
	prompt, output := n.Get("prompt"), n.Get("output")
	if n.Kind != '{' || prompt.Absent() || output.Absent() {
		return n.Errorf("expected a turn {\"prompt\": \"…\", \"output\": \"…\"}")
	}
	c.readPrompt(prompt)
	m := Message{Role: Assistant}
	if calls := m.callsOnly(output); !calls {
		m.Text = convo.Plain(output)
	}
	c.say(m, output)
	return nil
}

// readPrompt reads a prompt: chat messages, as JSON or as JSON in a string, or a text of the user.
func (c *Case) readPrompt(n *convo.Node) {
	text := convo.Plain(n)
	if inner, err := convo.Parse(n.File(), []byte(text)); err == nil && inner.Kind == '[' {
		said := &Case{}
		if said.readConversation(inner) == nil {
			for _, m := range said.Messages {
				c.say(m, n)
			}
			return
		}
	}
	c.say(Message{Role: User, Text: text}, n)
}

// callsOnly reads an output that is a list of calls, and reports whether it is one.
func (m *Message) callsOnly(n *convo.Node) bool {
	if n.Kind != '[' || len(n.Members) == 0 {
		return false
	}
	for _, item := range n.Members {
		call, err := new(convo.Reader).ReadCall(item)
		if item.Get("function") == nil || err != nil {
			m.ToolCalls = nil
			return false
		}
		m.ToolCalls = append(m.ToolCalls, callOf(&call))
	}
	return true
}
