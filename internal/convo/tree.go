package convo

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
	Parent  *Node
	Step    string // the name or index of the value in its parent
	Offset  int64
	End     int64
	Kind    jsontext.Kind
	Text    string // of a string, a number or a literal
	Names   []string
	Members []*Node // of an object (by names), or of an array

	doc    *Document
	joined bool   // put together from values of the file, and not a value of it
	prefix string // of a root that stands inside a larger document: its JSON pointer there
}

// A Document is a file that trees are read from.
type Document struct {
	file string
	raw  []byte

	lenient bool    // an object may have a member twice
	lines   []int32 // how many line ends come before each block: see LineOf
}

// tokens reads a tree from a part of a document that begins at base.
type tokens struct {
	*jsontext.Decoder
	doc  *Document
	base int64
	most int // elements of the root that are found, of which nothing is read; 0: all is read

	room []Node // for values that come
}

// MaxDocument is the longest document that Parse reads, in bytes.
const MaxDocument = 16 << 20

// Parse returns the root of a document. It refuses documents without a canonical form. That includes documents that nest
// too deep to walk. Errors about content are of type *Error.
func Parse(file string, raw []byte) (*Node, error) {
	if len(raw) > MaxDocument {
		return nil, &Error{File: file, Reason: fmt.Sprintf("longer than %d MiB", MaxDocument>>20)}
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, &Error{File: file, Reason: "empty; expected a JSON document"}
	}
	if _, err := evidence.Canonical(raw); err != nil {
		return nil, NotJSON(file, raw, err)
	}
	root, err := ReadTree(file, raw)
	if err != nil {
		return nil, NotJSON(file, raw, err)
	}
	return root, nil
}

// ReadTree returns the root of a document that is known to have a canonical form, of any length.
func ReadTree(file string, raw []byte) (*Node, error) {
	d := &Document{file: file, raw: raw}
	return (&tokens{Decoder: jsontext.NewDecoder(bytes.NewReader(d.raw)), doc: d}).read(nil, "")
}

// block is the distance of the places for which a document knows its lines.
const block = 4096

// LineOf returns the line of a place, from 1. It counts line ends once, and then at most a block of them.
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

// next returns where the next token begins.
func (t *tokens) next() int64 {
	at := t.here()
	for at < int64(len(t.doc.raw)) && strings.IndexByte(" \t\r\n,:", t.doc.raw[at]) >= 0 {
		at++
	}
	return at
}

// read recurses no deeper than evidence.MaxDepth, which was checked before.
func (t *tokens) read(parent *Node, step string) (*Node, error) {
	from := t.next()
	if t.most > 0 && parent != nil {
		n := &Node{doc: t.doc, Parent: parent, Step: step, Kind: t.PeekKind(), Offset: from}
		err := t.SkipValue()
		n.End = t.here()
		return n, err
	}
	token, err := t.ReadToken()
	if err != nil {
		return nil, err
	}
	if len(t.room) == 0 {
		t.room = make([]Node, 16) // one allocation for many
	}
	n := &t.room[0]
	t.room = t.room[1:]
	*n = Node{doc: t.doc, Parent: parent, Step: step, Kind: token.Kind(), Offset: from}
	switch n.Kind {
	case '{':
		return n, t.readObject(n)
	case '[':
		return n, t.readArray(n)
	}
	n.Text = token.String()
	n.End = t.here()
	return n, nil
}

func (t *tokens) readObject(n *Node) error {
	var places map[string]int // of the members of a large object that may have one twice
	for t.PeekKind() != '}' {
		if t.most > 0 && len(n.Names) > 100*t.most { // each takes more memory than it has bytes
			return fmt.Errorf("an object has more than %d members", 100*t.most)
		}
		name, err := t.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		member, err := t.read(n, key)
		if err != nil {
			return err
		}
		if t.doc.lenient {
			if at := n.again(key, &places); at >= 0 {
				n.Members[at] = member
				continue
			}
		}
		n.Names, n.Members = append(n.Names, key), append(n.Members, member)
	}
	_, err := t.ReadToken()
	n.End = t.here()
	return err
}

// again returns where an object has a member already, and notes the place of a new one; -1: it is new.
func (n *Node) again(name string, places *map[string]int) int {
	const few = 32
	if len(n.Names) < few {
		return slices.Index(n.Names, name)
	}
	if *places == nil {
		*places = map[string]int{}
		for i, known := range n.Names {
			(*places)[known] = i
		}
	}
	if at, there := (*places)[name]; there {
		return at
	}
	(*places)[name] = len(n.Names)
	return -1
}

func (t *tokens) readArray(n *Node) error {
	for t.PeekKind() != ']' {
		if t.most > 0 && len(n.Members) == t.most {
			return nil
		}
		member, err := t.read(n, strconv.Itoa(len(n.Members)))
		if err != nil {
			return err
		}
		n.Members = append(n.Members, member)
	}
	_, err := t.ReadToken()
	n.End = t.here()
	return err
}

// Raw returns the value as written in the file. A value that was put together from several is written anew.
func (n *Node) Raw() jsontext.Value {
	if !n.joined {
		return jsontext.Value(n.doc.raw[n.Offset:n.End])
	}
	var b bytes.Buffer
	b.WriteByte(byte(n.Kind))
	for i, m := range n.Members {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.Kind == '{' {
			name, _ := jsontext.AppendQuote(nil, n.Names[i]) // the names are the program's own
			b.Write(name)
			b.WriteByte(':')
		}
		b.Write(m.Raw())
	}
	b.WriteByte(map[jsontext.Kind]byte{'{': '}', '[': ']'}[n.Kind])
	return b.Bytes()
}

// Pointer returns the JSON pointer of the value in its file.
func (n *Node) Pointer() string {
	if n.Parent == nil {
		return n.prefix
	}
	return n.Parent.Pointer() + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(n.Step)
}

// Errorf returns an error of type *Error that names the place of the value.
func (n *Node) Errorf(format string, args ...any) error {
	return n.doc.ErrorAt(n.Offset, n.Pointer(), fmt.Sprintf(format, args...))
}

// At returns the value that begins at an offset. If none does, it returns the one around it.
func (n *Node) At(offset int64) *Node {
	for n.Offset != offset {
		i := slices.IndexFunc(n.Members, func(m *Node) bool { return m.Offset <= offset && offset < m.End })
		if i < 0 {
			return n
		}
		n = n.Members[i]
	}
	return n
}

// Element is an element of an array; nil for everything else.
func (n *Node) Element(i int) *Node {
	if n == nil || n.Kind != '[' || i >= len(n.Members) {
		return nil
	}
	return n.Members[i]
}

// Get returns a member of an object, or nil.
func (n *Node) Get(name string) *Node {
	if n == nil || n.Kind != '{' {
		return nil
	}
	for i, have := range n.Names {
		if have == name {
			return n.Members[i]
		}
	}
	return nil
}

// Has reports whether a member is of a kind.
func (n *Node) Has(name string, kind jsontext.Kind) bool {
	m := n.Get(name)
	return m != nil && m.Kind == kind
}

// Brief returns a member that is a text or a number, at most 200 bytes of it.
func (n *Node) Brief(name string) string {
	m := n.Get(name)
	if m == nil {
		return ""
	}
	return Object{name: m.Raw()}.Brief(name)
}

// Absent reports whether a member is missing or null. Every format here treats the two alike.
func (n *Node) Absent() bool { return n == nil || n.Kind == 'n' }

// First returns the first of several members that is there.
func (n *Node) First(names ...string) *Node {
	for _, name := range names {
		if m := n.Get(name); !m.Absent() {
			return m
		}
	}
	return nil
}

// Empty reports whether a value has no content. Libraries write such members out.
func (n *Node) Empty() bool {
	return n.Kind == 'n' || (n.Kind == '[' || n.Kind == '{') && len(n.Members) == 0
}

// File returns the name of the file that the value stands in.
func (n *Node) File() string { return n.doc.file }

// Lines returns the lines of the file, from 1, in which the value begins and ends.
func (n *Node) Lines() (from, to int) { return n.doc.LineOf(n.Offset), n.doc.LineOf(n.End) }

// IsTrue reports whether the value is there and true.
func (n *Node) IsTrue() bool { return n != nil && n.Kind == 't' }

// KindName returns the kind of the value as messages name it.
func (n *Node) KindName() string {
	if n == nil {
		return "nothing"
	}
	switch n.Kind {
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

// quote shows the beginning of a text in an error.
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return "\"" + s + "\""
}
