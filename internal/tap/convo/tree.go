package convo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
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
	return (&tokens{Decoder: jsontext.NewDecoder(bytes.NewBuffer(d.raw)), doc: d}).read(nil, "")
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

// Raw returns the value as written in the file; nil: there is none. A value that was put together from several is written anew.
func (n *Node) Raw() jsontext.Value {
	switch {
	case n == nil:
		return nil
	case !n.joined:
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

// List are the elements of an array; none of everything else.
func (n *Node) List() []*Node {
	if n == nil || n.Kind != '[' {
		return nil
	}
	return n.Members
}

// OneOrMore are the elements of an array. Google's servers also read its one element alone, as Google's own documents write it, and other servers write it so.
func (n *Node) OneOrMore() []*Node {
	if n != nil && n.Kind == '{' {
		return []*Node{n}
	}
	return n.List()
}

// ByName are the members of an object, as they are written, but for some; none of everything else.
func (n *Node) ByName(but ...string) map[string]any {
	members := map[string]any{}
	if n != nil {
		for i, name := range n.Names {
			if !slices.Contains(but, name) {
				members[name] = n.Members[i].Raw()
			}
		}
	}
	return members
}

// Within returns a member that is an object, or nil.
func (n *Node) Within(name string) *Node {
	if !n.Has(name, '{') {
		return nil
	}
	return n.Get(name)
}

// IsConversation reports whether an object is a whole conversation, and not one of its messages.
func (n *Node) IsConversation() bool {
	if n.Has("role", '"') || n.Has("parts", '[') {
		return false
	}
	return n.Has("messages", '[') || n.Has("history", '[') || n.Has("contents", '[') || n.Has("task", '{') || n.Has("input", '[') || n.Has("input", '"') && n.Has("output", '[')
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

// Brief returns a member in brief.
func (n *Node) Brief(name string) string { return Brief(n.Get(name).Raw()) }

// Brief is a text or a number, at most 200 bytes of it; "" for every other value.
func Brief(v jsontext.Value) string {
	const most = 200
	text := string(v)
	if kind := v.Kind(); kind != '0' && (kind != '"' || json.Unmarshal(v, &text, lenient) != nil) {
		return ""
	}
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
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

// NewDocument returns a file in which values are read with Document.Parse. The name is for errors.
func NewDocument(name string, raw []byte) *Document { return &Document{file: name, raw: raw} }

// Parse reads the value between two places, and refuses one without a canonical form. The pointer is that of the value
// in its file, for errors, which are of type *Error.
func (d *Document) Parse(from, to int64, pointer string) (*Node, error) {
	value := d.raw[from:to]
	if len(value) > MaxDocument {
		return nil, d.ErrorAt(from, pointer, fmt.Sprintf("a conversation longer than %d MiB", MaxDocument>>20))
	}
	if _, err := evidence.Canonical(value); err != nil {
		var syntax *evidence.SyntaxError
		if errors.As(err, &syntax) {
			return nil, d.ErrorAt(from+syntax.Offset, pointer+syntax.Pointer, inWords(syntax))
		}
		return nil, d.ErrorAt(from, pointer, err.Error())
	}
	n, err := (&tokens{Decoder: jsontext.NewDecoder(bytes.NewBuffer(value)), doc: d, base: from}).read(nil, "")
	if err != nil {
		return nil, d.ErrorAt(from, pointer, err.Error())
	}
	n.prefix = pointer
	return n, nil
}

// Look finds a value and what is directly in it, of an array its first elements. What is deeper is passed over, without a Text. Of a value that is not JSON
// it also returns what came before.
func (d *Document) Look(from, to int64, pointer string, most int) (*Node, error) {
	n, err := (&tokens{Decoder: jsontext.NewDecoder(bytes.NewBuffer(d.raw[from:to])), doc: d, base: from, most: most}).read(nil, "")
	if n != nil {
		n.prefix = pointer
	}
	return n, err
}

// Whole is the file as one value, unread.
func (d *Document) Whole() *Node { return &Node{doc: d, End: int64(len(d.raw))} }

// Rows are the lines that are not blank, unread.
func (d *Document) Rows() (rows []*Node) {
	from := int64(0)
	for line := range bytes.Lines(d.raw) {
		if len(bytes.TrimSpace(line)) > 0 {
			rows = append(rows, &Node{doc: d, Offset: from, End: from + int64(len(bytes.TrimRight(line, "\r\n")))})
		}
		from += int64(len(line))
	}
	return rows
}

// List puts values of the file together as one array.
func (d *Document) List(items []*Node) *Node {
	list := &Node{doc: d, Kind: '[', joined: true, End: int64(len(d.raw)), Members: items}
	for i, n := range items {
		n.Parent, n.Step = list, strconv.Itoa(i)
	}
	return list
}

// A Member is a value that Object gives a name.
type Member struct {
	Name  string
	Value *Node
}

// Object puts values of the file together as one object in the place of another. Errors about them name its pointer, the member and what is in it.
func (d *Document) Object(at *Node, list ...Member) *Node {
	whole := &Node{doc: d, Kind: '{', Offset: at.Offset, End: at.End, joined: true, prefix: at.Pointer()}
	for _, m := range list {
		m.Value.Parent, m.Value.Step, m.Value.prefix = whole, m.Name, ""
		whole.Names, whole.Members = append(whole.Names, m.Name), append(whole.Members, m.Value)
	}
	return whole
}

// An Error says what is wrong in a file, where, and what was expected.
type Error struct {
	File    string // "agent-card.json", "conversation.json", or "evidence"
	Line    int    // from 1; 0 if the error is about the file as a whole
	Column  int    // in bytes, from 1
	Offset  int64  // in bytes, from 0
	Pointer string // RFC 6901 JSON pointer; "" means the whole document
	Reason  string

	Missing bool // there is no such file
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	where := e.Pointer
	where = cmp.Or(where, "the document")
	return fmt.Sprintf("%s:%d:%d: at %s (byte %d): %s", e.File, e.Line, e.Column, where, e.Offset, e.Reason)
}

// ErrorAt is an error at a place, with its line and column. Of what was recorded nobody is shown them, and to count them for each of many mistakes takes long.
func (d *Document) ErrorAt(offset int64, pointer, reason string) error {
	if d.lenient {
		return &Error{Offset: offset, Pointer: pointer, Reason: reason}
	}
	offset = min(max(offset, 0), int64(len(d.raw)))
	column := offset - int64(bytes.LastIndexByte(d.raw[:offset], '\n'))
	return &Error{File: d.file, Line: d.LineOf(offset), Column: int(column), Offset: offset, Pointer: pointer, Reason: reason}
}

// ErrorIn is an error at a place of a document.
func ErrorIn(file string, doc []byte, offset int64, pointer, reason string) error {
	return NewDocument(file, doc).ErrorAt(offset, pointer, reason)
}

// NotJSON turns an error of the canonicaliser into an Error.
func NotJSON(file string, doc []byte, err error) error {
	var syntax *evidence.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("%s: %w", file, err)
	}
	return ErrorIn(file, doc, syntax.Offset, syntax.Pointer, inWords(syntax))
}

func inWords(syntax *evidence.SyntaxError) string {
	return syntax.Reason + "; expected JSON (RFC 8259) with each name once in an object, for example {\"role\": \"user\", \"content\": \"Hello\"}"
}

// lenient reads JSON as most libraries do: the last of two members counts, and U+FFFD stands for a broken character.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// ObjectOf reads an object; nil: it is none.
func ObjectOf(v jsontext.Value) *Node {
	if v.Kind() != '{' || !v.IsValid(lenient) {
		return nil
	}
	n, _ := ReadLenient(v) // it is valid
	return n
}

// Outline finds what is directly in a value, as Look does, whatever is in that; nil: it is no JSON, or has more members than any reader takes values.
func Outline(v jsontext.Value) *Node {
	t := &tokens{Decoder: jsontext.NewDecoder(bytes.NewBuffer(v), lenient), doc: &Document{raw: v, lenient: true}, most: evidence.MaxValues / 100}
	if n, err := t.read(nil, ""); err == nil && v.IsValid(lenient) {
		return n
	}
	return nil
}
