package convo

import (
	"cmp"
	"encoding/base64"
)

// ReadTaskMessage reads a message of A2A or an artifact, of v1.0 or of v0.3: https://a2a-protocol.org. Each result of a tool in it becomes a message of its
// own.
func (r *Reader) ReadTaskMessage(n *Node, role, name string) error {
	list := n.Get("parts")
	if list.Absent() || list.Kind != '[' {
		return list.Errorf("expected an array of parts, found %s", list.KindName())
	}
	said := false
	t := &Turn{Role: role, Name: name, Apart: true, Say: func(m Message, at *Node) {
		said = true
		r.Say(m, at)
	}}
	for _, part := range list.Members {
		if err := r.TaskPart(t, part, n); err != nil {
			return err
		}
	}
	t.End()
	if !said {
		r.Say(Message{Role: role, Name: name}, n)
	}
	return nil
}

// TaskPart reads a text, data or file part, of v0.3 (with kind) or of v1.0 (which their members distinguish), of the message or artifact in which it stands.
// It returns an error for any other, which it shows whole where it reads leniently.
func (r *Reader) TaskPart(t *Turn, n, in *Node) error {
	if n.Kind != '{' {
		return r.noPart(t, n, in, n.Errorf("content of a wrong kind: expected a part (an object), found %s", n.KindName()))
	}
	if data := n.Get("data"); !data.Absent() && n.Get("text").Absent() {
		return r.taskData(t, data, in)
	}
	switch text := n.Get("text"); {
	case !text.Absent() && text.Kind != '"':
		_, err := n.Str("text")
		return r.noPart(t, n, in, err)
	case !text.Absent():
		if text.Text != "" || r.Lenient {
			t.Add(in, Words(text.Text))
		}
	case !n.Get("file").Absent(), !n.Get("url").Absent(), !n.Get("raw").Absent():
		return r.taskFile(t, n, in)
	default:
		return r.noPart(t, n, in, n.Errorf("content of a wrong kind: expected a part with text, data or file"))
	}
	return nil
}

func (r *Reader) noPart(t *Turn, n, in *Node, err error) error {
	if r.Lenient {
		t.Add(in, Unknown("part", n.Raw()))
	}
	return err
}

// taskFile reads a file, in either version's form. Its name stands in its place, or else its address.
func (r *Reader) taskFile(t *Turn, n, in *Node) error {
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
	t.Add(in, r.unread(p, "file", cmp.Or(p.Name, p.URL)))
	return nil
}

// enclosed is a file whose base64 is in a part, in either alphabet.
func enclosed(name, mediaType, data string) Piece {
	if raw, err := base64.URLEncoding.DecodeString(data); err == nil {
		data = base64.StdEncoding.EncodeToString(raw)
	}
	return Inline("file", Short(name), mediaType, data)
}

// taskData reads data. Frameworks put calls of tools and their results into what an agent says; other data is shown as it is.
func (r *Reader) taskData(t *Turn, n, in *Node) error {
	name, id := n.Word("name"), n.Word("id")
	switch response := n.Get("response"); {
	case name == "" || RoleOf(t.Role) != Assistant:
	case n.First("args", "arguments") != nil:
		call, err := r.function(n, id)
		if err == nil {
			t.Call(in, call)
		}
		return err
	case !response.Absent():
		t.Result(in, Message{ToolCallID: id, Name: name, Content: Pieces{Words(Plain(response))}})
		return nil
	}
	t.Add(in, Words(TextOf(n.Raw())))
	return nil
}
