package convo

import (
	"cmp"
	"slices"

	"jurat/evidence/observed"
)

// ReadGemini reads {"systemInstruction", "contents", "candidates"} or an array of contents: https://ai.google.dev/api/generate-content. Results name the
// function, and seldom have an id. Calls without an id get a number.
func (r *Reader) ReadGemini(n *Node) error {
	if n.Kind == '[' {
		return r.ReadContents(n)
	}
	contents, candidates := n.Get("contents"), n.Get("candidates")
	if n.Kind != '{' || contents.Absent() && candidates.Absent() {
		return n.Errorf("expected Gemini's contents: an array, or {\"systemInstruction\": …, \"contents\": […]}")
	}
	if err := r.ReadGeminiSystem(n.First("systemInstruction", "system_instruction")); err != nil {
		return err
	}
	if !n.First("cachedContent", "cached_content").Absent() {
		r.leave(Elsewhere)
	}
	if err := r.ReadContents(contents); err != nil {
		return err
	}
	given := givenCandidate(candidates)
	return r.Each(candidates, Thing{"a candidate {content} (an object)", `{"content": {"role": "model", "parts": [{"text": "Hello"}]}}`}, func(candidate *Node) error {
		content := candidate.Get("content")
		switch {
		case candidate != given:
			r.leave(Alternatives)
			return nil
		case content.Absent(): // it ended before the model said anything
			r.Say(Message{Role: Assistant}, candidate)
			return nil
		}
		return r.ReadContent(content, Assistant)
	})
}

// givenCandidate is the answer that the agent gave: the first with a content, or else the first. It is nil if there is none.
func givenCandidate(list *Node) *Node {
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

// ReadGeminiSystem reads the instructions: a text, a content, or a part alone.
func (r *Reader) ReadGeminiSystem(n *Node) error {
	switch {
	case n.Absent():
		return nil
	case n.Kind == '"':
		r.Say(Message{Role: System, Content: Pieces{Words(n.Text)}}, n)
		return nil
	case n.Kind == '{' && n.Get("parts").Absent() && !n.Get("text").Absent():
		t := r.turn(System)
		defer t.End()
		return r.part(t, n)
	}
	return r.ReadContent(n, System)
}

// ReadContents reads contents, or a text of the user. A missing role is the user's.
func (r *Reader) ReadContents(n *Node) error {
	if n != nil && n.Kind == '"' {
		r.Say(Message{Role: User, Content: Pieces{Words(n.Text)}}, n)
		return nil
	}
	return r.Each(n, aContent, func(content *Node) error {
		role := User
		if !content.Get("role").Absent() {
			given, err := r.ReadRole(content)
			if err != nil {
				return err
			}
			if role = cmp.Or(RoleOf(given), given, User); role == Tool { // its parts are results
				role = User
			}
		}
		return r.ReadContent(content, role)
	})
}

// ReadContent reads a content whose role is known.
func (r *Reader) ReadContent(n *Node, role string) error {
	if n.Kind != '{' {
		return n.Errorf("expected a content {role, parts}, found %s", n.KindName())
	}
	list := n.Get("parts")
	if list.Absent() && !r.Lenient && !(role == Assistant && onlyRole(n)) {
		return n.Errorf("a content without parts: expected, for example, {\"role\": \"user\", \"parts\": [{\"text\": \"Hello\"}]}")
	}
	said := false
	t := &Turn{Role: role, Say: func(m Message, at *Node) {
		said = true
		r.Say(m, at)
	}}
	if !list.Absent() {
		if err := r.parts(t, list); err != nil {
			return err
		}
	}
	t.End()
	if role == Assistant && !said && !r.Answer { // it has no parts, or only reasoning: the model ended before it said anything
		r.Say(Message{Role: role}, n)
	}
	return nil
}

// onlyRole reports whether a content has nothing but its role. What has other members may say something there.
func onlyRole(n *Node) bool {
	for i, name := range n.Names {
		if name != "role" && !n.Members[i].Absent() {
			return false
		}
	}
	return true
}

func (r *Reader) parts(t *Turn, list *Node) error {
	parts := list.Members
	if r.Lenient && list.Kind == '{' {
		parts = []*Node{list}
	} else if list.Kind != '[' {
		return list.Errorf("expected an array of parts, found %s", list.KindName())
	}
	for _, part := range parts {
		if part.Kind != '{' {
			return part.Errorf("expected a part, for example {\"text\": \"Hello\"}, found %s", part.KindName())
		}
		if err := r.part(t, part); err != nil {
			return err
		}
	}
	return nil
}

// partKinds are the members of a part that say something, in either spelling. Libraries write both.
var partKinds = []struct {
	names [2]string
	read  func(r *Reader, t *Turn, at *Node) error
}{
	{[2]string{"functionCall", "function_call"}, (*Reader).functionCall},
	{[2]string{"functionResponse", "function_response"}, (*Reader).functionResponse},
	{[2]string{"toolCall", "tool_call"}, (*Reader).toolCall},
	{[2]string{"toolResponse", "tool_response"}, (*Reader).toolResponse},
	{[2]string{"executableCode", "executable_code"}, (*Reader).executableCode},
	{[2]string{"codeExecutionResult", "code_execution_result"}, (*Reader).codeResult},
	{[2]string{"inlineData", "inline_data"}, (*Reader).inlineData},
	{[2]string{"fileData", "file_data"}, (*Reader).fileData},
}

// partDetails are members that say how a part is to be read, and are not shown.
var partDetails = []string{"text", "thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata", "mediaResolution", "media_resolution",
	"mediaProcessing", "media_processing", "partMetadata", "part_metadata"}

func (r *Reader) part(t *Turn, n *Node) error {
	if n.Get("thought").IsTrue() {
		r.leave(Reasoning)
		return nil
	}
	read := n.First("thoughtSignature", "thought_signature") != nil
	for _, kind := range partKinds {
		if at := n.First(kind.names[0], kind.names[1]); at != nil {
			read = true
			if err := kind.read(r, t, at); err != nil {
				return err
			}
		}
	}
	if at := n.Get("text"); !at.Absent() {
		text, err := r.str(n, "text")
		if err != nil {
			return err
		}
		if read = true; text != "" || !r.Lenient {
			t.Add(n, Words(text))
		}
	}
	if r.Lenient {
		r.rest(t, n)
	} else if !read {
		return n.Errorf("a part without anything to read: expected a part with text, functionCall, functionResponse, inlineData or fileData, for example {\"text\": \"Hello\"}")
	}
	return nil
}

// rest shows parts of a kind that is not known here.
func (r *Reader) rest(t *Turn, n *Node) {
	for _, i := range sortedPlaces(n.Names) {
		name := n.Names[i]
		known := slices.Contains(partDetails, name)
		for _, kind := range partKinds {
			known = known || slices.Contains(kind.names[:], name)
		}
		if !known {
			t.Add(n, Unknown(Short(name), n.Members[i].Raw()))
		}
	}
}

// sortedPlaces are the places of names in their order.
func sortedPlaces(names []string) []int {
	places := make([]int, len(names))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(names[a], names[b]) })
	return places
}

// codeTool is the vendor's tool that runs code.
const codeTool = "code_execution"

// makes adds a call, which the model alone makes.
func (r *Reader) makes(t *Turn, n *Node, name string, input *Node) error {
	if RoleOf(t.Role) != Assistant && !r.Lenient {
		return n.Errorf("a %s in a content of the %s: expected it in one of the model, for example {\"role\": \"model\", \"parts\": [{\"functionCall\": {\"name\": \"get_order\", \"args\": {\"order\": 7}}}]}", n.Step, RoleOf(t.Role))
	}
	id, err := r.str(n, "id")
	if err != nil {
		return err
	}
	call, err := r.NewCall(n, number(id, &r.Calls), name, input)
	if err == nil {
		t.Call(n, call)
	}
	return err
}

func (r *Reader) functionCall(t *Turn, n *Node) error {
	name, err := r.str(n, "name")
	if err != nil {
		return err
	}
	args := n.Get("args")
	if !r.Lenient && !args.Absent() && args.Kind != '{' {
		return args.Errorf("expected a call's args, for example {\"order\": 7}, found %s", args.KindName())
	}
	return r.makes(t, n, name, args)
}

// toolCall reads a call of a tool that Google runs itself. Its type is its name.
func (r *Reader) toolCall(t *Turn, n *Node) error {
	name, err := r.first(n, "toolType", "tool_type")
	if err != nil {
		return err
	}
	return r.makes(t, n, name, n.Get("args"))
}

func (r *Reader) executableCode(t *Turn, n *Node) error {
	return r.makes(t, n, codeTool, n.Get("code"))
}

func (r *Reader) functionResponse(t *Turn, n *Node) error {
	name, err := r.str(n, "name")
	if err == nil && name == "" && !r.Lenient {
		_, err = n.Required("name", "get_order")
	}
	if err != nil {
		return err
	}
	response := n.Get("response")
	failure := response.Get("error")
	m := Message{Name: name, IsError: failure != nil && !failure.Empty()}
	if !response.Absent() {
		m.Content = Pieces{Words(Plain(response))}
	}
	if parts := n.Get("parts"); parts != nil && parts.Kind == '[' {
		for _, part := range parts.Members {
			if data := part.First("inlineData", "inline_data"); data != nil {
				m.Content = append(m.Content, r.data(data))
			} else {
				m.Content = append(m.Content, Unknown("part", part.Raw()))
			}
		}
	}
	return r.returned(t, n, m)
}

// returned adds what a tool returned.
func (r *Reader) returned(t *Turn, n *Node, m Message) (err error) {
	if m.ToolCallID, err = r.str(n, "id"); err == nil {
		t.Result(n, m)
	}
	return err
}

func (r *Reader) toolResponse(t *Turn, n *Node) (err error) {
	m := Message{}
	if m.Name, err = r.first(n, "toolType", "tool_type"); err != nil {
		return err
	}
	if response := n.Get("response"); !response.Absent() {
		m.Content = Pieces{Words(Plain(response))}
	}
	return r.returned(t, n, m)
}

func (r *Reader) codeResult(t *Turn, n *Node) error {
	text, err := r.str(n, "output")
	if err != nil {
		return err
	}
	outcome, err := r.str(n, "outcome")
	if err != nil {
		return err
	}
	return r.returned(t, n, Message{Name: codeTool, Content: Pieces{Words(text)}, IsError: outcome != "" && outcome != "OUTCOME_OK"})
}

func (r *Reader) inlineData(t *Turn, n *Node) error {
	t.Add(n, r.data(n))
	return nil
}

// data is a picture, a sound or a file in base64.
func (r *Reader) data(n *Node) Piece {
	kind := cmp.Or(n.Word("mimeType"), n.Word("mime_type"))
	return r.unread(Inline(KindOf(kind), "", kind, n.Word("data")), "data", kind)
}

func (r *Reader) fileData(t *Turn, n *Node) error {
	kind, address := cmp.Or(n.Word("mimeType"), n.Word("mime_type")), observed.Address(cmp.Or(n.Word("fileUri"), n.Word("file_uri")))
	p := Piece{Type: KindOf(kind), Attachment: &Attachment{MediaType: Short(kind), URL: address}}
	t.Add(n, r.unread(p, "file", address))
	return nil
}
