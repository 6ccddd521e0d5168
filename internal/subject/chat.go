package subject

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// readChatMessage reads a chat message, and counts what is left out of it.
func (c *Case) readChatMessage(m *Message, n *node) (err error) {
	if m.Role, err = readRole(n); err != nil {
		return err
	}
	for _, name := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
		if at := n.Get(name); !at.Absent() && !at.Empty() && at.Text+string(at.Kind) != `"` {
			c.omits(Reasoning)
			break
		}
	}
	return m.readChatBody(n, c.content)
}

// readChatBody reads everything except the role.
func (m *Message) readChatBody(n *node, content func(*node) (string, error)) (err error) {
	if m.Text, err = content(n.Get("content")); err != nil {
		return err
	}
	if refusal, err := n.Str("refusal"); err != nil {
		return err
	} else if m.Text == "" {
		m.Text = refusal
	}
	if m.Name, err = n.Str("name"); err != nil {
		return err
	}
	if m.Role == Tool {
		m.ToolName = m.Name
		if m.ToolCallID, err = n.Str("tool_call_id"); err != nil {
			return err
		}
		return m.readRequestor(n)
	}
	return m.readCalls(n)
}

// readRequestor reads what logs of dual control say of a result: who asked for it, and whether it failed. There the
// id of the call is the member id. The shape is that of tau2-bench's ToolMessage:
// https://github.com/sierra-research/tau2-bench/blob/main/src/tau2/data_model/message.py
func (m *Message) readRequestor(n *node) (err error) {
	at := n.Get("requestor")
	if at.Absent() {
		return nil
	}
	if m.AnswersTo, err = requestor(at); err != nil {
		return err
	}
	if m.ToolCallID == "" {
		m.ToolCallID, err = n.Str("id")
	}
	m.Failed = n.Get("error").IsTrue()
	return err
}

// readResults reads a tool's message. tau2-bench (tool_messages) and AG2 (tool_responses) put the results of several calls into one, AG2 with their texts
// again as content.
func (c *Case) readResults(m *Message, n *node) error {
	list := n.First("tool_messages", "tool_responses")
	if list.Absent() || list.Kind == '[' && len(list.Members) == 0 {
		return c.readResult(m, n)
	}
	var texts []string
	err := c.each(list, thing{"a tool's message (an object)", `{"role": "tool", "tool_call_id": "call_1", "content": "Done"}`}, func(one *node) (err error) {
		result := Message{Role: Tool}
		if at := one.Get("role"); !at.Absent() {
			if result.Role, err = readRole(one); err == nil && result.Role != Tool {
				err = at.Errorf("unknown role %s among the results of tools: expected tool", quote(at.Text))
			}
		}
		if err == nil {
			err = result.readChatBody(one, c.content)
		}
		if err == nil && result.ToolCallID == "" {
			result.ToolCallID, err = one.Str("id")
		}
		if err != nil {
			return err
		}
		result.Failed = result.Failed || one.Get("error").IsTrue()
		texts = append(texts, result.Text)
		return c.readResult(&result, one)
	})
	if err == nil && m.Text != "" && m.Text != strings.Join(texts, "\n\n") {
		return n.Get("content").Errorf("a content beside %s that is not their texts, joined by empty lines: expected no content here, and each result in its own", list.Step)
	}
	return err
}

// readResult takes a tool's message with one result. It refuses one whose result is elsewhere than in the content: it would be empty in silence.
func (c *Case) readResult(m *Message, n *node) error {
	for i, name := range n.Names {
		at := n.Members[i]
		list := at.Kind == '[' && len(at.Members) > 0
		if n.Get("content").Absent() && (list || slices.Contains(elsewhere, name) && !at.Absent()) {
			return at.Errorf("a tool's message without a content, but with %s: expected one message for each result, with it as the content, for example {\"role\": \"tool\", \"tool_call_id\": \"call_1\", \"content\": \"Done\"}", quote(name))
		}
	}
	c.say(*m, n)
	return nil
}

// elsewhere are names that other programs give to what chat messages call a tool's content.
var elsewhere = []string{"output", "outputs", "result", "results", "response", "responses", "text", "value", "data"}

func requestor(at *node) (Role, error) {
	if role := roles[at.Text]; at.Kind == '"' && (role == User || role == Assistant) {
		return role, nil
	}
	return "", at.Errorf("unknown requestor: expected \"assistant\" or \"user\"")
}

func (m *Message) readCalls(n *node) error {
	if err := eachObject(n.Get("tool_calls"), "a tool call", m.readCall); err != nil {
		return err
	}
	if legacy := n.Get("function_call"); !legacy.Absent() {
		if err := m.addCall(legacy, ""); err != nil {
			return err
		}
	}
	if len(m.ToolCalls) > 0 && m.Role != Assistant && m.Role != User {
		return n.Errorf("a message of role %s makes tool calls: expected role assistant, or user for the user's own calls, for example {\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"call_1\", \"name\": \"get_order\", \"arguments\": {\"order\": 7}}]}", m.Role)
	}
	return nil
}

func (m *Message) readCall(n *node) error {
	id, err := n.Str("id")
	if err != nil {
		return err
	}
	if at := n.Get("requestor"); !at.Absent() {
		if by, err := requestor(at); err != nil || by != m.Role {
			return at.Errorf("expected the requestor %s, because the call is in a message of the %s, found %s; for example \"requestor\": %[1]q", m.Role, m.Role, quote(at.Text))
		}
	}
	if function := n.Get("function"); !function.Absent() {
		return m.addCall(function, id)
	}
	if custom := n.Get("custom"); !custom.Absent() { // a tool with free text as its input
		name, err := custom.Str("name")
		if err != nil {
			return err
		}
		input, err := custom.Str("input")
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: id, Name: name, Arguments: input})
		return err
	}
	return m.addCall(n, id)
}

// addCall reads {name, arguments}; arguments are a string of JSON, or the object itself.
func (m *Message) addCall(n *node, id string) error {
	if n.Kind != '{' {
		return n.Errorf("expected {name, arguments}, found %s", n.KindName())
	}
	name, err := n.Str("name")
	if err != nil {
		return err
	}
	if name == "" {
		return n.Errorf("a tool call without a name: expected, for example, \"name\": \"get_order\"")
	}
	call := ToolCall{ID: id, Name: name}
	arguments := n.Get("arguments")
	if arguments == nil {
		arguments = n.Get("args")
	}
	if !arguments.Absent() {
		if arguments.Kind != '"' && arguments.Kind != '{' {
			return arguments.Errorf("expected a tool call's arguments (a string or an object), found %s; for example {\"order\": 7}", arguments.KindName())
		}
		text := arguments.Text
		if arguments.Kind == '{' {
			// The canonical form makes a quotation valid both for the file and for the evidence.
			if text, err = canonicalText(arguments); err != nil {
				return err
			}
		}
		call.setArguments(text)
	}
	m.ToolCalls = append(m.ToolCalls, call)
	return nil
}

func (call *ToolCall) setArguments(text string) {
	call.Arguments = text
	if object, err := evidence.Canonical([]byte(text)); err == nil && jsontext.Value(object).Kind() == '{' {
		call.Args = object
	}
}

// content reads a string, null or an array of parts.
func (c *Case) content(n *node) (string, error) {
	return parts(n, func(part *node) (string, bool, error) {
		switch kind := part.Get("type"); {
		case kind == nil || kind.Kind != '"':
		case kind.Text == "thinking", kind.Text == "redacted_thinking", kind.Text == "reasoning":
			c.omits(Reasoning)
			return "", false, nil
		case slices.Contains(unreadable, kind.Text):
			c.omits(Unreadable)
		}
		text, err := chatPart(part)
		return text, true, err
	})
}

// contentOfRecord reads content in a record. Its rule must not change: see readChat.
func contentOfRecord(n *node) (string, error) {
	return parts(n, func(part *node) (string, bool, error) {
		text, err := chatPart(part)
		return text, true, err
	})
}

// parts joins the texts of an array of parts.
func parts(n *node, read func(*node) (text string, keep bool, err error)) (string, error) {
	switch {
	case n.Absent():
		return "", nil
	case n.Kind == '"':
		return n.Text, nil
	case n.Kind != '[':
		return "", n.Errorf("content of a wrong kind: expected a string, null or an array of parts, found %s; for example \"content\": \"Hello\"", n.KindName())
	}
	var texts []string
	for _, part := range n.Members {
		text, keep, err := read(part)
		if err != nil {
			return "", err
		}
		if keep {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// unreadable are the types of parts that no juror can read.
var unreadable = []string{"image_url", "input_image", "input_audio", "audio", "file", "input_file", "video_url"}

// chatPart reads the text of a part. For an image or a file it keeps only the kind, because no juror can read it.
func chatPart(n *node) (string, error) {
	if n.Kind == '"' {
		return n.Text, nil
	}
	if n.Kind != '{' {
		return "", n.Errorf("content of a wrong kind: expected a part {type, text}, found %s", n.KindName())
	}
	kind, err := n.Str("type")
	if err != nil {
		return "", err
	}
	switch kind {
	case "text", "input_text", "output_text", "":
		if n.Get("text").Absent() {
			return "", n.Errorf("a text part without a text: expected one, for example {\"type\": \"text\", \"text\": \"Hello\"}")
		}
		return n.Str("text")
	case "refusal":
		return n.Str("refusal")
	}
	if slices.Contains(unreadable, kind) {
		return "[" + kind + "]", nil
	}
	return "", n.Get("type").Errorf("content of a wrong kind: unknown part type %s: expected text, for example {\"type\": \"text\", \"text\": \"Hello\"}", quote(kind))
}
