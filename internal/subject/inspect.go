package subject

import (
	"strings"
)

// Attachment begins a reference to an attachment of Inspect, in the place of a text.
const Attachment = "attachment://"

// An inspection reads messages of Inspect. They are chat messages in which a call's function is a name:
// https://inspect.aisi.org.uk/reference/inspect_ai.model.html (ChatMessage, ToolCall, Content).
type inspection struct {
	*Case
	attachments map[string]string
	taken       int // bytes of attachments so far
}

// readInspect reads {"messages", "attachments"}, or an array of messages.
func (c *Case) readInspect(n *node) error {
	in := &inspection{Case: c, attachments: map[string]string{}}
	if list := n.Get("attachments"); !list.Absent() && list.Kind == '{' {
		for i, key := range list.Names {
			in.attachments[key] = list.Members[i].Text
		}
	}
	list := n
	if n.Kind == '{' {
		list = n.Get("messages")
	}
	if list.Absent() || list.Kind != '[' {
		return n.Errorf("expected Inspect's messages: an array, or {\"messages\": […]}")
	}
	return c.each(list, aMessage, in.message)
}

func (in *inspection) message(n *node) error {
	m := Message{}
	var err error
	if m.Role, err = readRole(n); err != nil {
		return err
	}
	if m.Text, err = in.content(&m, n.Get("content")); err != nil {
		return err
	}
	if m.Role == Tool {
		return in.result(m, n)
	}
	err = eachObject(n.Get("tool_calls"), "a tool call", func(call *node) error {
		id, err := call.Str("id")
		if err != nil {
			return err
		}
		name, err := call.Str("function")
		if err != nil {
			return err
		}
		one, err := newCall(call, id, name, call.Get("arguments"))
		m.ToolCalls = append(m.ToolCalls, one)
		return err
	})
	if err != nil {
		return err
	}
	if len(m.ToolCalls) > 0 && m.Role != Assistant && m.Role != User {
		return n.Errorf("a message of role %s makes tool calls: expected role assistant", m.Role)
	}
	in.say(m, n)
	return nil
}

func (in *inspection) result(m Message, n *node) (err error) {
	if m.ToolCallID, err = n.Str("tool_call_id"); err != nil {
		return err
	}
	if m.ToolName, err = n.Str("function"); err != nil {
		return err
	}
	if failed := n.Get("error"); !failed.Absent() {
		m.Failed = true
		if m.Text == "" {
			m.Text, err = failed.Str("message")
		}
	}
	in.say(m, n)
	return err
}

func (in *inspection) content(m *Message, n *node) (string, error) {
	if n.Absent() || n.Kind == '"' {
		return in.text(n)
	}
	if n.Kind != '[' {
		return "", n.Errorf("content of a wrong kind: expected a string or an array, found %s", n.KindName())
	}
	var texts []string
	for _, part := range n.Members {
		kind, err := part.Str("type")
		if err != nil {
			return "", err
		}
		text := ""
		switch kind {
		case "text":
			text, err = in.text(part.Get("text"))
		case "reasoning":
			in.omits(Reasoning)
			continue
		case "image", "audio", "video", "document", "data":
			text = in.unread(kind, "")
		case "tool_use": // a tool of the vendor, with its result
			text, err = canonicalText(part)
		default:
			err = part.Errorf("unknown content %s: expected text, reasoning, image, audio, video, document, data or tool_use", quote(kind))
		}
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}

// text returns a string, or the attachment that it refers to.
func (in *inspection) text(n *node) (string, error) {
	if n.Absent() {
		return "", nil
	}
	if n.Kind != '"' {
		return "", n.Errorf("expected a string, found %s", n.KindName())
	}
	key, _ := strings.CutPrefix(n.Text, Attachment)
	text, there := in.attachments[key]
	if !there || !strings.HasPrefix(n.Text, Attachment) {
		return n.Text, nil
	}
	if in.taken += len(text); in.taken > MaxFile {
		return "", n.Errorf("more than %d MiB of attachments", MaxFile>>20)
	}
	return text, nil
}
