package subject

import (
	"fmt"
	"slices"
	"strings"

	"jurat/internal/convo"
)

func looksLikeConversation(n *convo.Node) bool {
	if n.Kind == '[' {
		return len(n.Members) > 0 && n.Members[0].Get("role") != nil
	}
	return n.Get("name") == nil && (n.Get("messages") != nil || n.Get("history") != nil || n.Get("task") != nil)
}

func looksLikeCard(n *convo.Node) bool {
	return n.Get("skills") != nil || n.Get("supportedInterfaces") != nil || n.Get("capabilities") != nil ||
		n.Get("preferredTransport") != nil
}

func (c *Case) readConversation(r *convo.Reader, n *convo.Node) {
	list := messagesIn(n)
	switch {
	case looksLikeCard(n):
		r.Fail(n, "expected a conversation, for example [{\"role\": \"user\", \"content\": \"Hello\"}], but this looks like an agent card; are the two files swapped?")
	case n.Kind != '{' && n.Kind != '[':
		r.Fail(n, "expected an array of chat messages or an A2A task, found %s; for example [{\"role\": \"user\", \"content\": \"Hello\"}]", n.KindName())
	case list == nil:
		r.Fail(n, "expected an array of chat messages, or an A2A task with a history, found an object without messages; for example [{\"role\": \"user\", \"content\": \"Hello\"}]")
	case list.Kind != '[':
		r.Fail(list, "expected an array of messages, found %s", list.KindName())
	case len(list.Members) == 0:
		r.Fail(list, "an empty conversation: expected at least one message, for example {\"role\": \"user\", \"content\": \"Hello\"}")
	default:
		r.Each(list, convo.AMessage, func(n *convo.Node) { readMessage(r, n) })
		c.Form = ChatForm
		if task := list.Parent; task != nil && list.Step == "history" {
			c.Form = A2AForm
			c.readTaskEnd(r, task)
		}
	}
}

func messagesIn(n *convo.Node) *convo.Node {
	if n.Kind == '[' {
		return n
	}
	if list := n.First("messages", "history"); list != nil {
		return list
	}
	for _, name := range []string{"task", "result"} {
		if inner := n.Get(name); inner != nil && inner.Kind == '{' {
			return messagesIn(inner)
		}
	}
	return nil
}

func readMessage(r *convo.Reader, n *convo.Node) {
	if n.Get("parts") == nil || n.Get("content") != nil {
		r.ChatMessage(n)
		return
	}
	r.TaskMessage(n, convo.RoleOf(r.SpokenBy(n)), "")
}

// readTaskEnd appends the content after a task's history: artifacts, then the message of its status, unless the history has it.
func (c *Case) readTaskEnd(r *convo.Reader, task *convo.Node) {
	for _, artifact := range r.Objects(task.Get("artifacts"), "an artifact") {
		if artifact.Get("parts").Absent() {
			r.Fail(artifact, "an artifact without parts")
			return
		}
		r.TaskMessage(artifact, convo.Assistant, "artifact")
	}
	status := task.Get("status")
	c.TaskState = r.Str(status, "state")
	last := status.Get("message")
	if last.Absent() || last.Word("messageId") != "" && slices.ContainsFunc(task.Get("history").Members, func(one *convo.Node) bool { return one.Word("messageId") == last.Word("messageId") }) {
		return
	}
	if last.Kind != '{' {
		r.Fail(last, "expected a message (an object), found %s", last.KindName())
		return
	}
	readMessage(r, last)
}

type lines struct {
	from, to    int
	offset, end int64 // where the message begins, and ends
}

func (c *Case) stands(n *convo.Node) {
	from, to := n.Lines()
	c.lines = append(c.lines, lines{from, to, n.Offset, n.End})
}

// A Card is what an agent says of itself, as far as this program uses it. The evidence has all of it.
type Card struct {
	Name, Description, Version, Organization string
	Skills                                   []Skill
}

// A Skill is something that the agent declares it can do.
type Skill struct{ Name, Description string }

func (c *Case) readCard(n *convo.Node) error {
	r := new(convo.Reader)
	switch {
	case looksLikeConversation(n):
		r.Fail(n, "expected an agent card, but this looks like a conversation; are the two files swapped?")
	case n.Kind != '{':
		r.Fail(n, "expected an agent card (an object), found %s", n.KindName())
	default:
		c.Card = cardOf(r, n)
	}
	return r.Err()
}

// cardOf reads a card of v1.0 (supportedInterfaces) or of v0.3 (url and preferredTransport). It reads more than it keeps, as a member of a wrong
// kind is a mistake.
func cardOf(r *convo.Reader, n *convo.Node) Card {
	texts := func(n *convo.Node, names ...string) {
		for _, name := range names {
			r.Str(n, name)
		}
	}
	texts(n, "name", "description", "version", "protocolVersion")
	card := Card{Name: n.Word("name"), Description: n.Word("description"), Version: n.Word("version"), Organization: r.Str(n.Get("provider"), "organization")}
	if card.Name == "" {
		r.Fail(n, "an agent card without a name")
	}
	for _, item := range r.Objects(n.Get("supportedInterfaces"), "an interface") {
		texts(item, "url", "protocolBinding", "protocolVersion")
	}
	texts(n, "url", "preferredTransport")
	for _, item := range r.Objects(n.Get("skills"), "a skill") {
		texts(item, "id", "name", "description")
		r.Texts(item.Get("tags"))
		r.Texts(item.Get("examples"))
		card.Skills = append(card.Skills, Skill{item.Word("name"), item.Word("description")})
	}
	return card
}

// A Form is a form in which people bring conversations.
type Form string

// The forms. docs/case.md describes each of them.
const (
	ChatForm      Form = "chat"      // OpenAI's chat completions, and the many programs that follow them
	A2AForm       Form = "a2a"       // an A2A task with its history
	AnthropicForm Form = "anthropic" // Anthropic's Messages
	ResponsesForm Form = "responses" // OpenAI's Responses
	GeminiForm    Form = "gemini"    // Gemini's contents
	InspectForm   Form = "inspect"   // messages in the form of Inspect's logs
	PromptfooForm Form = "promptfoo" // a prompt and its output, as promptfoo's results have them
)

func allForms() []Form {
	return []Form{ChatForm, A2AForm, AnthropicForm, ResponsesForm, GeminiForm, InspectForm, PromptfooForm}
}

// ParseForm reads the name of a form. "" stands for the form that the conversation shows.
func ParseForm(name string) (Form, error) {
	if form := Form(name); name == "" || slices.Contains(allForms(), form) {
		return form, nil
	}
	return "", fmt.Errorf("unknown form %s: expected one of %s", convo.Quote(name), joined(allForms()))
}

func joined(forms []Form) string {
	var names []string
	for _, f := range forms {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// signs are the places that show a form. Only one form can read a conversation with a strong sign. A weak sign counts
// if there is no strong one.
type signs struct {
	strong map[Form]string
	weak   map[Form]string
}

func (s *signs) see(form Form, at *convo.Node, what string) {
	if _, there := s.strong[form]; !there {
		s.strong[form] = fmt.Sprintf("%s at %s", what, place(at))
	}
}

func place(at *convo.Node) string {
	if p := at.Pointer(); p != "" {
		return p
	}
	return "the top"
}

// detectForm returns the form of a conversation, from its structure alone. It returns "" if every sign is missing: then the
// conversation is read as chat messages or as an A2A task, whichever it is. It refuses a conversation with signs of
// several forms.
func detectForm(n *convo.Node) (Form, error) {
	s := signs{map[Form]string{}, map[Form]string{}}
	s.whole(n)
	if len(s.strong) == 0 {
		s.strong = s.weak
	}
	var found []Form
	var why []string
	for _, form := range allForms() {
		if at, there := s.strong[form]; there {
			found, why = append(found, form), append(why, fmt.Sprintf("%s (%s)", form, at))
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", n.Errorf("ambiguous: this has signs of several forms, %s: expected signs of one; choose one with --format, for example --format %s", strings.Join(why, " and "), found[0])
}

func (s *signs) whole(n *convo.Node) {
	list := n
	if n.Kind == '{' {
		list = s.wrapper(n)
	}
	if list == nil || list.Kind != '[' {
		return
	}
	for _, item := range list.Members {
		s.item(item)
	}
}

func (s *signs) wrapper(n *convo.Node) *convo.Node {
	for _, name := range []string{"messages", "history"} {
		if list := n.Get(name); !list.Absent() {
			if system := n.Get("system"); name == "messages" && !system.Absent() {
				s.see(AnthropicForm, system, "a system prompt beside the messages")
			}
			return list
		}
	}
	for _, name := range []string{"contents", "candidates", "systemInstruction", "system_instruction"} {
		if at := n.Get(name); !at.Absent() {
			s.see(GeminiForm, at, name)
			return nil
		}
	}
	if at := n.Get("prompt"); !at.Absent() && n.Get("output") != nil {
		s.see(PromptfooForm, at, "a prompt beside its output")
		return nil
	}
	input, output := n.Get("input"), n.Get("output")
	if !input.Absent() || !output.Absent() && output.Kind == '[' {
		s.see(ResponsesForm, n, "input or output")
		return nil
	}
	for _, name := range []string{"task", "result"} {
		if inner := n.Get(name); !inner.Absent() && inner.Kind == '{' {
			return s.wrapper(inner)
		}
	}
	return nil
}

// chatParts and anthropicParts are types of content that only one form has.
var (
	chatParts = []string{"image_url", "input_audio", "audio", "file", "video_url"}
	weakParts = []string{"thinking", "redacted_thinking", "image", "document", "search_result"}
)

func (s *signs) item(n *convo.Node) {
	if n.Kind != '{' {
		return
	}
	role := n.Word("role")
	if at := n.Get("prompt"); role == "" && !at.Absent() && !n.Get("output").Absent() {
		s.see(PromptfooForm, at, "a prompt beside its output")
	}
	if kind := n.Word("type"); role == "" && convo.IsItem(kind) {
		s.see(ResponsesForm, n.Get("type"), "an item "+convo.Quote(kind))
	}
	if role == "tool" && n.Get("parts") == nil || role == "function" && n.Get("parts") == nil {
		s.see(ChatForm, n.Get("role"), "a message of role "+role)
	}
	for _, name := range []string{"tool_calls", "function_call", "tool_call_id"} {
		if at := n.Get(name); !at.Absent() && !at.Empty() {
			s.see(ChatForm, at, name)
		}
	}
	if content := n.Get("content"); content != nil && content.Kind == '[' {
		for _, part := range content.Members {
			s.part(part)
		}
	}
	if parts := n.Get("parts"); parts != nil && parts.Kind == '[' && n.Get("content") == nil {
		s.parts(n, parts)
	}
}

func (s *signs) part(n *convo.Node) {
	kind := n.Word("type")
	switch {
	case strings.HasSuffix(kind, "tool_use"), strings.HasSuffix(kind, "tool_result"):
		s.see(AnthropicForm, n, "a block "+convo.Quote(kind))
	case slices.Contains(weakParts, kind):
		if _, there := s.weak[AnthropicForm]; !there {
			s.weak[AnthropicForm] = place(n)
		}
	case slices.Contains(chatParts, kind):
		s.see(ChatForm, n, "a part "+convo.Quote(kind))
	}
}

// parts distinguishes A2A's messages from Gemini's contents, which both have parts.
func (s *signs) parts(n, list *convo.Node) {
	for _, name := range []string{"messageId", "kind", "taskId", "contextId"} {
		if at := n.Get(name); !at.Absent() {
			s.see(A2AForm, at, name)
		}
	}
	for _, part := range list.Members {
		for _, name := range geminiParts {
			if at := part.Get(name); !at.Absent() {
				s.see(GeminiForm, at, name)
			}
		}
	}
}

// geminiParts are the members of a part that only Gemini's contents have: https://ai.google.dev/api/caching#Part.
// Libraries write them in either spelling.
var geminiParts = []string{"functionCall", "function_call", "functionResponse", "function_response", "inlineData", "inline_data", "fileData", "file_data",
	"executableCode", "executable_code", "codeExecutionResult", "code_execution_result", "toolCall", "tool_call", "toolResponse", "tool_response", "thought"}

// readers are the readers of the forms that the evidence names in its member format. Chat and A2A are not named, so
// that the evidence of earlier trials and that of new ones is the same.
var readers = map[Form]func(*Case, *convo.Reader, *convo.Node){
	AnthropicForm: func(_ *Case, r *convo.Reader, n *convo.Node) { r.Anthropic(n) },
	ResponsesForm: func(_ *Case, r *convo.Reader, n *convo.Node) { r.Responses(n) },
	GeminiForm:    func(_ *Case, r *convo.Reader, n *convo.Node) { r.Gemini(n) },
	InspectForm:   (*Case).readInspect, PromptfooForm: (*Case).readPromptfoo,
}
