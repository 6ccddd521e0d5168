package convo

import (
	"cmp"
	"encoding/base64"
)

// TaskMessage reads a message of A2A or an artifact, of v1.0 or of v0.3: https://a2a-protocol.org. Each result of a tool in it becomes a message of its
// own.
func (r *Reader) TaskMessage(n *Node, role, name string) {
	said := false
	t := &Turn{Role: role, Name: name, Apart: true, Say: func(m Message, at *Node) {
		said = true
		r.Say(m, at)
	}}
	list := n.Get("parts")
	r.demand(!list.Absent(), n, "expected an array of parts, found %s", list.KindName())
	for _, part := range r.elements(list, "an array of parts") {
		r.TaskPart(t, part, n)
	}
	if t.End(); !said {
		r.Say(Message{Role: role, Name: name}, n)
	}
}

// TaskPart reads a text, data or file part, of v0.3 (with kind) or of v1.0 (which their members distinguish), of the message or artifact in which it stands.
// Any other is shown whole, and is a mistake.
func (r *Reader) TaskPart(t *Turn, n, in *Node) {
	text, data := n.Get("text"), n.Get("data")
	switch {
	case n.Kind != '{':
		r.Fail(n, "content of a wrong kind: expected a part (an object), found %s", n.KindName())
	case !text.Absent() && text.Kind != '"':
		r.Fail(text, "expected a string, found %s", text.KindName())
	case !text.Absent():
		if text.Text != "" || r.Lenient {
			t.Add(in, Words(text.Text))
		}
		return
	case !data.Absent():
		r.taskData(t, data, in)
		return
	case n.First("file", "url", "raw") != nil:
		t.Add(in, r.taskFile(n))
		return
	default:
		r.Fail(n, "content of a wrong kind: expected a part with text, data or file")
	}
	t.Add(in, Unknown("part", n.Raw()))
}

// taskFile reads a file, in either version's form. Its name stands in its place, or else its address.
func (r *Reader) taskFile(n *Node) Piece {
	at := n
	if inner := n.Get("file"); !inner.Absent() {
		at = inner
	}
	name, address := cmp.Or(at.Word("name"), at.Word("filename"), n.Word("filename")), cmp.Or(at.Word("uri"), at.Word("url"))
	p := Kept("file", Short(name), "")
	if data := cmp.Or(at.Word("bytes"), at.Word("raw")); data != "" {
		p = enclosed(name, cmp.Or(at.Word("mimeType"), at.Word("mediaType")), data)
	} else if address != "" {
		p = Linked("file", Short(name), address)
	}
	return r.unread(p, "file", cmp.Or(p.Name, p.URL))
}

// enclosed is a file whose base64 is in a part, in either alphabet.
func enclosed(name, mediaType, data string) Piece {
	if raw, err := base64.URLEncoding.DecodeString(data); err == nil {
		data = base64.StdEncoding.EncodeToString(raw)
	}
	return Inline("file", Short(name), mediaType, data)
}

// taskData reads data. Frameworks put calls of tools and their results into what an agent says, and into what a client answers; other data is shown as it is.
// What was recorded of the other side shows no call and no result.
func (r *Reader) taskData(t *Turn, n, in *Node) {
	name, id := n.Word("name"), n.Word("id")
	named := name != "" && (!r.Lenient || RoleOf(t.Role) == Assistant)
	switch response := n.Get("response"); {
	case named && n.First("args", "arguments") != nil:
		t.Call(in, r.function(n, id))
	case named && !response.Absent():
		t.Result(in, Message{ToolCallID: id, Name: name, Content: Pieces{Words(Plain(response))}})
	default:
		t.Add(in, Words(TextOf(n.Raw())))
	}
}
