package subject

// readPromptfoo reads {"prompt", "output"}, or an array of them.
func (c *Case) readPromptfoo(n *node) error {
	if n.Kind == '[' {
		return c.each(n, thing{"a turn {prompt, output} (an object)", `{"prompt": "Hello", "output": "Hello!"}`}, c.readExchange)
	}
	return c.readExchange(n)
}

func (c *Case) readExchange(n *node) error {
	prompt, output := n.Get("prompt"), n.Get("output")
	if n.Kind != '{' || prompt.Absent() || output.Absent() {
		return n.Errorf("expected a turn {\"prompt\": \"…\", \"output\": \"…\"}")
	}
	if err := c.readPrompt(prompt); err != nil {
		return err
	}
	m := Message{Role: Assistant}
	if calls := m.callsOnly(output); !calls {
		text, err := plainText(output)
		if err != nil {
			return err
		}
		m.Text = text
	}
	c.say(m, output)
	return nil
}

// readPrompt reads a prompt: chat messages, as JSON or as JSON in a string, or a text of the user.
func (c *Case) readPrompt(n *node) error {
	text, err := plainText(n)
	if err != nil {
		return err
	}
	if inner, err := parseNode(n.File(), []byte(text)); err == nil && inner.Kind == '[' {
		said := &Case{}
		if said.readConversation(inner) == nil {
			for _, m := range said.Messages {
				c.say(m, n)
			}
			return nil
		}
	}
	c.say(Message{Role: User, Text: text}, n)
	return nil
}

// callsOnly reads an output that is a list of calls, and reports whether it is one.
func (m *Message) callsOnly(n *node) bool {
	if n.Kind != '[' || len(n.Members) == 0 {
		return false
	}
	for _, item := range n.Members {
		if item.Get("function") == nil || m.readCall(item) != nil {
			m.ToolCalls = nil
			return false
		}
	}
	return true
}
