package subject

// looksLikeConversation recognises a conversation in the place of a card.
func looksLikeConversation(n *node) bool {
	if n.Kind == '[' {
		return len(n.Members) > 0 && n.Members[0].Get("role") != nil
	}
	return n.Get("name") == nil && (n.Get("messages") != nil || n.Get("history") != nil || n.Get("task") != nil)
}

// looksLikeCard recognises a card in the place of a conversation.
func looksLikeCard(n *node) bool {
	return n.Get("skills") != nil || n.Get("supportedInterfaces") != nil || n.Get("capabilities") != nil ||
		n.Get("preferredTransport") != nil
}

func (c *Case) readConversation(n *node) error {
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
	if err := c.each(list, aMessage, c.readMessage); err != nil {
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
func (c *Case) findMessages(n *node) (*node, error) {
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
func (c *Case) readMessage(n *node) error {
	if n.Get("parts") != nil && n.Get("content") == nil {
		role, err := readRole(n)
		if err != nil {
			return err
		}
		return c.readTaskMessage(n, role, "")
	}
	m := Message{}
	if err := c.readChatMessage(&m, n); err != nil {
		return err
	}
	if m.Role == Tool {
		return c.readResults(&m, n)
	}
	c.say(m, n)
	return nil
}

// lines are the lines of a message in its file.
type lines struct {
	from, to    int
	offset, end int64 // where the message begins, and ends
}

// stands stores the lines of the message that was read last.
func (c *Case) stands(n *node) {
	from, to := n.Lines()
	c.lines = append(c.lines, lines{from, to, n.Offset, n.End})
}

// roles maps every known spelling to a role.
var roles = map[string]Role{
	"system": System, "developer": System,
	"user": User, "ROLE_USER": User, "human": User,
	"assistant": Assistant, "agent": Assistant, "ROLE_AGENT": Assistant, "model": Assistant,
	"tool": Tool, "function": Tool,
}

func readRole(n *node) (Role, error) {
	at := n.Get("role")
	if at.Absent() {
		return "", n.Errorf("a message without a role: expected system, developer, user, assistant or tool, for example \"role\": \"user\"")
	}
	given, err := n.Str("role")
	if err != nil {
		return "", err
	}
	role, known := roles[given]
	if !known {
		return "", at.Errorf("unknown role %s: expected system, developer, user, assistant or tool (in an A2A task, user or agent), for example \"role\": \"user\"", quote(given))
	}
	return role, nil
}
