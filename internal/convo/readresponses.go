package convo

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
)

// Responses reads {"instructions", "input", "output"} or an array of items: https://platform.openai.com/docs/api-reference/responses.
func (r *Reader) Responses(n *Node) {
	if n.Kind == '[' {
		r.Items(n, "")
		return
	}
	if n.Kind != '{' || n.Get("input").Absent() && n.Get("output").Absent() {
		r.Fail(n, "expected items of OpenAI's Responses: an array, or {\"instructions\": …, \"input\": …, \"output\": […]}")
		return
	}
	for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
		if !n.Get(name).Absent() {
			r.leave(Elsewhere)
		}
	}
	for _, part := range []struct{ name, role string }{{"instructions", System}, {"input", User}, {"output", Assistant}} {
		r.Items(n.Get(part.name), part.role)
	}
}

// Items reads a text, or items, of which some may not say who speaks.
func (r *Reader) Items(n *Node, role string) {
	if n != nil && n.Kind == '"' && role != "" {
		r.Say(Message{Role: role, Content: Pieces{Words(n.Text)}}, n)
		return
	}
	r.Each(n, anItem, func(item *Node) { r.item(item, role) })
}

// items are the types of an item of OpenAI's Responses that no chat message has, without the calls and their outputs.
var items = []string{"reasoning", "item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction"}

// IsItem reports whether a type is that of an item of Responses, and not of a message.
func IsItem(kind string) bool {
	return slices.Contains(items, kind) || strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

// item reads an item. Each is a message of its own.
func (r *Reader) item(n *Node, role string) {
	switch kind := r.Str(n, "type"); {
	case kind == "message", kind == "":
		r.itemMessage(n, role)
	case kind == "reasoning", kind == "compaction":
		r.leave(Reasoning)
	case kind == "item_reference":
		r.leave(Elsewhere)
	case kind == "mcp_list_tools", kind == "additional_tools": // what tools there are, and no act
	case kind == "mcp_approval_response":
		m := Message{Role: User, Content: Pieces{Words(TextOf(n.Raw()))}}
		if r.Answer { // nobody approved what the upstream says
			m = Message{Role: Assistant, Content: Pieces{Unknown(kind, n.Raw())}}
		}
		r.Say(m, n)
	case strings.HasSuffix(kind, "_output"):
		id := r.Str(n, "call_id", "id")
		r.Say(Message{Role: Tool, ToolCallID: cmp.Or(r.called[id], id), Content: r.Output(n.First("output", "result", "tools"))}, n)
	case IsItem(kind), kind == "program":
		r.itemCall(n, kind)
	case r.passes(kind):
	default:
		r.demand(false, n.Get("type"), "unknown item %s: expected message, function_call, function_call_output, reasoning, or another call and its output, for example {\"type\": \"message\", \"role\": \"user\", \"content\": \"Hello\"}", Quote(kind))
		r.Say(Message{Role: cmp.Or(role, User), Content: Pieces{Unknown(kind, n.Raw())}}, n)
	}
}

func (r *Reader) itemMessage(n *Node, role string) {
	m := Message{Role: r.SpokenBy(n)}
	r.demand(RoleOf(m.Role) != Tool, n.Get("role"), "unknown role %s in the form of Responses: expected system, developer, user or assistant; results of tools are items of type function_call_output", Quote(m.Role))
	if r.Lenient {
		m.Role = cmp.Or(m.Role, role)
	}
	if m.Content = r.content(n.Get("content")); RoleOf(m.Role) == Assistant {
		m.Content = m.Content.Joined()
	}
	r.Say(m, n)
}

// names notes by what results may name a call: its id, and that of its item unless a call has this as its own. Of two items with one id, the later counts.
func (r *Reader) names(id, item string) {
	if r.called == nil {
		r.called = map[string]string{}
	}
	if r.called[item] != item {
		r.called[item] = id
	}
	r.called[id] = id
}

// itemCall reads a call. A function has a name. The vendor's own tools are named for their type, such as web_search, and have their result beside the call.
// A result may name a call by the id of its item.
func (r *Reader) itemCall(n *Node, kind string) {
	id, item, name, input := r.Str(n, "call_id", "id"), r.Str(n, "id"), r.Str(n, "name"), ""
	if name == "" && (r.Lenient || !strings.HasPrefix(kind, "function") && !strings.HasPrefix(kind, "custom")) {
		name = strings.TrimSuffix(kind, "_call")
	}
	for _, member := range []string{"arguments", "input", "action", "actions", "queries", "code", "operation"} {
		input = cmp.Or(input, Plain(n.Get(member)))
	}
	call := r.Call(n, id, name, nil)
	if call.Function.Arguments = Arguments(input); kind == "custom_tool_call" {
		call = ChatToolCall{ID: id, Type: "custom", Custom: ChatCustom{Name: name, Input: input}}
	}
	r.names(id, item)
	r.Say(Message{Role: Assistant, ToolCalls: []ChatToolCall{call}}, n)
	result := n.First("output", "outputs", "results", "result", "error")
	if result.Absent() {
		return
	}
	m := Message{Role: Tool, ToolCallID: id, IsError: !n.Get("error").Absent(), Beside: true}
	if kind == "image_generation_call" && result.Step == "result" {
		m.Content = Pieces{r.unread(Inline("image_url", "", "", n.Word("result")), "image", "")}
	} else {
		m.Content = r.Output(result)
	}
	r.Say(m, result)
}

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
