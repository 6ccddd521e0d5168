package convo

import (
	"regexp"
	"slices"
	"strings"
)

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

// longestLabel bounds the line in bytes.
const longestLabel = 512

// withoutLabel returns instructions without that line.
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

// blockPiece reads a block that has a text, or that stands for something that no juror can read.
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
	if content != nil && content.Kind == '[' && !slices.ContainsFunc(content.Members, isVendors) {
		for _, block := range content.Members {
			m.Content = append(m.Content, r.blockPiece(block, block.Word("type")))
		}
	} else if !content.Absent() {
		m.Content = Pieces{Words(Plain(content))}
	}
	t.Result(n, m)
}

// isVendors reports whether a block of a result is one that only a vendor's own tools return.
func isVendors(block *Node) bool {
	return !slices.Contains([]string{"text", "image", "document", "search_result"}, block.Word("type"))
}
