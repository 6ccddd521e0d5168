package subject

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// A Source names where a conversation was taken from, if it is one of many in a file of results. The evidence carries
// it.
type Source struct {
	Kind  string `json:"kind"`           // "inspect", "promptfoo" or "tau2"
	ID    string `json:"id,omitzero"`    // of the sample, the result or the simulation
	Epoch string `json:"epoch,omitzero"` // of Inspect's sample, if given
}

// String names the source.
func (s *Source) String() string { return s.name() }

// name distinguishes the cases of a file.
func (s *Source) name() string {
	if s.Epoch != "" {
		return s.ID + "_epoch_" + s.Epoch
	}
	return s.ID
}

// inspectLog reads an evaluation log of Inspect in its JSON form: {"eval", "samples": [{"id", "epoch", "messages",
// "scores", …}]}. See https://inspect.aisi.org.uk/reference/inspect_ai.log.html (EvalLog, EvalSample). Scores, targets and
// events stay outside the evidence.
func (t *transcripts) inspectLog(log members) error {
	samples, err := t.doc.elements(log.list["samples"])
	if err != nil {
		return err
	}
	if len(samples) == 0 {
		return t.doc.errorAt(log.list["samples"].from, "/samples", "a log without samples: expected at least one; a log that was written without samples cannot be tried")
	}
	for i, at := range samples {
		if len(t.found) == MaxCases {
			return t.doc.errorAt(at.from, "", fmt.Sprintf("more than %d samples: split the log", MaxCases))
		}
		t.inspectSample(at, fmt.Sprintf("/samples/%d", i))
	}
	return nil
}

// inspectSample reads one sample. Its evidence is {"messages"} and, where a message refers to them, {"attachments"}.
func (t *transcripts) inspectSample(at span, pointer string) {
	sample, err := t.doc.members(at)
	from := &Source{Kind: "inspect", ID: sample.text("id"), Epoch: sample.text("epoch")}
	messages, there := sample.get("messages")
	switch {
	case err != nil:
		err = t.doc.errorAt(at.from, pointer, err.Error())
	case !there:
		err = t.doc.errorAt(at.from, pointer, "a sample without messages: expected Inspect's {\"id\", \"epoch\", \"messages\", …}")
	default:
		err = t.room(messages)
	}
	if err != nil {
		t.found = append(t.found, Brought{Name: from.name(), Mistakes: []error{err}})
		return
	}
	n, err := t.doc.parse(messages, pointer+"/messages")
	if err == nil {
		n, err = t.withAttachments(n, sample, pointer)
	}
	if err != nil {
		t.found = append(t.found, Brought{Name: from.name(), Mistakes: []error{err}})
		return
	}
	t.build(from.name(), n, Inspect, from)
}

// withAttachments adds the sample's attachments to its messages, if a message refers to one.
func (t *transcripts) withAttachments(messages *node, sample members, pointer string) (*node, error) {
	at, there := sample.get("attachments")
	if !there || !bytes.Contains(messages.raw(), []byte(attachment)) {
		return messages, nil
	}
	attachments, err := t.doc.parse(at, pointer+"/attachments")
	if err != nil {
		return nil, err
	}
	whole := &node{doc: t.doc, kind: '{', offset: messages.offset, end: messages.end, joined: true, prefix: pointer,
		names: []string{"messages", "attachments"}, members: []*node{messages, attachments}}
	for i, n := range whole.members {
		n.parent, n.step, n.prefix = whole, whole.names[i], ""
	}
	return whole, nil
}

// Limits of Inspect's packed log.
const (
	maxEntries = 20_000
	maxSample  = 64 << 20
)

// readZip reads an evaluation log of Inspect in its packed form (.eval): a ZIP archive with a file for each sample,
// samples/ID_epoch_N.json. See the recorder in
// https://github.com/UKGovernmentBEIS/inspect_ai/blob/main/src/inspect_ai/log/_recorders/eval.py.
func (t *transcripts) readZip() error {
	name := t.doc.file
	archive, err := zip.NewReader(bytes.NewReader(t.doc.raw), int64(len(t.doc.raw)))
	if err != nil {
		return &Error{File: name, Reason: "a broken archive: " + err.Error()}
	}
	if len(archive.File) > maxEntries {
		return &Error{File: name, Reason: fmt.Sprintf("more than %d files in the archive", maxEntries)}
	}
	total, seen := 0, map[string]bool{}
	for _, f := range archive.File {
		if dir, base := path.Split(f.Name); dir != "samples/" || path.Ext(base) != ".json" {
			continue
		}
		if seen[f.Name] {
			return &Error{File: name, Reason: "the archive has " + quote(f.Name) + " twice"}
		}
		seen[f.Name] = true
		if len(t.found) == MaxCases {
			return &Error{File: name, Reason: fmt.Sprintf("more than %d samples: split the log", MaxCases)}
		}
		data, err := unpack(f)
		if err != nil {
			return &Error{File: name, Reason: fmt.Sprintf("%s: %v", quote(f.Name), err)}
		}
		if total += len(data); total > 2*MaxTranscript {
			return &Error{File: name, Reason: fmt.Sprintf("more than %d MiB of samples: split the log", 2*MaxTranscript>>20)}
		}
		t.doc = &document{file: name + ":" + f.Name, raw: data}
		t.inspectSample(span{to: int64(len(data))}, "")
	}
	if len(t.found) == 0 {
		return &Error{File: name, Reason: "an archive without samples: expected a log of Inspect (.eval) with samples/ID_epoch_N.json"}
	}
	return nil
}

func unpack(f *zip.File) ([]byte, error) {
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
		err = fmt.Errorf("longer than %d MiB", maxSample>>20)
	}
	return data, err
}

// simulations reads results of tau2-bench: {"simulations": [{"id", "messages", "reward_info", …}]}. See
// https://github.com/sierra-research/tau2-bench/blob/main/src/tau2/data_model/simulation.py.
func (t *transcripts) simulations(results members) error {
	list, err := t.doc.elements(results.list["simulations"])
	if err != nil {
		return err
	}
	for i, at := range list {
		if len(t.found) == MaxCases {
			return t.doc.errorAt(at.from, "", fmt.Sprintf("more than %d simulations: split the file", MaxCases))
		}
		pointer := fmt.Sprintf("/simulations/%d", i)
		one, err := t.doc.members(at)
		messages, there := one.get("messages")
		from := &Source{Kind: "tau2", ID: one.text("id")}
		if err == nil && !there {
			err = t.doc.errorAt(at.from, pointer, "a simulation without messages")
		}
		if err == nil {
			err = t.room(messages)
		}
		if err != nil {
			t.found = append(t.found, Brought{Name: from.name(), Mistakes: []error{err}})
			continue
		}
		t.conversation(from.name(), messages, pointer+"/messages", from)
	}
	return nil
}

// promptfoo reads results of promptfoo: {"results": {"results": [{"prompt": {"raw"}, "response": {"output"}, "vars",
// "success", "score", …}]}}. See https://www.promptfoo.dev/docs/configuration/reference/#evaluateresult. The evidence of a
// result is {"prompt", "output"}, or its messages if it has some. Variables, checks and scores stay outside the
// evidence, because variables may hold what is expected.
func (t *transcripts) promptfoo(file members) error {
	at, pointer := file.list["results"], "/results"
	if file.has("results", '{') {
		inner, err := t.doc.members(at)
		if err != nil || !inner.has("results", '[') {
			return t.doc.errorAt(at.from, "/results", "expected promptfoo's {\"results\": {\"results\": [{\"prompt\", \"response\", …}]}}")
		}
		at, pointer = inner.list["results"], "/results/results"
	}
	list, err := t.doc.elements(at)
	if err != nil {
		return err
	}
	for i, at := range list {
		if len(t.found) == MaxCases {
			return t.doc.errorAt(at.from, "", fmt.Sprintf("more than %d results: split the file", MaxCases))
		}
		t.promptfooResult(at, i, fmt.Sprintf("%s/%d", pointer, i))
	}
	return nil
}

func (t *transcripts) promptfooResult(at span, i int, pointer string) {
	from := &Source{Kind: "promptfoo", ID: fmt.Sprint(i + 1)}
	wrong := func(err error) {
		t.found = append(t.found, Brought{Name: from.name(), Mistakes: []error{err}})
	}
	result, err := t.doc.members(at)
	if err != nil {
		wrong(t.doc.errorAt(at.from, pointer, err.Error()))
		return
	}
	if id := result.text("id"); id != "" {
		from.ID = id
	}
	response := t.inside(result, "response")
	for _, metadata := range []members{t.inside(response, "metadata"), t.inside(result, "metadata")} {
		for _, name := range []string{"messages", "redteamHistory"} {
			turns, there := metadata.get(name)
			if !there || !metadata.has(name, '[') || turns.to-turns.from <= 2 {
				continue
			}
			if err := t.room(turns); err != nil {
				wrong(err)
				return
			}
			t.conversation(from.name(), turns, pointer+"/metadata/"+name, from)
			return
		}
	}
	prompt, asked := t.inside(result, "prompt").get("raw")
	if !asked {
		prompt, asked = result.get("prompt")
	}
	output, answered := response.get("output")
	if !asked || !answered || response.has("output", 'n') {
		reason := "a result without a prompt and an output: expected {\"prompt\": {\"raw\": \"…\"}, \"response\": {\"output\": \"…\"}}"
		if why := result.text("error"); why != "" {
			reason = "the agent gave no output: " + quote(why)
		}
		wrong(t.doc.errorAt(at.from, pointer, reason))
		return
	}
	if err := t.room(output); err != nil {
		wrong(err)
		return
	}
	whole := &node{doc: t.doc, kind: '{', offset: at.from, end: at.to, joined: true, prefix: pointer, names: []string{"prompt", "output"}}
	for i, part := range []span{prompt, output} {
		n, err := t.doc.parse(part, pointer)
		if err != nil {
			wrong(err)
			return
		}
		n.parent, n.step, n.prefix = whole, whole.names[i], ""
		whole.members = append(whole.members, n)
	}
	t.build(from.name(), whole, Promptfoo, from)
}

// inside returns the members of a member that is an object.
func (t *transcripts) inside(m members, name string) members {
	if m.doc == nil || !m.has(name, '{') {
		return members{}
	}
	inner, err := t.doc.members(m.list[name])
	if err != nil {
		return members{}
	}
	return inner
}

// readPromptfoo reads {"prompt", "output"}, or an array of them.
func (c *Case) readPromptfoo(n *node) error {
	if n.kind == '[' {
		return c.each(n, "a turn {prompt, output}", c.readExchange)
	}
	return c.readExchange(n)
}

func (c *Case) readExchange(n *node) error {
	prompt, output := n.get("prompt"), n.get("output")
	if n.kind != '{' || prompt.absent() || output.absent() {
		return n.errorf("expected a turn {\"prompt\": \"…\", \"output\": \"…\"}")
	}
	if err := c.readPrompt(prompt); err != nil {
		return err
	}
	m := Message{Role: Assistant}
	if calls := m.callsOnly(output); !calls {
		text, err := plainText(output)
		if err != nil {
			return err
		}
		m.Text = text
	}
	c.say(m, output)
	return nil
}

// readPrompt reads a prompt: chat messages, as JSON or as JSON in a string, or a text of the user.
func (c *Case) readPrompt(n *node) error {
	text, err := plainText(n)
	if err != nil {
		return err
	}
	if inner, err := parseDocument(n.doc.file, []byte(text)); err == nil && inner.root.kind == '[' {
		said := &Case{}
		if said.readConversation(inner.root) == nil {
			for _, m := range said.Messages {
				c.say(m, n)
			}
			return nil
		}
	}
	c.say(Message{Role: User, Text: text}, n)
	return nil
}

// callsOnly reads an output that is a list of calls, and reports whether it is one.
func (m *Message) callsOnly(n *node) bool {
	if n.kind != '[' || len(n.members) == 0 {
		return false
	}
	for _, item := range n.members {
		if item.get("function") == nil || m.readCall(item) != nil {
			m.ToolCalls = nil
			return false
		}
	}
	return true
}

// attachment begins a reference to an attachment, in the place of a text.
const attachment = "attachment://"

// An inspection reads messages of Inspect. They are chat messages in which a call's function is a name:
// https://inspect.aisi.org.uk/reference/inspect_ai.model.html (ChatMessage, ToolCall, Content).
type inspection struct {
	*Case
	attachments map[string]string
	taken       int // bytes of attachments so far
}

// readInspect reads {"messages", "attachments"}, or an array of messages.
func (c *Case) readInspect(n *node) error {
	in := &inspection{Case: c, attachments: map[string]string{}}
	if list := n.get("attachments"); !list.absent() && list.kind == '{' {
		for i, key := range list.names {
			in.attachments[key] = list.members[i].text
		}
	}
	list := n
	if n.kind == '{' {
		list = n.get("messages")
	}
	if list.absent() || list.kind != '[' {
		return n.errorf("expected Inspect's messages: an array, or {\"messages\": […]}")
	}
	return c.each(list, "a message", in.message)
}

func (in *inspection) message(n *node) error {
	m := Message{}
	var err error
	if m.Role, err = readRole(n); err != nil {
		return err
	}
	if m.Text, err = in.content(&m, n.get("content")); err != nil {
		return err
	}
	if m.Role == Tool {
		return in.result(m, n)
	}
	err = eachObject(n.get("tool_calls"), "a tool call", func(call *node) error {
		id, err := call.str("id")
		if err != nil {
			return err
		}
		name, err := call.str("function")
		if err != nil {
			return err
		}
		one, err := newCall(call, id, name, call.get("arguments"))
		m.ToolCalls = append(m.ToolCalls, one)
		return err
	})
	if err != nil {
		return err
	}
	if len(m.ToolCalls) > 0 && m.Role != Assistant && m.Role != User {
		return n.errorf("a message of role %s makes tool calls: expected role assistant", m.Role)
	}
	in.say(m, n)
	return nil
}

func (in *inspection) result(m Message, n *node) (err error) {
	if m.ToolCallID, err = n.str("tool_call_id"); err != nil {
		return err
	}
	if m.ToolName, err = n.str("function"); err != nil {
		return err
	}
	if failed := n.get("error"); !failed.absent() {
		m.Failed = true
		if m.Text == "" {
			m.Text, err = failed.str("message")
		}
	}
	in.say(m, n)
	return err
}

func (in *inspection) content(m *Message, n *node) (string, error) {
	if n.absent() || n.kind == '"' {
		return in.text(n)
	}
	if n.kind != '[' {
		return "", n.errorf("content of a wrong kind: expected a string or an array, found %s", n.kindName())
	}
	var texts []string
	for _, part := range n.members {
		kind, err := part.str("type")
		if err != nil {
			return "", err
		}
		text := ""
		switch kind {
		case "text":
			text, err = in.text(part.get("text"))
		case "reasoning":
			in.omits(Reasoning)
			continue
		case "image", "audio", "video", "document", "data":
			text = in.unread(kind, "")
		case "tool_use": // a tool of the vendor, with its result
			text, err = canonicalText(part)
		default:
			err = part.errorf("unknown content %s: expected text, reasoning, image, audio, video, document, data or tool_use", quote(kind))
		}
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}

// text returns a string, or the attachment that it refers to.
func (in *inspection) text(n *node) (string, error) {
	if n.absent() {
		return "", nil
	}
	if n.kind != '"' {
		return "", n.errorf("expected a string, found %s", n.kindName())
	}
	key, _ := strings.CutPrefix(n.text, attachment)
	text, there := in.attachments[key]
	if !there || !strings.HasPrefix(n.text, attachment) {
		return n.text, nil
	}
	if in.taken += len(text); in.taken > MaxFile {
		return "", n.errorf("more than %d MiB of attachments", MaxFile>>20)
	}
	return text, nil
}
