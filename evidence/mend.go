package evidence

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/jsonform"
)

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
