package convo

import (
	"regexp"
	"slices"
	"strings"
)

// ReadAnthropic reads {"system", "messages"} or an array of messages, whose content is a string or an array of blocks:
// https://docs.claude.com/en/api/messages. A user's message that carries results of tools becomes one message for each
// result and one for what the user says.
func (r *Reader) ReadAnthropic(n *Node) error {
	list := n
	if n.Kind == '{' {
		if err := r.ReadAnthropicSystem(n.Get("system")); err != nil {
			return err
		}
		list = n.Get("messages")
	}
	if list.Absent() || list.Kind != '[' {
		return n.Errorf("expected Anthropic's messages: an array, or {\"system\": …, \"messages\": […]}")
	}
	return r.ReadAnthropicMessages(list)
}

// ReadAnthropicMessages reads the list of messages.
func (r *Reader) ReadAnthropicMessages(list *Node) error {
	return r.Each(list, AMessage, r.anthropicMessage)
}

// ReadAnthropicSystem reads a system prompt: a string, or an array of text blocks.
func (r *Reader) ReadAnthropicSystem(n *Node) error { return r.ReadAnthropicContent(System, n) }

func (r *Reader) anthropicMessage(n *Node) error {
	role, err := r.ReadRole(n)
	if err != nil {
		return err
	}
	content := n.Get("content")
	switch {
	case r.Lenient:
	case RoleOf(role) == Tool:
		return n.Get("role").Errorf("unknown role %s in Anthropic's form: expected user or assistant; results of tools are tool_result blocks of a user's message", Quote(role))
	case content == nil:
		return n.Errorf("a message without content: expected, for example, {\"role\": \"user\", \"content\": \"Hello\"}")
	}
	return r.ReadAnthropicContent(role, content)
}

// ReadAnthropicContent reads the content of a message: a string, or an array of blocks.
func (r *Reader) ReadAnthropicContent(role string, content *Node) error {
	t := r.turn(role)
	defer t.End()
	switch {
	case content.Absent():
		return nil
	case content.Kind == '"':
		if said := withoutLabel(role, content.Text); said != "" || said == content.Text {
			t.Add(content, Words(said))
		}
		return nil
	case content.Kind != '[':
		return content.Errorf("content of a wrong kind: expected a string or an array of blocks, found %s", content.KindName())
	}
	for i, block := range content.Members {
		if err := r.block(t, block, i == 0); err != nil {
			return err
		}
	}
	return nil
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

func (r *Reader) block(t *Turn, n *Node, first bool) error {
	if n.Kind != '{' {
		return n.Errorf("expected a block, for example {\"type\": \"text\", \"text\": \"Hello\"}, found %s", n.KindName())
	}
	kind, err := r.str(n, "type")
	if err == nil && kind == "" && !r.Lenient {
		_, err = n.Required("type", "text")
	}
	switch {
	case err != nil:
		return err
	case kind == "thinking", kind == "redacted_thinking", kind == "compaction":
		r.leave(Reasoning)
		return nil
	case strings.HasSuffix(kind, "tool_use"):
		return r.toolUse(t, n)
	case strings.HasSuffix(kind, "tool_result"):
		return r.toolResult(t, n)
	}
	p, err := r.blockPiece(n, kind)
	if err != nil || r.Answer && p.Text != nil && *p.Text == "" { // a block that has only started
		return err
	}
	if first && p.Text != nil {
		if said := withoutLabel(t.Role, *p.Text); said != *p.Text {
			if said == "" {
				return nil
			}
			p = Words(said)
		}
	}
	t.Add(n, p)
	return nil
}

// blockPiece reads a block that has a text, or that stands for something that no juror can read.
func (r *Reader) blockPiece(n *Node, kind string) (Piece, error) {
	switch kind {
	case "text":
		if n.Get("text").Absent() && !r.Lenient {
			return Piece{}, n.Errorf("a text block without a text: expected {\"type\": \"text\", \"text\": \"…\"}")
		}
		text, err := r.str(n, "text")
		return Words(text), err
	case "search_result":
		return Words(TextOf(n.Raw())), nil
	case "image", "document", "container_upload", "file", "audio":
		title, err := r.str(n, "title")
		return r.unread(source(n, kind, title), kind, title), err
	}
	if r.Lenient {
		return Unknown(kind, n.Raw()), nil
	}
	return Piece{}, n.Get("type").Errorf("unknown block %s: expected text, image, document, tool_use, tool_result or thinking, for example {\"type\": \"text\", \"text\": \"Hello\"}", Quote(kind))
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

func (r *Reader) toolUse(t *Turn, n *Node) error {
	if RoleOf(t.Role) != Assistant && !r.Lenient {
		return n.Errorf("a tool_use block in a message of the %s: expected it in one of the assistant, for example {\"role\": \"assistant\", \"content\": [{\"type\": \"tool_use\", \"id\": \"toolu_01\", \"name\": \"get_order\", \"input\": {\"order\": 7}}]}", RoleOf(t.Role))
	}
	id, err := r.str(n, "id")
	if err != nil {
		return err
	}
	name, err := r.str(n, "name")
	if err != nil {
		return err
	}
	input := n.Get("input")
	if !r.Lenient && !input.Absent() && input.Kind != '{' {
		return input.Errorf("expected a call's input, for example {\"order\": 7}, found %s", input.KindName())
	}
	call, err := r.NewCall(n, id, name, input)
	if err == nil {
		t.Call(n, call)
	}
	return err
}

// toolResult reads the result of a call. Its content is a string, or an array of blocks; what a vendor's own tools
// return has more forms, and is shown in canonical form.
func (r *Reader) toolResult(t *Turn, n *Node) error {
	id, err := r.str(n, "tool_use_id")
	if err != nil {
		return err
	}
	content := n.Get("content")
	m := Message{ToolCallID: id, IsError: n.Get("is_error").IsTrue() || strings.HasSuffix(content.Word("type"), "_error")}
	if content != nil && content.Kind == '[' && !slices.ContainsFunc(content.Members, isVendors) {
		for _, block := range content.Members {
			p, err := r.blockPiece(block, block.Word("type"))
			if err != nil {
				return err
			}
			m.Content = append(m.Content, p)
		}
	} else if !content.Absent() {
		m.Content = Pieces{Words(Plain(content))}
	}
	t.Result(n, m)
	return nil
}

// isVendors reports whether a block of a result is one that only a vendor's own tools return.
func isVendors(block *Node) bool {
	return !slices.Contains([]string{"text", "image", "document", "search_result"}, block.Word("type"))
}
