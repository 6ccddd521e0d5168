package subject

import (
	"cmp"
	"slices"

	"jurat/internal/convo"
)

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

func (c *Case) readConversation(r *convo.Reader, n *convo.Node) {
	list := messagesIn(n)
	switch {
	case looksLikeCard(n):
		r.Fail(n, "expected a conversation, for example [{\"role\": \"user\", \"content\": \"Hello\"}], but this looks like an agent card; are the two files swapped?")
	case n.Kind != '{' && n.Kind != '[':
		r.Fail(n, "expected an array of chat messages or an A2A task, found %s; for example [{\"role\": \"user\", \"content\": \"Hello\"}]", n.KindName())
	case list == nil:
		r.Fail(n, "expected an array of chat messages, or an A2A task with a history, found an object without messages; for example [{\"role\": \"user\", \"content\": \"Hello\"}]")
	case list.Kind != '[':
		r.Fail(list, "expected an array of messages, found %s", list.KindName())
	case len(list.Members) == 0:
		r.Fail(list, "an empty conversation: expected at least one message, for example {\"role\": \"user\", \"content\": \"Hello\"}")
	default:
		r.Each(list, convo.AMessage, func(n *convo.Node) { readMessage(r, n) })
		c.Form = ChatForm
		if task := list.Parent; task != nil && list.Step == "history" {
			c.Form = A2AForm
			c.readTaskEnd(r, task)
		}
	}
}

// messagesIn finds the list of messages in the wrappers that conversations come in.
func messagesIn(n *convo.Node) *convo.Node {
	if n.Kind == '[' {
		return n
	}
	if list := n.First("messages", "history"); list != nil {
		return list
	}
	for _, name := range []string{"task", "result"} {
		if inner := n.Get(name); inner != nil && inner.Kind == '{' {
			return messagesIn(inner)
		}
	}
	return nil
}

// readMessage reads one message: A2A's if it has parts, a chat message otherwise.
func readMessage(r *convo.Reader, n *convo.Node) {
	if n.Get("parts") == nil || n.Get("content") != nil {
		r.ChatMessage(n)
		return
	}
	r.TaskMessage(n, convo.RoleOf(r.SpokenBy(n)), "")
}

// readTaskEnd appends the content after a task's history: artifacts, then the message of its status, unless the history has it.
func (c *Case) readTaskEnd(r *convo.Reader, task *convo.Node) {
	for _, artifact := range r.Objects(task.Get("artifacts"), "an artifact") {
		if artifact.Get("parts").Absent() {
			r.Fail(artifact, "an artifact without parts")
			return
		}
		r.TaskMessage(artifact, convo.Assistant, "artifact")
	}
	status := task.Get("status")
	c.TaskState = r.Str(status, "state")
	last := status.Get("message")
	if last.Absent() || last.Word("messageId") != "" && slices.ContainsFunc(task.Get("history").Members, func(one *convo.Node) bool { return one.Word("messageId") == last.Word("messageId") }) {
		return
	}
	if last.Kind != '{' {
		r.Fail(last, "expected a message (an object), found %s", last.KindName())
		return
	}
	readMessage(r, last)
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

// A Card is what an agent says of itself.
type Card struct {
	Name            string
	Description     string
	Version         string
	ProtocolVersion string // "1.0" or "0.3.0", as the card states it
	Organization    string
	Interfaces      []Interface // the preferred one first
	Skills          []Skill
}

// An Interface is an address at which the agent can be reached.
type Interface struct {
	URL       string
	Transport string
	Version   string
}

// A Skill is something that the agent declares it can do.
type Skill struct {
	ID          string
	Name        string
	Description string
	Tags        []string
	Examples    []string
}

func (c *Case) readCard(n *convo.Node) error {
	r := new(convo.Reader)
	switch {
	case looksLikeConversation(n):
		r.Fail(n, "expected an agent card, but this looks like a conversation; are the two files swapped?")
	case n.Kind != '{':
		r.Fail(n, "expected an agent card (an object), found %s", n.KindName())
	default:
		c.Card = cardOf(r, n)
	}
	return r.Err()
}

func cardOf(r *convo.Reader, n *convo.Node) Card {
	card := Card{Name: r.Str(n, "name"), Description: r.Str(n, "description"), Version: r.Str(n, "version"), ProtocolVersion: r.Str(n, "protocolVersion"),
		Organization: r.Str(n.Get("provider"), "organization")}
	if card.Name == "" {
		r.Fail(n, "an agent card without a name")
	}
	card.readInterfaces(r, n)
	for _, item := range r.Objects(n.Get("skills"), "a skill") {
		card.Skills = append(card.Skills, Skill{ID: r.Str(item, "id"), Name: r.Str(item, "name"), Description: r.Str(item, "description"),
			Tags: r.Texts(item.Get("tags")), Examples: r.Texts(item.Get("examples"))})
	}
	return card
}

// readInterfaces reads v1.0's list, or v0.3's members at the top level of the card.
func (card *Card) readInterfaces(r *convo.Reader, n *convo.Node) {
	list := n.Get("supportedInterfaces")
	for _, item := range r.Objects(list, "an interface") {
		one := Interface{URL: r.Str(item, "url"), Transport: r.Str(item, "protocolBinding"), Version: r.Str(item, "protocolVersion")}
		card.Interfaces = append(card.Interfaces, one)
		card.ProtocolVersion = cmp.Or(card.ProtocolVersion, one.Version)
	}
	if only := (Interface{URL: r.Str(n, "url"), Transport: r.Str(n, "preferredTransport"), Version: card.ProtocolVersion}); list.Absent() && only.URL != "" {
		card.Interfaces = append(card.Interfaces, only)
	}
}
