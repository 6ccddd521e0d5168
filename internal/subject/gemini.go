package subject

import "jurat/internal/subject/tree"

// A gemini reads contents. Results name the function, and seldom have an id.
type gemini struct{ *Case }

// readGemini reads {"systemInstruction", "contents", "candidates"} or an array of contents.
func (c *Case) readGemini(n *tree.Node) error {
	g := &gemini{c}
	if n.Kind == '[' {
		return c.each(n, aContent, g.content)
	}
	contents := n.Get("contents")
	if n.Kind != '{' || contents.Absent() && n.Get("candidates").Absent() {
		return n.Errorf("expected Gemini's contents: an array, or {\"systemInstruction\": …, \"contents\": […]}")
	}
	if err := g.system(n.First("systemInstruction", "system_instruction")); err != nil {
		return err
	}
	if !n.First("cachedContent", "cached_content").Absent() {
		c.omits(Elsewhere)
	}
	if contents != nil && contents.Kind == '"' {
		c.say(Message{Role: User, Text: contents.Text}, contents)
	} else if err := c.each(contents, aContent, g.content); err != nil {
		return err
	}
	taken := false
	return c.each(n.Get("candidates"), thing{"a candidate {content} (an object)", `{"content": {"role": "model", "parts": [{"text": "Hello"}]}}`}, func(candidate *tree.Node) error {
		content := candidate.Get("content")
		if taken || content.Absent() {
			c.omits(Alternatives)
			return nil
		}
		taken = true
		return g.said(content, Assistant)
	})
}

func (g *gemini) system(n *tree.Node) error {
	switch {
	case n.Absent():
		return nil
	case n.Kind == '"':
		g.say(Message{Role: System, Text: n.Text}, n)
		return nil
	case n.Kind == '{' && n.Get("parts").Absent() && !n.Get("text").Absent():
		t := turn{c: g.Case, role: System}
		defer t.end()
		return g.part(&t, n)
	}
	return g.parts(n, System)
}

// content reads a content. A missing role is the user's.
func (g *gemini) content(n *tree.Node) error {
	role := User
	if !n.Get("role").Absent() {
		var err error
		if role, err = readRole(n); err != nil {
			return err
		}
	}
	return g.parts(n, role)
}

// said reads a content whose role is known.
func (g *gemini) said(n *tree.Node, role Role) error {
	if n.Kind != '{' {
		return n.Errorf("expected a content {role, parts}, found %s", n.KindName())
	}
	return g.parts(n, role)
}

func (g *gemini) parts(n *tree.Node, role Role) error {
	list := n.Get("parts")
	if list.Absent() {
		return n.Errorf("a content without parts: expected, for example, {\"role\": \"user\", \"parts\": [{\"text\": \"Hello\"}]}")
	}
	if list.Kind != '[' {
		return list.Errorf("expected an array of parts, found %s", list.KindName())
	}
	t := turn{c: g.Case, role: role}
	if role == Tool { // it may hold results only
		t.role = User
	}
	for _, part := range list.Members {
		if part.Kind != '{' {
			return part.Errorf("expected a part, for example {\"text\": \"Hello\"}, found %s", part.KindName())
		}
		if err := g.part(&t, part); err != nil {
			return err
		}
	}
	t.end()
	return nil
}

func (g *gemini) part(t *turn, n *tree.Node) error {
	if n.Get("thought").IsTrue() {
		g.omits(Reasoning)
		return nil
	}
	if at := n.First("functionCall", "function_call"); at != nil {
		return g.functionCall(t, at)
	}
	if at := n.First("functionResponse", "function_response"); at != nil {
		return g.functionResponse(t, at)
	}
	if at := n.First("executableCode", "executable_code"); at != nil {
		return g.code(t, at)
	}
	if at := n.First("codeExecutionResult", "code_execution_result"); at != nil {
		return g.codeResult(t, at)
	}
	text, err := g.partText(n)
	if err == nil {
		t.text(n, text)
	}
	return err
}

func (g *gemini) partText(n *tree.Node) (string, error) {
	if !n.Get("text").Absent() {
		return n.Str("text")
	}
	if at := n.First("inlineData", "inline_data"); at != nil {
		kind, err := at.FirstString("mimeType", "mime_type")
		return g.unread("data", kind), err
	}
	if at := n.First("fileData", "file_data"); at != nil {
		uri, err := at.FirstString("fileUri", "file_uri")
		return g.unread("file", uri), err
	}
	if n.First("thoughtSignature", "thought_signature") != nil {
		return "", nil
	}
	return "", n.Errorf("a part without anything to read: expected a part with text, functionCall, functionResponse, inlineData or fileData, for example {\"text\": \"Hello\"}")
}

func (g *gemini) functionCall(t *turn, n *tree.Node) error {
	if t.role != Assistant {
		return n.Errorf("a functionCall in a content of the %s: expected it in one of the model, for example {\"role\": \"model\", \"parts\": [{\"functionCall\": {\"name\": \"get_order\", \"args\": {\"order\": 7}}}]}", t.role)
	}
	name, err := n.Str("name")
	if err != nil {
		return err
	}
	id, err := n.Str("id")
	if err != nil {
		return err
	}
	args := n.Get("args")
	if !args.Absent() && args.Kind != '{' {
		return args.Errorf("expected a call's args, for example {\"order\": 7}, found %s", args.KindName())
	}
	call, err := newCall(n, id, name, args)
	if err == nil {
		t.call(n, call)
	}
	return err
}

func (g *gemini) functionResponse(t *turn, n *tree.Node) error {
	name, err := n.Required("name", "get_order")
	if err != nil {
		return err
	}
	m := Message{ToolName: name}
	if m.ToolCallID, err = n.Str("id"); err != nil {
		return err
	}
	response := n.Get("response")
	m.Failed = response.Get("error") != nil && !response.Get("error").Empty()
	if m.Text, err = plainText(response); err == nil {
		t.result(n, m)
	}
	return err
}

// codeTool is the vendor's tool that runs code.
const codeTool = "code_execution"

func (g *gemini) code(t *turn, n *tree.Node) error {
	id, err := n.Str("id")
	if err != nil {
		return err
	}
	call, err := newCall(n, id, codeTool, n.Get("code"))
	if err == nil {
		t.call(n, call)
	}
	return err
}

func (g *gemini) codeResult(t *turn, n *tree.Node) error {
	text, err := n.Str("output")
	if err != nil {
		return err
	}
	outcome, err := n.Str("outcome")
	if err != nil {
		return err
	}
	id, err := n.Str("id")
	if err != nil {
		return err
	}
	t.result(n, Message{ToolCallID: id, ToolName: codeTool, Text: text, Failed: outcome != "" && outcome != "OUTCOME_OK"})
	return nil
}
