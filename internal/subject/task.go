package subject

import (
	"strings"

	"jurat/evidence"
)

func (m *Message) readTaskMessage(n *Node) (err error) {
	if m.Role, err = readRole(n); err != nil {
		return err
	}
	return m.readParts(n.get("parts"))
}

// readParts reads text, data and file parts, of v0.3 (with kind) and of v1.0 (which their members distinguish).
func (m *Message) readParts(list *Node) error {
	if list.kind != '[' {
		return list.Errorf("expected an array of parts, found %s", list.KindName())
	}
	var texts []string
	for _, part := range list.members {
		text, err := m.readPart(part)
		if err != nil {
			return err
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	m.Text = strings.Join(texts, "\n")
	return nil
}

func (m *Message) readPart(n *Node) (string, error) {
	if n.kind != '{' {
		return "", n.Errorf("content of a wrong kind: expected a part (an object), found %s", n.KindName())
	}
	switch {
	case !n.get("text").absent():
		return n.str("text")
	case !n.get("data").absent():
		return m.readData(n.get("data"))
	case !n.get("file").absent(), !n.get("url").absent(), !n.get("raw").absent():
		return filePart(n)
	}
	return "", n.Errorf("content of a wrong kind: expected a part with text, data or file")
}

func filePart(n *Node) (string, error) {
	at := n
	if inner := n.get("file"); !inner.absent() {
		at = inner
	}
	for _, member := range []string{"name", "filename", "uri", "url"} {
		if text, err := at.str(member); err != nil || text != "" {
			return "[file " + text + "]", err
		}
	}
	return "[file]", nil
}

// readData recognises a function call or its response, in the form in which agent frameworks put them into a history.
// It keeps other data as text in canonical form.
func (m *Message) readData(n *Node) (string, error) {
	name, _ := n.str("name")
	id, _ := n.str("id")
	switch {
	case name != "" && (n.get("args") != nil || n.get("arguments") != nil):
		return "", m.addCall(n, id)
	case name != "" && n.get("response") != nil:
		m.Role, m.ToolCallID, m.ToolName = Tool, id, name
		response := n.get("response")
		if response.kind == '"' {
			return response.text, nil
		}
		return canonicalText(response)
	}
	return canonicalText(n)
}

func canonicalText(n *Node) (string, error) {
	form, err := evidence.Canonical(n.raw())
	if err != nil {
		return "", n.Errorf("%v", err)
	}
	return string(form), nil
}

// readTaskEnd appends the content after a task's history: artifacts, then the message of its status.
func (c *Case) readTaskEnd(task *Node) error {
	err := eachObject(task.get("artifacts"), "an artifact", func(artifact *Node) error {
		if artifact.get("parts").absent() {
			return artifact.Errorf("an artifact without parts")
		}
		m := Message{Role: Assistant, Name: "artifact"}
		if err := m.readParts(artifact.get("parts")); err != nil {
			return err
		}
		c.say(m, artifact)
		return nil
	})
	if err != nil {
		return err
	}
	status := task.get("status")
	if status.absent() {
		return nil
	}
	if c.TaskState, err = status.str("state"); err != nil {
		return err
	}
	last := status.get("message")
	if last.absent() || c.hasMessage(task, last) {
		return nil
	}
	if last.kind != '{' {
		return last.Errorf("expected a message (an object), found %s", last.KindName())
	}
	return c.readMessage(last)
}

// hasMessage reports whether the history already has a message with that id.
func (c *Case) hasMessage(task, message *Node) bool {
	id, _ := message.str("messageId")
	if id == "" {
		return false
	}
	for _, one := range task.get("history").members {
		if have, _ := one.str("messageId"); have == id {
			return true
		}
	}
	return false
}
