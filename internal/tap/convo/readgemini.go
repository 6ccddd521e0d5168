package convo

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"jurat/evidence/observed"
)

// Gemini reads {"systemInstruction", "contents", "candidates"} or an array of contents: https://ai.google.dev/api/generate-content. Results name the
// function, and seldom have an id. Calls without an id get a number.
func (r *Reader) Gemini(n *Node) {
	if n.Kind == '[' {
		r.Contents(n)
		return
	}
	contents, candidates := n.Get("contents"), n.Get("candidates")
	if n.Kind != '{' || contents.Absent() && candidates.Absent() {
		r.Fail(n, "expected Gemini's contents: an array, or {\"systemInstruction\": …, \"contents\": […]}")
		return
	}
	r.GeminiSystem(n.First("systemInstruction", "system_instruction"))
	if !n.First("cachedContent", "cached_content").Absent() {
		r.leave(Elsewhere)
	}
	r.Contents(contents)
	given := givenCandidate(candidates)
	r.Each(candidates, Thing{"a candidate {content} (an object)", `{"content": {"role": "model", "parts": [{"text": "Hello"}]}}`}, func(candidate *Node) {
		content := candidate.Get("content")
		switch {
		case candidate != given:
			r.leave(Alternatives)
		case content.Absent(): // it ended before the model said anything
			r.Say(Message{Role: Assistant}, candidate)
		default:
			r.Content(content, Assistant)
		}
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

// GeminiSystem reads the instructions: a text, a content, or a part alone.
func (r *Reader) GeminiSystem(n *Node) {
	switch {
	case n.Absent():
	case n.Kind == '"':
		r.Say(Message{Role: System, Content: Pieces{Words(n.Text)}}, n)
	case n.Kind == '{' && n.Get("parts").Absent() && !n.Get("text").Absent():
		t := r.turn(System)
		r.part(t, n)
		t.End()
	default:
		r.Content(n, System)
	}
}

// Contents reads contents, or a text of the user. A missing role is the user's.
func (r *Reader) Contents(n *Node) {
	if n != nil && n.Kind == '"' {
		r.Say(Message{Role: User, Content: Pieces{Words(n.Text)}}, n)
		return
	}
	r.Each(n, aContent, func(content *Node) {
		role := User
		if !content.Get("role").Absent() {
			given := r.SpokenBy(content)
			if role = cmp.Or(RoleOf(given), given, User); role == Tool { // its parts are results
				role = User
			}
		}
		r.Content(content, role)
	})
}

// Content reads a content whose role is known.
func (r *Reader) Content(n *Node, role string) {
	if n.Kind != '{' {
		r.Fail(n, "expected a content {role, parts}, found %s", n.KindName())
		return
	}
	list := n.Get("parts")
	r.demand(!list.Absent() || role == Assistant && onlyRole(n), n, "a content without parts: expected, for example, {\"role\": \"user\", \"parts\": [{\"text\": \"Hello\"}]}")
	said := false
	t := &Turn{Role: role, Say: func(m Message, at *Node) {
		said = true
		r.Say(m, at)
	}}
	for _, part := range r.elements(list, "an array of parts") {
		if part.Kind != '{' {
			r.Fail(part, "expected a part, for example {\"text\": \"Hello\"}, found %s", part.KindName())
			break
		}
		r.part(t, part)
	}
	t.End()
	if role == Assistant && !said && !r.Answer { // it has no parts, or only reasoning: the model ended before it said anything
		r.Say(Message{Role: role}, n)
	}
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

// partKinds are the members of a part that say something, in either spelling. Libraries write both.
var partKinds = []struct {
	names [2]string
	read  func(r *Reader, t *Turn, at *Node)
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

func (r *Reader) part(t *Turn, n *Node) {
	if n.Get("thought").IsTrue() {
		r.leave(Reasoning)
		return
	}
	said := n.First("thoughtSignature", "thought_signature") != nil
	for _, kind := range partKinds {
		if at := n.First(kind.names[0], kind.names[1]); at != nil {
			said = true
			kind.read(r, t, at)
		}
	}
	if !n.Get("text").Absent() {
		said = true
		if text := r.Str(n, "text"); text != "" || !r.Lenient {
			t.Add(n, Words(text))
		}
	}
	r.demand(said, n, "a part without anything to read: expected a part with text, functionCall, functionResponse, inlineData or fileData, for example {\"text\": \"Hello\"}")
	if r.Lenient {
		r.rest(t, n)
	}
}

// rest shows parts of a kind that is not known here.
func (r *Reader) rest(t *Turn, n *Node) {
	var unknown []int
	for i, name := range n.Names {
		known := slices.Contains(partDetails, name)
		for _, kind := range partKinds {
			known = known || slices.Contains(kind.names[:], name)
		}
		if !known {
			unknown = append(unknown, i)
		}
	}
	slices.SortFunc(unknown, func(a, b int) int { return cmp.Compare(n.Names[a], n.Names[b]) })
	for _, i := range unknown {
		t.Add(n, Unknown(Short(n.Names[i]), n.Members[i].Raw()))
	}
}

const codeTool = "code_execution"

// makes adds a call, which the model alone makes.
func (r *Reader) makes(t *Turn, n *Node, name string, input *Node) {
	role := RoleOf(t.Role)
	r.demand(role == Assistant, n, "a %s in a content of the %s: expected it in one of the model, for example {\"role\": \"model\", \"parts\": [{\"functionCall\": {\"name\": \"get_order\", \"args\": {\"order\": 7}}}]}", n.Step, role)
	t.Call(n, r.Call(n, number(r.Str(n, "id"), &r.Calls), name, input))
}

func (r *Reader) functionCall(t *Turn, n *Node) {
	args := n.Get("args")
	r.demand(args.Absent() || args.Kind == '{', args, "expected a call's args, for example {\"order\": 7}, found %s", args.KindName())
	r.makes(t, n, r.Str(n, "name"), args)
}

// toolCall reads a call of a tool that Google runs itself. Its type is its name.
func (r *Reader) toolCall(t *Turn, n *Node) {
	r.makes(t, n, r.Str(n, "toolType", "tool_type"), n.Get("args"))
}

func (r *Reader) executableCode(t *Turn, n *Node) { r.makes(t, n, codeTool, n.Get("code")) }

func (r *Reader) returns(t *Turn, n *Node, name string, failed bool, said ...Piece) {
	t.Result(n, Message{ToolCallID: r.Str(n, "id"), Name: name, Content: said, IsError: failed})
}

func (r *Reader) functionResponse(t *Turn, n *Node) {
	name, failure := r.Str(n, "name"), n.Get("response").Get("error")
	r.demand(name != "", n, "there is no name: expected name, for example \"name\": \"get_order\"")
	said := response(n)
	if parts := n.Get("parts"); parts != nil && parts.Kind == '[' {
		for _, part := range r.members(parts) {
			if data := part.First("inlineData", "inline_data"); data != nil {
				said = append(said, r.data(data))
			} else {
				said = append(said, Unknown("part", part.Raw()))
			}
		}
	}
	r.returns(t, n, name, failure != nil && !failure.Empty(), said...)
}

func response(n *Node) Pieces {
	if at := n.Get("response"); !at.Absent() {
		return Pieces{Words(Plain(at))}
	}
	return nil
}

func (r *Reader) toolResponse(t *Turn, n *Node) {
	r.returns(t, n, r.Str(n, "toolType", "tool_type"), false, response(n)...)
}

func (r *Reader) codeResult(t *Turn, n *Node) {
	outcome := r.Str(n, "outcome")
	r.returns(t, n, codeTool, outcome != "" && outcome != "OUTCOME_OK", Words(r.Str(n, "output")))
}

func (r *Reader) inlineData(t *Turn, n *Node) { t.Add(n, r.data(n)) }

func (r *Reader) data(n *Node) Piece {
	kind := cmp.Or(n.Word("mimeType"), n.Word("mime_type"))
	return r.unread(Inline(KindOf(kind), "", kind, n.Word("data")), "data", kind)
}

func (r *Reader) fileData(t *Turn, n *Node) {
	kind, address := cmp.Or(n.Word("mimeType"), n.Word("mime_type")), observed.Address(cmp.Or(n.Word("fileUri"), n.Word("file_uri")))
	p := Piece{Type: KindOf(kind), Attachment: &Attachment{MediaType: Short(kind), URL: address}}
	t.Add(n, r.unread(p, "file", address))
}

// Responses reads {"instructions", "input", "output"} or an array of items: https://platform.openai.com/docs/api-reference/responses.
func (r *Reader) Responses(n *Node) {
	if n.Kind == '[' {
		r.Items(n, "")
		return
	}
	if n.Kind != '{' || n.Get("input").Absent() && n.Get("output").Absent() {
		r.Fail(n, "expected items of OpenAI's Responses: an array, or {\"instructions\": …, \"input\": …, \"output\": […]}")
		return
	}
	for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
		if !n.Get(name).Absent() {
			r.leave(Elsewhere)
		}
	}
	for _, part := range []struct{ name, role string }{{"instructions", System}, {"input", User}, {"output", Assistant}} {
		r.Items(n.Get(part.name), part.role)
	}
}

// Items reads a text, or items, of which some may not say who speaks.
func (r *Reader) Items(n *Node, role string) {
	if n != nil && n.Kind == '"' && role != "" {
		r.Say(Message{Role: role, Content: Pieces{Words(n.Text)}}, n)
		return
	}
	r.Each(n, anItem, func(item *Node) { r.item(item, role) })
}

// items are the types of an item of OpenAI's Responses that no chat message has, without the calls and their outputs.
var items = []string{"reasoning", "item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction"}

// IsItem reports whether a type is that of an item of Responses, and not of a message.
func IsItem(kind string) bool {
	return slices.Contains(items, kind) || strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

func (r *Reader) item(n *Node, role string) {
	switch kind := r.Str(n, "type"); {
	case kind == "message", kind == "":
		r.itemMessage(n, role)
	case kind == "reasoning", kind == "compaction":
		r.leave(Reasoning)
	case kind == "item_reference":
		r.leave(Elsewhere)
	case kind == "mcp_list_tools", kind == "additional_tools": // what tools there are, and no act
	case kind == "mcp_approval_response":
		m := Message{Role: User, Content: Pieces{Words(TextOf(n.Raw()))}}
		if r.Answer { // nobody approved what the upstream says
			m = Message{Role: Assistant, Content: Pieces{Unknown(kind, n.Raw())}}
		}
		r.Say(m, n)
	case strings.HasSuffix(kind, "_output"):
		id := r.Str(n, "call_id", "id")
		r.Say(Message{Role: Tool, ToolCallID: cmp.Or(r.called[id], id), Content: r.Output(n.First("output", "result", "tools"))}, n)
	case IsItem(kind), kind == "program":
		r.itemCall(n, kind)
	case r.passes(kind):
	default:
		r.demand(false, n.Get("type"), "unknown item %s: expected message, function_call, function_call_output, reasoning, or another call and its output, for example {\"type\": \"message\", \"role\": \"user\", \"content\": \"Hello\"}", Quote(kind))
		r.Say(Message{Role: cmp.Or(role, User), Content: Pieces{Unknown(kind, n.Raw())}}, n)
	}
}

func (r *Reader) itemMessage(n *Node, role string) {
	m := Message{Role: r.SpokenBy(n)}
	r.demand(RoleOf(m.Role) != Tool, n.Get("role"), "unknown role %s in the form of Responses: expected system, developer, user or assistant; results of tools are items of type function_call_output", Quote(m.Role))
	if r.Lenient {
		m.Role = cmp.Or(m.Role, role)
	}
	if m.Content = r.content(n.Get("content")); RoleOf(m.Role) == Assistant {
		m.Content = m.Content.Joined()
	}
	r.Say(m, n)
}

// names notes by what results may name a call: its id, and that of its item unless a call has this as its own. Of two items with one id, the later counts.
func (r *Reader) names(id, item string) {
	if r.called == nil {
		r.called = map[string]string{}
	}
	if r.called[item] != item {
		r.called[item] = id
	}
	r.called[id] = id
}

// itemCall reads a call. A function has a name. The vendor's own tools are named for their type, such as web_search, and have their result beside the call.
// A result may name a call by the id of its item.
func (r *Reader) itemCall(n *Node, kind string) {
	id, item, name, input := r.Str(n, "call_id", "id"), r.Str(n, "id"), r.Str(n, "name"), ""
	if name == "" && (r.Lenient || !strings.HasPrefix(kind, "function") && !strings.HasPrefix(kind, "custom")) {
		name = strings.TrimSuffix(kind, "_call")
	}
	for _, member := range []string{"arguments", "input", "action", "actions", "queries", "code", "operation"} {
		input = cmp.Or(input, Plain(n.Get(member)))
	}
	call := r.Call(n, id, name, nil)
	if call.Function.Arguments = input; kind == "custom_tool_call" {
		call = ChatToolCall{ID: id, Type: "custom", Custom: ChatCustom{Name: name, Input: input}}
	}
	r.names(id, item)
	r.Say(Message{Role: Assistant, ToolCalls: []ChatToolCall{call}}, n)
	result := n.First("output", "outputs", "results", "result", "error")
	if result.Absent() {
		return
	}
	m := Message{Role: Tool, ToolCallID: id, IsError: !n.Get("error").Absent(), Beside: true}
	if kind == "image_generation_call" && result.Step == "result" {
		m.Content = Pieces{r.unread(Inline("image_url", "", "", n.Word("result")), "image", "")}
	} else {
		m.Content = r.Output(result)
	}
	r.Say(m, result)
}

// TaskMessage reads a message of A2A or an artifact, of v1.0 or of v0.3: https://a2a-protocol.org. Each result of a tool in it becomes a message of its
// own.
func (r *Reader) TaskMessage(n *Node, role, name string) {
	said := false
	t := &Turn{Role: role, Name: name, Apart: true, Say: func(m Message, at *Node) {
		said = true
		r.Say(m, at)
	}}
	list := n.Get("parts")
	r.demand(!list.Absent(), n, "expected an array of parts, found %s", list.KindName())
	for _, part := range r.elements(list, "an array of parts") {
		r.TaskPart(t, part, n)
	}
	if t.End(); !said {
		r.Say(Message{Role: role, Name: name}, n)
	}
}

// TaskPart reads a text, data or file part, of v0.3 (with kind) or of v1.0 (which their members distinguish), of the message or artifact in which it stands.
// Any other is shown whole, and is a mistake.
func (r *Reader) TaskPart(t *Turn, n, in *Node) {
	text, data := n.Get("text"), n.Get("data")
	switch {
	case n.Kind != '{':
		r.Fail(n, "content of a wrong kind: expected a part (an object), found %s", n.KindName())
	case !text.Absent() && text.Kind != '"':
		r.Fail(text, "expected a string, found %s", text.KindName())
	case !text.Absent():
		if text.Text != "" || r.Lenient {
			t.Add(in, Words(text.Text))
		}
		return
	case !data.Absent():
		r.taskData(t, data, in)
		return
	case n.First("file", "url", "raw") != nil:
		t.Add(in, r.taskFile(n))
		return
	default:
		r.Fail(n, "content of a wrong kind: expected a part with text, data or file")
	}
	t.Add(in, Unknown("part", n.Raw()))
}

// taskFile reads a file, in either version's form. Its name stands in its place, or else its address.
func (r *Reader) taskFile(n *Node) Piece {
	at := n
	if inner := n.Get("file"); !inner.Absent() {
		at = inner
	}
	name, address := cmp.Or(at.Word("name"), at.Word("filename"), n.Word("filename")), cmp.Or(at.Word("uri"), at.Word("url"))
	p := Kept("file", Short(name), "")
	if data := cmp.Or(at.Word("bytes"), at.Word("raw")); data != "" {
		p = enclosed(name, cmp.Or(at.Word("mimeType"), at.Word("mediaType")), data)
	} else if address != "" {
		p = Linked("file", Short(name), address)
	}
	return r.unread(p, "file", cmp.Or(p.Name, p.URL))
}

// enclosed is a file whose base64 is in a part, in either alphabet.
func enclosed(name, mediaType, data string) Piece {
	if raw, err := base64.URLEncoding.DecodeString(data); err == nil {
		data = base64.StdEncoding.EncodeToString(raw)
	}
	return Inline("file", Short(name), mediaType, data)
}

// taskData reads data. Frameworks put calls of tools and their results into what an agent says, and into what a client answers; other data is shown as it is.
// What was recorded of the other side shows no call and no result.
func (r *Reader) taskData(t *Turn, n, in *Node) {
	name, id := n.Word("name"), n.Word("id")
	named := name != "" && (!r.Lenient || RoleOf(t.Role) == Assistant)
	switch response := n.Get("response"); {
	case named && n.First("args", "arguments") != nil:
		t.Call(in, r.function(n, id))
	case named && !response.Absent():
		t.Result(in, Message{ToolCallID: id, Name: name, Content: Pieces{Words(Plain(response))}})
	default:
		t.Add(in, Words(TextOf(n.Raw())))
	}
}
