package subject

import "jurat/internal/convo"

// readPromptfoo reads {"prompt", "output"}, or an array of them.
func (c *Case) readPromptfoo(r *convo.Reader, n *convo.Node) {
	turn := func(n *convo.Node) {
		prompt, output := n.Get("prompt"), n.Get("output")
		if n.Kind != '{' || prompt.Absent() || output.Absent() {
			r.Fail(n, "expected a turn {\"prompt\": \"…\", \"output\": \"…\"}")
			return
		}
		c.readPrompt(prompt)
		m := Message{Role: Assistant, ToolCalls: callsOnly(output)}
		if m.ToolCalls == nil {
			m.Text = convo.Plain(output)
		}
		c.say(m, output)
	}
	if n.Kind != '[' {
		turn(n)
		return
	}
	r.Each(n, convo.Thing{Name: "a turn {prompt, output} (an object)", Example: `{"prompt": "Hello", "output": "Hello!"}`}, turn)
}

// readPrompt reads a prompt: chat messages, as JSON or as JSON in a string, or a text of the user.
func (c *Case) readPrompt(n *convo.Node) {
	text := convo.Plain(n)
	if inner, err := convo.Parse(n.File(), []byte(text)); err == nil && inner.Kind == '[' {
		said := &Case{}
		r := said.reader()
		if said.readConversation(r, inner); r.Err() == nil {
			for _, m := range said.Messages {
				c.say(m, n)
			}
			return
		}
	}
	c.say(Message{Role: User, Text: text}, n)
}

// callsOnly reads an output that is a list of calls; nil: it is none.
func callsOnly(n *convo.Node) (calls []ToolCall) {
	r := new(convo.Reader)
	if n.Kind != '[' {
		return nil
	}
	for _, item := range n.Members {
		call := r.ChatCall(item)
		if item.Get("function") == nil || r.Err() != nil {
			return nil
		}
		calls = append(calls, callOf(&call))
	}
	return calls
}
