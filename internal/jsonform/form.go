package jsonform

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads the JSON of a file into a form and refuses unknown members. SameBytes later checks that it was
// canonical.
func Decode(doc []byte, form any) error {
	if err := CheckValues(doc); err != nil {
		return err
	}
	err := json.Unmarshal(doc, form, json.RejectUnknownMembers(true))
	if semantic, is := errors.AsType[*json.SemanticError](err); is {
		return &Error{Pointer: string(semantic.JSONPointer), Offset: semantic.ByteOffset, Reason: reason(semantic)}
	}
	if err != nil {
		return Refusal(err, int64(len(doc)))
	}
	return nil
}

// DecodeForm reads canonical JSON into a form, a pointer to a struct with its members in canonical order. It returns
// an *Error if the document has other members, or differs from what the form marshals to.
func DecodeForm(doc []byte, form any) error {
	if err := Decode(doc, form); err != nil {
		return err
	}
	return SameBytes(func() ([]byte, error) { return Encode(form) }, doc)
}

// Encode writes a form. Its members must be in canonical order and its values canonical.
func Encode(form any) ([]byte, error) {
	doc, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return doc, nil
}

// SameBytes requires that marshalling what was read gives the same bytes.
func SameBytes(marshal func() ([]byte, error), doc []byte) error {
	again, err := marshal()
	if err != nil {
		return err
	}
	if !bytes.Equal(again, doc) {
		at := FirstDifference(again, doc)
		return &Error{Pointer: PointerAt(doc, at), Offset: at, Reason: "not in the one form that this content may have"}
	}
	return nil
}

func FirstDifference(a, b []byte) int64 {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int64(i)
		}
	}
	return int64(n)
}

// PointerAt finds the JSON pointer of the value at an offset of a valid document.
func PointerAt(doc []byte, offset int64) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for dec.InputOffset() <= offset {
		if _, err := dec.ReadToken(); err != nil {
			break
		}
	}
	return string(dec.StackPointer())
}

// Shift turns a position in a part of a document into a position in the document.
func Shift(err error, doc, part []byte, pointer string) error {
	var syntax *Error
	if !errors.As(err, &syntax) {
		return err
	}
	at := max(bytes.Index(doc, part), 0)
	return &Error{Pointer: pointer + syntax.Pointer, Offset: syntax.Offset + int64(at), Reason: syntax.Reason}
}

// ByteOrderMark is what some editors put before a text in UTF-8.
const ByteOrderMark = "\ufeff"

// CheckEncoding returns an *Error that says how to convert a text if the text begins as UTF-16: with its byte
// order mark, or with the first character of JSON in two bytes. No UTF-8 text that jurat reads begins so.
func CheckEncoding(text []byte) error {
	if len(text) < 2 {
		return nil
	}
	first, second := text[0], text[1]
	mark := first == 0xff && second == 0xfe || first == 0xfe && second == 0xff
	if !mark && !(first == 0 && beginsJSON(second)) && !(second == 0 && beginsJSON(first)) {
		return nil
	}
	return &Error{Reason: "the text is in UTF-16, and only UTF-8 is read here; convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW, or in PowerShell: Get-Content FILE | Set-Content -Encoding utf8 NEW"}
}

func beginsJSON(c byte) bool { return strings.IndexByte("{[\" \t\r\n", c) >= 0 }

// CutMark removes the byte order mark before a text in UTF-8.
func CutMark(file []byte) []byte {
	rest, _ := bytes.CutPrefix(file, []byte(ByteOrderMark))
	return rest
}

// Mend opens a document as it is. If that fails, Mend opens its canonical form.
func Mend[T any](b Bounds, doc []byte, open func([]byte) (T, error)) (opened T, mended bool, err error) {
	opened, err = open(doc)
	if err == nil {
		return opened, false, nil
	}
	form, refused := b.Canonical(doc)
	switch {
	case refused != nil:
		return opened, false, refused
	case bytes.Equal(form, doc):
		return opened, false, err
	}
	opened, err = open(form)
	return opened, true, placedIn(doc, err)
}

// placedIn converts the offset of an error in the canonical form into the offset in the document as given.
func placedIn(doc []byte, err error) error {
	var syntax *Error
	if !errors.As(err, &syntax) {
		return err
	}
	return &Error{Pointer: syntax.Pointer, Offset: offsetOf(doc, syntax.Pointer), Reason: syntax.Reason}
}

// offsetOf finds the offset of the value with this pointer in a valid document.
func offsetOf(doc []byte, pointer string) int64 {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for {
		before := dec.InputOffset()
		if _, err := dec.ReadToken(); err != nil {
			return 0
		}
		if string(dec.StackPointer()) == pointer {
			return before + int64(len(doc[before:])-len(bytes.TrimLeft(doc[before:], " \t\r\n:,")))
		}
	}
}

// ShiftBy moves the place that an *Error names.
func ShiftBy(err error, n int) error {
	var syntax *Error
	if n == 0 || !errors.As(err, &syntax) {
		return err
	}
	return &Error{Pointer: syntax.Pointer, Offset: syntax.Offset + int64(n), Reason: syntax.Reason}
}

// A Scanner follows JSON far enough to know where an object ends. Opening the object checks whether it is JSON.
type Scanner struct {
	Depth    int // of objects
	InString bool
	escaped  bool
}

// Step takes in the next byte.
func (s *Scanner) Step(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.InString:
		s.escaped, s.InString = c == '\\', c != '"'
	case c == '"':
		s.InString = true
	case c == '{':
		s.Depth++
	case c == '}':
		s.Depth--
	}
}

// Skim scans a chunk until the object ends, and returns how many bytes it used.
func (s *Scanner) Skim(chunk []byte) int {
	for i := 0; i < len(chunk); i++ {
		if s.InString && !s.escaped {
			i += plain(chunk[i:])
			if i == len(chunk) {
				return i
			}
		}
		if s.Step(chunk[i]); s.Depth == 0 {
			return i + 1
		}
	}
	return len(chunk)
}

// plain counts the bytes up to the next quotation mark or backslash.
func plain(chunk []byte) int {
	end := bytes.IndexByte(chunk, '"')
	if end < 0 {
		end = len(chunk)
	}
	if escape := bytes.IndexByte(chunk[:end], '\\'); escape >= 0 {
		return escape
	}
	return end
}

// MaxValues bounds how many values one text of JSON that others wrote may have. An empty object takes two bytes there, and hundreds in memory.
const MaxValues = 1 << 18

// Values counts what a text of JSON has of commas and opening brackets outside of strings, so it has at most that many values and one more. A string ends at the
// end of a line, too: so the count is right for every part of a text that has several documents, such as a stream of events, whatever is broken before it.
func Values(text []byte) (n int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',', '[', '{':
			n++
		case '"':
			i = endOfString(text, i+1)
		}
	}
	return n
}

// endOfString returns where a string ends that has begun.
func endOfString(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case '"', '\n', '\r':
			return i
		case '\\':
			if i+1 < len(text) && text[i+1] != '\n' && text[i+1] != '\r' {
				i++
			}
		}
	}
	return i
}

// CheckValues returns an *Error if a text has more than MaxValues. It takes no memory: it comes before a text is read into values.
func CheckValues(text []byte) error {
	if len(text) <= MaxValues || Values(text) <= MaxValues {
		return nil
	}
	return &Error{Reason: fmt.Sprintf("more than %d values: commas and opening brackets outside of strings", MaxValues)}
}
