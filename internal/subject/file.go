package subject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Limits of a file with conversations. Each conversation has the limit MaxFile of its own.
const (
	MaxTranscript = 128 << 20 // bytes of the file
	MaxCases      = 1000      // conversations in it
)

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

// ReadTranscripts reads a file without a folder: a conversation in any form, JSON Lines of messages or of
// conversations, a log of Inspect, or results of promptfoo. The name is for errors. It returns an error if the file as
// a whole cannot be read. A conversation that is wrong does not keep the others from being read.
func ReadTranscripts(name string, data []byte, o Options) ([]Brought, error) {
	t := &transcripts{options: o, doc: &document{file: name, raw: data}}
	if len(data) > MaxTranscript {
		return nil, &Error{File: name, Reason: fmt.Sprintf("longer than %d MiB: split it", MaxTranscript>>20)}
	}
	if o.Card != nil {
		card, err := parseDocument(CardFile, o.Card)
		if err != nil {
			return nil, err
		}
		t.card = card.root
	}
	if err := t.read(); err != nil {
		return nil, err
	}
	return t.found, nil
}

// transcripts reads the conversations of a file.
type transcripts struct {
	options Options
	card    *node
	doc     *document
	found   []Brought
	size    int // bytes of the conversations
}

// A span is a value in a file.
type span struct {
	name     string // of a member
	from, to int64
}

func (t *transcripts) read() error {
	d := t.doc
	if bytes.HasPrefix(d.raw, []byte("PK\x03\x04")) {
		return t.readZip()
	}
	whole := span{to: int64(len(d.raw))}
	if len(bytes.TrimSpace(d.raw)) == 0 {
		return &Error{File: d.file, Reason: "empty: expected a conversation, for example [{\"role\": \"user\", \"content\": \"Hello\"}]"}
	}
	if !d.isLines() {
		return t.value(whole)
	}
	return t.lines()
}

// isLines reports whether the file has more than one JSON value.
func (d *document) isLines() bool {
	dec := jsontext.NewDecoder(bytes.NewReader(d.raw))
	if dec.SkipValue() != nil {
		return false
	}
	_, err := dec.ReadToken()
	return !errors.Is(err, io.EOF)
}

// value reads a file that is one JSON value.
func (t *transcripts) value(at span) error {
	if t.options.Form == "" {
		read, err := t.container(at)
		if read != nil {
			return read()
		}
		if err != nil {
			return err
		}
	}
	t.conversation("", at, "", nil)
	return nil
}

// container recognises files that hold several conversations, by their members. It returns nil for a conversation.
func (t *transcripts) container(at span) (func() error, error) {
	d := t.doc
	switch jsontext.Value(bytes.TrimLeft(d.raw[at.from:at.to], " \t\r\n")).Kind() {
	case '[':
		items, err := d.elements(at)
		if err != nil || len(items) == 0 || !d.isConversation(items[0]) {
			return nil, nil // whoever reads it as a conversation says what is wrong
		}
		return func() error { return t.several(items) }, nil
	case '{':
	default:
		return nil, nil
	}
	members, err := d.members(at)
	if err != nil {
		return nil, nil
	}
	switch {
	case members.has("samples", '[') && members.has("eval", '{'):
		return func() error { return t.inspectLog(members) }, nil
	case members.has("messages", '[') && members.has("epoch", '0'):
		return func() error { t.inspectSample(at, ""); return nil }, nil
	case members.has("simulations", '['):
		return func() error { return t.simulations(members) }, nil
	case members.has("results", '{'), members.has("results", '['):
		return func() error { return t.promptfoo(members) }, nil
	}
	return nil, nil
}

// several reads a list of conversations.
func (t *transcripts) several(items []span) error {
	for i, item := range items {
		if err := t.room(item); err != nil {
			return err
		}
		t.conversation(strconv.Itoa(i+1), item, "/"+strconv.Itoa(i), nil)
	}
	return nil
}

// room returns an error if there are too many conversations.
func (t *transcripts) room(at span) error {
	if len(t.found) == MaxCases {
		return t.doc.errorAt(at.from, "", fmt.Sprintf("more than %d conversations in a file: split it", MaxCases))
	}
	if t.size += int(at.to - at.from); t.size > MaxTranscript {
		return t.doc.errorAt(at.from, "", fmt.Sprintf("more than %d MiB of conversations: split the file", MaxTranscript>>20))
	}
	return nil
}

// lines reads JSON Lines: each line is a message of one conversation, or each line is a conversation.
func (t *transcripts) lines() error {
	d := t.doc
	lines := d.split()
	first := d.isConversation(lines[0])
	if !first {
		t.messages(lines)
		return nil
	}
	for _, line := range lines {
		if err := t.room(line); err != nil {
			return err
		}
		number := strconv.Itoa(d.lineOf(line.from))
		if !d.isConversation(line) {
			err := d.errorAt(line.from, "", "expected a conversation, because line 1 of the file is one: either every line is a conversation, or every line is a message of the same one")
			t.found = append(t.found, Brought{Name: number, Mistakes: []error{err}})
			continue
		}
		t.conversation(number, line, "", nil)
	}
	return nil
}

// split returns the lines that are not blank.
func (d *document) split() []span {
	var lines []span
	from := int64(0)
	for line := range bytes.Lines(d.raw) {
		end := from + int64(len(line))
		if len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, span{from: from, to: from + int64(len(bytes.TrimRight(line, "\r\n")))})
		}
		from = end
	}
	return lines
}

// messages reads lines that are the messages of one conversation.
func (t *transcripts) messages(lines []span) {
	d := t.doc
	list := &node{doc: d, kind: '[', joined: true, end: int64(len(d.raw))}
	var mistakes []error
	for i, line := range lines {
		n, err := d.parse(line, "/"+strconv.Itoa(i))
		if err == nil && n.kind != '{' {
			err = n.errorf("expected a message in each line, for example {\"role\": \"user\", \"content\": \"Hello\"}, found %s", n.kindName())
		}
		if err == nil && d.isConversation(line) {
			err = n.errorf("expected a message, because line 1 of the file is one, found a whole conversation: either every line is a conversation, or every line is a message of the same one")
		}
		if err != nil {
			mistakes = append(mistakes, err)
			if !t.options.Check || len(mistakes) == mostMistakes {
				break
			}
			continue
		}
		n.parent, n.step = list, strconv.Itoa(i)
		list.members = append(list.members, n)
	}
	if mistakes != nil {
		t.found = append(t.found, Brought{Mistakes: mistakes})
		return
	}
	t.build("", list, t.options.Form, nil)
}

// isConversation reports whether a value is a whole conversation, and not a message.
func (d *document) isConversation(at span) bool {
	value := bytes.TrimSpace(d.raw[at.from:at.to])
	if len(value) == 0 {
		return false
	}
	if value[0] == '[' {
		return true
	}
	members, err := d.members(at)
	if err != nil || members.has("role", '"') {
		return false
	}
	for _, name := range []string{"messages", "history", "contents"} {
		if members.has(name, '[') {
			return true
		}
	}
	return members.has("task", '{') || members.has("input", '[') || members.has("input", '"') && members.has("output", '[')
}

// conversation reads the conversation at a place.
func (t *transcripts) conversation(name string, at span, pointer string, from *Source) {
	n, err := t.doc.parse(at, pointer)
	if err != nil {
		t.found = append(t.found, Brought{Name: name, Mistakes: []error{err}})
		return
	}
	t.build(name, n, t.options.Form, from)
}

func (t *transcripts) build(name string, n *node, form Form, from *Source) {
	c := &Case{Form: form, Source: from, checking: t.options.Check}
	mistakes := c.build(t.card, n)
	if mistakes != nil {
		c = nil
	}
	t.found = append(t.found, Brought{Name: name, Case: c, Mistakes: mistakes})
}

// members are those of an object, by name.
type members struct {
	doc  *document
	list map[string]span
}

func (m members) get(name string) (span, bool) {
	at, there := m.list[name]
	return at, there
}

func (m members) has(name string, kind jsontext.Kind) bool {
	at, there := m.list[name]
	return there && jsontext.Value(m.doc.raw[at.from:at.to]).Kind() == kind
}

// text returns a member that is a string or a number as text, at most 200 bytes of it.
func (m members) text(name string) string {
	at, there := m.list[name]
	if !there {
		return ""
	}
	value := jsontext.Value(m.doc.raw[at.from:at.to])
	const most = 200
	text := ""
	switch value.Kind() {
	case '"':
		text = plain(value)
	case '0':
		text = string(value)
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// members finds the members of an object without reading what is in them.
func (d *document) members(at span) (members, error) {
	found := members{d, map[string]span{}}
	dec := jsontext.NewDecoder(bytes.NewReader(d.raw[at.from:at.to]))
	if _, err := dec.ReadToken(); err != nil {
		return found, err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return found, err
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return found, err
		}
		to := at.from + dec.InputOffset()
		found.list[key] = span{key, to - int64(len(value)), to}
	}
	_, err := dec.ReadToken()
	return found, err
}

// elements finds the elements of an array.
func (d *document) elements(at span) ([]span, error) {
	var found []span
	dec := jsontext.NewDecoder(bytes.NewReader(d.raw[at.from:at.to]))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for kind := dec.PeekKind(); kind != ']' && kind != jsontext.KindInvalid; kind = dec.PeekKind() {
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		to := at.from + dec.InputOffset()
		found = append(found, span{from: to - int64(len(value)), to: to})
	}
	_, err := dec.ReadToken()
	return found, err
}

// parse reads the value at a place, and refuses one without a canonical form.
func (d *document) parse(at span, pointer string) (*node, error) {
	value := d.raw[at.from:at.to]
	if len(value) > MaxFile {
		return nil, d.errorAt(at.from, pointer, fmt.Sprintf("a conversation longer than %d MiB", MaxFile>>20))
	}
	if _, err := evidence.Canonical(value); err != nil {
		var syntax *evidence.SyntaxError
		if errors.As(err, &syntax) {
			return nil, d.errorAt(at.from+syntax.Offset, pointer+syntax.Pointer, syntax.Reason)
		}
		return nil, d.errorAt(at.from, pointer, err.Error())
	}
	n, err := (&tokens{jsontext.NewDecoder(bytes.NewReader(value)), d, at.from}).read(nil, "")
	if err != nil {
		return nil, d.errorAt(at.from, pointer, err.Error())
	}
	n.prefix = pointer
	return n, nil
}
