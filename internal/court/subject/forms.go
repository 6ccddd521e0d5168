package subject

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/tap/convo"
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
		r.Fail(n, `expected a conversation, for example [{"role": "user", "content": "Hello"}], but this looks like an agent card; are the two files swapped?`)
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
	if inner := cmp.Or(n.Within("task"), n.Within("result")); inner != nil {
		return messagesIn(inner)
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
	id := last.Word("messageId")
	if last.Absent() || id != "" && slices.ContainsFunc(task.Get("history").Members, func(one *convo.Node) bool { return one.Word("messageId") == id }) {
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

	Text jsontext.Value // all of it, in canonical form; nil: none was submitted
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
		c.Card.Text = jsontext.Value(convo.TextOf(n.Raw()))
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

// signs are the first places that show each form, in words. Only one form can read a conversation with a sign of it.
type signs map[Form]string

// weakly stands among the signs for what Anthropic's form has and another may have. It counts if there is no sign of any form.
const weakly Form = "weakly " + AnthropicForm

func (s signs) see(form Form, at *convo.Node, what string) {
	if s[form] == "" {
		s[form] = fmt.Sprintf("%s at %s", what, cmp.Or(at.Pointer(), "the top"))
	}
}

// seeAny sees the members with these names, and reports whether there is one.
func (s signs) seeAny(form Form, n *convo.Node, names ...string) bool {
	for _, name := range names {
		if at := n.Get(name); !at.Absent() {
			s.see(form, at, name)
			return true
		}
	}
	return false
}

// detectForm returns the form of a conversation, from its structure alone. It returns "" if every sign is missing: then the
// conversation is read as chat messages or as an A2A task, whichever it is. It refuses a conversation with signs of
// several forms.
func detectForm(n *convo.Node) (found Form, err error) {
	s, list := signs{}, n
	if n.Kind == '{' {
		list = s.wrapper(n)
	}
	for _, item := range list.List() {
		s.item(item)
	}
	if len(s) == 1 && s[weakly] != "" {
		return AnthropicForm, nil
	}
	var why []string
	for _, form := range allForms() {
		if at := s[form]; at != "" {
			found, why = cmp.Or(found, form), append(why, fmt.Sprintf("%s (%s)", form, at))
		}
	}
	if len(why) > 1 {
		return "", n.Errorf("ambiguous: this has signs of several forms, %s: expected signs of one; choose one with --format, for example --format %s", strings.Join(why, " and "), found)
	}
	return found, nil
}

func (s signs) wrapper(n *convo.Node) *convo.Node {
	if list := n.First("messages", "history"); list != nil {
		if system := n.Get("system"); list.Step == "messages" && !system.Absent() {
			s.see(AnthropicForm, system, "a system prompt beside the messages")
		}
		return list
	}
	prompt := n.Get("prompt")
	switch {
	case s.seeAny(GeminiForm, n, "contents", "candidates", "systemInstruction", "system_instruction"):
	case !prompt.Absent() && n.Get("output") != nil:
		s.see(PromptfooForm, prompt, "a prompt beside its output")
	case !n.Get("input").Absent() || n.Has("output", '['):
		s.see(ResponsesForm, n, "input or output")
	default:
		if inner := cmp.Or(n.Within("task"), n.Within("result")); inner != nil {
			return s.wrapper(inner)
		}
	}
	return nil
}

// chatParts and weakParts are types of content that only one form has.
var (
	chatParts = []string{"image_url", "input_audio", "audio", "file", "video_url"}
	weakParts = []string{"thinking", "redacted_thinking", "image", "document", "search_result"}
)

func (s signs) item(n *convo.Node) {
	role, kind, content, parts := n.Word("role"), n.Word("type"), n.Get("content"), n.Get("parts")
	if at := n.Get("prompt"); role == "" && !at.Absent() && !n.Get("output").Absent() {
		s.see(PromptfooForm, at, "a prompt beside its output")
	}
	if role == "" && convo.IsItem(kind) {
		s.see(ResponsesForm, n.Get("type"), "an item "+convo.Quote(kind))
	}
	if (role == "tool" || role == "function") && parts == nil {
		s.see(ChatForm, n.Get("role"), "a message of role "+role)
	}
	for _, name := range []string{"tool_calls", "function_call", "tool_call_id"} {
		if at := n.Get(name); at != nil && !at.Empty() {
			s.see(ChatForm, at, name)
		}
	}
	for _, part := range content.List() {
		s.part(part)
	}
	if content != nil || parts == nil || parts.Kind != '[' {
		return
	}
	s.seeAny(A2AForm, n, "messageId", "kind", "taskId", "contextId") // Gemini's contents have parts, too
	for _, part := range parts.Members {
		s.seeAny(GeminiForm, part, geminiParts...)
	}
}

func (s signs) part(n *convo.Node) {
	kind := n.Word("type")
	switch {
	case strings.HasSuffix(kind, "tool_use"), strings.HasSuffix(kind, "tool_result"):
		s.see(AnthropicForm, n, "a block "+convo.Quote(kind))
	case slices.Contains(weakParts, kind):
		s.see(weakly, n, kind)
	case slices.Contains(chatParts, kind):
		s.see(ChatForm, n, "a part "+convo.Quote(kind))
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
