package subject

import (
	"strings"

	"jurat/evidence"
	"jurat/internal/subject/tree"
)

func (m *Message) readTaskMessage(n *tree.Node) (err error) {
	if m.Role, err = readRole(n); err != nil {
		return err
	}
	return m.readParts(n.Get("parts"))
}

// readParts reads text, data and file parts, of v0.3 (with kind) and of v1.0 (which their members distinguish).
func (m *Message) readParts(list *tree.Node) error {
	if list.Kind != '[' {
		return list.Errorf("expected an array of parts, found %s", list.KindName())
	}
	var texts []string
	for _, part := range list.Members {
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

func (m *Message) readPart(n *tree.Node) (string, error) {
	if n.Kind != '{' {
		return "", n.Errorf("content of a wrong kind: expected a part (an object), found %s", n.KindName())
	}
	switch {
	case !n.Get("text").Absent():
		return n.Str("text")
	case !n.Get("data").Absent():
		return m.readData(n.Get("data"))
	case !n.Get("file").Absent(), !n.Get("url").Absent(), !n.Get("raw").Absent():
		return filePart(n)
	}
	return "", n.Errorf("content of a wrong kind: expected a part with text, data or file")
}

func filePart(n *tree.Node) (string, error) {
	at := n
	if inner := n.Get("file"); !inner.Absent() {
		at = inner
	}
	for _, member := range []string{"name", "filename", "uri", "url"} {
		if text, err := at.Str(member); err != nil || text != "" {
			return "[file " + text + "]", err
		}
	}
	return "[file]", nil
}

// readData recognises a function call or its response, in the form in which agent frameworks put them into a history.
// It keeps other data as text in canonical form.
func (m *Message) readData(n *tree.Node) (string, error) {
	name, _ := n.Str("name")
	id, _ := n.Str("id")
	switch {
	case name != "" && (n.Get("args") != nil || n.Get("arguments") != nil):
		return "", m.addCall(n, id)
	case name != "" && n.Get("response") != nil:
		m.Role, m.ToolCallID, m.ToolName = Tool, id, name
		response := n.Get("response")
		if response.Kind == '"' {
			return response.Text, nil
		}
		return canonicalText(response)
	}
	return canonicalText(n)
}

func canonicalText(n *tree.Node) (string, error) {
	form, err := evidence.Canonical(n.Raw())
	if err != nil {
		return "", n.Errorf("%v", err)
	}
	return string(form), nil
}

// readTaskEnd appends the content after a task's history: artifacts, then the message of its status.
func (c *Case) readTaskEnd(task *tree.Node) error {
	err := eachObject(task.Get("artifacts"), "an artifact", func(artifact *tree.Node) error {
		if artifact.Get("parts").Absent() {
			return artifact.Errorf("an artifact without parts")
		}
		m := Message{Role: Assistant, Name: "artifact"}
		if err := m.readParts(artifact.Get("parts")); err != nil {
			return err
		}
		c.say(m, artifact)
		return nil
	})
	if err != nil {
		return err
	}
	status := task.Get("status")
	if status.Absent() {
		return nil
	}
	if c.TaskState, err = status.Str("state"); err != nil {
		return err
	}
	last := status.Get("message")
	if last.Absent() || c.hasMessage(task, last) {
		return nil
	}
	if last.Kind != '{' {
		return last.Errorf("expected a message (an object), found %s", last.KindName())
	}
	return c.readMessage(last)
}

// hasMessage reports whether the history already has a message with that id.
func (c *Case) hasMessage(task, message *tree.Node) bool {
	id, _ := message.Str("messageId")
	if id == "" {
		return false
	}
	for _, one := range task.Get("history").Members {
		if have, _ := one.Str("messageId"); have == id {
			return true
		}
	}
	return false
}
