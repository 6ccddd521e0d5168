package convo

import (
	"cmp"
	"slices"
	"strings"
)

// ReadResponses reads {"instructions", "input", "output"} or an array of items: https://platform.openai.com/docs/api-reference/responses.
func (r *Reader) ReadResponses(n *Node) error {
	if n.Kind == '[' {
		return r.ReadItems(n, "")
	}
	if n.Kind != '{' || n.Get("input").Absent() && n.Get("output").Absent() {
		return n.Errorf("expected items of OpenAI's Responses: an array, or {\"instructions\": …, \"input\": …, \"output\": […]}")
	}
	for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
		if !n.Get(name).Absent() {
			r.leave(Elsewhere)
		}
	}
	for _, part := range []struct{ name, role string }{{"instructions", System}, {"input", User}, {"output", Assistant}} {
		if err := r.ReadItems(n.Get(part.name), part.role); err != nil {
			return err
		}
	}
	return nil
}

// ReadItems reads a text, or items, of which some may not say who speaks.
func (r *Reader) ReadItems(n *Node, role string) error {
	if n != nil && n.Kind == '"' && role != "" {
		r.Say(Message{Role: role, Content: Pieces{Words(n.Text)}}, n)
		return nil
	}
	return r.Each(n, anItem, func(item *Node) error { return r.item(item, role) })
}

// items are the types of an item of OpenAI's Responses that no chat message has, without the calls and their outputs.
var items = []string{"reasoning", "item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction"}

// IsItem reports whether a type is that of an item of Responses, and not of a message.
func IsItem(kind string) bool {
	return slices.Contains(items, kind) || strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

// item reads an item. Each is a message of its own.
func (r *Reader) item(n *Node, role string) error {
	kind, err := r.str(n, "type")
	switch {
	case err != nil:
		return err
	case kind == "message", kind == "":
		return r.itemMessage(n, role)
	case kind == "reasoning", kind == "compaction":
		r.leave(Reasoning)
		return nil
	case kind == "item_reference":
		r.leave(Elsewhere)
		return nil
	case kind == "mcp_list_tools", kind == "additional_tools":
		return nil // what tools there are, and no act
	case kind == "mcp_approval_response":
		r.Say(Message{Role: User, Content: Pieces{Words(TextOf(n.Raw()))}}, n)
		return nil
	case strings.HasSuffix(kind, "_output"):
		return r.itemOutput(n)
	case IsItem(kind), kind == "program":
		return r.itemCall(n, kind)
	case r.Lenient:
		r.Say(Message{Role: cmp.Or(role, User), Content: Pieces{Unknown(kind, n.Raw())}}, n)
		return nil
	}
	return n.Get("type").Errorf("unknown item %s: expected message, function_call, function_call_output, reasoning, or another call and its output, for example {\"type\": \"message\", \"role\": \"user\", \"content\": \"Hello\"}", Quote(kind))
}

func (r *Reader) itemMessage(n *Node, role string) (err error) {
	m := Message{}
	if m.Role, err = r.ReadRole(n); err != nil {
		return err
	}
	switch {
	case r.Answer:
		m.Role = Assistant
	case r.Lenient:
		m.Role = cmp.Or(m.Role, role)
	case RoleOf(m.Role) == Tool:
		return n.Get("role").Errorf("unknown role %s in the form of Responses: expected system, developer, user or assistant; results of tools are items of type function_call_output", Quote(n.Get("role").Text))
	}
	if m.Content, err = r.content(n.Get("content")); err != nil {
		return err
	}
	if RoleOf(m.Role) == Assistant {
		m.Content = m.Content.Joined()
	}
	r.Say(m, n)
	return nil
}

// itemCall reads a call. A function has a name. The vendor's own tools are named for their type, such as web_search, and have their result beside the call.
// A result may name a call by the id of its item.
func (r *Reader) itemCall(n *Node, kind string) error {
	id, err := r.first(n, "call_id", "id")
	if err != nil {
		return err
	}
	name, err := r.str(n, "name")
	if err != nil {
		return err
	}
	if name == "" && (r.Lenient || !strings.HasPrefix(kind, "function") && !strings.HasPrefix(kind, "custom")) {
		name = strings.TrimSuffix(kind, "_call")
	}
	input := ""
	for _, member := range []string{"arguments", "input", "action", "actions", "queries", "code", "operation"} {
		input = cmp.Or(input, Plain(n.Get(member)))
	}
	call, err := r.NewCall(n, id, name, nil)
	if err != nil {
		return err
	}
	if call.Function.Arguments = Arguments(input); kind == "custom_tool_call" {
		call = ChatToolCall{ID: id, Type: "custom", Custom: ChatCustom{Name: name, Input: input}}
	}
	item, err := r.str(n, "id")
	if err != nil {
		return err
	}
	if item != "" {
		if r.called == nil {
			r.called = map[string]string{}
		}
		r.called[item], r.called[id] = cmp.Or(r.called[item], id), id
	}
	r.Say(Message{Role: Assistant, ToolCalls: []ChatToolCall{call}}, n)
	return r.itemResult(n, kind, id)
}

// itemResult reads the result that the item of a vendor's own tool has beside the call.
func (r *Reader) itemResult(n *Node, kind, id string) (err error) {
	result := n.First("output", "outputs", "results", "result", "error")
	if result.Absent() {
		return nil
	}
	m := Message{Role: Tool, ToolCallID: id, IsError: !n.Get("error").Absent(), Beside: true}
	if kind == "image_generation_call" {
		m.Content = Pieces{r.unread(Inline("image_url", "", "", n.Word("result")), "image", "")}
	} else if m.Content, err = r.ReadOutput(result); err != nil {
		return err
	}
	r.Say(m, result)
	return nil
}

func (r *Reader) itemOutput(n *Node) error {
	id, err := r.first(n, "call_id", "id")
	if err != nil {
		return err
	}
	m := Message{Role: Tool, ToolCallID: cmp.Or(r.called[id], id)}
	if m.Content, err = r.ReadOutput(n.First("output", "result", "tools")); err != nil {
		return err
	}
	r.Say(m, n)
	return nil
}
