package subject

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// NewDocument returns a file for package transcripts, which reads values in it with Parse. The name is for errors.
func NewDocument(name string, raw []byte) *Document { return &Document{file: name, raw: raw} }

// ParseCard reads an agent's card for Build. Errors about content are of type *Error.
func ParseCard(card []byte) (*Node, error) {
	d, err := parseDocument(CardFile, card)
	if err != nil {
		return nil, err
	}
	return d.root, nil
}

// Parse reads the value between two places, and refuses one without a canonical form. The pointer is that of the value
// in its file, for errors, which are of type *Error.
func (d *Document) Parse(from, to int64, pointer string) (*Node, error) {
	value := d.raw[from:to]
	if len(value) > MaxFile {
		return nil, d.ErrorAt(from, pointer, fmt.Sprintf("a conversation longer than %d MiB", MaxFile>>20))
	}
	if _, err := evidence.Canonical(value); err != nil {
		var syntax *evidence.SyntaxError
		if errors.As(err, &syntax) {
			return nil, d.ErrorAt(from+syntax.Offset, pointer+syntax.Pointer, inWords(syntax))
		}
		return nil, d.ErrorAt(from, pointer, err.Error())
	}
	n, err := (&tokens{jsontext.NewDecoder(bytes.NewReader(value)), d, from}).read(nil, "")
	if err != nil {
		return nil, d.ErrorAt(from, pointer, err.Error())
	}
	n.prefix = pointer
	return n, nil
}

// List puts values of the file together as one array.
func (d *Document) List(items []*Node) *Node {
	list := &Node{doc: d, kind: '[', joined: true, end: int64(len(d.raw)), members: items}
	for i, n := range items {
		n.parent, n.step = list, strconv.Itoa(i)
	}
	return list
}

// A Member is a value that Object gives a name.
type Member struct {
	Name  string
	Value *Node
}

// Object puts values of the file together as one object. Errors about them name the pointer, the member and what is in it.
func (d *Document) Object(from, to int64, pointer string, list ...Member) *Node {
	whole := &Node{doc: d, kind: '{', offset: from, end: to, joined: true, prefix: pointer}
	for _, m := range list {
		m.Value.parent, m.Value.step, m.Value.prefix = whole, m.Name, ""
		whole.names, whole.members = append(whole.names, m.Name), append(whole.members, m.Value)
	}
	return whole
}

// Build makes a case of a conversation and the agent's card, which may be nil, or returns what is wrong with them. The
// source is nil if the conversation was brought by itself. It ignores the option Card.
func Build(card, conversation *Node, from *Source, o Options) (*Case, []error) {
	c := &Case{Form: o.Form, Source: from, checking: o.Check}
	if mistakes := c.build(card, conversation); mistakes != nil {
		return nil, mistakes
	}
	return c, nil
}
