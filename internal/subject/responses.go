package subject

import (
	"slices"
	"strings"
)

// items are the types of an item of OpenAI's Responses that no chat message has, without the calls and their outputs:
// https://platform.openai.com/docs/api-reference/responses.
var items = []string{"reasoning", "item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction"}

// isItem reports whether a type is that of an item, and not of a message.
func isItem(kind string) bool {
	return slices.Contains(items, kind) || strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

// readResponses reads {"instructions", "input", "output"} or an array of items.
func (c *Case) readResponses(n *Node) error {
	if n.kind == '[' {
		return c.each(n, anItem, c.readItem)
	}
	if n.kind != '{' || n.get("input").absent() && n.get("output").absent() {
		return n.Errorf("expected items of OpenAI's Responses: an array, or {\"instructions\": …, \"input\": …, \"output\": […]}")
	}
	for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
		if !n.get(name).absent() {
			c.omits(Elsewhere)
		}
	}
	for _, part := range []struct {
		name string
		role Role
	}{{"instructions", System}, {"input", User}, {"output", Assistant}} {
		at := n.get(part.name)
		if at != nil && at.kind == '"' {
			c.say(Message{Role: part.role, Text: at.text}, at)
			continue
		}
		if err := c.each(at, anItem, c.readItem); err != nil {
			return err
		}
	}
	return nil
}

func (c *Case) readItem(n *Node) error {
	kind, err := n.str("type")
	if err != nil {
		return err
	}
	switch {
	case kind == "message", kind == "":
		return c.readItemMessage(n)
	case kind == "reasoning", kind == "compaction":
		c.omits(Reasoning)
		return nil
	case kind == "item_reference":
		c.omits(Elsewhere)
		return nil
	case kind == "mcp_list_tools":
		return nil // what tools there are, and no act
	case kind == "mcp_approval_response":
		text, err := canonicalText(n)
		c.say(Message{Role: User, Text: text}, n)
		return err
	case strings.HasSuffix(kind, "_output"):
		return c.readItemOutput(n)
	case isItem(kind):
		return c.readItemCall(n, kind)
	}
	return n.get("type").Errorf("unknown item %s: expected message, function_call, function_call_output, reasoning, or another call and its output, for example {\"type\": \"message\", \"role\": \"user\", \"content\": \"Hello\"}", quote(kind))
}

func (c *Case) readItemMessage(n *Node) error {
	m := Message{}
	var err error
	if m.Role, err = readRole(n); err != nil {
		return err
	}
	if m.Role == Tool {
		return n.get("role").Errorf("unknown role %s in the form of Responses: expected system, developer, user or assistant; results of tools are items of type function_call_output", quote(n.get("role").text))
	}
	if m.Text, err = c.content(n.get("content")); err != nil {
		return err
	}
	c.say(m, n)
	return nil
}

// readItemCall reads a call. A function has a name. The vendor's own tools are named for their type: web_search.
func (c *Case) readItemCall(n *Node, kind string) error {
	id, err := n.firstString("call_id", "id")
	if err != nil {
		return err
	}
	name, err := n.str("name")
	if err != nil {
		return err
	}
	if strings.HasPrefix(kind, "function") || strings.HasPrefix(kind, "custom") {
		if id == "" {
			return n.Errorf("a call without an id: expected, for example, \"call_id\": \"call_1\"")
		}
	} else if name == "" {
		name = strings.TrimSuffix(kind, "_call")
	}
	call, err := newCall(n, id, name, n.first("arguments", "input", "action", "queries", "code", "operation"))
	if err != nil {
		return err
	}
	c.say(Message{Role: Assistant, ToolCalls: []ToolCall{call}}, n)
	return c.readItemResult(n, id)
}

// readItemResult reads the result that the item of a vendor's own tool has beside the call.
func (c *Case) readItemResult(n *Node, id string) error {
	result := n.first("output", "outputs", "results", "result", "error")
	if result.absent() {
		return nil
	}
	m := Message{Role: Tool, ToolCallID: id, Failed: !n.get("error").absent()}
	if result.step == "result" && result.kind == '"' { // an image in base64
		m.Text = c.unread("image", "")
		c.say(m, result)
		return nil
	}
	text, err := plainText(result)
	m.Text = text
	c.say(m, result)
	return err
}

func (c *Case) readItemOutput(n *Node) (err error) {
	m := Message{Role: Tool}
	if m.ToolCallID, err = n.firstString("call_id", "id"); err != nil {
		return err
	}
	if m.ToolCallID == "" {
		return n.Errorf("an output without the id of its call: expected, for example, \"call_id\": \"call_1\"")
	}
	output := n.get("output")
	if output != nil && output.kind == '[' && output.onlyParts() {
		m.Text, err = c.content(output)
	} else {
		m.Text, err = plainText(output)
	}
	if err != nil {
		return err
	}
	c.say(m, n)
	return nil
}

// onlyParts reports whether an array has only parts of content.
func (n *Node) onlyParts() bool {
	for _, part := range n.members {
		if kind, _ := part.str("type"); !strings.HasPrefix(kind, "input_") && !strings.HasSuffix(kind, "_text") {
			return false
		}
	}
	return true
}

// first returns the first of several members that is there.
func (n *Node) first(names ...string) *Node {
	for _, name := range names {
		if m := n.get(name); !m.absent() {
			return m
		}
	}
	return nil
}

func (n *Node) firstString(names ...string) (string, error) {
	for _, name := range names {
		if text, err := n.str(name); err != nil || text != "" {
			return text, err
		}
	}
	return "", nil
}
