package subject

import (
	"strings"
)

// readAnthropic reads {"system", "messages"} or an array of messages, whose content is a string or an array of blocks:
// https://docs.claude.com/en/api/messages. A user's message that carries results of tools becomes one message for each
// result and one for what the user says.
func (c *Case) readAnthropic(n *node) error {
	list := n
	if n.Kind == '{' {
		if err := c.readSystem(n.Get("system")); err != nil {
			return err
		}
		list = n.Get("messages")
	}
	if list.Absent() || list.Kind != '[' {
		return n.Errorf("expected Anthropic's messages: an array, or {\"system\": …, \"messages\": […]}")
	}
	return c.each(list, aMessage, c.readAnthropicMessage)
}

// readSystem reads a system prompt: a string, or an array of text blocks.
func (c *Case) readSystem(n *node) error {
	if n.Absent() {
		return nil
	}
	t := turn{c: c, role: System}
	if err := t.blocks(n); err != nil {
		return err
	}
	t.end()
	return nil
}

func (c *Case) readAnthropicMessage(n *node) error {
	role, err := readRole(n)
	if err != nil {
		return err
	}
	if role == Tool {
		return n.Get("role").Errorf("unknown role %s in Anthropic's form: expected user or assistant; results of tools are tool_result blocks of a user's message", quote(n.Get("role").Text))
	}
	content := n.Get("content")
	if content == nil {
		return n.Errorf("a message without content: expected, for example, {\"role\": \"user\", \"content\": \"Hello\"}")
	}
	t := turn{c: c, role: role}
	if err := t.blocks(content); err != nil {
		return err
	}
	t.end()
	return nil
}

// blocks reads content: a string, or an array of blocks.
func (t *turn) blocks(content *node) error {
	switch content.Kind {
	case 'n':
		return nil
	case '"':
		t.text(content, content.Text)
		return nil
	case '[':
	default:
		return content.Errorf("content of a wrong kind: expected a string or an array of blocks, found %s", content.KindName())
	}
	for _, block := range content.Members {
		if err := t.block(block); err != nil {
			return err
		}
	}
	return nil
}

func (t *turn) block(n *node) error {
	if n.Kind != '{' {
		return n.Errorf("expected a block, for example {\"type\": \"text\", \"text\": \"Hello\"}, found %s", n.KindName())
	}
	kind, err := n.Required("type", "text")
	if err != nil {
		return err
	}
	switch kind {
	case "thinking", "redacted_thinking", "compaction":
		t.c.omits(Reasoning)
		return nil
	case "tool_use", "server_tool_use", "mcp_tool_use":
		return t.toolUse(n)
	}
	if strings.HasSuffix(kind, "tool_result") {
		return t.toolResult(n)
	}
	text, err := t.c.blockText(n, kind)
	if err == nil {
		t.text(n, text)
	}
	return err
}

// blockText reads a block that has a text, or that stands for something that no juror can read.
func (c *Case) blockText(n *node, kind string) (string, error) {
	switch kind {
	case "text":
		if n.Get("text").Absent() {
			return "", n.Errorf("a text block without a text: expected {\"type\": \"text\", \"text\": \"…\"}")
		}
		return n.Str("text")
	case "search_result":
		return canonicalText(n)
	case "image", "document", "container_upload", "file", "audio":
		if source := n.Get("source"); source.Get("type") != nil && source.Get("type").Text == "text" {
			return source.Str("data")
		}
		title, err := n.Str("title")
		return c.unread(kind, title), err
	}
	return "", n.Get("type").Errorf("unknown block %s: expected text, image, document, tool_use, tool_result or thinking, for example {\"type\": \"text\", \"text\": \"Hello\"}", quote(kind))
}

func (t *turn) toolUse(n *node) error {
	if t.role != Assistant {
		return n.Errorf("a tool_use block in a message of the %s: expected it in one of the assistant, for example {\"role\": \"assistant\", \"content\": [{\"type\": \"tool_use\", \"id\": \"toolu_01\", \"name\": \"get_order\", \"input\": {\"order\": 7}}]}", t.role)
	}
	id, err := n.Str("id")
	if err != nil {
		return err
	}
	name, err := n.Str("name")
	if err != nil {
		return err
	}
	if input := n.Get("input"); !input.Absent() && input.Kind != '{' {
		return input.Errorf("expected a call's input, for example {\"order\": 7}, found %s", input.KindName())
	}
	call, err := newCall(n, id, name, n.Get("input"))
	if err == nil {
		t.call(n, call)
	}
	return err
}

// toolResult reads the result of a call. Its content is a string, or an array of blocks; what a vendor's own tools
// return has more forms, and is shown in canonical form.
func (t *turn) toolResult(n *node) error {
	id, err := n.Str("tool_use_id")
	if err != nil {
		return err
	}
	m := Message{ToolCallID: id, Failed: n.Get("is_error").IsTrue()}
	content := n.Get("content")
	if content != nil && content.Kind == '[' && onlyText(content) {
		inner := turn{c: t.c, role: Tool}
		if err := inner.blocks(content); err != nil {
			return err
		}
		m.Text = strings.Join(inner.texts, "\n")
	} else if m.Text, err = plainText(content); err != nil {
		return err
	}
	t.result(n, m)
	return nil
}

// onlyText reports whether an array has only blocks that blockText reads.
func onlyText(n *node) bool {
	for _, block := range n.Members {
		switch kind, _ := block.Str("type"); kind {
		case "text", "image", "document", "search_result":
		default:
			return false
		}
	}
	return true
}
