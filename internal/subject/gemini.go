package subject

// A gemini reads contents. Results name the function, and seldom have an id.
type gemini struct{ *Case }

// readGemini reads {"systemInstruction", "contents", "candidates"} or an array of contents.
func (c *Case) readGemini(n *node) error {
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
	candidates := n.Get("candidates")
	given := givenCandidate(candidates)
	return c.each(candidates, thing{"a candidate {content} (an object)", `{"content": {"role": "model", "parts": [{"text": "Hello"}]}}`}, func(candidate *node) error {
		content := candidate.Get("content")
		switch {
		case candidate != given:
			c.omits(Alternatives)
			return nil
		case content.Absent(): // it ended before the model said anything
			c.say(Message{Role: Assistant}, candidate)
			return nil
		}
		return g.said(content, Assistant)
	})
}

// givenCandidate is the answer that the agent gave: the first with a content, or else the first. It is nil if there is none.
func givenCandidate(list *node) *node {
	if list.Absent() || len(list.Members) == 0 {
		return nil
	}
	for _, candidate := range list.Members {
		if !candidate.Get("content").Absent() {
			return candidate
		}
	}
	return list.Members[0]
}

func (g *gemini) system(n *node) error {
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
func (g *gemini) content(n *node) error {
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
func (g *gemini) said(n *node, role Role) error {
	if n.Kind != '{' {
		return n.Errorf("expected a content {role, parts}, found %s", n.KindName())
	}
	return g.parts(n, role)
}

func (g *gemini) parts(n *node, role Role) error {
	list, before := n.Get("parts"), len(g.Messages)
	if list.Absent() && !(role == Assistant && onlyRole(n)) {
		return n.Errorf("a content without parts: expected, for example, {\"role\": \"user\", \"parts\": [{\"text\": \"Hello\"}]}")
	}
	if list.Absent() { // the model ended before it said anything
		g.say(Message{Role: role}, n)
		return nil
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
	if role == Assistant && len(g.Messages) == before { // it has no parts, or only reasoning
		g.say(Message{Role: role}, n)
	}
	return nil
}

// onlyRole reports whether a content has nothing but its role. What has other members may say something there.
func onlyRole(n *node) bool {
	for i, name := range n.Names {
		if name != "role" && !n.Members[i].Absent() {
			return false
		}
	}
	return true
}

func (g *gemini) part(t *turn, n *node) error {
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
	if at := n.First("toolCall", "tool_call"); at != nil {
		return g.toolCall(t, at)
	}
	if at := n.First("toolResponse", "tool_response"); at != nil {
		return g.toolResponse(t, at)
	}
	text, err := g.partText(n)
	if err == nil {
		t.text(n, text)
	}
	return err
}

func (g *gemini) partText(n *node) (string, error) {
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

func (g *gemini) functionCall(t *turn, n *node) error {
	if err := ofTheModel(t, n); err != nil {
		return err
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

func ofTheModel(t *turn, n *node) error {
	if t.role != Assistant {
		return n.Errorf("a %s in a content of the %s: expected it in one of the model, for example {\"role\": \"model\", \"parts\": [{\"functionCall\": {\"name\": \"get_order\", \"args\": {\"order\": 7}}}]}", n.Step, t.role)
	}
	return nil
}

func (g *gemini) functionResponse(t *turn, n *node) error {
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

// toolCall reads a call of a tool that Google runs itself. Its type is its name, as in a record.
func (g *gemini) toolCall(t *turn, n *node) error {
	if err := ofTheModel(t, n); err != nil {
		return err
	}
	name, err := n.FirstString("toolType", "tool_type")
	if err != nil {
		return err
	}
	id, err := n.Str("id")
	if err != nil {
		return err
	}
	call, err := newCall(n, id, name, n.Get("args"))
	if err == nil {
		t.call(n, call)
	}
	return err
}

func (g *gemini) toolResponse(t *turn, n *node) (err error) {
	m := Message{}
	if m.ToolName, err = n.FirstString("toolType", "tool_type"); err != nil {
		return err
	}
	if m.ToolCallID, err = n.Str("id"); err != nil {
		return err
	}
	if m.Text, err = plainText(n.Get("response")); err == nil {
		t.result(n, m)
	}
	return err
}

// codeTool is the vendor's tool that runs code.
const codeTool = "code_execution"

func (g *gemini) code(t *turn, n *node) error {
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

func (g *gemini) codeResult(t *turn, n *node) error {
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
