package subject

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// newDocument returns a file in which values are read with Document.Parse. The name is for errors.
func newDocument(name string, raw []byte) *document { return &document{file: name, raw: raw} }

// Parse reads the value between two places, and refuses one without a canonical form. The pointer is that of the value
// in its file, for errors, which are of type *Error.
func (d *document) Parse(from, to int64, pointer string) (*node, error) {
	value := d.raw[from:to]
	if len(value) > maxDocument {
		return nil, d.ErrorAt(from, pointer, fmt.Sprintf("a conversation longer than %d MiB", maxDocument>>20))
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
func (d *document) List(items []*node) *node {
	list := &node{doc: d, Kind: '[', joined: true, End: int64(len(d.raw)), Members: items}
	for i, n := range items {
		n.Parent, n.Step = list, strconv.Itoa(i)
	}
	return list
}

// A member is a value that Object gives a name.
type member struct {
	Name  string
	Value *node
}

// Object puts values of the file together as one object. Errors about them name the pointer, the member and what is in it.
func (d *document) Object(from, to int64, pointer string, list ...member) *node {
	whole := &node{doc: d, Kind: '{', Offset: from, End: to, joined: true, prefix: pointer}
	for _, m := range list {
		m.Value.Parent, m.Value.Step, m.Value.prefix = whole, m.Name, ""
		whole.Names, whole.Members = append(whole.Names, m.Name), append(whole.Members, m.Value)
	}
	return whole
}
