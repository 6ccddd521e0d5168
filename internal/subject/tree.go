package subject

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// A node is one JSON value and its position in the file.
type node struct {
	doc     *document
	parent  *node
	step    string // the name or index of the value in its parent
	offset  int64
	end     int64
	kind    jsontext.Kind
	text    string // of a string, a number or a literal
	names   []string
	members []*node // of an object (by names), or of an array
}

// A document is a file that was parsed into a tree.
type document struct {
	file string
	raw  []byte
	root *node
}

// parseDocument refuses documents without a canonical form. That includes documents that nest too deep to walk.
func parseDocument(file string, raw []byte) (*document, error) {
	if len(raw) > MaxFile {
		return nil, &Error{File: file, Reason: fmt.Sprintf("longer than %d MiB", MaxFile>>20)}
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, &Error{File: file, Reason: "empty; expected a JSON document"}
	}
	if _, err := evidence.Canonical(raw); err != nil {
		return nil, notJSON(file, raw, err)
	}
	d := &document{file: file, raw: raw}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	root, err := d.read(dec, nil, "")
	if err != nil {
		return nil, notJSON(file, raw, err)
	}
	d.root = root
	return d, nil
}

// read recurses no deeper than evidence.MaxDepth, which parseDocument has checked.
func (d *document) read(dec *jsontext.Decoder, parent *node, step string) (*node, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	n := &node{doc: d, parent: parent, step: step, kind: token.Kind()}
	n.offset = dec.InputOffset() - 1
	switch n.kind {
	case '{':
		return n, n.readObject(dec)
	case '[':
		return n, n.readArray(dec)
	}
	n.text = token.String()
	n.end = dec.InputOffset()
	n.offset = n.scalarStart()
	return n, nil
}

func (n *node) readObject(dec *jsontext.Decoder) error {
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		member, err := n.doc.read(dec, n, key)
		if err != nil {
			return err
		}
		n.names, n.members = append(n.names, key), append(n.members, member)
	}
	_, err := dec.ReadToken()
	n.end = dec.InputOffset()
	return err
}

func (n *node) readArray(dec *jsontext.Decoder) error {
	for dec.PeekKind() != ']' {
		member, err := n.doc.read(dec, n, strconv.Itoa(len(n.members)))
		if err != nil {
			return err
		}
		n.members = append(n.members, member)
	}
	_, err := dec.ReadToken()
	n.end = dec.InputOffset()
	return err
}

// scalarStart walks back from the end, because the decoder tells only where a token ends.
func (n *node) scalarStart() int64 {
	raw := n.doc.raw[:n.end]
	if n.kind != '"' {
		i := bytes.LastIndexAny(raw, " \t\r\n:,[{")
		return int64(i + 1)
	}
	for i := len(raw) - 2; i >= 0; i-- {
		if raw[i] == '"' && !escaped(raw, i) {
			return int64(i)
		}
	}
	return n.end
}

// escaped reports whether an odd number of backslashes stands before position i.
func escaped(raw []byte, i int) bool {
	odd := false
	for i--; i >= 0 && raw[i] == '\\'; i-- {
		odd = !odd
	}
	return odd
}

// raw returns the value as written in the file.
func (n *node) raw() jsontext.Value { return jsontext.Value(n.doc.raw[n.offset:n.end]) }

func (n *node) pointer() string {
	if n.parent == nil {
		return ""
	}
	return n.parent.pointer() + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(n.step)
}

func (n *node) errorf(format string, args ...any) error {
	return errorAt(n.doc.file, n.doc.raw, n.offset, n.pointer(), fmt.Sprintf(format, args...))
}

// get returns a member of an object, or nil.
func (n *node) get(name string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for i, have := range n.names {
		if have == name {
			return n.members[i]
		}
	}
	return nil
}

// absent reports whether a member is missing or null. Every format here treats the two alike.
func (n *node) absent() bool { return n == nil || n.kind == 'n' }

// str reads an optional string member.
func (n *node) str(name string) (string, error) {
	m := n.get(name)
	if m.absent() {
		return "", nil
	}
	if m.kind != '"' {
		return "", m.errorf("expected a string, found %s", m.kindName())
	}
	return m.text, nil
}

func (n *node) isTrue() bool { return n != nil && n.kind == 't' }

func (n *node) kindName() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "a boolean"
}
