package evidence

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Steady gives an error that wraps one of the JSON library words for people: where in the document, what is wanted there and what
// was found. The library's own words name types of Go, and it says what it refuses in one of two ways, which it chooses anew each
// time that a program starts; a report has to be the same whoever makes it. Any other error is returned as it is.
func Steady(err error) error {
	var refused *json.SemanticError
	var broken *jsontext.SyntacticError
	switch {
	case errors.As(err, &refused):
		return steadyError{err, strings.Replace(err.Error(), refused.Error(), wording(refused), 1)}
	case errors.As(err, &broken):
		return steadyError{err, strings.Replace(err.Error(), "jsontext: ", "", 1)}
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
	found := kindOf(e.JSONKind)
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

func kindOf(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject, jsontext.KindEndObject:
		return "an object"
	case jsontext.KindBeginArray, jsontext.KindEndArray:
		return "an array"
	}
	return ""
}

// wanted is the kind of JSON value that is read into a type.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a string"
		}
		return "an array"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number in range"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	}
	return "another value"
}

// reason is wording without the place, for an error that says that itself.
func reason(e *json.SemanticError) string {
	_, why, _ := strings.Cut(wording(e), ": ")
	return why
}
