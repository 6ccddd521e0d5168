package subject

import (
	"jurat/evidence"
)

// readTaskMessage reads a message or an artifact. Each result of a tool in it becomes a message of its own.
func (c *Case) readTaskMessage(n *node, role Role, name string) error {
	list, before := n.Get("parts"), len(c.Messages)
	if list.Kind != '[' {
		return list.Errorf("expected an array of parts, found %s", list.KindName())
	}
	t := turn{c: c, role: role, name: name}
	for _, part := range list.Members {
		if err := t.taskPart(part, n); err != nil {
			return err
		}
	}
	if t.at == nil && len(c.Messages) == before {
		t.begin(n) // an empty message
	}
	t.end()
	return nil
}

// taskPart reads a text, data or file part, of v0.3 (with kind) or of v1.0 (which their members distinguish).
func (t *turn) taskPart(n, in *node) (err error) {
	if n.Kind != '{' {
		return n.Errorf("content of a wrong kind: expected a part (an object), found %s", n.KindName())
	}
	text := ""
	switch {
	case !n.Get("text").Absent():
		text, err = n.Str("text")
	case !n.Get("data").Absent():
		return t.taskData(n.Get("data"), in)
	case !n.Get("file").Absent(), !n.Get("url").Absent(), !n.Get("raw").Absent():
		text, err = filePart(n)
	default:
		return n.Errorf("content of a wrong kind: expected a part with text, data or file")
	}
	if text != "" {
		t.text(in, text)
	}
	return err
}

func filePart(n *node) (string, error) {
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

// taskData recognises a function call or its response, in the form in which agent frameworks put them into a history.
// It keeps other data as text in canonical form.
func (t *turn) taskData(n, in *node) error {
	name, _ := n.Str("name")
	id, _ := n.Str("id")
	switch {
	case name != "" && (n.Get("args") != nil || n.Get("arguments") != nil):
		var m Message
		if err := m.addCall(n, id); err != nil {
			return err
		}
		t.call(in, m.ToolCalls[0])
		return nil
	case name != "" && n.Get("response") != nil:
		text, err := plainText(n.Get("response"))
		t.result(in, Message{ToolCallID: id, ToolName: name, Text: text})
		return err
	}
	text, err := canonicalText(n)
	t.text(in, text)
	return err
}

func canonicalText(n *node) (string, error) {
	form, err := evidence.Canonical(n.Raw())
	if err != nil {
		return "", n.Errorf("%v", err)
	}
	return string(form), nil
}

// readTaskEnd appends the content after a task's history: artifacts, then the message of its status.
func (c *Case) readTaskEnd(task *node) error {
	err := eachObject(task.Get("artifacts"), "an artifact", func(artifact *node) error {
		if artifact.Get("parts").Absent() {
			return artifact.Errorf("an artifact without parts")
		}
		return c.readTaskMessage(artifact, Assistant, "artifact")
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
func (c *Case) hasMessage(task, message *node) bool {
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
