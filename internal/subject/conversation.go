package subject

import (
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
