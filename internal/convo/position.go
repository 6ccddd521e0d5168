package convo

import (
	"bytes"
	"errors"
	"fmt"

	"jurat/evidence"
)

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
