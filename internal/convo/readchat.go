package convo

import (
	"cmp"
	"slices"
	"strings"
)

// Chat reads a list of chat messages.
func (r *Reader) Chat(list *Node) { r.Each(list, AMessage, r.ChatMessage) }

// ChatMessage reads a message of OpenAI's Chat Completions, as the many programs have it that follow them:
// https://platform.openai.com/docs/api-reference/chat.
func (r *Reader) ChatMessage(n *Node) {
	m := Message{Role: r.SpokenBy(n)}
	for _, name := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
		if at := n.Get(name); !at.Absent() && !at.Empty() && at.Text+string(at.Kind) != `"` {
			r.leave(Reasoning)
			break
		}
	}
	if r.chatBody(&m, n); RoleOf(m.Role) == Tool && !r.Lenient {
		r.results(&m, n)
		return
	}
	r.calls(&m, n)
	r.Say(m, n)
}

// chatBody reads everything except the role and the calls.
func (r *Reader) chatBody(m *Message, n *Node) {
	m.Content = r.content(n.Get("content"))
	r.made(m, n)
	m.Refusal, m.Name = r.Str(n, "refusal"), r.Str(n, "name")
	tool := RoleOf(m.Role) == Tool
	if tool || r.Lenient {
		m.ToolCallID = r.Str(n, "tool_call_id")
	}
	if at := n.Get("requestor"); tool && !at.Absent() {
		r.answersTo(m, n, at)
	}
}

// made adds what a model made beside its text: pictures, and what it spoke.
func (r *Reader) made(m *Message, n *Node) {
	if images := n.Get("images"); images != nil && images.Kind == '[' {
		for _, image := range images.Members {
			if image.Kind == '{' {
				m.Content = append(m.Content, r.unread(filePiece(image, image.Word("type")), image.Word("type"), ""))
			}
		}
	}
	audio := n.Get("audio")
	if words := audio.Word("transcript"); words != "" {
		m.Content = append(m.Content, Words(words))
	}
	if data := audio.Word("data"); data != "" {
		m.Content = append(m.Content, r.unread(Inline("input_audio", "", "", data), "input_audio", ""))
	}
}

// answersTo reads what logs of dual control say of a result: who asked for it, and whether it failed. There the
// id of the call is the member id. The shape is that of tau2-bench's ToolMessage:
// https://github.com/sierra-research/tau2-bench/blob/main/src/tau2/data_model/message.py
func (r *Reader) answersTo(m *Message, n, at *Node) {
	m.AnswersTo = r.requestor(at)
	if m.ToolCallID == "" {
		m.ToolCallID = r.Str(n, "id")
	}
	m.IsError = n.Get("error").IsTrue()
}

func (r *Reader) requestor(at *Node) string {
	role := RoleOf(at.Text)
	if at.Kind != '"' || role != User && role != Assistant {
		r.demand(false, at, "unknown requestor: expected \"assistant\" or \"user\"")
		return ""
	}
	return role
}

// results reads a tool's message. tau2-bench (tool_messages) and AG2 (tool_responses) put the results of several calls into one, AG2 with their texts
// again as content. No provider reads these members, so they are nothing in what was recorded.
func (r *Reader) results(m *Message, n *Node) {
	list := n.First("tool_messages", "tool_responses")
	if list.Absent() || list.Kind == '[' && len(list.Members) == 0 {
		r.result(m, n)
		return
	}
	var texts []string
	r.Each(list, Thing{"a tool's message (an object)", `{"role": "tool", "tool_call_id": "call_1", "content": "Done"}`}, func(one *Node) {
		result := Message{Role: Tool}
		if at := one.Get("role"); !at.Absent() {
			r.demand(RoleOf(r.SpokenBy(one)) == Tool, at, "unknown role %s among the results of tools: expected tool", Quote(at.Text))
		}
		if r.chatBody(&result, one); result.ToolCallID == "" {
			result.ToolCallID = r.Str(one, "id")
		}
		result.IsError = result.IsError || one.Get("error").IsTrue()
		texts = append(texts, result.Content.Shown())
		r.result(&result, one)
	})
	if text := m.Content.Shown(); text != "" && text != strings.Join(texts, "\n\n") {
		r.Fail(cmp.Or(n.Get("content"), n), "a content beside %s that is not their texts, joined by empty lines: expected no content here, and each result in its own", list.Step)
	}
}

// elsewhere are members in which programs put what a tool returned.
var elsewhere = []string{"result", "results", "output", "outputs", "response", "responses", "text", "value", "data"}

// result takes a tool's message with one result. It refuses one whose result is elsewhere than in the content: it would be empty in silence.
func (r *Reader) result(m *Message, n *Node) {
	empty := n.Get("content").Absent()
	for i, name := range n.Names {
		at := n.Members[i]
		list := at.Kind == '[' && len(at.Members) > 0
		r.demand(!empty || !list && (at.Absent() || !slices.Contains(elsewhere, name)), at, "a tool's message without a content, but with %s: expected one message for each result, with it as the content, for example {\"role\": \"tool\", \"tool_call_id\": \"call_1\", \"content\": \"Done\"}", Quote(name))
	}
	r.Say(*m, n)
}

func (r *Reader) calls(m *Message, n *Node) {
	role := RoleOf(m.Role)
	for _, call := range r.Objects(n.Get("tool_calls"), "a tool call") {
		if r.Lenient && call.Empty() {
			continue
		}
		if at := call.Get("requestor"); !at.Absent() && !r.Lenient && r.requestor(at) != role {
			r.Fail(at, "expected the requestor %s, because the call is in a message of the %s, found %s; for example \"requestor\": %[1]q", role, role, Quote(at.Text))
		}
		made := r.ChatCall(call)
		if kind := call.Word("type"); kind != "" {
			made.Type = kind
		}
		m.ToolCalls = append(m.ToolCalls, made)
	}
	if legacy := n.Get("function_call"); !legacy.Absent() {
		call := r.function(legacy, "")
		m.FunctionCall = &call.Function
	}
	r.demand(m.ToolCalls == nil && m.FunctionCall == nil || role == Assistant || role == User, n, "a message of role %s makes tool calls: expected role assistant, or user for the user's own calls, for example {\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"call_1\", \"name\": \"get_order\", \"arguments\": {\"order\": 7}}]}", role)
}

// ChatCall reads a call of a tool.
func (r *Reader) ChatCall(n *Node) ChatToolCall {
	id := r.Str(n, "id")
	if function := n.Get("function"); !function.Absent() {
		return r.function(function, id)
	}
	if custom := n.Get("custom"); !custom.Absent() { // a tool with free text as its input
		call := ChatToolCall{ID: id, Type: "custom", Custom: ChatCustom{Name: r.Str(custom, "name"), Input: r.Str(custom, "input")}}
		r.demand(call.Custom.Name != "", custom, "a tool call without a name: expected, for example, \"name\": \"get_order\"")
		return call
	}
	return r.function(n, id)
}

// function reads {name, arguments}; arguments are a string of JSON, or the object itself.
func (r *Reader) function(n *Node, id string) ChatToolCall {
	if n.Kind != '{' {
		r.Fail(n, "expected {name, arguments}, found %s", n.KindName())
	}
	arguments := n.Get("arguments")
	if arguments == nil {
		arguments = n.Get("args")
	}
	call := r.Call(n, id, r.Str(n, "name"), arguments)
	r.demand(arguments.Absent() || arguments.Kind == '"' || arguments.Kind == '{', arguments, "expected a tool call's arguments (a string or an object), found %s; for example {\"order\": 7}", arguments.KindName())
	return call
}

// content reads a text, null or an array of parts, in either of OpenAI's forms.
func (r *Reader) content(n *Node) Pieces {
	switch {
	case n.Absent(), n.Kind == '"' && n.Text == "":
		return nil
	case n.Kind == '"':
		return Pieces{Words(n.Text)}
	case n.Kind != '[':
		r.Fail(n, "content of a wrong kind: expected a string, null or an array of parts, found %s; for example \"content\": \"Hello\"", n.KindName())
		return nil
	}
	list := make(Pieces, 0, len(n.Members))
	for _, part := range r.members(n) {
		if p, is := r.chatPart(part); is {
			list = append(list, p)
		}
	}
	return list
}

// Unreadables are the types of parts that no juror can read.
var Unreadables = []string{"image_url", "input_image", "input_audio", "audio", "file", "input_file", "video_url"}

// chatPart reads a part, if it is shown.
func (r *Reader) chatPart(n *Node) (p Piece, is bool) {
	switch n.Kind {
	case '"':
		return Words(n.Text), true
	case '{':
	default:
		r.Fail(n, "content of a wrong kind: expected a part {type, text}, found %s", n.KindName())
		return p, false
	}
	kind := r.Str(n, "type")
	switch kind {
	case "text", "input_text", "output_text", "":
		r.demand(!n.Get("text").Absent(), n, "a text part without a text: expected one, for example {\"type\": \"text\", \"text\": \"Hello\"}")
		return Words(r.Str(n, "text")), true
	case "refusal":
		return Words(r.Str(n, "refusal")), true
	case "thinking", "redacted_thinking", "reasoning":
		r.leave(Reasoning)
		return p, false
	case "reference": // Mistral's numbers of sources
		r.leave(Elsewhere)
		return p, false
	}
	if slices.Contains(Unreadables, kind) {
		return r.unread(filePiece(n, kind), kind, ""), true
	}
	r.demand(false, n.Get("type"), "content of a wrong kind: unknown part type %s: expected text, for example {\"type\": \"text\", \"text\": \"Hello\"}", Quote(kind))
	return Unknown(kind, n.Raw()), true
}

// filePiece reads a part that is a picture, a sound or a file.
func filePiece(n *Node, kind string) Piece {
	switch kind {
	case "image_url", "video_url":
		return Linked(kind, "", cmp.Or(n.Get(kind).Word("url"), n.Word(kind)))
	case "input_image":
		if id := n.Word("file_id"); id != "" {
			return Kept(kind, "", id)
		}
		return Linked(kind, "", n.Word("image_url"))
	case "input_audio", "audio":
		in := n.Get("input_audio")
		return Inline(kind, "", in.Word("format"), in.Word("data"))
	}
	if in := n.Get("file"); in != nil && in.Kind == '{' {
		n = in
	}
	name := Short(n.Word("filename"))
	if id := n.Word("file_id"); id != "" {
		return Kept(kind, name, id)
	}
	return Linked(kind, name, cmp.Or(n.Word("file_url"), n.Word("file_data")))
}

// Output reads what a tool returned: a text, parts, or another value.
func (r *Reader) Output(n *Node) Pieces {
	switch {
	case n.Absent():
		return nil
	case n.Kind == '"' || n.Kind == '[' && !slices.ContainsFunc(n.Members, isNoPart):
		return r.content(n)
	}
	return Pieces{Words(Plain(n))}
}

func isNoPart(n *Node) bool {
	kind := n.Word("type")
	return !strings.HasPrefix(kind, "input_") && !strings.HasSuffix(kind, "text")
}
