package convo

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

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
	n, err := (&tokens{Decoder: jsontext.NewDecoder(bytes.NewReader(value)), doc: d, base: from}).read(nil, "")
	if err != nil {
		return nil, d.ErrorAt(from, pointer, err.Error())
	}
	n.prefix = pointer
	return n, nil
}

// Look finds a value and what is directly in it, of an array its first elements. What is deeper is passed over, without a Text. Of a value that is not JSON
// it also returns what came before.
func (d *Document) Look(from, to int64, pointer string, most int) (*Node, error) {
	n, err := (&tokens{Decoder: jsontext.NewDecoder(bytes.NewReader(d.raw[from:to])), doc: d, base: from, most: most}).read(nil, "")
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
	if where == "" {
		where = "the document"
	}
	return fmt.Sprintf("%s:%d:%d: at %s (byte %d): %s", e.File, e.Line, e.Column, where, e.Offset, e.Reason)
}

// ErrorAt is an error at a place, with its line and column.
func (d *Document) ErrorAt(offset int64, pointer, reason string) error {
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

// inWords says what is no JSON, what was expected, and how it looks right.
func inWords(syntax *evidence.SyntaxError) string {
	return syntax.Reason + "; expected JSON (RFC 8259) with each name once in an object, for example {\"role\": \"user\", \"content\": \"Hello\"}"
}
