package jsonform

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

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
