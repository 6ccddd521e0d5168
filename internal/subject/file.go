package subject

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/convo"
)

// A file is what conversations are read from.
type file struct {
	*convo.Document
	name string
	raw  []byte // in which values are found
}

func newFile(name string, raw []byte) *file {
	f := &file{convo.NewDocument(name, raw), name, raw}
	if !f.isZip() {
		f.raw = passable(raw)
	}
	return f
}

func (f *file) isZip() bool { return bytes.HasPrefix(f.raw, []byte("PK\x03\x04")) }

// A notNumber is what Python writes where it has no number, such as for a score that could not be computed, and the string of JSON that stands in its place.
type notNumber struct {
	written []byte
	instead string
}

var notNumbers = []notNumber{{[]byte("NaN"), `"" `}, {[]byte("Infinity"), `""      `}, {[]byte("-Infinity"), `""       `}}

// passable is a file in which values that are no JSON can be passed over: each has a string of the same length in its place. What is read of a conversation
// is parsed as it stands in the file, and there they are a mistake.
func passable(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("NaN")) && !bytes.Contains(raw, []byte("Infinity")) {
		return raw
	}
	passed := bytes.Clone(raw)
	for at, quoted := 0, false; at < len(raw); at++ {
		switch c := raw[at]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			at++
		case !quoted && (c == 'N' || c == 'I' || c == '-'):
			i := slices.IndexFunc(notNumbers, func(n notNumber) bool { return bytes.HasPrefix(raw[at:], n.written) })
			if i >= 0 {
				at += copy(passed[at:], notNumbers[i].instead) - 1
			}
		}
	}
	return passed
}

// parse reads the value at a place.
func (f *file) parse(at span, pointer string) (*convo.Node, error) {
	return f.Parse(at.from, at.to, pointer)
}

// A span is a value in a file.
type span struct {
	from, to int64
}

// members are those of an object, by name.
type members struct {
	file *file
	list map[string]span
}

func (m members) get(name string) (span, bool) {
	at, there := m.list[name]
	return at, there
}

func (m members) has(name string, kind jsontext.Kind) bool {
	at, there := m.list[name]
	return there && jsontext.Value(m.file.raw[at.from:at.to]).Kind() == kind
}

// text returns a member that is a string or a number as text, at most 200 bytes of it.
func (m members) text(name string) string {
	at, there := m.list[name]
	if !there {
		return ""
	}
	return convo.Object{name: jsontext.Value(m.file.raw[at.from:at.to])}.Brief(name)
}

// members finds the members of an object without reading what is in them.
func (f *file) members(at span) (members, error) {
	found := members{f, map[string]span{}}
	dec := jsontext.NewDecoder(bytes.NewReader(f.raw[at.from:at.to]))
	if _, err := dec.ReadToken(); err != nil {
		return found, err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return found, err
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return found, err
		}
		to := at.from + dec.InputOffset()
		found.list[key] = span{to - int64(len(value)), to}
	}
	_, err := dec.ReadToken()
	return found, err
}

// elements finds the elements of an array.
func (f *file) elements(at span) ([]span, error) {
	var found []span
	dec := jsontext.NewDecoder(bytes.NewReader(f.raw[at.from:at.to]))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for kind := dec.PeekKind(); kind != ']' && kind != jsontext.KindInvalid; kind = dec.PeekKind() {
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		to := at.from + dec.InputOffset()
		found = append(found, span{from: to - int64(len(value)), to: to})
	}
	_, err := dec.ReadToken()
	return found, err
}
