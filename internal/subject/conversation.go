package subject

import "jurat/internal/convo"

// looksLikeConversation recognises a conversation in the place of a card.
func looksLikeConversation(n *convo.Node) bool {
	if n.Kind == '[' {
		return len(n.Members) > 0 && n.Members[0].Get("role") != nil
	}
	return n.Get("name") == nil && (n.Get("messages") != nil || n.Get("history") != nil || n.Get("task") != nil)
}

// looksLikeCard recognises a card in the place of a conversation.
func looksLikeCard(n *convo.Node) bool {
	return n.Get("skills") != nil || n.Get("supportedInterfaces") != nil || n.Get("capabilities") != nil ||
		n.Get("preferredTransport") != nil
}

func (c *Case) readConversation(n *convo.Node) error {
	if looksLikeCard(n) {
		return n.Errorf("expected a conversation, for example [{\"role\": \"user\", \"content\": \"Hello\"}], but this looks like an agent card; are the two files swapped?")
	}
	list, err := c.findMessages(n)
	if err != nil {
		return err
	}
	if list.Kind != '[' {
		return list.Errorf("expected an array of messages, found %s", list.KindName())
	}
	if len(list.Members) == 0 {
		return list.Errorf("an empty conversation: expected at least one message, for example {\"role\": \"user\", \"content\": \"Hello\"}")
	}
	r := c.reader()
	if err := r.Each(list, convo.AMessage, func(n *convo.Node) error { return c.readMessage(r, n) }); err != nil {
		return err
	}
	c.Form = ChatForm
	if task := list.Parent; task != nil && list.Step == "history" {
		c.Form = A2AForm
		return c.readTaskEnd(task)
	}
	return nil
}

// findMessages finds the list of messages in the wrappers that conversations come in.
func (c *Case) findMessages(n *convo.Node) (*convo.Node, error) {
	if n.Kind == '[' {
		return n, nil
	}
	if n.Kind != '{' {
		return nil, n.Errorf("expected an array of chat messages or an A2A task, found %s; for example [{\"role\": \"user\", \"content\": \"Hello\"}]", n.KindName())
	}
	for _, name := range []string{"messages", "history"} {
		if list := n.Get(name); !list.Absent() {
			return list, nil
		}
	}
	for _, name := range []string{"task", "result"} {
		if inner := n.Get(name); !inner.Absent() && inner.Kind == '{' {
			return c.findMessages(inner)
		}
	}
	return nil, n.Errorf("expected an array of chat messages, or an A2A task with a history, found an object without messages; for example [{\"role\": \"user\", \"content\": \"Hello\"}]")
}

// readMessage reads one message: A2A's if it has parts, a chat message otherwise.
func (c *Case) readMessage(r *convo.Reader, n *convo.Node) error {
	if n.Get("parts") == nil || n.Get("content") != nil {
		return r.ReadChatMessage(n)
	}
	role, err := r.ReadRole(n)
	if err != nil {
		return err
	}
	return r.ReadTaskMessage(n, convo.RoleOf(role), "")
}

// lines are the lines of a message in its file.
type lines struct {
	from, to    int
	offset, end int64 // where the message begins, and ends
}

// stands stores the lines of the message that was read last.
func (c *Case) stands(n *convo.Node) {
	from, to := n.Lines()
	c.lines = append(c.lines, lines{from, to, n.Offset, n.End})
}
