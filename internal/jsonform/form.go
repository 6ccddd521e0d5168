package jsonform

import (
	"bytes"
	"errors"
	"fmt"

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
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
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
