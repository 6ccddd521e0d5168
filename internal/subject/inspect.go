package subject

import (
	"strings"

	"jurat/internal/convo"
)

// Attachment begins a reference to an attachment of Inspect, in the place of a text.
const Attachment = "attachment://"

// An inspection reads messages of Inspect. They are chat messages in which a call's function is a name:
// https://inspect.aisi.org.uk/reference/inspect_ai.model.html (ChatMessage, ToolCall, Content).
type inspection struct {
	*convo.Reader
	attachments map[string]string
	taken       int // bytes of attachments so far
}

// readInspect reads {"messages", "attachments"}, or an array of messages.
func (c *Case) readInspect(n *convo.Node) error {
	in := &inspection{Reader: c.reader(), attachments: map[string]string{}}
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
	return in.Each(list, convo.AMessage, in.message)
}

func (in *inspection) message(n *convo.Node) error {
	m := convo.Message{}
	var err error
	if m.Role, err = in.ReadRole(n); err != nil {
		return err
	}
	if m.Content, err = in.content(n.Get("content")); err != nil {
		return err
	}
	role := convo.RoleOf(m.Role)
	if role == convo.Tool {
		return in.result(m, n)
	}
	err = convo.EachObject(n.Get("tool_calls"), "a tool call", func(call *convo.Node) error {
		id, err := call.Str("id")
		if err != nil {
			return err
		}
		name, err := call.Str("function")
		if err != nil {
			return err
		}
		one, err := in.NewCall(call, id, name, call.Get("arguments"))
		m.ToolCalls = append(m.ToolCalls, one)
		return err
	})
	if err != nil {
		return err
	}
	if len(m.ToolCalls) > 0 && role != convo.Assistant && role != convo.User {
		return n.Errorf("a message of role %s makes tool calls: expected role assistant", role)
	}
	in.Say(m, n)
	return nil
}

func (in *inspection) result(m convo.Message, n *convo.Node) (err error) {
	if m.ToolCallID, err = n.Str("tool_call_id"); err != nil {
		return err
	}
	if m.Name, err = n.Str("function"); err != nil {
		return err
	}
	if failed := n.Get("error"); !failed.Absent() {
		m.IsError = true
		if m.Content.Shown() == "" {
			m.Refusal, err = failed.Str("message")
		}
	}
	in.Say(m, n)
	return err
}

func (in *inspection) content(n *convo.Node) (list convo.Pieces, err error) {
	if n.Absent() || n.Kind == '"' {
		text, err := in.text(n)
		return convo.Pieces{convo.Words(text)}, err
	}
	if n.Kind != '[' {
		return nil, n.Errorf("content of a wrong kind: expected a string or an array, found %s", n.KindName())
	}
	for _, part := range n.Members {
		kind, err := part.Str("type")
		if err != nil {
			return nil, err
		}
		text := ""
		switch kind {
		case "text":
			text, err = in.text(part.Get("text"))
		case "reasoning":
			in.Left(Reasoning)
			continue
		case "image", "audio", "video", "document", "data":
			in.Left(Unreadable)
			text = "[" + kind + "]"
		case "tool_use": // a tool of the vendor, with its result
			text = convo.TextOf(part.Raw())
		default:
			err = part.Errorf("unknown content %s: expected text, reasoning, image, audio, video, document, data or tool_use", convo.Quote(kind))
		}
		if err != nil {
			return nil, err
		}
		list = append(list, convo.Words(text))
	}
	return list, nil
}

// text returns a string, or the attachment that it refers to.
func (in *inspection) text(n *convo.Node) (string, error) {
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
