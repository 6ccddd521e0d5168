package jsonform

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Steady rewords an error of the JSON library for people: the place in the document, what is expected there, and what
// was found. The library's own words name Go types and vary from one start of a program to the next; a report must be
// the same on every machine. Steady returns any other error unchanged.
func Steady(err error) error {
	var refused *json.SemanticError
	var broken *jsontext.SyntacticError
	switch {
	case errors.As(err, &refused):
		return steadyError{err, strings.Replace(err.Error(), refused.Error(), wording(refused), 1)}
	case errors.As(err, &broken):
		return steadyError{err, strings.Replace(err.Error(), broken.Error(), worded(broken).Error(), 1)}
	}
	return err
}

type steadyError struct {
	error
	words string
}

func (e steadyError) Error() string { return e.words }

func (e steadyError) Unwrap() error { return e.error }

// wording says what is wrong with a value in the words of JSON.
func wording(e *json.SemanticError) string {
	at := "the document"
	if e.JSONPointer != "" {
		at = string(e.JSONPointer)
	}
	found := kind(e.JSONKind)
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		return at + ": unknown member"
	case e.Err != nil && !errors.Is(e.Err, json.ErrUnknownName):
		return fmt.Sprintf("%s: %v", at, Steady(e.Err))
	case e.GoType != nil && found != "":
		return fmt.Sprintf("%s: want %s, found %s", at, wanted(e.GoType), found)
	case found != "":
		return fmt.Sprintf("%s: %s does not belong there", at, found)
	}
	return at + ": it cannot be read"
}

// worded says in plain words where a text is not JSON, and why.
func worded(e *jsontext.SyntacticError) *Error {
	return &Error{Pointer: string(e.JSONPointer), Offset: e.ByteOffset, Reason: Syntax(e.Err)}
}

// reason is wording without the place, for an error that names the place itself.
func reason(e *json.SemanticError) string {
	_, why, _ := strings.Cut(wording(e), ": ")
	return why
}

// Syntax returns why a text is not JSON, for the error inside a jsontext.SyntacticError.
func Syntax(err error) string {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "the object has this member twice"
	case errors.Is(err, jsontext.ErrNonStringName):
		return "want the name of a member, in double quotes"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the document ends too early"
	}
	// The library's other errors can be told apart only by their texts.
	said := strings.TrimPrefix(err.Error(), "jsontext: ")
	if rest, is := strings.CutPrefix(said, "invalid character "); is {
		if quoted, where, is := cutQuoted(rest); is {
			return "invalid character " + quoted + ": " + expected(quoted, where)
		}
	}
	if escape, is := strings.CutPrefix(said, "invalid escape sequence "); is {
		return "the string has " + strings.TrimSuffix(escape, " in string") + ", which is not an escape sequence of JSON"
	}
	if strings.HasPrefix(said, "invalid surrogate pair ") {
		return "the string has a lone surrogate, which is not a character"
	}
	if other, known := otherWordings[said]; known {
		return other
	}
	return said
}

// otherWordings translates those texts of the library that name no character.
var otherWordings = map[string]string{
	"missing value after object name":                  "want a value after the name",
	"exceeded max depth":                               "nested too deep",
	"mismatching structural token for object or array": "want the bracket that closes the last one opened",
}

// cutQuoted splits a quoted character from the beginning of the library's text.
func cutQuoted(text string) (quoted, rest string, is bool) {
	prefix, err := strconv.QuotedPrefix(text)
	if err != nil { // a byte that is not UTF-8, which the library writes as '\xff'
		var found bool
		if prefix, rest, found = strings.Cut(text, "' "); !found {
			return "", "", false
		}
		return prefix + "'", rest, true
	}
	return prefix, strings.TrimPrefix(text[len(prefix):], " "), true
}

// expected says what belongs where the library found a character. where is the library's name for the place.
func expected(quoted, where string) string {
	c, _, _, err := strconv.UnquoteChar(strings.Trim(quoted, "'"), '\'')
	letter := err == nil && (unicode.IsLetter(c) && c < utf8.RuneSelf || c == '\'')
	literal, inLiteral := strings.CutPrefix(where, "in literal ")
	switch {
	case where == "at start of value" && quoted == "','":
		return "a value is missing beside a comma"
	case where == "at start of value" && letter:
		return "want a value; names and texts must be in double quotes, not single ones"
	case where == "at start of value":
		return "want a value"
	case strings.HasPrefix(where, "at start of string"):
		return "want a text in double quotes"
	case strings.HasPrefix(where, "after object name"):
		return "want a colon after the name"
	case strings.HasPrefix(where, "after object value"):
		return "want a comma or '}' after the member"
	case strings.HasPrefix(where, "after array"):
		return "want a comma or ']' after the element"
	case where == "after top-level value":
		return "want nothing after the end of the JSON value"
	case inLiteral:
		word, _, _ := strings.Cut(literal, " ")
		return "want " + word
	case strings.HasPrefix(where, "in string"):
		return "in a string, write a control character as an escape sequence"
	case strings.HasPrefix(where, "in number"):
		return "want a digit of the number"
	}
	return where
}

// kind names a kind of value with its article; "" if there is none.
func kind(kind jsontext.Kind) string {
	return map[jsontext.Kind]string{jsontext.KindNull: "null", jsontext.KindTrue: "a boolean", jsontext.KindFalse: "a boolean",
		jsontext.KindString: "a string", jsontext.KindNumber: "a number", jsontext.KindBeginObject: "an object", jsontext.KindEndObject: "an object",
		jsontext.KindBeginArray: "an array", jsontext.KindEndArray: "an array"}[kind]
}

// wanted names the kind of JSON value that a Go type is read from, with its article.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case k == reflect.Struct || k == reflect.Map:
		return "an object"
	case k == reflect.String || (k == reflect.Slice || k == reflect.Array) && t.Elem().Kind() == reflect.Uint8:
		return "a string"
	case k == reflect.Slice || k == reflect.Array:
		return "an array"
	case k == reflect.Bool:
		return "a boolean"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "a whole number in range"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	}
	return "another value"
}
