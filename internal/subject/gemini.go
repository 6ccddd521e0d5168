package subject

import (
	"fmt"
)

// geminiParts are the members of a part that only Gemini's contents have: https://ai.google.dev/api/caching#Part.
// Libraries write them in either spelling.
var geminiParts = []string{"functionCall", "function_call", "functionResponse", "function_response", "inlineData", "inline_data", "fileData", "file_data",
	"executableCode", "executable_code", "codeExecutionResult", "code_execution_result", "thought"}

// A gemini reads contents. Calls without an id are numbered here, because results name only the function, and answer
// calls to it in their order.
type gemini struct {
	*Case
	open  map[string][]string // ids of calls without a result, by the function's name
	calls int
}

// readGemini reads {"systemInstruction", "contents", "candidates"} or an array of contents.
func (c *Case) readGemini(n *Node) error {
	g := &gemini{Case: c, open: map[string][]string{}}
	if n.kind == '[' {
		return c.each(n, aContent, g.content)
	}
	contents := n.get("contents")
	if n.kind != '{' || contents.absent() && n.get("candidates").absent() {
		return n.Errorf("expected Gemini's contents: an array, or {\"systemInstruction\": …, \"contents\": […]}")
	}
	if err := g.system(n.first("systemInstruction", "system_instruction")); err != nil {
		return err
	}
	if !n.first("cachedContent", "cached_content").absent() {
		c.omits(Elsewhere)
	}
	if contents != nil && contents.kind == '"' {
		c.say(Message{Role: User, Text: contents.text}, contents)
	} else if err := c.each(contents, aContent, g.content); err != nil {
		return err
	}
	taken := false
	return c.each(n.get("candidates"), thing{"a candidate {content} (an object)", `{"content": {"role": "model", "parts": [{"text": "Hello"}]}}`}, func(candidate *Node) error {
		content := candidate.get("content")
		if taken || content.absent() {
			c.omits(Alternatives)
			return nil
		}
		taken = true
		return g.said(content, Assistant)
	})
}

func (g *gemini) system(n *Node) error {
	switch {
	case n.absent():
		return nil
	case n.kind == '"':
		g.say(Message{Role: System, Text: n.text}, n)
		return nil
	case n.kind == '{' && n.get("parts").absent() && !n.get("text").absent():
		t := turn{c: g.Case, role: System}
		defer t.end()
		return g.part(&t, n)
	}
	return g.parts(n, System)
}

// content reads a content. A missing role is the user's.
func (g *gemini) content(n *Node) error {
	role := User
	if !n.get("role").absent() {
		var err error
		if role, err = readRole(n); err != nil {
			return err
		}
	}
	return g.parts(n, role)
}

// said reads a content whose role is known.
func (g *gemini) said(n *Node, role Role) error {
	if n.kind != '{' {
		return n.Errorf("expected a content {role, parts}, found %s", n.KindName())
	}
	return g.parts(n, role)
}

func (g *gemini) parts(n *Node, role Role) error {
	list := n.get("parts")
	if list.absent() {
		return n.Errorf("a content without parts: expected, for example, {\"role\": \"user\", \"parts\": [{\"text\": \"Hello\"}]}")
	}
	if list.kind != '[' {
		return list.Errorf("expected an array of parts, found %s", list.KindName())
	}
	t := turn{c: g.Case, role: role}
	if role == Tool { // it may hold results only
		t.role = User
	}
	for _, part := range list.members {
		if part.kind != '{' {
			return part.Errorf("expected a part, for example {\"text\": \"Hello\"}, found %s", part.KindName())
		}
		if err := g.part(&t, part); err != nil {
			return err
		}
	}
	t.end()
	return nil
}

func (g *gemini) part(t *turn, n *Node) error {
	if n.get("thought").isTrue() {
		g.omits(Reasoning)
		return nil
	}
	if at := n.first("functionCall", "function_call"); at != nil {
		return g.functionCall(t, at)
	}
	if at := n.first("functionResponse", "function_response"); at != nil {
		return g.functionResponse(t, at)
	}
	if at := n.first("executableCode", "executable_code"); at != nil {
		return g.code(t, at)
	}
	if at := n.first("codeExecutionResult", "code_execution_result"); at != nil {
		return g.codeResult(t, at)
	}
	text, err := g.partText(n)
	if err == nil {
		t.text(n, text)
	}
	return err
}

func (g *gemini) partText(n *Node) (string, error) {
	if !n.get("text").absent() {
		return n.str("text")
	}
	if at := n.first("inlineData", "inline_data"); at != nil {
		kind, err := at.firstString("mimeType", "mime_type")
		return g.unread("data", kind), err
	}
	if at := n.first("fileData", "file_data"); at != nil {
		uri, err := at.firstString("fileUri", "file_uri")
		return g.unread("file", uri), err
	}
	if n.first("thoughtSignature", "thought_signature") != nil {
		return "", nil
	}
	return "", n.Errorf("a part without anything to read: expected a part with text, functionCall, functionResponse, inlineData or fileData, for example {\"text\": \"Hello\"}")
}

func (g *gemini) functionCall(t *turn, n *Node) error {
	if t.role != Assistant {
		return n.Errorf("a functionCall in a content of the %s: expected it in one of the model, for example {\"role\": \"model\", \"parts\": [{\"functionCall\": {\"name\": \"get_order\", \"args\": {\"order\": 7}}}]}", t.role)
	}
	name, err := n.str("name")
	if err != nil {
		return err
	}
	id, err := n.str("id")
	if err != nil {
		return err
	}
	if id == "" {
		id = g.number(name)
	}
	args := n.get("args")
	if !args.absent() && args.kind != '{' {
		return args.Errorf("expected a call's args, for example {\"order\": 7}, found %s", args.KindName())
	}
	call, err := newCall(n, id, name, args)
	if err == nil {
		t.call(n, call)
	}
	return err
}

// number gives a call without an id one that no file can give, and remembers that it has no result yet.
func (g *gemini) number(name string) string {
	g.calls++
	id := fmt.Sprintf("\x00%d", g.calls)
	g.open[name] = append(g.open[name], id)
	return id
}

// oldest returns the oldest call to a function that has no result.
func (g *gemini) oldest(name string) (string, bool) {
	ids := g.open[name]
	if len(ids) == 0 {
		return "", false
	}
	g.open[name] = ids[1:]
	return ids[0], true
}

func (g *gemini) functionResponse(t *turn, n *Node) error {
	name, err := n.id("name", "get_order")
	if err != nil {
		return err
	}
	m := Message{ToolName: name}
	if m.ToolCallID, err = n.str("id"); err != nil {
		return err
	}
	if m.ToolCallID == "" {
		m.ToolCallID, _ = g.oldest(name) // without one, the link by name says what is wrong
	}
	response := n.get("response")
	m.Failed = response.get("error") != nil && !response.get("error").empty()
	if m.Text, err = plainText(response); err == nil {
		t.result(n, m)
	}
	return err
}

// codeTool is the vendor's tool that runs code.
const codeTool = "code_execution"

func (g *gemini) code(t *turn, n *Node) error {
	call, err := newCall(n, g.number(codeTool), codeTool, n.get("code"))
	if err == nil {
		t.call(n, call)
	}
	return err
}

func (g *gemini) codeResult(t *turn, n *Node) error {
	text, err := n.str("output")
	if err != nil {
		return err
	}
	outcome, err := n.str("outcome")
	if err != nil {
		return err
	}
	id, ok := g.oldest(codeTool)
	if !ok {
		return n.Errorf("a codeExecutionResult, but no earlier executableCode")
	}
	t.result(n, Message{ToolCallID: id, Text: text, Failed: outcome != "" && outcome != "OUTCOME_OK"})
	return nil
}
