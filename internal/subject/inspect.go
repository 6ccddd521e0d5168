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
func (c *Case) readInspect(r *convo.Reader, n *convo.Node) {
	in := &inspection{Reader: r, attachments: map[string]string{}}
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
		r.Fail(n, "expected Inspect's messages: an array, or {\"messages\": […]}")
		return
	}
	r.Each(list, convo.AMessage, in.message)
}

func (in *inspection) message(n *convo.Node) {
	m := convo.Message{Role: in.SpokenBy(n), Content: in.content(n.Get("content"))}
	role := convo.RoleOf(m.Role)
	if role == convo.Tool {
		m.ToolCallID, m.Name = in.Str(n, "tool_call_id"), in.Str(n, "function")
		if failed := n.Get("error"); !failed.Absent() {
			m.IsError = true
			m.Refusal = in.Str(failed, "message") // shown if there is no content
		}
		in.Say(m, n)
		return
	}
	for _, call := range in.Objects(n.Get("tool_calls"), "a tool call") {
		m.ToolCalls = append(m.ToolCalls, in.Call(call, in.Str(call, "id"), in.Str(call, "function"), call.Get("arguments")))
	}
	if len(m.ToolCalls) > 0 && role != convo.Assistant && role != convo.User {
		in.Fail(n, "a message of role %s makes tool calls: expected role assistant", role)
	}
	in.Say(m, n)
}

func (in *inspection) content(n *convo.Node) (list convo.Pieces) {
	if n.Absent() || n.Kind == '"' {
		return convo.Pieces{convo.Words(in.text(n))}
	}
	if n.Kind != '[' {
		in.Fail(n, "content of a wrong kind: expected a string or an array, found %s", n.KindName())
	}
	for _, part := range n.Members {
		switch kind := in.Str(part, "type"); kind {
		case "text":
			list = append(list, convo.Words(in.text(part.Get("text"))))
		case "reasoning":
			in.Left(Reasoning)
		case "image", "audio", "video", "document", "data":
			in.Left(Unreadable)
			list = append(list, convo.Words("["+kind+"]"))
		case "tool_use": // a tool of the vendor, with its result
			list = append(list, convo.Words(convo.TextOf(part.Raw())))
		default:
			in.Fail(part, "unknown content %s: expected text, reasoning, image, audio, video, document, data or tool_use", convo.Quote(kind))
		}
	}
	return list
}

// text returns a string, or the attachment that it refers to.
func (in *inspection) text(n *convo.Node) string {
	if n.Absent() {
		return ""
	}
	if n.Kind != '"' {
		in.Fail(n, "expected a string, found %s", n.KindName())
	}
	key, refers := strings.CutPrefix(n.Text, Attachment)
	text, there := in.attachments[key]
	if !there || !refers {
		return n.Text
	}
	if in.taken += len(text); in.taken > MaxFile {
		in.Fail(n, "more than %d MiB of attachments", MaxFile>>20)
	}
	return text
}
