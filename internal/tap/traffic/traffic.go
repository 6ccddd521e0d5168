// Package traffic reads the bytes of one call to a model or an agent, as a recorder saw them, and says what was asked and what was
// answered. It has no clock, network or file, and compiles to WebAssembly.
//
// # A reading is a view
//
// The bytes are the evidence. Which model was asked and what it counted are facts, which package evidence/observed finds and verifiers compare. A [Projection]
// is a reading of what was said, for whoever looks, by the newest reader: no record states it. Messages of all vendors become chat messages, so that a jury
// and a reader of records need to know one form. A projection leaves out what no juror reads: inner reasoning, signatures, definitions of tools, and the
// content of pictures and files, in whose place stands a digest.
//
// # What cannot be read is named
//
// Traffic may be hostile, cut or of another protocol. Project reads what it can, and its Problem says what was wrong.
// It never guesses: a member that could not be read is absent. Texts that have no place in canonical JSON (the
// arguments of a call with a number like 1e400, or with one member twice) are kept as strings. Where JSON itself is
// ambiguous, because a member stands there twice or a character is broken, it is read as most libraries do (the last
// member counts, U+FFFD stands for the character), and Problem says so.
//
// # The first of several answers is the response
//
// A request may ask for several answers. The one with the lowest number is the response. The others are alternatives,
// which the agent may have used instead.
package traffic

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/jsonform"
	"jurat/evidence/observed"
	"jurat/internal/kit/fault"
	"jurat/internal/tap/convo"
)

// The protocols that Project reads.
const (
	OpenAIChat        = observed.OpenAIChat
	OpenAIResponses   = observed.OpenAIResponses
	AnthropicMessages = observed.AnthropicMessages
	GeminiGenerate    = observed.GeminiGenerate
)

// A Call is one exchange with a model's provider, or with an agent.
type Call struct {
	Protocol     string // see Protocol
	Path         string // of the request's URL; Gemini's has the model
	Status       int    // of the response; 0: there was none
	Request      []byte // the body, decoded
	Response     []byte // the body, decoded, as far as it came
	ResponseType string // the media type, as the header gives it
}

// A Projection is what a call says. A member that is absent was not said, or could not be read: then Problem says why.
// All values are in canonical form.
type Projection struct {
	Asked, Answered []convo.Message `json:"-"`

	Prompt       jsontext.Value `json:"prompt,omitzero"`       // Asked, as an array of chat messages
	Output       jsontext.Value `json:"response,omitzero"`     // Answered: a string; with calls of tools a chat message, with several turns an array of them
	Alternatives int            `json:"alternatives,omitzero"` // further answers
	Finish       string         `json:"finish,omitzero"`       // why the model stopped, in the provider's word
	ProviderID   string         `json:"provider_id,omitzero"`  // the provider's id of the response

	// Items are the ids of what the answer says, by which later requests may refer to it instead of sending it again.
	Items []string `json:"items,omitzero"`

	// Conversation names the context and the task that an agent of A2A keeps, as "context:c1" and "task:t1".
	Conversation []string `json:"conversation,omitzero"`

	Complete bool   `json:"complete"`            // the answer has its end: a terminal event, why each answer stopped, or the end of its JSON
	Error    string `json:"error,omitzero"`      // the provider's error, with a status of failure or inside a stream
	State    string `json:"projection,omitzero"` // Failed: the request or the answer could not be read
	Problem  string `json:"problem,omitzero"`    // what could not be read as the protocol has it, and why

	Problems []string `json:"-"` // those in Problem
}

// Failed is the State of a projection that lacks the request or the answer, because it could not be read.
const Failed = "failed"

var readers = map[string]func(*reading){
	OpenAIChat: readChat, OpenAIResponses: readResponses, AnthropicMessages: readMessages, GeminiGenerate: readGenerate,
	A2A03: readA2A, A2A10: readA2A, OTLP: readTelemetry,
}

// Project reads a call. It returns an error only if the protocol is unknown.
func Project(c Call) (Projection, error) {
	read, known := readers[c.Protocol]
	if strings.HasPrefix(c.Protocol, MCP) {
		read, known = readMCP, true
	}
	if !known {
		return Projection{}, fmt.Errorf("unknown protocol %q: no projection", c.Protocol)
	}
	r := &reading{call: &c}
	for i, body := range [][]byte{c.Request, c.Response} {
		if most := observed.MostValues(body); len(body) > most && evidence.Values(body) > most {
			return unreadable(fmt.Sprintf("%s: more than %d values", []string{"request", "answer"}[i], most)), nil
		}
	}
	if err := fault.Guard(func() error { read(r); return nil }); err != nil {
		return unreadable("the program failed while reading it"), nil
	}
	return r.result(), nil
}

func unreadable(why string) Projection {
	return Projection{State: Failed, Problem: why, Problems: []string{why}}
}

// Protocol returns the protocol of a request: OpenAIChat, OpenAIResponses, AnthropicMessages or GeminiGenerate. It
// returns "" for any other request, such as one for embeddings, models or files. The path may have a query.
func Protocol(method, path string) string {
	path = pathOf(path)
	if method == "GET" {
		if before, id, _ := cutLast(path); strings.HasSuffix(before, "/responses") && id != "" {
			return OpenAIResponses
		}
		return ""
	}
	if method != "POST" {
		return ""
	}
	switch before, last, _ := cutLast(path); {
	case strings.HasSuffix(path, "/chat/completions"):
		return OpenAIChat
	case last == "responses":
		return OpenAIResponses
	case path == "/messages", strings.HasSuffix(path, "/v1/messages"):
		return AnthropicMessages
	case strings.HasSuffix(before, "/publishers/anthropic/models") && !strings.HasPrefix(last, "count-tokens") && rawPredict(last): // Vertex AI
		return AnthropicMessages
	case last == "invoke" && strings.Contains(before, "/model/") && strings.Contains(before, "anthropic.claude"): // Bedrock
		return AnthropicMessages
	case strings.HasSuffix(last, ":generateContent"), strings.HasSuffix(last, ":streamGenerateContent"):
		return GeminiGenerate
	}
	return ""
}

func rawPredict(last string) bool {
	_, verb, _ := strings.Cut(last, ":")
	return verb == "rawPredict" || verb == "streamRawPredict"
}

func cutLast(path string) (before, last string, found bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// CallOf is what a record states of a call, with the bytes that it seals. Bytes that are sealed encoded say nothing.
func CallOf(o *evidence.Observed, request, response []byte) Call {
	c := Call{Protocol: o.Protocol, Path: o.Path, Status: int(o.Status)}
	if b := o.Request; b != nil && b.Decoded == "" {
		c.Request = request
	}
	if b := o.Response; b != nil && b.Decoded == "" {
		c.Response, c.ResponseType = response, b.Type
	}
	return c
}

// Limits of a projection. What is longer is left out, and Problem says so: the bytes are sealed anyway.
const (
	maxPrompt   = 16 << 20
	maxOutput   = 8 << 20
	maxProblems = 20
	maxItems    = 1_000
)

type reading struct {
	call     *Call
	out      Projection
	prompt   []convo.Message
	answers  []answer
	problems []string
	strange  bool // the problems say that a value stands for a text
	unended  bool // the answer is a stream without its last event, in which all had stopped
}

type answer struct {
	number int
	finish string
	said   []convo.Message
}

// lenient reads JSON as most libraries do: the last of two members counts, and U+FFFD stands for a broken character.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func (r *reading) problem(format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, convo.Short(fmt.Sprintf(format, args...)))
	}
}

func (r *reading) fail(format string, args ...any) {
	r.out.State = Failed
	r.problem(format, args...)
}

// decode reads JSON. It reports false if the document has another form, and notes why. Ambiguous JSON is noted and
// read.
func decode[T any](r *reading, what string, doc []byte) (value T, ok bool) {
	err := json.Unmarshal(doc, &value)
	if err == nil {
		return value, true
	}
	var again, none T
	if later := json.Unmarshal(doc, &again, lenient); later != nil {
		r.problem("%s: %s", what, reason(later))
		return none, false
	}
	r.problem("%s: %s: read as most libraries do", what, reason(err))
	return again, true
}

// reason says why the JSON library refuses a document. Its own words vary, and records have those of this one.
func reason(err error) string {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if at := string(syntactic.JSONPointer); at != "" {
			return "at " + observed.PathInClear(convo.Short(at)) + ": " + jsonform.Syntax(syntactic.Err)
		}
		return jsonform.Syntax(syntactic.Err)
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.JSONPointer != "" {
		return observed.PathInClear(convo.Short(string(semantic.JSONPointer))) + " has the wrong type"
	}
	return "it has the wrong type"
}

// An object is what decode asks for, to note what is none.
type object = map[string]jsontext.Value

// object reads an object; nil: it is null, or another value, or no JSON, which is noted.
func (r *reading) object(what string, doc jsontext.Value) (n *convo.Node, ok bool) {
	if _, ok = decode[object](r, what, doc); ok {
		n = convo.ObjectOf(doc)
	}
	return n, ok
}

func (r *reading) request() *convo.Node {
	if len(r.call.Request) == 0 {
		r.fail("request: it is empty")
		return nil
	}
	o, ok := r.object("request", r.call.Request)
	if !ok {
		r.out.State = Failed
	}
	return o
}

func (r *reading) reader(list *[]convo.Message) *convo.Reader {
	return &convo.Reader{Lenient: true, Say: func(m convo.Message, _ *convo.Node) { *list = append(*list, m) }}
}

func (r *reading) conversation(c *convo.Reader, o *convo.Node, name string, read func(*convo.Node)) {
	if o.Get(name) == nil {
		r.fail("request: it has no %s", name)
	} else if !r.read(c, o, name, read) {
		r.out.State = Failed
	} else if r.prompt == nil {
		r.prompt = []convo.Message{}
	}
}

// read reads a member of the request into the prompt, and nothing of one that has another form. It reports whether it could.
func (r *reading) read(c *convo.Reader, o *convo.Node, name string, read func(*convo.Node)) bool {
	v := o.Get(name).Raw()
	if v == nil {
		return true
	}
	if _, ok := decode[jsontext.Value](r, "request: "+name, v); !ok {
		return false
	}
	before := len(r.prompt)
	n, err := convo.ReadLenient(v)
	if err == nil {
		read(n)
		err = c.Err()
	}
	if err != nil {
		r.prompt = r.prompt[:before]
		r.problem("request: %s: %s", name, misread(err))
	}
	return err == nil
}

func misread(err error) string {
	var at *convo.Error
	if errors.As(err, &at) && at.Pointer != "" {
		return observed.PathInClear(convo.Short(at.Pointer)) + " has the wrong type"
	}
	return "it has the wrong type"
}

func (r *reading) answer(one *answer, n *convo.Node, read func(*convo.Reader, *convo.Node)) {
	if n.Absent() {
		return
	}
	c := r.reader(&one.said)
	c.Answer, c.Role, c.Odd = true, convo.Assistant, r.odd
	read(c, n)
	if err := c.Err(); err != nil {
		r.out.Complete = false
		r.fail("answer: %s", misread(err))
	}
}

// member reads a member that is an object; nil: it is missing or null, or another value, which is noted.
func (r *reading) member(o *convo.Node, what, name string) *convo.Node {
	at := o.Get(name)
	if at.Absent() {
		return nil
	}
	n, _ := r.object(what+": "+name, at.Raw())
	return n
}

// elements reads a member that is a list. What has another form is noted.
func elements[T any](r *reading, o *convo.Node, what, name string) []*convo.Node {
	at := o.Get(name)
	if at.Absent() {
		return nil
	}
	if _, ok := decode[[]T](r, what+": "+name, at.Raw()); !ok {
		return nil
	}
	return at.Members
}

type body int

const (
	other  body = iota
	whole       // one JSON value
	stream      // server-sent events
)

// body returns the kind of the response's body: by its first bytes, and of what could be both by its type.
func (r *reading) body() body {
	start := bytes.TrimSpace(bytes.TrimPrefix(r.call.Response, []byte("\ufeff")))
	if bytes.HasPrefix(start, []byte("[")) && r.call.Protocol == GeminiGenerate {
		return stream
	}
	if len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		if r.eventStream() && !jsontext.Value(start).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			return stream
		}
		return whole
	}
	if r.eventStream() {
		return stream
	}
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(start, []byte(field)) {
			return stream
		}
	}
	return other
}

func (r *reading) eventStream() bool {
	media, _, _ := strings.Cut(r.call.ResponseType, ";")
	return strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
}

// failed reads a response with a status of failure. It reports false for a response of success.
func (r *reading) failed(explain func(body []byte) string) bool {
	if r.call.Status < 300 {
		return false
	}
	r.out.Error = convo.Short(explain(r.call.Response))
	if r.out.Error == "" {
		r.out.Error = fmt.Sprintf("status %d", r.call.Status)
	}
	r.out.Complete = jsontext.Value(r.call.Response).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return true
}

// answered reads the response of a call: in one piece, or as a stream with the reader of that. It returns nil if there is no answer in it. Errors about the
// stream are notes: what came before them is the answer.
func (r *reading) answered(explain func(body []byte) string, read func([]byte) (convo.Streamed, error)) *convo.Node {
	if r.failed(explain) || len(r.call.Response) == 0 {
		return nil
	}
	doc := jsontext.Value(bytes.TrimPrefix(r.call.Response, []byte("\ufeff")))
	switch r.body() {
	case whole:
		_, ok := decode[jsontext.Value](r, "answer", doc)
		if r.out.Complete = ok; !ok {
			r.out.State = Failed
			return nil
		}
	case stream:
		if doc = r.streamed(explain, read); doc == nil {
			return nil
		}
	default:
		r.fail("answer: it is neither JSON nor a stream of events")
		return nil
	}
	root, err := convo.ReadLenient(doc)
	switch {
	case err != nil:
		r.fail("answer: %s", reason(err))
	case root.Kind == '{':
		return root
	default:
		r.out.Complete = false
		r.fail("answer: it has the wrong type")
	}
	return nil
}

// odd notes the first of the values that stand for texts. Servers beside the vendors' own write numbers as ids, and more.
func (r *reading) odd(at *convo.Node) {
	if r.strange {
		return
	}
	r.strange = true
	what := "an event is not strictly as the protocol has it"
	if r.body() == whole {
		what = place(at) + " has the wrong type"
	}
	r.problem("answer: %s: read as most libraries do", what)
}

func place(at *convo.Node) string { return observed.PathInClear(convo.Short(at.Pointer())) }

func (r *reading) text(n *convo.Node, name string) string {
	at := n.Get(name)
	if !at.Absent() && at.Kind != '"' {
		r.odd(at)
	}
	return convo.Plain(at)
}

func (r *reading) number(n *convo.Node) int {
	at := n.Get("index")
	number, err := strconv.Atoi(cmp.Or(convo.Plain(at), "0"))
	if err != nil {
		r.mistyped(at)
	}
	return number
}

func (r *reading) within(n *convo.Node, name string) *convo.Node {
	at := n.Get(name)
	r.mustBeObject(at)
	return at
}

func (r *reading) mustBeObject(n *convo.Node) {
	if !n.Absent() && n.Kind != '{' {
		r.mistyped(n)
	}
}

func (r *reading) list(n *convo.Node, name string) []*convo.Node {
	at := n.Get(name)
	r.mustBeList(at)
	for _, one := range at.List() {
		r.mustBeObject(one)
	}
	return at.List()
}

// mustBeList notes that an answer has something else where every client reads a list, and reports whether it has a list or nothing.
func (r *reading) mustBeList(n *convo.Node) bool {
	is := n.Absent() || n.Kind == '['
	if !is {
		r.mistyped(n)
	}
	return is
}

func (r *reading) mistyped(n *convo.Node) {
	r.out.Complete = false
	r.fail("answer: %s has the wrong type", place(n))
}

func (r *reading) streamed(explain func(body []byte) string, read func([]byte) (convo.Streamed, error)) jsontext.Value {
	answer, err := read(r.call.Response)
	var ended *convo.StreamError
	if answer.Strange && (err == nil || errors.Is(err, convo.ErrCut) || errors.Is(err, convo.ErrDiffers) || errors.As(err, &ended)) {
		r.odd(nil) // the events followed the protocol, wherever they ended
	}
	switch {
	case answer.Answer == nil: // it cannot be written
		r.fail("answer: %s", reason(err))
	case err == nil, errors.Is(err, convo.ErrUnended):
		r.out.Complete, r.unended = true, err != nil
	case errors.Is(err, convo.ErrDiffers):
		r.out.Complete = true
		r.problem("answer: %v", err)
	case errors.As(err, &ended):
		if r.out.Error = convo.Short(explain(ended.Body)); r.out.Error == "" {
			r.out.Error = "the stream ends with an error"
		}
	case !errors.Is(err, convo.ErrCut):
		r.fail("answer: %v", err)
	}
	return answer.Answer
}

func (r *reading) result() Projection {
	if r.prompt != nil {
		if r.out.Prompt = r.marshal("prompt", r.prompt, maxPrompt); r.out.Prompt != nil {
			r.out.Asked = r.prompt
		}
	}
	slices.SortStableFunc(r.answers, func(a, b answer) int { return cmp.Compare(a.number, b.number) })
	if len(r.answers) > 0 {
		first := r.answers[0]
		r.out.Finish = cmp.Or(first.finish, r.out.Finish)
		if said := convo.Spoken(first.said); len(said) > 0 {
			if r.out.Output = r.marshal("response", output(said), maxOutput); r.out.Output != nil {
				r.out.Answered = said
			}
		}
		r.out.Alternatives = len(r.answers) - 1
	}
	r.out.Finish = r.name("finish", r.out.Finish)
	r.out.ProviderID = r.name("provider_id", r.out.ProviderID)
	r.out.Problems, r.out.Problem = r.problems, strings.Join(r.problems, "; ")
	return r.out
}

// marshal writes a value in canonical form. It returns nil for one that is too long.
func (r *reading) marshal(what string, value any, limit int) jsontext.Value {
	doc, err := json.Marshal(value, lenient, json.Deterministic(true)) // so that a reason why not is always the same
	if err == nil && len(doc) <= limit {
		doc, err = evidence.Canonical(doc)
	}
	switch {
	case len(doc) > limit:
		r.problem("%s: longer than %d MiB: left out", what, limit>>20)
		return nil
	case err != nil:
		r.fail("%s: %v", what, err)
		return nil
	}
	return doc
}

// output returns what a model said: its text, if that is all, or its message, or several.
func output(said []convo.Message) any {
	if len(said) != 1 {
		return append([]convo.Message{}, said...)
	}
	m := said[0]
	plain := m.Role == convo.Assistant && m.Name == "" && m.Refusal == "" && m.ToolCalls == nil && m.FunctionCall == nil
	if plain && (len(m.Content) == 0 || len(m.Content) == 1 && m.Content[0].Text != nil) {
		return m.Content
	}
	return m
}

// name returns a name that a payload may have, and "" for any other text.
func (r *reading) name(what, text string) string {
	if text != "" && evidence.CheckName(text) != nil {
		r.problem("%s: not a name of one line and at most 200 bytes: left out", what)
		return ""
	}
	return text
}
