package subject

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// A Node is one JSON value and its position in the file.
type Node struct {
	doc     *Document
	parent  *Node
	step    string // the name or index of the value in its parent
	offset  int64
	end     int64
	kind    jsontext.Kind
	text    string // of a string, a number or a literal
	names   []string
	members []*Node // of an object (by names), or of an array
	joined  bool    // put together from values of the file, and not a value of it
	prefix  string  // of a root that stands inside a larger document: its JSON pointer there
}

// A Document is a file that was parsed into a tree.
type Document struct {
	file string
	raw  []byte
	root *Node

	lines []int32 // how many line ends come before each block: see LineOf
}

// tokens reads a tree from a part of a document that begins at base.
type tokens struct {
	*jsontext.Decoder
	doc  *Document
	base int64
}

// parseDocument refuses documents without a canonical form. That includes documents that nest too deep to walk.
func parseDocument(file string, raw []byte) (*Document, error) {
	if len(raw) > MaxFile {
		return nil, &Error{File: file, Reason: fmt.Sprintf("longer than %d MiB", MaxFile>>20)}
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, &Error{File: file, Reason: "empty; expected a JSON document"}
	}
	if _, err := evidence.Canonical(raw); err != nil {
		return nil, notJSON(file, raw, err)
	}
	d := &Document{file: file, raw: raw}
	root, err := d.tree()
	if err != nil {
		return nil, notJSON(file, raw, err)
	}
	d.root = root
	return d, nil
}

// tree reads the whole document.
func (d *Document) tree() (*Node, error) {
	return (&tokens{jsontext.NewDecoder(bytes.NewReader(d.raw)), d, 0}).read(nil, "")
}

// block is the distance of the places for which a document knows its lines.
const block = 4096

// lineOf returns the line of a place, from 1. It counts line ends once, and then at most a block of them.
func (d *Document) LineOf(offset int64) int {
	if d.lines == nil {
		d.lines = make([]int32, 1, len(d.raw)/block+1)
		for at := block; at <= len(d.raw); at += block {
			d.lines = append(d.lines, d.lines[len(d.lines)-1]+int32(bytes.Count(d.raw[at-block:at], []byte{'\n'})))
		}
	}
	k := offset / block
	return int(d.lines[k]) + bytes.Count(d.raw[k*block:offset], []byte{'\n'}) + 1
}

func (t *tokens) here() int64 { return t.base + t.InputOffset() }

// read recurses no deeper than evidence.MaxDepth, which was checked before.
func (t *tokens) read(parent *Node, step string) (*Node, error) {
	token, err := t.ReadToken()
	if err != nil {
		return nil, err
	}
	n := &Node{doc: t.doc, parent: parent, step: step, kind: token.Kind()}
	n.offset = t.here() - 1
	switch n.kind {
	case '{':
		return n, t.readObject(n)
	case '[':
		return n, t.readArray(n)
	}
	n.text = token.String()
	n.end = t.here()
	n.offset = n.scalarStart()
	return n, nil
}

func (t *tokens) readObject(n *Node) error {
	for t.PeekKind() != '}' {
		name, err := t.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		member, err := t.read(n, key)
		if err != nil {
			return err
		}
		n.names, n.members = append(n.names, key), append(n.members, member)
	}
	_, err := t.ReadToken()
	n.end = t.here()
	return err
}

func (t *tokens) readArray(n *Node) error {
	for t.PeekKind() != ']' {
		member, err := t.read(n, strconv.Itoa(len(n.members)))
		if err != nil {
			return err
		}
		n.members = append(n.members, member)
	}
	_, err := t.ReadToken()
	n.end = t.here()
	return err
}

// scalarStart walks back from the end, because the decoder tells only where a token ends.
func (n *Node) scalarStart() int64 {
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

// raw returns the value as written in the file. A value that was put together from several is written anew.
func (n *Node) raw() jsontext.Value {
	if !n.joined {
		return jsontext.Value(n.doc.raw[n.offset:n.end])
	}
	var b bytes.Buffer
	b.WriteByte(byte(n.kind))
	for i, m := range n.members {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.kind == '{' {
			name, _ := jsontext.AppendQuote(nil, n.names[i]) // the names are the program's own
			b.Write(name)
			b.WriteByte(':')
		}
		b.Write(m.raw())
	}
	b.WriteByte(map[jsontext.Kind]byte{'{': '}', '[': ']'}[n.kind])
	return b.Bytes()
}

func (n *Node) pointer() string {
	if n.parent == nil {
		return n.prefix
	}
	return n.parent.pointer() + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(n.step)
}

// Errorf returns an error of type *Error that names the place of the value.
func (n *Node) Errorf(format string, args ...any) error {
	return n.doc.ErrorAt(n.offset, n.pointer(), fmt.Sprintf(format, args...))
}

// at returns the value that begins at an offset. If none does, it returns the one around it.
func (n *Node) at(offset int64) *Node {
	for n.offset != offset {
		i := slices.IndexFunc(n.members, func(m *Node) bool { return m.offset <= offset && offset < m.end })
		if i < 0 {
			return n
		}
		n = n.members[i]
	}
	return n
}

// get returns a member of an object, or nil.
func (n *Node) get(name string) *Node {
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
func (n *Node) absent() bool { return n == nil || n.kind == 'n' }

// str reads an optional string member.
func (n *Node) str(name string) (string, error) {
	m := n.get(name)
	if m.absent() {
		return "", nil
	}
	if m.kind != '"' {
		return "", m.Errorf("expected a string, found %s", m.KindName())
	}
	return m.text, nil
}

// Kind returns the kind of the value.
func (n *Node) Kind() jsontext.Kind { return n.kind }

func (n *Node) isTrue() bool { return n != nil && n.kind == 't' }

// KindName returns the kind of the value as messages name it.
func (n *Node) KindName() string {
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
