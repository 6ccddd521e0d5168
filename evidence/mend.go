package evidence

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ofFile bounds a record, or what stands around the records of a bundle. Payloads and the values of disclosures in it, which are nested a few
// deep, have bounds of their own.
var ofFile = bounds{size: MaxRecord, depth: 2 * MaxDepth}

// byteOrderMark is what some editors put before a text in UTF-8.
const byteOrderMark = "\ufeff"

// CheckEncoding returns a *SyntaxError that says how to convert a text, if it begins as one in UTF-16 does: with its byte order mark, or with what
// JSON begins with in two bytes. No text in UTF-8 that is read here begins so.
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

// CutMark takes away the byte order mark with which some programs begin a text in UTF-8.
func CutMark(file []byte) []byte {
	rest, _ := bytes.CutPrefix(file, []byte(byteOrderMark))
	return rest
}

// Read opens a record file as Open does, and one whose form was lost on the way: editors, mail and JSON libraries change line ends, white space,
// the order of members and the spelling of strings and numbers, and none of that changes what the document says. It is read in
// its one canonical form, over which digest and signatures are. Mended reports that this was not the form of the file. A document
// that has no such form (see Canonical) is refused with the place, and so is whatever Open refuses.
func Read(file []byte) (r *Record, mended bool, err error) {
	if r, err = Open(file); err == nil {
		return r, false, nil
	}
	doc := CutMark(file)
	r, _, err = mend(trimLF(doc), openRecord)
	return r, err == nil, shiftBy(err, len(file)-len(doc))
}

// Mend returns a file in JSON in the one form of its content: canonical, and a line feed at the end. Mended reports that this was not the form of the
// file.
func Mend(file []byte) (form []byte, mended bool, err error) {
	doc := CutMark(file)
	form, err = ofFile.canonical(doc)
	if err != nil {
		return nil, false, shiftBy(err, len(file)-len(doc))
	}
	form = append(form, '\n')
	return form, !bytes.Equal(form, file), nil
}

// MendNote returns a signed note without a byte order mark, with plain line feeds, and with one of them at its end. A note can hold nothing
// else in these places.
func MendNote(note string) string {
	note = strings.ReplaceAll(strings.TrimPrefix(note, byteOrderMark), "\r\n", "\n")
	return strings.TrimRight(note, "\n") + "\n"
}

// mend has a document opened as it stands, and, where that fails, in its canonical form.
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

// placedIn gives an error about a document in canonical form the offset that its place has in the document as it stands.
func placedIn(doc []byte, err error) error {
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	return &SyntaxError{Pointer: syntax.Pointer, Offset: offsetOf(doc, syntax.Pointer), Reason: syntax.Reason}
}

// offsetOf finds where the value with a pointer begins in a valid document.
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

func trimLF(doc []byte) []byte {
	doc, _ = bytes.CutSuffix(doc, []byte("\n"))
	return doc
}

// firstMember is the name of the first member of an object in JSON, as far as the beginning of the file shows it; "" if it does not.
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

// BeginsAsRecord reports whether a file begins as a record does: with one of its members, in whatever order and form they stand. A
// payload has none of them, and neither has a bundle.
func BeginsAsRecord(start []byte) bool {
	switch firstMember(start) {
	case "certificates", "digest", "disclosures", "log", "payload", "signatures", "timestamps":
		return true
	}
	return false
}

// BeginsAsBundle reports whether a file begins as a bundle does, in whatever order and form its members stand.
func BeginsAsBundle(start []byte) bool {
	switch firstMember(start) {
	case "checkpoint", "checkpoint_timestamps", "format", "records":
		return true
	}
	return false
}
