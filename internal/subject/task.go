package subject

import "jurat/internal/convo"

// readTaskEnd appends the content after a task's history: artifacts, then the message of its status.
func (c *Case) readTaskEnd(task *convo.Node) error {
	err := convo.EachObject(task.Get("artifacts"), "an artifact", func(artifact *convo.Node) error {
		if artifact.Get("parts").Absent() {
			return artifact.Errorf("an artifact without parts")
		}
		return c.reader().ReadTaskMessage(artifact, convo.Assistant, "artifact")
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
	return c.readMessage(c.reader(), last)
}

// hasMessage reports whether the history already has a message with that id.
func (c *Case) hasMessage(task, message *convo.Node) bool {
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
