package convo

import (
	"cmp"
	"slices"
	"strings"
)

// ReadChat reads a list of chat messages.
func (r *Reader) ReadChat(list *Node) error { return r.Each(list, AMessage, r.ReadChatMessage) }

// ReadChatMessage reads a message of OpenAI's Chat Completions, as the many programs have it that follow them:
// https://platform.openai.com/docs/api-reference/chat.
func (r *Reader) ReadChatMessage(n *Node) error {
	m := Message{}
	var err error
	if m.Role, err = r.ReadRole(n); err != nil {
		return err
	}
	for _, name := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
		if at := n.Get(name); !at.Absent() && !at.Empty() && at.Text+string(at.Kind) != `"` {
			r.leave(Reasoning)
			break
		}
	}
	if err := r.chatBody(&m, n); err != nil {
		return err
	}
	if RoleOf(m.Role) == Tool {
		return r.results(&m, n)
	}
	r.Say(m, n)
	return nil
}

// chatBody reads everything except the role.
func (r *Reader) chatBody(m *Message, n *Node) (err error) {
	if m.Content, err = r.content(n.Get("content")); err != nil {
		return err
	}
	if err := r.made(m, n); err != nil {
		return err
	}
	if m.Refusal, err = r.str(n, "refusal"); err != nil {
		return err
	}
	if m.Name, err = r.str(n, "name"); err != nil {
		return err
	}
	if RoleOf(m.Role) == Tool || r.Lenient {
		if m.ToolCallID, err = r.str(n, "tool_call_id"); err != nil {
			return err
		}
	}
	if RoleOf(m.Role) == Tool {
		return r.readRequestor(m, n)
	}
	return r.calls(m, n)
}

// made adds what a model made beside its text: pictures, and what it spoke.
func (r *Reader) made(m *Message, n *Node) error {
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
	return nil
}

// readRequestor reads what logs of dual control say of a result: who asked for it, and whether it failed. There the
// id of the call is the member id. The shape is that of tau2-bench's ToolMessage:
// https://github.com/sierra-research/tau2-bench/blob/main/src/tau2/data_model/message.py
func (r *Reader) readRequestor(m *Message, n *Node) (err error) {
	at := n.Get("requestor")
	if at.Absent() {
		return nil
	}
	if m.AnswersTo, err = requestor(at); err != nil {
		return err
	}
	if m.ToolCallID == "" {
		m.ToolCallID, err = r.str(n, "id")
	}
	m.IsError = n.Get("error").IsTrue()
	return err
}

func requestor(at *Node) (string, error) {
	if role := RoleOf(at.Text); at.Kind == '"' && (role == User || role == Assistant) {
		return role, nil
	}
	return "", at.Errorf("unknown requestor: expected \"assistant\" or \"user\"")
}

// results reads a tool's message. tau2-bench (tool_messages) and AG2 (tool_responses) put the results of several calls into one, AG2 with their texts
// again as content.
func (r *Reader) results(m *Message, n *Node) error {
	list := n.First("tool_messages", "tool_responses")
	if list.Absent() || list.Kind == '[' && len(list.Members) == 0 {
		return r.result(m, n)
	}
	var texts []string
	err := r.Each(list, Thing{"a tool's message (an object)", `{"role": "tool", "tool_call_id": "call_1", "content": "Done"}`}, func(one *Node) error {
		result, err := r.oneOfSeveral(one)
		if err != nil {
			return err
		}
		texts = append(texts, result.Content.Shown())
		return r.result(&result, one)
	})
	if text := m.Content.Shown(); err == nil && text != "" && text != strings.Join(texts, "\n\n") {
		return n.Get("content").Errorf("a content beside %s that is not their texts, joined by empty lines: expected no content here, and each result in its own", list.Step)
	}
	return err
}

func (r *Reader) oneOfSeveral(n *Node) (m Message, err error) {
	m.Role = Tool
	if at := n.Get("role"); !at.Absent() {
		if m.Role, err = r.ReadRole(n); err == nil && RoleOf(m.Role) != Tool {
			err = at.Errorf("unknown role %s among the results of tools: expected tool", Quote(at.Text))
		}
	}
	if err == nil {
		err = r.chatBody(&m, n)
	}
	if err == nil && m.ToolCallID == "" {
		m.ToolCallID, err = r.str(n, "id")
	}
	m.IsError = m.IsError || n.Get("error").IsTrue()
	return m, err
}

// elsewhere are members in which programs put what a tool returned.
var elsewhere = []string{"result", "results", "output", "outputs", "response", "responses", "text", "value", "data"}

// result takes a tool's message with one result. It refuses one whose result is elsewhere than in the content: it would be empty in silence.
func (r *Reader) result(m *Message, n *Node) error {
	for i, name := range n.Names {
		at := n.Members[i]
		list := at.Kind == '[' && len(at.Members) > 0
		if !r.Lenient && n.Get("content").Absent() && (list || slices.Contains(elsewhere, name) && !at.Absent()) {
			return at.Errorf("a tool's message without a content, but with %s: expected one message for each result, with it as the content, for example {\"role\": \"tool\", \"tool_call_id\": \"call_1\", \"content\": \"Done\"}", Quote(name))
		}
	}
	r.Say(*m, n)
	return nil
}

func (r *Reader) calls(m *Message, n *Node) error {
	list := n.Get("tool_calls")
	if r.Lenient && list != nil && list.Kind == '[' {
		list = &Node{Kind: '[', doc: list.doc, Members: slices.DeleteFunc(slices.Clone(list.Members), (*Node).Empty)}
	}
	err := EachObject(list, "a tool call", func(call *Node) error { return r.chatCall(m, call) })
	if err != nil {
		return err
	}
	if legacy := n.Get("function_call"); !legacy.Absent() {
		call, err := r.function(legacy, "")
		if err != nil {
			return err
		}
		m.FunctionCall = &call.Function
	}
	if role := RoleOf(m.Role); (m.ToolCalls != nil || m.FunctionCall != nil) && role != Assistant && role != User && !r.Lenient {
		return n.Errorf("a message of role %s makes tool calls: expected role assistant, or user for the user's own calls, for example {\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"call_1\", \"name\": \"get_order\", \"arguments\": {\"order\": 7}}]}", role)
	}
	return nil
}

func (r *Reader) chatCall(m *Message, n *Node) error {
	id, err := r.str(n, "id")
	if err != nil {
		return err
	}
	if at := n.Get("requestor"); !at.Absent() && !r.Lenient {
		if by, err := requestor(at); err != nil || by != RoleOf(m.Role) {
			return at.Errorf("expected the requestor %s, because the call is in a message of the %s, found %s; for example \"requestor\": %[1]q", RoleOf(m.Role), RoleOf(m.Role), Quote(at.Text))
		}
	}
	call, err := r.chatCallOf(n, id)
	if kind := n.Word("type"); err == nil && kind != "" {
		call.Type = kind
	}
	m.ToolCalls = append(m.ToolCalls, call)
	return err
}

func (r *Reader) chatCallOf(n *Node, id string) (ChatToolCall, error) {
	if function := n.Get("function"); !function.Absent() {
		return r.function(function, id)
	}
	custom := n.Get("custom") // a tool with free text as its input
	if custom.Absent() {
		return r.function(n, id)
	}
	name, err := r.str(custom, "name")
	if err != nil {
		return ChatToolCall{}, err
	}
	input, err := r.str(custom, "input")
	return ChatToolCall{ID: id, Type: "custom", Custom: ChatCustom{Name: name, Input: input}}, err
}

// ReadCall reads a call of a tool outside a message.
func (r *Reader) ReadCall(n *Node) (ChatToolCall, error) {
	id, err := r.str(n, "id")
	if err != nil {
		return ChatToolCall{}, err
	}
	return r.chatCallOf(n, id)
}

// function reads {name, arguments}; arguments are a string of JSON, or the object itself.
func (r *Reader) function(n *Node, id string) (ChatToolCall, error) {
	if n.Kind != '{' {
		return ChatToolCall{}, n.Errorf("expected {name, arguments}, found %s", n.KindName())
	}
	name, err := r.str(n, "name")
	if err != nil {
		return ChatToolCall{}, err
	}
	arguments := n.Get("arguments")
	if arguments == nil {
		arguments = n.Get("args")
	}
	if !r.Lenient && name != "" && !arguments.Absent() && arguments.Kind != '"' && arguments.Kind != '{' {
		return ChatToolCall{}, arguments.Errorf("expected a tool call's arguments (a string or an object), found %s; for example {\"order\": 7}", arguments.KindName())
	}
	return r.NewCall(n, id, name, arguments)
}

// content reads a text, null or an array of parts, in either of OpenAI's forms.
func (r *Reader) content(n *Node) (list Pieces, err error) {
	switch {
	case n.Absent(), n.Kind == '"' && n.Text == "":
		return nil, nil
	case n.Kind == '"':
		return Pieces{Words(n.Text)}, nil
	case n.Kind != '[':
		return nil, n.Errorf("content of a wrong kind: expected a string, null or an array of parts, found %s; for example \"content\": \"Hello\"", n.KindName())
	}
	list = make(Pieces, 0, len(n.Members))
	for _, part := range n.Members {
		p, keep, err := r.chatPart(part)
		if err != nil {
			return nil, err
		}
		if keep {
			list = append(list, p)
		}
	}
	return list, nil
}

// Unreadables are the types of parts that no juror can read.
var Unreadables = []string{"image_url", "input_image", "input_audio", "audio", "file", "input_file", "video_url"}

func (r *Reader) chatPart(n *Node) (p Piece, keep bool, err error) {
	if n.Kind == '"' {
		return Words(n.Text), true, nil
	}
	if n.Kind != '{' {
		return p, false, n.Errorf("content of a wrong kind: expected a part {type, text}, found %s", n.KindName())
	}
	kind, err := r.str(n, "type")
	if err != nil {
		return p, false, err
	}
	switch kind {
	case "text", "input_text", "output_text", "":
		if n.Get("text").Absent() && !r.Lenient {
			return p, false, n.Errorf("a text part without a text: expected one, for example {\"type\": \"text\", \"text\": \"Hello\"}")
		}
		text, err := r.str(n, "text")
		return Words(text), true, err
	case "refusal":
		text, err := r.str(n, "refusal")
		return Words(text), true, err
	case "thinking", "redacted_thinking", "reasoning":
		r.leave(Reasoning)
		return p, false, nil
	case "reference": // Mistral's numbers of sources
		return p, false, nil
	}
	if slices.Contains(Unreadables, kind) {
		return r.unread(filePiece(n, kind), kind, ""), true, nil
	}
	if r.Lenient {
		return Unknown(kind, n.Raw()), true, nil
	}
	return p, false, n.Get("type").Errorf("content of a wrong kind: unknown part type %s: expected text, for example {\"type\": \"text\", \"text\": \"Hello\"}", Quote(kind))
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

// ReadOutput reads what a tool returned: a text, parts, or another value.
func (r *Reader) ReadOutput(n *Node) (Pieces, error) {
	if n.Absent() {
		return nil, nil
	}
	if n.Kind == '"' || n.Kind == '[' && !slices.ContainsFunc(n.Members, isNoPart) {
		return r.content(n)
	}
	return Pieces{Words(Plain(n))}, nil
}

func isNoPart(n *Node) bool {
	kind := n.Word("type")
	return !strings.HasPrefix(kind, "input_") && !strings.HasSuffix(kind, "text")
}
