package convo

import (
	"cmp"
	"regexp"
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
	function, custom := n.Get("function"), n.Get("custom")
	if !function.Absent() && (custom.Absent() || !function.Empty()) {
		return r.function(function, id)
	}
	if !custom.Absent() { // a tool with free text as its input
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
	r.demand(false, n.Get("type"), `content of a wrong kind: unknown part type %s: expected text, for example {"type": "text", "text": "Hello"}`, Quote(kind))
	return Unknown(kind, n.Raw()), true
}

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

// Anthropic reads {"system", "messages"} or an array of messages, whose content is a string or an array of blocks:
// https://docs.claude.com/en/api/messages. A user's message that carries results of tools becomes one message for each
// result and one for what the user says.
func (r *Reader) Anthropic(n *Node) {
	list := n
	if n.Kind == '{' {
		r.AnthropicSystem(n.Get("system"))
		list = n.Get("messages")
	}
	if list.Absent() || list.Kind != '[' {
		r.Fail(n, "expected Anthropic's messages: an array, or {\"system\": …, \"messages\": […]}")
		return
	}
	r.AnthropicMessages(list)
}

// AnthropicMessages reads the list of messages.
func (r *Reader) AnthropicMessages(list *Node) {
	r.Each(list, AMessage, func(n *Node) {
		role, content := r.SpokenBy(n), n.Get("content")
		r.demand(RoleOf(role) != Tool, n.Get("role"), "unknown role %s in Anthropic's form: expected user or assistant; results of tools are tool_result blocks of a user's message", Quote(role))
		r.demand(content != nil, n, "a message without content: expected, for example, {\"role\": \"user\", \"content\": \"Hello\"}")
		r.AnthropicContent(role, content)
	})
}

// AnthropicSystem reads a system prompt: a string, or an array of text blocks.
func (r *Reader) AnthropicSystem(n *Node) { r.AnthropicContent(System, n) }

// AnthropicContent reads the content of a message: a string, or an array of blocks.
func (r *Reader) AnthropicContent(role string, content *Node) {
	t := r.turn(role)
	switch {
	case content.Absent():
	case content.Kind == '"':
		if said := withoutLabel(role, content.Text); said != "" || said == content.Text {
			t.Add(content, Words(said))
		}
	case content.Kind != '[':
		r.Fail(content, "content of a wrong kind: expected a string or an array of blocks, found %s", content.KindName())
	default:
		for i, block := range r.members(content) {
			r.block(t, block, i == 0)
		}
	}
	t.End()
}

// labelName begins a line that Claude Code puts before its instructions. It is for the provider's bookkeeping, another in each request: no part
// of the conversation, which it would make another each time.
const labelName = "x-anthropic-billing-header"

// aLabel is that line as Claude Code writes it: cc_version=2.1; cch=1a2b3;. Anything else with its beginning is instructions, which stay in the prompt.
var aLabel = regexp.MustCompile(`^ ?(?:[a-z][a-z0-9_]*=[!-:<-~]*;(?: |$))+$`)

const longestLabel = 512

func withoutLabel(role, text string) string {
	said, is := strings.CutPrefix(text, labelName+":")
	if !is || role != System {
		return text
	}
	line, rest, _ := strings.Cut(said, "\n")
	if len(labelName)+1+len(line) >= longestLabel || !aLabel.MatchString(line) {
		return text
	}
	return rest
}

func (r *Reader) block(t *Turn, n *Node, first bool) {
	if n.Kind != '{' {
		r.Fail(n, "expected a block, for example {\"type\": \"text\", \"text\": \"Hello\"}, found %s", n.KindName())
		return
	}
	kind := r.Str(n, "type")
	r.demand(kind != "", n, "there is no type: expected type, for example \"type\": \"text\"")
	switch {
	case kind == "thinking", kind == "redacted_thinking", kind == "compaction":
		r.leave(Reasoning)
		return
	case strings.HasSuffix(kind, "tool_use"):
		r.toolUse(t, n)
		return
	case strings.HasSuffix(kind, "tool_result"):
		r.toolResult(t, n)
		return
	case kind != "" && !slices.Contains(blockKinds, kind) && r.passes(kind):
		return
	}
	p := r.blockPiece(n, kind)
	if first && p.Text != nil {
		said := withoutLabel(t.Role, *p.Text)
		if said == "" && *p.Text != "" {
			return
		}
		p = Words(said)
	}
	if r.Answer && p.Text != nil && *p.Text == "" { // a block that has only started
		return
	}
	t.Add(n, p)
}

// blockKinds are the kinds of blocks that have a text, or stand for something that no juror can read.
var blockKinds = []string{"text", "search_result", "image", "document", "container_upload", "file", "audio"}

func (r *Reader) blockPiece(n *Node, kind string) Piece {
	switch {
	case kind == "text":
		r.demand(!n.Get("text").Absent(), n, "a text block without a text: expected {\"type\": \"text\", \"text\": \"…\"}")
		return Words(r.Str(n, "text"))
	case kind == "search_result":
		return Words(TextOf(n.Raw()))
	case slices.Contains(blockKinds, kind):
		title := r.Str(n, "title")
		return r.unread(source(n, kind, title), kind, title)
	}
	r.demand(kind == "", n.Get("type"), "unknown block %s: expected text, image, document, tool_use, tool_result or thinking, for example {\"type\": \"text\", \"text\": \"Hello\"}", Quote(kind))
	return Unknown(kind, n.Raw())
}

// source reads where a picture or a document comes from. A document of texts is shown whole.
func source(n *Node, kind, title string) Piece {
	as, title := "file", Short(title)
	if kind == "image" {
		as, title = "image_url", ""
	}
	from := n.Get("source")
	if from.Absent() {
		return Kept(as, title, n.Word("file_id"))
	}
	switch from.Word("type") {
	case "text":
		return Words(from.Word("data"))
	case "base64":
		return Inline(as, title, from.Word("media_type"), from.Word("data"))
	case "url":
		return Linked(as, title, from.Word("url"))
	case "file":
		return Kept(as, title, from.Word("file_id"))
	}
	return Unknown(kind, from.Raw())
}

func (r *Reader) toolUse(t *Turn, n *Node) {
	role, input := RoleOf(t.Role), n.Get("input")
	r.demand(role == Assistant, n, "a tool_use block in a message of the %s: expected it in one of the assistant, for example {\"role\": \"assistant\", \"content\": [{\"type\": \"tool_use\", \"id\": \"toolu_01\", \"name\": \"get_order\", \"input\": {\"order\": 7}}]}", role)
	r.demand(input.Absent() || input.Kind == '{', input, "expected a call's input, for example {\"order\": 7}, found %s", input.KindName())
	t.Call(n, r.Call(n, r.Str(n, "id"), r.Str(n, "name"), input))
}

// toolResult reads the result of a call. Its content is a string, or an array of blocks; what a vendor's own tools
// return has more forms, and is shown in canonical form.
func (r *Reader) toolResult(t *Turn, n *Node) {
	content := n.Get("content")
	m := Message{ToolCallID: r.Str(n, "tool_use_id"), IsError: n.Get("is_error").IsTrue() || strings.HasSuffix(content.Word("type"), "_error")}
	vendors := func(n *Node) bool {
		return !slices.Contains([]string{"text", "image", "document", "search_result"}, n.Word("type"))
	}
	if content != nil && content.Kind == '[' && !slices.ContainsFunc(content.Members, vendors) {
		for _, block := range content.Members {
			m.Content = append(m.Content, r.blockPiece(block, block.Word("type")))
		}
	} else if !content.Absent() {
		m.Content = Pieces{Words(Plain(content))}
	}
	t.Result(n, m)
}
