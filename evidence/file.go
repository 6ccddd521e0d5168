package evidence

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode reads the JSON of a file into a form and refuses unknown members. sameBytes later checks that it was
// canonical.
func decode(doc []byte, form any) error {
	err := json.Unmarshal(doc, form, json.RejectUnknownMembers(true))
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return &SyntaxError{Pointer: string(semantic.JSONPointer), Offset: semantic.ByteOffset, Reason: reason(semantic)}
	}
	if err != nil {
		return syntaxError(err, int64(len(doc)))
	}
	return nil
}

// DecodeForm reads canonical JSON into a form, a pointer to a struct with its members in canonical order. It returns
// a *SyntaxError if the document has other members, or differs from what the form marshals to.
func DecodeForm(doc []byte, form any) error {
	if err := decode(doc, form); err != nil {
		return err
	}
	return sameBytes(func() ([]byte, error) { return encode(form) }, doc)
}

// encode writes a form. Its members must be in canonical order and its values canonical.
func encode(form any) ([]byte, error) {
	doc, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return doc, nil
}

// sameBytes requires that marshalling what was read gives the same bytes.
func sameBytes(marshal func() ([]byte, error), doc []byte) error {
	again, err := marshal()
	if err != nil {
		return err
	}
	if !bytes.Equal(again, doc) {
		at := firstDifference(again, doc)
		return &SyntaxError{Pointer: pointerAt(doc, at), Offset: at, Reason: "not in the one form that this content may have"}
	}
	return nil
}

func firstDifference(a, b []byte) int64 {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int64(i)
		}
	}
	return int64(n)
}

// pointerAt finds the JSON pointer of the value at an offset of a valid document.
func pointerAt(doc []byte, offset int64) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for dec.InputOffset() <= offset {
		if _, err := dec.ReadToken(); err != nil {
			break
		}
	}
	return string(dec.StackPointer())
}

// shift turns a position in a part of a document into a position in the document.
func shift(err error, doc, part []byte, pointer string) error {
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	at := max(bytes.Index(doc, part), 0)
	return &SyntaxError{Pointer: pointer + syntax.Pointer, Offset: syntax.Offset + int64(at), Reason: syntax.Reason}
}
