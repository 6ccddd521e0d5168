package subject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
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

// A reader reads the conversations of a file.
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

// parse reads a value.
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

// several reads a list of conversations.
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

// messages reads lines that are the messages of one conversation.
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
	t.build("", t.file.List(list), t.options.Form, nil)
}

// isWhole reports whether a value is a whole conversation, and not a message.
func isWhole(n *convo.Node) bool {
	value := bytes.TrimSpace(n.Raw())
	return bytes.HasPrefix(value, []byte("[")) || convo.ObjectOf(value).IsConversation()
}

// more returns an error if there can be no more cases.
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

// conversation reads the conversation at a place.
func (t *reader) conversation(name string, at *convo.Node, from *Source) {
	n, err := t.parse(at)
	if err != nil {
		t.wrong(name, err)
		return
	}
	t.build(name, n, t.options.Form, from)
}

func (t *reader) build(name string, n *convo.Node, form Form, from *Source) {
	c := &Case{Form: form, Source: from, checking: t.options.Check}
	if mistakes := c.build(t.card, n); mistakes != nil {
		t.wrong(name, mistakes...)
		return
	}
	t.found = append(t.found, Brought{Name: name, Case: c})
}

// wrong adds a case that cannot be read.
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
