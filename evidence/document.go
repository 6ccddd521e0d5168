package evidence

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/jsonform"
)

const (
	// MaxDocument is the largest payload in bytes, as given and in canonical form. Each part of a record or bundle
	// file has its own bound; the reader of files must bound the whole.
	MaxDocument = 32 << 20
	// MaxDepth is the deepest nesting of arrays and objects in a payload.
	MaxDepth = 128
)

// ofPayload bounds a payload, and a disclosed value.
var ofPayload = jsonform.Bounds{Size: MaxDocument, Depth: MaxDepth}

// ofFile bounds a record, or the parts of a bundle around the records. The payloads and disclosed values in it have
// their own bounds.
var ofFile = jsonform.Bounds{Size: MaxRecord, Depth: 2 * MaxDepth}

// SyntaxError says where a document is wrong, and why.
type SyntaxError = jsonform.Error

// Canonical returns the RFC 8785 form of a JSON document.
//
// RFC 8785 alone maps many documents to one form: 9007199254740993 becomes 9007199254740992, 1e400 has no
// form at all, -0 becomes 0. Canonical refuses those, so that two documents with different content never
// share a form and so never share a digest. It also refuses what RFC 8785 takes from I-JSON: duplicate
// member names, lone surrogates, invalid UTF-8, text after the value. Every refusal is a *SyntaxError.
func Canonical(doc []byte) ([]byte, error) { return ofPayload.Canonical(doc) }

// DecodeForm reads canonical JSON into a form, a pointer to a struct with its members in canonical order. It returns
// a *SyntaxError if the document has other members, or differs from what the form marshals to.
func DecodeForm(doc []byte, form any) error { return jsonform.DecodeForm(doc, form) }

// MaxValues is how many commas and opening brackets outside of strings a text of JSON may have that others wrote: it bounds the values in it.
const MaxValues = jsonform.MaxValues

// CheckValues returns a *SyntaxError if a text has more than MaxValues, before it is read into values. The text may be broken, or a stream of documents.
func CheckValues(text []byte) error { return jsonform.CheckValues(text) }

// Values counts them.
func Values(text []byte) int { return jsonform.Values(text) }

// CheckEncoding returns a *SyntaxError that says how to convert a text if the text begins as UTF-16.
func CheckEncoding(text []byte) error { return jsonform.CheckEncoding(text) }

// CutMark removes the byte order mark before a text in UTF-8.
func CutMark(file []byte) []byte { return jsonform.CutMark(file) }

// Steady rewords an error of the JSON library for people. A report must have the same words on every machine.
func Steady(err error) error { return jsonform.Steady(err) }

// Abbreviate cuts a text to 40 bytes, so that an error about a hostile file stays readable.
func Abbreviate(text string) string { return jsonform.Abbreviate(text) }

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
	r, _, err = jsonform.Mend(ofFile, bytes.TrimSuffix(doc, []byte("\n")), openRecord)
	return r, err == nil, jsonform.ShiftBy(err, len(file)-len(doc))
}

// Mend returns a JSON file in its canonical form, with a line feed at the end. mended reports that the file had
// another form. Its errors are those of Canonical.
func Mend(file []byte) (form []byte, mended bool, err error) {
	doc := CutMark(file)
	form, err = ofFile.Canonical(doc)
	if err != nil {
		return nil, false, jsonform.ShiftBy(err, len(file)-len(doc))
	}
	form = append(form, '\n')
	return form, !bytes.Equal(form, file), nil
}

// MendNote returns a signed note without a byte order mark, with plain line feeds, and with exactly one at its end. A
// note can hold nothing else in these places.
func MendNote(note string) string {
	note = strings.ReplaceAll(strings.TrimPrefix(note, jsonform.ByteOrderMark), "\r\n", "\n")
	return strings.TrimRight(note, "\n") + "\n"
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
	case "certificates", "digest", "disclosures", "log", "payload", "properties", "signatures", "timestamps":
		return true
	}
	return false
}

// BeginsAsBundle reports whether a file begins as a bundle does, with its members in any order and spelling.
func BeginsAsBundle(start []byte) bool {
	switch firstMember(start) {
	case "anchors", "checkpoint", "format", "records":
		return true
	}
	return false
}
