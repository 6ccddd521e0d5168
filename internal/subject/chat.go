package subject

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// readChatMessage reads a chat message, and counts what is left out of it.
func (c *Case) readChatMessage(m *Message, n *Node) (err error) {
	if m.Role, err = readRole(n); err != nil {
		return err
	}
	for _, name := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
		if at := n.get(name); !at.absent() && !at.empty() && at.text+string(at.kind) != `"` {
			c.omits(Reasoning)
			break
		}
	}
	return m.readChatBody(n, c.content)
}

// readChatBody reads everything except the role.
func (m *Message) readChatBody(n *Node, content func(*Node) (string, error)) (err error) {
	if m.Text, err = content(n.get("content")); err != nil {
		return err
	}
	if refusal, err := n.str("refusal"); err != nil {
		return err
	} else if m.Text == "" {
		m.Text = refusal
	}
	if m.Name, err = n.str("name"); err != nil {
		return err
	}
	if m.Role == Tool {
		m.ToolName = m.Name
		if m.ToolCallID, err = n.str("tool_call_id"); err != nil {
			return err
		}
		return m.readRequestor(n)
	}
	return m.readCalls(n)
}

// readRequestor reads what logs of dual control say of a result: who asked for it, and whether it failed. There the
// id of the call is the member id. The shape is that of tau2-bench's ToolMessage:
// https://github.com/sierra-research/tau2-bench/blob/main/src/tau2/data_model/message.py
func (m *Message) readRequestor(n *Node) (err error) {
	at := n.get("requestor")
	if at.absent() {
		return nil
	}
	if m.AnswersTo, err = requestor(at); err != nil {
		return err
	}
	if m.ToolCallID == "" {
		m.ToolCallID, err = n.str("id")
	}
	m.Failed = n.get("error").isTrue()
	return err
}

func requestor(at *Node) (Role, error) {
	if role := roles[at.text]; at.kind == '"' && (role == User || role == Assistant) {
		return role, nil
	}
	return "", at.Errorf("unknown requestor: expected \"assistant\" or \"user\"")
}

func (m *Message) readCalls(n *Node) error {
	if err := eachObject(n.get("tool_calls"), "a tool call", m.readCall); err != nil {
		return err
	}
	if legacy := n.get("function_call"); !legacy.absent() {
		if err := m.addCall(legacy, ""); err != nil {
			return err
		}
	}
	if len(m.ToolCalls) > 0 && m.Role != Assistant && m.Role != User {
		return n.Errorf("a message of role %s makes tool calls: expected role assistant, or user for the user's own calls, for example {\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"call_1\", \"name\": \"get_order\", \"arguments\": {\"order\": 7}}]}", m.Role)
	}
	return nil
}

func (m *Message) readCall(n *Node) error {
	id, err := n.str("id")
	if err != nil {
		return err
	}
	if at := n.get("requestor"); !at.absent() {
		if by, err := requestor(at); err != nil || by != m.Role {
			return at.Errorf("expected the requestor %s, because the call is in a message of the %s, found %s; for example \"requestor\": %[1]q", m.Role, m.Role, quote(at.text))
		}
	}
	if function := n.get("function"); !function.absent() {
		return m.addCall(function, id)
	}
	if custom := n.get("custom"); !custom.absent() { // a tool with free text as its input
		name, err := custom.str("name")
		if err != nil {
			return err
		}
		input, err := custom.str("input")
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: id, Name: name, Arguments: input})
		return err
	}
	return m.addCall(n, id)
}

// addCall reads {name, arguments}; arguments are a string of JSON, or the object itself.
func (m *Message) addCall(n *Node, id string) error {
	if n.kind != '{' {
		return n.Errorf("expected {name, arguments}, found %s", n.KindName())
	}
	name, err := n.str("name")
	if err != nil {
		return err
	}
	if name == "" {
		return n.Errorf("a tool call without a name: expected, for example, \"name\": \"get_order\"")
	}
	call := ToolCall{ID: id, Name: name}
	arguments := n.get("arguments")
	if arguments == nil {
		arguments = n.get("args")
	}
	if !arguments.absent() {
		if arguments.kind != '"' && arguments.kind != '{' {
			return arguments.Errorf("expected a tool call's arguments (a string or an object), found %s; for example {\"order\": 7}", arguments.KindName())
		}
		text := arguments.text
		if arguments.kind == '{' {
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
func (c *Case) content(n *Node) (string, error) {
	return parts(n, func(part *Node) (string, bool, error) {
		switch kind := part.get("type"); {
		case kind == nil || kind.kind != '"':
		case kind.text == "thinking", kind.text == "redacted_thinking", kind.text == "reasoning":
			c.omits(Reasoning)
			return "", false, nil
		case slices.Contains(unreadable, kind.text):
			c.omits(Unreadable)
		}
		text, err := chatPart(part)
		return text, true, err
	})
}

// contentOfRecord reads content in a record. Its rule must not change: see readChat.
func contentOfRecord(n *Node) (string, error) {
	return parts(n, func(part *Node) (string, bool, error) {
		text, err := chatPart(part)
		return text, true, err
	})
}

// parts joins the texts of an array of parts.
func parts(n *Node, read func(*Node) (text string, keep bool, err error)) (string, error) {
	switch {
	case n.absent():
		return "", nil
	case n.kind == '"':
		return n.text, nil
	case n.kind != '[':
		return "", n.Errorf("content of a wrong kind: expected a string, null or an array of parts, found %s; for example \"content\": \"Hello\"", n.KindName())
	}
	var texts []string
	for _, part := range n.members {
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
func chatPart(n *Node) (string, error) {
	if n.kind == '"' {
		return n.text, nil
	}
	if n.kind != '{' {
		return "", n.Errorf("content of a wrong kind: expected a part {type, text}, found %s", n.KindName())
	}
	kind, err := n.str("type")
	if err != nil {
		return "", err
	}
	switch kind {
	case "text", "input_text", "output_text", "":
		if n.get("text").absent() {
			return "", n.Errorf("a text part without a text: expected one, for example {\"type\": \"text\", \"text\": \"Hello\"}")
		}
		return n.str("text")
	case "refusal":
		return n.str("refusal")
	}
	if slices.Contains(unreadable, kind) {
		return "[" + kind + "]", nil
	}
	return "", n.get("type").Errorf("content of a wrong kind: unknown part type %s: expected text, for example {\"type\": \"text\", \"text\": \"Hello\"}", quote(kind))
}
