package subject

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/convo"
)

// Limits of a file with conversations. Each conversation has the limit subject.MaxFile of its own.
const (
	MaxTranscripts = 128 << 20 // bytes of the file
	maxCases       = 1000      // conversations in it
)

// ReadTranscripts returns the cases of a file. The name is for errors. It returns an error if it cannot read the file as a whole. A
// conversation that is wrong does not keep the others from being read. Errors about content are of type *tree.Error.
func ReadTranscripts(name string, data []byte, o Options) ([]Brought, error) {
	if len(data) > MaxTranscripts {
		return nil, &Error{File: name, Reason: fmt.Sprintf("longer than %d MiB: split it", MaxTranscripts>>20)}
	}
	t := &reader{options: o, file: newFile(name, evidence.CutMark(data))}
	if o.Card != nil {
		card, err := convo.Parse(CardFile, evidence.CutMark(o.Card))
		if err != nil {
			return nil, err
		}
		t.card = card
	}
	if err := t.read(); err != nil {
		return nil, err
	}
	return t.found, nil
}

// A reader reads the conversations of a file.
type reader struct {
	options Options
	card    *convo.Node
	file    *file
	found   []Brought
	size    int // bytes of the conversations
}

func (t *reader) read() error {
	f := t.file
	if f.isZip() {
		return t.readZip()
	}
	whole := span{to: int64(len(f.raw))}
	if len(bytes.TrimSpace(f.raw)) == 0 {
		return &Error{File: f.name, Line: 1, Column: 1, Reason: "empty: expected a conversation, for example [{\"role\": \"user\", \"content\": \"Hello\"}]"}
	}
	if !f.isLines() {
		return t.value(whole)
	}
	return t.lines()
}

// value reads a file that is one JSON value.
func (t *reader) value(at span) error {
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
func (t *reader) container(at span) (func() error, error) {
	f := t.file
	switch jsontext.Value(bytes.TrimLeft(f.raw[at.from:at.to], " \t\r\n")).Kind() {
	case '[':
		items, err := f.elements(at)
		if err != nil || len(items) == 0 || !f.isConversation(items[0]) {
			return nil, nil // the reader of a conversation says what is wrong
		}
		return func() error { return t.several(items) }, nil
	case '{':
	default:
		return nil, nil
	}
	members, err := f.members(at)
	if err != nil {
		return nil, nil
	}
	switch {
	case members.has("samples", '[') && members.has("eval", '{'):
		return func() error { return t.inspectLog(members) }, nil
	case members.has("messages", '[') && members.has("epoch", '0'):
		return func() error { t.inspectSample(at, ""); return nil }, nil
	case members.has("simulations", '['):
		return nil, f.ErrorAt(at.from, "", "results of tau2-bench are not read: expected a conversation, or results of Inspect or promptfoo, for example [{\"role\": \"user\", \"content\": \"Hello\"}]: bring the messages of a simulation")
	case members.has("results", '{'), members.has("results", '['):
		return func() error { return t.promptfoo(members) }, nil
	}
	return nil, nil
}

// several reads a list of conversations.
func (t *reader) several(items []span) error {
	for i, item := range items {
		if err := t.room(item); err != nil {
			return err
		}
		t.conversation(strconv.Itoa(i+1), item, "/"+strconv.Itoa(i), nil)
	}
	return nil
}

// room returns an error if there are too many conversations.
func (t *reader) room(at span) error {
	if len(t.found) == maxCases {
		return t.file.ErrorAt(at.from, "", fmt.Sprintf("more than %d conversations in a file: split it", maxCases))
	}
	if t.size += int(at.to - at.from); t.size > MaxTranscripts {
		return t.file.ErrorAt(at.from, "", fmt.Sprintf("more than %d MiB of conversations: split the file", MaxTranscripts>>20))
	}
	return nil
}

// conversation reads the conversation at a place.
func (t *reader) conversation(name string, at span, pointer string, from *Source) {
	n, err := t.file.parse(at, pointer)
	if err != nil {
		t.wrong(name, err)
		return
	}
	t.build(name, n, t.options.Form, from)
}

func (t *reader) build(name string, n *convo.Node, form Form, from *Source) {
	c, mistakes := Build(t.card, n, from, Options{Form: form, Check: t.options.Check})
	t.found = append(t.found, Brought{Name: name, Case: c, Mistakes: mistakes})
}

// wrong adds a case that cannot be read.
func (t *reader) wrong(name string, mistakes ...error) {
	t.found = append(t.found, Brought{Name: name, Mistakes: mistakes})
}
