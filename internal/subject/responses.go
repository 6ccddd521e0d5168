package subject

import (
	"strings"
)

// readResponses reads {"instructions", "input", "output"} or an array of items.
func (c *Case) readResponses(n *node) error {
	if n.Kind == '[' {
		return c.each(n, anItem, c.readItem)
	}
	if n.Kind != '{' || n.Get("input").Absent() && n.Get("output").Absent() {
		return n.Errorf("expected items of OpenAI's Responses: an array, or {\"instructions\": …, \"input\": …, \"output\": […]}")
	}
	for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
		if !n.Get(name).Absent() {
			c.omits(Elsewhere)
		}
	}
	for _, part := range []struct {
		name string
		role Role
	}{{"instructions", System}, {"input", User}, {"output", Assistant}} {
		at := n.Get(part.name)
		if at != nil && at.Kind == '"' {
			c.say(Message{Role: part.role, Text: at.Text}, at)
			continue
		}
		if err := c.each(at, anItem, c.readItem); err != nil {
			return err
		}
	}
	return nil
}

func (c *Case) readItem(n *node) error {
	kind, err := n.Str("type")
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
	case isOther(kind):
		return c.readItemCall(n, kind)
	}
	return n.Get("type").Errorf("unknown item %s: expected message, function_call, function_call_output, reasoning, or another call and its output, for example {\"type\": \"message\", \"role\": \"user\", \"content\": \"Hello\"}", quote(kind))
}

func (c *Case) readItemMessage(n *node) error {
	m := Message{}
	var err error
	if m.Role, err = readRole(n); err != nil {
		return err
	}
	if m.Role == Tool {
		return n.Get("role").Errorf("unknown role %s in the form of Responses: expected system, developer, user or assistant; results of tools are items of type function_call_output", quote(n.Get("role").Text))
	}
	if m.Text, err = c.content(n.Get("content")); err != nil {
		return err
	}
	c.say(m, n)
	return nil
}

// readItemCall reads a call. A function has a name. The vendor's own tools are named for their type: web_search.
func (c *Case) readItemCall(n *node, kind string) error {
	id, err := n.FirstString("call_id", "id")
	if err != nil {
		return err
	}
	name, err := n.Str("name")
	if err != nil {
		return err
	}
	if name == "" && !strings.HasPrefix(kind, "function") && !strings.HasPrefix(kind, "custom") {
		name = strings.TrimSuffix(kind, "_call")
	}
	call, err := newCall(n, id, name, n.First("arguments", "input", "action", "queries", "code", "operation"))
	if err != nil {
		return err
	}
	if item, err := n.Str("id"); err != nil {
		return err
	} else if item != id {
		call.Item = item
	}
	c.say(Message{Role: Assistant, ToolCalls: []ToolCall{call}}, n)
	return c.readItemResult(n, id)
}

// readItemResult reads the result that the item of a vendor's own tool has beside the call.
func (c *Case) readItemResult(n *node, id string) error {
	result := n.First("output", "outputs", "results", "result", "error")
	if result.Absent() {
		return nil
	}
	m := Message{Role: Tool, ToolCallID: id, Failed: !n.Get("error").Absent(), Beside: true}
	if result.Step == "result" && result.Kind == '"' { // an image in base64
		m.Text = c.unread("image", "")
		c.say(m, result)
		return nil
	}
	text, err := plainText(result)
	m.Text = text
	c.say(m, result)
	return err
}

func (c *Case) readItemOutput(n *node) (err error) {
	m := Message{Role: Tool}
	if m.ToolCallID, err = n.FirstString("call_id", "id"); err != nil {
		return err
	}
	output := n.Get("output")
	if output != nil && output.Kind == '[' && onlyParts(output) {
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
func onlyParts(n *node) bool {
	for _, part := range n.Members {
		if kind, _ := part.Str("type"); !strings.HasPrefix(kind, "input_") && !strings.HasSuffix(kind, "_text") {
			return false
		}
	}
	return true
}
