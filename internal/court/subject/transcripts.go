package subject

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"jurat/evidence"
	"jurat/internal/tap/convo"
)

// Limits of a file with conversations. Each conversation has the limit subject.MaxFile of its own.
const (
	MaxTranscripts = 128 << 20 // bytes of the file
	maxCases       = 1000      // conversations in it
)

// ReadTranscripts returns the cases of a file. The name is for errors. It returns an error if it cannot read the file as a whole. A
// conversation that is wrong does not keep the others from being read. Errors about content are of type *Error.
func ReadTranscripts(name string, data []byte, o Options) ([]Brought, error) {
	if len(data) > MaxTranscripts {
		return nil, &Error{File: name, Reason: fmt.Sprintf("longer than %d MiB: split it", MaxTranscripts>>20)}
	}
	t := &reader{options: o}
	if o.Card != nil {
		card, err := convo.Parse(CardFile, evidence.CutMark(o.Card))
		if err != nil {
			return nil, err
		}
		t.card = card
	}
	if err := t.read(name, evidence.CutMark(data)); err != nil {
		return nil, err
	}
	return t.found, nil
}

type reader struct {
	options Options
	card    *convo.Node
	file    *convo.Document // in which conversations are parsed
	seen    *convo.Document // in which values are found: see passable
	found   []Brought
	size    int // bytes of the conversations
}

func (t *reader) read(name string, data []byte) error {
	switch {
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return t.readZip(name, data)
	case len(bytes.TrimSpace(data)) == 0:
		return &Error{File: name, Line: 1, Column: 1, Reason: "empty: expected a conversation, for example [{\"role\": \"user\", \"content\": \"Hello\"}]"}
	}
	whole := t.use(name, data)
	if isLines(whole.Raw()) {
		return t.lines()
	}
	return t.value(whole)
}

// use makes this the file that is read, and returns all of it as one value.
func (t *reader) use(name string, data []byte) *convo.Node {
	t.file, t.seen = convo.NewDocument(name, data), convo.NewDocument(name, passable(data))
	return t.seen.Whole()
}

func (t *reader) parse(n *convo.Node) (*convo.Node, error) {
	return t.file.Parse(n.Offset, n.End, n.Pointer())
}

// look finds what is in a value, without reading it: of an array no more elements than a file can have cases, and one.
func (t *reader) look(n *convo.Node) (*convo.Node, error) {
	return t.seen.Look(n.Offset, n.End, n.Pointer(), maxCases+1)
}

// isLines reports whether a text has more than one JSON value.
func isLines(text []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	if dec.SkipValue() != nil {
		return false
	}
	_, err := dec.ReadToken()
	return !errors.Is(err, io.EOF)
}

// value reads a file that is one JSON value: a conversation, unless its members show a list of several.
func (t *reader) value(whole *convo.Node) error {
	if t.options.Form != "" {
		t.conversation("", whole, nil)
		return nil
	}
	n, err := t.look(whole)
	switch {
	case err != nil: // the reader of a conversation says what is wrong
	case n.Kind == '[' && len(n.Members) > 0 && isWhole(n.Members[0]):
		return t.several(n.Members)
	case n.Has("samples", '[') && n.Has("eval", '{'):
		return t.inspectLog(n.Get("samples"))
	case n.Has("messages", '[') && n.Has("epoch", '0'):
		t.inspectSample(whole)
		return nil
	case n.Has("simulations", '['):
		return whole.Errorf("results of tau2-bench are not read: expected a conversation, or results of Inspect or promptfoo, for example [{\"role\": \"user\", \"content\": \"Hello\"}]: bring the messages of a simulation")
	case n.Has("results", '{'), n.Has("results", '['):
		return t.promptfoo(n.Get("results"))
	}
	t.conversation("", whole, nil)
	return nil
}

func (t *reader) several(items []*convo.Node) error {
	for i, item := range items {
		if err := t.room(item); err != nil {
			return err
		}
		t.conversation(strconv.Itoa(i+1), item, nil)
	}
	return nil
}

// lines reads JSON Lines: each line is a message of one conversation, or each line is a conversation.
func (t *reader) lines() error {
	lines := t.seen.Rows()
	if !isWhole(lines[0]) {
		t.messages(lines)
		return nil
	}
	for _, line := range lines {
		if err := t.room(line); err != nil {
			return err
		}
		from, _ := line.Lines()
		name := strconv.Itoa(from)
		if !isWhole(line) {
			t.wrong(name, line.Errorf("expected a conversation, because line 1 of the file is one: either every line is a conversation, or every line is a message of the same one"))
			continue
		}
		t.conversation(name, line, nil)
	}
	return nil
}

func (t *reader) messages(lines []*convo.Node) {
	var list []*convo.Node
	var mistakes []error
	for i, line := range lines {
		n, err := t.file.Parse(line.Offset, line.End, "/"+strconv.Itoa(i))
		switch {
		case err != nil:
		case n.Kind != '{':
			err = n.Errorf("expected a message in each line, for example {\"role\": \"user\", \"content\": \"Hello\"}, found %s", n.KindName())
		case isWhole(line):
			err = n.Errorf("expected a message, because line 1 of the file is one, found a whole conversation: either every line is a conversation, or every line is a message of the same one")
		}
		if err != nil {
			mistakes = append(mistakes, err)
			if !t.options.Check || len(mistakes) == MaxMistakes {
				break
			}
			continue
		}
		list = append(list, n)
	}
	if mistakes != nil {
		t.wrong("", mistakes...)
		return
	}
	t.build("", t.file.List(list), nil, t.options.Form, nil)
}

// isWhole reports whether a value is a whole conversation, and not a message.
func isWhole(n *convo.Node) bool {
	value := bytes.TrimSpace(n.Raw())
	return bytes.HasPrefix(value, []byte("[")) || convo.Outline(value).IsConversation()
}

func (t *reader) more(n *convo.Node, what string) error {
	if len(t.found) == maxCases {
		return n.Errorf("more than %d %s", maxCases, what)
	}
	return nil
}

// room returns an error if there are too many conversations.
func (t *reader) room(n *convo.Node) error {
	if err := t.more(n, "conversations in a file: split it"); err != nil {
		return err
	}
	if t.size += int(n.End - n.Offset); t.size > MaxTranscripts {
		return n.Errorf("more than %d MiB of conversations: split the file", MaxTranscripts>>20)
	}
	return nil
}

func (t *reader) conversation(name string, at *convo.Node, from *Source) {
	n, err := t.parse(at)
	t.build(name, n, err, t.options.Form, from)
}

// build makes a case of a conversation that was parsed, unless an error says that it was not.
func (t *reader) build(name string, n *convo.Node, err error, form Form, from *Source) {
	if err != nil {
		t.wrong(name, err)
		return
	}
	c := &Case{Form: form, Source: from, checking: t.options.Check}
	if mistakes := c.build(t.card, n); mistakes != nil {
		t.wrong(name, mistakes...)
		return
	}
	t.found = append(t.found, Brought{Name: name, Case: c})
}

func (t *reader) wrong(name string, mistakes ...error) {
	t.found = append(t.found, Brought{Name: name, Mistakes: mistakes})
}

// A notNumber is what Python writes where it has no number, such as for a score that could not be computed, and the string of JSON that stands in its place.
type notNumber struct {
	written []byte
	instead string
}

var notNumbers = []notNumber{{[]byte("NaN"), `"" `}, {[]byte("Infinity"), `""      `}, {[]byte("-Infinity"), `""       `}}

// passable is a file in which values that are no JSON can be passed over: each has a string of the same length in its place. What is read of a conversation
// is parsed as it stands in the file, and there they are a mistake.
func passable(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("NaN")) && !bytes.Contains(raw, []byte("Infinity")) {
		return raw
	}
	passed := bytes.Clone(raw)
	for at, quoted := 0, false; at < len(raw); at++ {
		switch c := raw[at]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			at++
		case !quoted && (c == 'N' || c == 'I' || c == '-'):
			i := slices.IndexFunc(notNumbers, func(n notNumber) bool { return bytes.HasPrefix(raw[at:], n.written) })
			if i >= 0 {
				at += copy(passed[at:], notNumbers[i].instead) - 1
			}
		}
	}
	return passed
}

// Options say how to read what people bring. The zero value reads a conversation by its structure, without a card.
type Options struct {
	Card  []byte // the agent's card; nil: there is none
	Form  Form   // "": by the structure of each conversation
	Check bool   // find every mistake, and not only the first
}

// A Brought is one case of a file, or what is wrong with it.
type Brought struct {
	Name     string // distinguishes the cases of a file; "" if the file is a single one
	Case     *Case  // nil if there are mistakes
	Mistakes []error
}

// Err returns the first mistake, or nil.
func (b *Brought) Err() error {
	if len(b.Mistakes) == 0 {
		return nil
	}
	return b.Mistakes[0]
}

// A Source names where a conversation was taken from, if it is one of many in a file of results. The evidence carries
// it.
type Source struct {
	Kind  string `json:"kind"`           // "inspect" or "promptfoo"
	ID    string `json:"id,omitzero"`    // of the sample, the result or the simulation
	Epoch string `json:"epoch,omitzero"` // of Inspect's sample, if given
}

// String names the source. The name distinguishes the cases of a file.
func (s *Source) String() string {
	if s.Epoch != "" {
		return s.ID + "_epoch_" + s.Epoch
	}
	return s.ID
}

// Attachment begins a reference to an attachment of Inspect, in the place of a text.
const Attachment = "attachment://"

// An inspection reads messages of Inspect. They are chat messages in which a call's function is a name:
// https://inspect.aisi.org.uk/reference/inspect_ai.model.html (ChatMessage, ToolCall, Content).
type inspection struct {
	*convo.Reader
	attachments map[string]string
	taken       int // bytes of attachments so far
}

func (c *Case) readInspect(r *convo.Reader, n *convo.Node) {
	in := &inspection{Reader: r, attachments: map[string]string{}}
	if list := n.Get("attachments"); !list.Absent() && list.Kind == '{' {
		for i, key := range list.Names {
			in.attachments[key] = list.Members[i].Text
		}
	}
	list := n
	if n.Kind == '{' {
		list = n.Get("messages")
	}
	if list.Absent() || list.Kind != '[' {
		r.Fail(n, "expected Inspect's messages: an array, or {\"messages\": […]}")
		return
	}
	r.Each(list, convo.AMessage, in.message)
}

func (in *inspection) message(n *convo.Node) {
	m := convo.Message{Role: in.SpokenBy(n), Content: in.content(n.Get("content"))}
	role := convo.RoleOf(m.Role)
	if role == convo.Tool {
		m.ToolCallID, m.Name = in.Str(n, "tool_call_id"), in.Str(n, "function")
		if failed := n.Get("error"); !failed.Absent() {
			m.IsError = true
			m.Refusal = in.Str(failed, "message") // shown if there is no content
		}
		in.Say(m, n)
		return
	}
	for _, call := range in.Objects(n.Get("tool_calls"), "a tool call") {
		m.ToolCalls = append(m.ToolCalls, in.Call(call, in.Str(call, "id"), in.Str(call, "function"), call.Get("arguments")))
	}
	if len(m.ToolCalls) > 0 && role != convo.Assistant && role != convo.User {
		in.Fail(n, "a message of role %s makes tool calls: expected role assistant", role)
	}
	in.Say(m, n)
}

func (in *inspection) content(n *convo.Node) (list convo.Pieces) {
	if n.Absent() || n.Kind == '"' {
		return convo.Pieces{convo.Words(in.text(n))}
	}
	if n.Kind != '[' {
		in.Fail(n, "content of a wrong kind: expected a string or an array, found %s", n.KindName())
	}
	for _, part := range n.Members {
		switch kind := in.Str(part, "type"); kind {
		case "text":
			list = append(list, convo.Words(in.text(part.Get("text"))))
		case "reasoning":
			in.Left(convo.Reasoning)
		case "image", "audio", "video", "document", "data":
			in.Left(convo.Unreadable)
			list = append(list, convo.Words("["+kind+"]"))
		case "tool_use": // a tool of the vendor, with its result
			list = append(list, convo.Words(convo.TextOf(part.Raw())))
		default:
			in.Fail(part, "unknown content %s: expected text, reasoning, image, audio, video, document, data or tool_use", convo.Quote(kind))
		}
	}
	return list
}

func (in *inspection) text(n *convo.Node) string {
	if n.Absent() {
		return ""
	}
	if n.Kind != '"' {
		in.Fail(n, "expected a string, found %s", n.KindName())
	}
	key, refers := strings.CutPrefix(n.Text, Attachment)
	text, there := in.attachments[key]
	if !there || !refers {
		return n.Text
	}
	if in.taken += len(text); in.taken > MaxFile {
		in.Fail(n, "more than %d MiB of attachments", MaxFile>>20)
	}
	return text
}

// inspectLog reads an evaluation log of Inspect in its JSON form: {"eval", "samples": [{"id", "epoch", "messages",
// "scores", …}]}. See https://inspect.aisi.org.uk/reference/inspect_ai.log.html (EvalLog, EvalSample). Scores, targets and
// events stay outside the evidence.
func (t *reader) inspectLog(list *convo.Node) error {
	samples, err := t.look(list)
	if err != nil {
		return err
	}
	if len(samples.Members) == 0 {
		return list.Errorf("a log without samples: expected at least one, for example {\"id\": \"s1\", \"epoch\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}; a log that was written without samples cannot be tried")
	}
	for _, at := range samples.Members {
		if err := t.more(at, "samples: split the log"); err != nil {
			return err
		}
		t.inspectSample(at)
	}
	return nil
}

// inspectSample reads one sample. Its evidence is {"messages"} and, where a message refers to them, {"attachments"}.
func (t *reader) inspectSample(at *convo.Node) {
	sample, err := t.look(at)
	from := &Source{Kind: "inspect", ID: sample.Brief("id"), Epoch: sample.Brief("epoch")}
	messages := sample.Get("messages")
	var n *convo.Node
	switch {
	case err != nil:
		err = at.Errorf("%v", err)
	case messages == nil:
		err = at.Errorf(`a sample without messages: expected Inspect's, for example {"id": "s1", "epoch": 1, "messages": [{"role": "user", "content": "Hello"}]}`)
	default:
		if err = t.room(messages); err == nil {
			n, err = t.messagesOf(at, messages, sample.Get("attachments"))
		}
	}
	t.build(from.String(), n, err, InspectForm, from)
}

// messagesOf reads the messages of a sample, with the sample's attachments if a message refers to one.
func (t *reader) messagesOf(sample, list, attached *convo.Node) (*convo.Node, error) {
	messages, err := t.parse(list)
	if err != nil || attached == nil || !bytes.Contains(list.Raw(), []byte(Attachment)) {
		return messages, err
	}
	attachments, err := t.parse(attached)
	if err != nil {
		return nil, err
	}
	return t.file.Object(sample, convo.Member{Name: "messages", Value: messages}, convo.Member{Name: "attachments", Value: attachments}), nil
}

// Limits of Inspect's packed log.
const (
	maxEntries = 20_000
	maxSample  = 64 << 20
)

// ErrLong says that a value, or a file of an archive, is too long to be read.
var ErrLong = fmt.Errorf("a value longer than %d MiB", maxSample>>20)

func (t *reader) readZip(name string, data []byte) error {
	wrong := func(format string, args ...any) error {
		return &Error{File: name, Reason: fmt.Sprintf(format, args...)}
	}
	archive, err := OpenArchive(bytes.NewReader(data), int64(len(data)), maxEntries)
	if err != nil {
		return wrong("%v", err)
	}
	total, seen := 0, map[string]bool{}
	for _, f := range archive.File {
		if !IsSample(f.Name) {
			continue
		}
		if seen[f.Name] {
			return wrong("the archive has %q twice", f.Name)
		}
		seen[f.Name] = true
		if len(t.found) == maxCases {
			return wrong("more than %d samples: split the log", maxCases)
		}
		data, err := Unpack(f)
		if err != nil {
			return wrong("%q: %v", f.Name, err)
		}
		if total += len(data); total > 2*MaxTranscripts {
			return wrong("more than %d MiB of samples: split the log", 2*MaxTranscripts>>20)
		}
		t.inspectSample(t.use(name+":"+f.Name, data))
	}
	if len(t.found) == 0 {
		return wrong("an archive without samples: expected a log of Inspect (.eval) with samples/ID_epoch_N.json")
	}
	return nil
}

// OpenArchive opens an evaluation log of Inspect in its packed form (.eval): a ZIP archive with a file for each sample, samples/ID_epoch_N.json. See the
// recorder in https://github.com/UKGovernmentBEIS/inspect_ai/blob/main/src/inspect_ai/log/_recorders/eval.py. Nothing in it is written to disk, so names with
// .. lead nowhere.
func OpenArchive(in io.ReaderAt, size int64, most int) (*zip.Reader, error) {
	archive, err := zip.NewReader(in, size)
	if err != nil {
		return nil, fmt.Errorf("a broken archive: %w", err)
	}
	if len(archive.File) > most {
		return nil, fmt.Errorf("more than %d files in the archive", most)
	}
	archive.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(zstd.WithDecoderMaxMemory(maxSample), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))) // as Inspect packs newer logs
	return archive, nil
}

// IsSample reports whether a file of an archive is a sample.
func IsSample(name string) bool {
	dir, base := path.Split(name)
	return dir == "samples/" && path.Ext(base) == ".json"
}

// Unpack reads a file of an archive.
func Unpack(f *zip.File) ([]byte, error) {
	file, err := f.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fmt.Errorf("packed by the method %d, which is not known here: write the log as JSON with 'inspect log convert --to json'", f.Method)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSample+1))
	if err == nil && len(data) > maxSample {
		err = ErrLong
	}
	return data, err
}

// readPromptfoo reads {"prompt", "output"}, or an array of them.
func (c *Case) readPromptfoo(r *convo.Reader, n *convo.Node) {
	turn := func(n *convo.Node) {
		prompt, output := n.Get("prompt"), n.Get("output")
		if n.Kind != '{' || prompt.Absent() || output.Absent() {
			r.Fail(n, "expected a turn {\"prompt\": \"…\", \"output\": \"…\"}")
			return
		}
		c.readPrompt(prompt)
		m := Message{Role: Assistant, ToolCalls: callsOnly(output)}
		if m.ToolCalls == nil {
			m.Text = convo.Plain(output)
		}
		c.say(m, output)
	}
	if n.Kind != '[' {
		turn(n)
		return
	}
	r.Each(n, convo.Thing{Name: "a turn {prompt, output} (an object)", Example: `{"prompt": "Hello", "output": "Hello!"}`}, turn)
}

// readPrompt reads a prompt: chat messages, as JSON or as JSON in a string, or a text of the user.
func (c *Case) readPrompt(n *convo.Node) {
	text := convo.Plain(n)
	if inner, err := convo.Parse(n.File(), []byte(text)); err == nil && inner.Kind == '[' {
		said := &Case{}
		r := said.reader()
		if said.readConversation(r, inner); r.Err() == nil {
			for _, m := range said.Messages {
				c.say(m, n)
			}
			return
		}
	}
	c.say(Message{Role: User, Text: text}, n)
}

// callsOnly reads an output that is a list of calls; nil: it is none.
func callsOnly(n *convo.Node) (calls []ToolCall) {
	r := new(convo.Reader)
	if n.Kind != '[' {
		return nil
	}
	for _, item := range n.Members {
		call := r.ChatCall(item)
		if item.Get("function") == nil || r.Err() != nil {
			return nil
		}
		calls = append(calls, callOf(&call))
	}
	return calls
}

// promptfoo reads results of promptfoo: {"results": {"results": [{"prompt": {"raw"}, "response": {"output"}, "vars",
// "success", "score", …}]}}. See https://www.promptfoo.dev/docs/configuration/reference/#evaluateresult. The evidence of a
// result is {"prompt", "output"}, or its messages if it has some. Variables, checks and scores stay outside the
// evidence, because variables may hold what is expected.
func (t *reader) promptfoo(results *convo.Node) error {
	all, err := t.look(results)
	if results.Kind == '{' {
		if err != nil || !all.Has("results", '[') {
			return results.Errorf("expected promptfoo's {\"results\": {\"results\": [{\"prompt\", \"response\", …}]}}")
		}
		all, err = t.look(all.Get("results"))
	}
	if err != nil {
		return err
	}
	for i, at := range all.Members {
		if err := t.more(at, "results: split the file"); err != nil {
			return err
		}
		t.promptfooResult(at, i)
	}
	return nil
}

func (t *reader) promptfooResult(at *convo.Node, i int) {
	from := &Source{Kind: "promptfoo", ID: fmt.Sprint(i + 1)}
	result, err := t.look(at)
	if err != nil {
		t.wrong(from.String(), at.Errorf("%v", err))
		return
	}
	from.ID = cmp.Or(result.Brief("id"), from.ID)
	response, form := t.inside(result, "response"), PromptfooForm
	var n *convo.Node
	if list := t.turns(response, result); list == nil {
		n, err = t.turn(at, cmp.Or(t.inside(result, "prompt").Get("raw"), result.Get("prompt")), response.Get("output"), result.Brief("error"))
	} else if err, form = t.room(list), t.options.Form; err == nil {
		n, err = t.parse(list)
	}
	t.build(from.String(), n, err, form, from)
}

func (t *reader) turns(of ...*convo.Node) *convo.Node {
	for _, n := range of {
		metadata := t.inside(n, "metadata")
		for _, name := range []string{"messages", "redteamHistory"} {
			if list := metadata.Get(name); metadata.Has(name, '[') && list.End-list.Offset > int64(len("[]")) {
				return list
			}
		}
	}
	return nil
}

func (t *reader) turn(at, prompt, output *convo.Node, failed string) (*convo.Node, error) {
	switch {
	case prompt != nil && !output.Absent():
	case failed != "":
		return nil, at.Errorf("the agent gave no output: %q: expected one, for example \"response\": {\"output\": \"Hello\"}", failed)
	default:
		return nil, at.Errorf("a result without a prompt and an output: expected {\"prompt\": {\"raw\": \"…\"}, \"response\": {\"output\": \"…\"}}")
	}
	if err := t.room(output); err != nil {
		return nil, err
	}
	question, err := t.file.Parse(prompt.Offset, prompt.End, at.Pointer())
	if err != nil {
		return nil, err
	}
	answer, err := t.file.Parse(output.Offset, output.End, at.Pointer())
	if err != nil {
		return nil, err
	}
	return t.file.Object(at, convo.Member{Name: "prompt", Value: question}, convo.Member{Name: "output", Value: answer}), nil
}

func (t *reader) inside(n *convo.Node, name string) *convo.Node {
	if !n.Has(name, '{') {
		return nil
	}
	inner, err := t.look(n.Get(name))
	if err != nil {
		return nil
	}
	return inner
}
