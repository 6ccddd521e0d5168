package traffic

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/tap/convo"
	"jurat/internal/tap/traffic/otlp"
)

var roles = map[string]string{"model": "assistant", "ai": "assistant", "human": "user", "function": "tool"}

func speakerOf(word, otherwise string) string {
	word = strings.ToLower(cmp.Or(word, otherwise))
	return cmp.Or(roles[word], word)
}

// asked reads the prompt as OpenTelemetry has it:
// https://opentelemetry.io/docs/specs/semconv/gen-ai/, gen_ai.system_instructions and gen_ai.input.messages.
func (t *telling) asked() bool {
	system, instructed := t.instructions()
	v, there := t.document("prompt", "gen_ai.input.messages")
	if t.cut["prompt"] {
		return true
	}
	if !there {
		if instructed && t.saidAt("llm.input_messages.") == 0 && len(t.events) == 0 {
			t.prompt = system
			t.cut["prompt"] = true
			t.problem("gen_ai.input.messages: not told: of the prompt the instructions alone are known")
			return true
		}
		return false
	}
	t.prompt = append([]convo.Message{}, system...)
	for _, o := range objects(tree(v)) {
		t.prompt = append(t.prompt, t.turn(o, "user")...)
	}
	return true
}

func (t *telling) saidAt(prefixes ...string) (n int) {
	for name := range t.said {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			n++
		}
	}
	return n
}

// instructions reads gen_ai.system_instructions, which are parts. Some senders write a text.
func (t *telling) instructions() (said []convo.Message, there bool) {
	const name = "gen_ai.system_instructions"
	if v := t.said[name]; v != nil && v.String != nil && !strings.HasPrefix(*v.String, "[") && *v.String != hidden {
		return []convo.Message{{Role: "system", Content: convo.Pieces{convo.Words(t.text(name))}}}, true
	}
	parts, there := t.document("prompt", name)
	if there {
		said = t.turn(tree(written(map[string]any{"parts": parts})), "system")
	}
	return said, there
}

// answered reads what the model said: gen_ai.output.messages has a message for each of several answers. Of an agent they are one answer.
func (t *telling) answered() bool {
	v, there := t.document("response", "gen_ai.output.messages")
	if !there {
		return false
	}
	for i, o := range objects(tree(v)) {
		t.answer(i, o.Word("finish_reason"), t.turn(o, "assistant"))
	}
	return true
}

func (t *telling) answer(number int, finish string, said []convo.Message) {
	if t.kind == otlp.Agent && len(t.answers) > 0 {
		a := &t.answers[0]
		a.said, a.finish = append(a.said, said...), cmp.Or(finish, a.finish)
		return
	}
	t.answers = append(t.answers, answer{number, finish, said})
}

// turn reads a message with parts, or with content as Chat Completions has it.
func (t *telling) turn(o *convo.Node, role string) (said []convo.Message) {
	role = speakerOf(o.Word("role"), role)
	parts := o.Get("parts")
	if parts.Absent() {
		return []convo.Message{chatLike(o, role)}
	}
	w := &convo.Turn{Role: role, Say: func(m convo.Message, _ *convo.Node) { said = append(said, m) }}
	for _, p := range objects(parts) {
		part(w, p)
	}
	w.End()
	for i := range said {
		if said[i].Role != "tool" {
			said[i].Name = o.Word("name")
		}
	}
	return said
}

// part reads one part of a message: of what the model thought, nothing.
func part(w *convo.Turn, p *convo.Node) {
	switch kind := p.Word("type"); kind {
	case "text", "input_text", "output_text":
		w.Add(nil, convo.Words(cmp.Or(p.Word("content"), p.Word("text"))))
	case "reasoning", "thinking":
	case "tool_call":
		w.Call(nil, convo.Function(p.Word("id"), p.Word("name"), convo.Plain(p.Get("arguments"))))
	case "tool_call_response":
		w.Result(nil, convo.Message{ToolCallID: p.Word("id"), Content: outputOf(p.First("response", "result"))})
	case "blob":
		w.Add(nil, convo.Inline(convo.KindOf(p.Word("modality")), "", p.Word("mime_type"), p.Word("content")))
	case "uri":
		w.Add(nil, convo.Linked(convo.KindOf(p.Word("modality")), "", p.Word("uri")))
	case "file":
		w.Add(nil, convo.Kept(convo.KindOf(p.Word("modality")), "", p.Word("file_id")))
	default:
		w.Add(nil, convo.Unknown(kind, written(p.ByName())))
	}
}

func outputOf(n *convo.Node) convo.Pieces {
	c := &convo.Reader{Lenient: true}
	if said := c.Output(n); c.Err() == nil {
		return said
	}
	return convo.Pieces{convo.Words(convo.TextOf(n.Raw()))}
}

func tree(v jsontext.Value) *convo.Node {
	n, err := convo.ReadLenient(v)
	if err != nil {
		return nil
	}
	return n
}

// chatLike reads a message that has content, and calls as Chat Completions has them.
func chatLike(o *convo.Node, role string) convo.Message {
	m := convo.Message{Role: role, Name: o.Word("name"), ToolCallID: o.Word("tool_call_id"), Content: outputOf(o.Get("content"))}
	if m.Role == "tool" && m.ToolCallID == "" {
		m.ToolCallID = o.Word("id")
	}
	for _, c := range objects(o.Get("tool_calls")) {
		f := cmp.Or(c.Within("function"), c)
		m.ToolCalls = append(m.ToolCalls, convo.Function(c.Word("id"), f.Word("name"), convo.Plain(f.Get("arguments"))))
	}
	return m
}

// askedInEvents reads the events that OpenTelemetry had before version 1.37, each with one message.
func (t *telling) askedInEvents() bool {
	for _, e := range t.events {
		if role := otlp.RoleOf(e.name); role != "" {
			t.prompt = append(t.prompt, t.turn(e.object(), role)...)
		}
	}
	return t.prompt != nil
}

func (t *telling) answeredInEvents() bool {
	for _, e := range t.events {
		if e.name != otlp.Choice {
			continue
		}
		o := e.object()
		number, _ := strconv.Atoi(convo.TextOf(o.Get("index").Raw()))
		t.answer(number, o.Word("finish_reason"), t.turn(cmp.Or(o.Within("message"), o), "assistant"))
	}
	return len(t.answers) > 0
}

// object is the message of an event: its body, or JSON in an attribute, or its attributes.
func (e event) object() *convo.Node {
	if content := cmp.Or(e.body, e.said.Named("gen_ai.event.content")); content != nil {
		v := valueOf(content)
		if s := content.String; s != nil && isWhole(*s) && (e.body != nil || convo.ObjectOf(jsontext.Value(*s)) != nil) {
			v = jsontext.Value(*s)
		}
		if o := convo.ObjectOf(v); o != nil && (e.body != nil || content.String != nil) {
			return o
		}
		return tree(written(map[string]any{"content": v}))
	}
	o := map[string]any{}
	for i := range e.said {
		name, v := e.said[i].Key, valueOf(&e.said[i].Value)
		if s := e.said[i].Value.String; s != nil && (name == "message" || name == "tool_calls") && isWhole(*s) {
			v = jsontext.Value(*s)
		}
		o[name] = v
	}
	return tree(written(o))
}

// A branch is attributes whose names have points, as a tree: llm.input_messages.0.message.role.
type branch struct {
	t     *telling
	name  string // of the attribute with the value
	value *otlp.Value
	under map[string]*branch
	from  int // the first number of a list
}

const deepest = 16

func (t *telling) branch(prefix string) *branch {
	root := &branch{t: t}
	for _, rest := range t.under(prefix) {
		b := root
		for _, part := range strings.SplitN(rest, ".", deepest) {
			if b.under == nil {
				b.under = map[string]*branch{}
			}
			next := b.under[part]
			if next == nil {
				next = &branch{t: t}
				b.under[part] = next
			}
			b = next
		}
		b.name, b.value = prefix+rest, t.said[prefix+rest]
	}
	return root
}

func (b *branch) at(name string) *branch {
	for part := range strings.SplitSeq(name, ".") {
		if b == nil {
			return nil
		}
		b = b.under[part]
	}
	return b
}

func (b *branch) text(name string) string {
	at := b.at(name)
	if at == nil || at.value == nil {
		return ""
	}
	at.t.mark(at.name, at.value)
	return textOf(at.value)
}

func (b *branch) items() (list []*branch) {
	numbers := map[int]*branch{}
	for name, next := range b.under {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && strconv.Itoa(n) == name {
			numbers[n] = next
		}
	}
	next := b.from
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		if n > next {
			b.t.problem("numbers %d to %d of a list: their attributes were dropped", next, n-1)
		}
		list, next = append(list, numbers[n]), n+1
	}
	return list
}

// askedOpenInference reads the attributes of https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md. Of Anthropic's Messages, the
// system prompt stands among the parameters alone.
func (t *telling) askedOpenInference() bool {
	for _, item := range t.branch("llm.input_messages.").items() {
		t.prompt = append(t.prompt, t.openInference(item.at("message"), "user")...)
	}
	if s := t.asking.Get("system"); t.prompt != nil && !s.Absent() && !slices.ContainsFunc(t.prompt, func(m convo.Message) bool { return m.Role == "system" }) {
		t.prompt = slices.Insert(t.prompt, 0, convo.Message{Role: "system", Content: outputOf(s)})
	}
	return t.prompt != nil
}

// answeredOpenInference reads the messages of an answer. Only where several answers were asked for, each message is one of them: OpenAI's Responses
// have reasoning, calls and words of one answer in messages of their own.
func (t *telling) answeredOpenInference() bool {
	items := t.branch("llm.output_messages.").items()
	several := len(items) > 1 && t.choices() > 1
	for i, item := range items {
		said := t.openInference(item.at("message"), "assistant")
		if several || len(t.answers) == 0 {
			t.answer(i, "", said)
			continue
		}
		t.answers[0].said = append(t.answers[0].said, said...)
	}
	return len(t.answers) > 0
}

// choices is how many answers were asked for, or how many the provider's response has, if the sender has it whole.
func (t *telling) choices() int {
	n, _ := strconv.Atoi(convo.TextOf(t.asking.Get("n").Raw()))
	var o *convo.Node
	if v := t.said["output.value"]; v != nil && v.String != nil {
		o = convo.ObjectOf(jsontext.Value(*v.String))
	}
	return max(n, len(objects(o.Get("choices"))), len(objects(o.Get("candidates"))))
}

// openInference reads a message; one without anything is empty. A user's message that names a call has what the call returned, and then what the user said.
func (t *telling) openInference(b *branch, role string) (said []convo.Message) {
	m := convo.Message{Role: speakerOf(b.text("role"), role), Name: b.text("name"), ToolCallID: b.text("tool_call_id")}
	if text := b.text("content"); text != "" {
		m.Content = convo.Pieces{convo.Words(text)}
	}
	if m.Role == "user" && m.ToolCallID != "" {
		said = append(said, convo.Message{Role: "tool", ToolCallID: m.ToolCallID, Content: m.Content})
		m.ToolCallID, m.Content = "", nil
		if parts := b.at("contents"); parts != nil {
			parts.from = 1 // what the call returned is the first
		}
	}
	calls, thinks := map[convo.ChatToolCall]bool{}, false
	if b.at("tool_calls") != nil {
		for _, item := range b.at("tool_calls").items() {
			called(&m, item.at("tool_call"), calls)
		}
	}
	if b.at("contents") != nil {
		for _, item := range b.at("contents").items() {
			c := item.at("message_content")
			switch kind := c.text("type"); {
			case item.at("tool_call") != nil:
				called(&m, item.at("tool_call"), calls)
			case kind == "reasoning", kind == "thinking":
				thinks = true
				c.text("text") // which may have been cut
			case c.at("text") != nil:
				m.Content = append(m.Content, convo.Words(c.text("text")))
			case c.at("image") != nil:
				m.Content = append(m.Content, convo.Linked("image_url", "", cmp.Or(c.text("image.image.url"), c.text("image.url"))))
			default:
				m.Content = append(m.Content, convo.Unknown(kind, nil))
			}
		}
	}
	if name := b.text("function_call_name"); name != "" {
		m.ToolCalls = append(m.ToolCalls, convo.Function("", name, b.text("function_call_arguments_json")))
	}
	if said == nil && !thinks || len(m.Content) > 0 || len(m.ToolCalls) > 0 {
		said = append(said, m)
	}
	return said
}

// called adds a call, unless it is one of those known: some senders write it twice.
func called(m *convo.Message, c *branch, known map[convo.ChatToolCall]bool) {
	one := convo.Function(c.text("id"), c.text("function.name"), c.text("function.arguments"))
	if one.ID == "" || !known[one] {
		m.ToolCalls, known[one] = append(m.ToolCalls, one), true
	}
}

// askedAtAll reads what an agent was asked, where no message says it. Of a call of a model such a value is the library's own form of a
// request, and is named as not told.
func (t *telling) askedAtAll() bool {
	if text, there := t.ownForm("prompt", "input.value"); there {
		t.prompt = []convo.Message{{Role: "user", Content: convo.Pieces{convo.Words(text)}}}
	}
	return t.prompt != nil
}

func (t *telling) answeredAtAll() bool {
	if text, there := t.ownForm("response", "output.value"); there {
		t.answers = []answer{{said: []convo.Message{{Role: "assistant", Content: convo.Pieces{convo.Words(text)}}}}}
	}
	return len(t.answers) > 0
}

// ownForm returns a value of an agent's span in a form of the sender's own.
func (t *telling) ownForm(direction string, names ...string) (text string, there bool) {
	text, there = t.firstValue(names...)
	if there && t.kind != otlp.Agent {
		t.cut[direction] = true
		t.problem("%s: told only in a form of the sender's own (%s), which is not read", direction, names[0])
		return "", false
	}
	return text, there
}
