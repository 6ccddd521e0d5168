package evidence

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ofFile bounds a record, or the parts of a bundle around the records. The payloads and disclosed values in it have
// their own bounds.
var ofFile = bounds{size: MaxRecord, depth: 2 * MaxDepth}

// byteOrderMark is what some editors put before a text in UTF-8.
const byteOrderMark = "\ufeff"

// CheckEncoding returns a *SyntaxError that says how to convert a text if the text begins as UTF-16: with its byte
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
	return &SyntaxError{Reason: "the text is in UTF-16, and only UTF-8 is read here; convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW, or in PowerShell: Get-Content FILE | Set-Content -Encoding utf8 NEW"}
}

func beginsJSON(c byte) bool { return strings.IndexByte("{[\" \t\r\n", c) >= 0 }

// CutMark removes the byte order mark before a text in UTF-8.
func CutMark(file []byte) []byte {
	rest, _ := bytes.CutPrefix(file, []byte(byteOrderMark))
	return rest
}

// Read opens a record file as Open does, and also a file that lost its canonical form. Editors, mail and JSON
// libraries change line ends, white space, the order of members and the spelling of strings and numbers. None of that
// changes the content. Read restores the canonical form, over which digest and signatures are made. mended reports
// that the file had another form. A document that has no canonical form (see Canonical) is refused with the place,
// and so is everything that Open refuses.
func Read(file []byte) (r *Record, mended bool, err error) {
	if r, err = Open(file); err == nil {
		return r, false, nil
	}
	doc := CutMark(file)
	r, _, err = mend(bytes.TrimSuffix(doc, []byte("\n")), openRecord)
	return r, err == nil, shiftBy(err, len(file)-len(doc))
}

// Mend returns a JSON file in its canonical form, with a line feed at the end. mended reports that the file had
// another form. Its errors are those of Canonical.
func Mend(file []byte) (form []byte, mended bool, err error) {
	doc := CutMark(file)
	form, err = ofFile.canonical(doc)
	if err != nil {
		return nil, false, shiftBy(err, len(file)-len(doc))
	}
	form = append(form, '\n')
	return form, !bytes.Equal(form, file), nil
}

// MendNote returns a signed note without a byte order mark, with plain line feeds, and with exactly one at its end. A
// note can hold nothing else in these places.
func MendNote(note string) string {
	note = strings.ReplaceAll(strings.TrimPrefix(note, byteOrderMark), "\r\n", "\n")
	return strings.TrimRight(note, "\n") + "\n"
}

// mend opens a document as it is. If that fails, mend opens its canonical form.
func mend[T any](doc []byte, open func([]byte) (T, error)) (opened T, mended bool, err error) {
	opened, err = open(doc)
	if err == nil {
		return opened, false, nil
	}
	form, refused := ofFile.canonical(doc)
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
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	return &SyntaxError{Pointer: syntax.Pointer, Offset: offsetOf(doc, syntax.Pointer), Reason: syntax.Reason}
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

func shiftBy(err error, n int) error {
	var syntax *SyntaxError
	if n == 0 || !errors.As(err, &syntax) {
		return err
	}
	return &SyntaxError{Pointer: syntax.Pointer, Offset: syntax.Offset + int64(n), Reason: syntax.Reason}
}

// firstMember is the name of the first member of a JSON object; "" if the beginning of the file does not show it.
func firstMember(start []byte) string {
	dec := jsontext.NewDecoder(bytes.NewReader(CutMark(start)))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return ""
	}
	name, err := dec.ReadToken()
	if err != nil || name.Kind() != '"' {
		return ""
	}
	return name.String()
}

// BeginsAsRecord reports whether a file begins as a record does: with one of its members, in any order and spelling.
// A payload has none of these members, and a bundle has none.
func BeginsAsRecord(start []byte) bool {
	switch firstMember(start) {
	case "certificates", "digest", "disclosures", "log", "payload", "properties", "revocations", "signatures", "timestamps":
		return true
	}
	return false
}

// BeginsAsBundle reports whether a file begins as a bundle does, with its members in any order and spelling.
func BeginsAsBundle(start []byte) bool {
	switch firstMember(start) {
	case "checkpoint", "checkpoint_timestamps", "format", "records":
		return true
	}
	return false
}
