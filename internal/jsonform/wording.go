package jsonform

import (
	"errors"
	"fmt"
	"strings"

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
