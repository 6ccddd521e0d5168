package relay

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// document finds the end of a JSON document. If it is an array, as Gemini streams them, it finds the element that has a finishReason.
type document struct {
	n        int64
	passed   int64
	state    documentState
	element  value
	terminal string
}

type documentState int

const (
	beforeDocument documentState = iota
	inValue                      // a document that is no array
	inArray                      // between elements
	inElement
	afterDocument
	manyDocuments // one after the other: only the end of the last one is the end, and nothing tells which that is
)

func (d *document) write(p []byte) {
	for len(p) > 0 {
		n := d.step(p)
		p = p[n:]
	}
}

// step reads some bytes, and returns how many.
func (d *document) step(p []byte) int {
	switch d.state {
	case beforeDocument:
		return d.begin(p)
	case inArray:
		return d.between(p)
	case inValue, inElement:
		return d.within(p)
	case afterDocument:
		return d.after(p)
	}
	d.n += int64(len(p))
	d.pass()
	return len(p)
}

func (d *document) after(p []byte) int {
	d.n++
	if d.terminal == "" && !isSpace(p[0]) {
		d.state = manyDocuments
		d.pass()
	}
	return 1
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }

func (d *document) begin(p []byte) int {
	switch {
	case isSpace(p[0]) || bytes.IndexByte(byteOrderMark, p[0]) >= 0:
	case p[0] == '[':
		d.state = inArray
	default:
		d.state = inValue
		return 0
	}
	d.n++
	d.pass()
	return 1
}

func (d *document) between(p []byte) int {
	switch p[0] {
	case '{':
		d.state = inElement
		d.element.reset()
		return 0
	case ']':
		d.state = afterDocument
		d.n++
		return 1
	}
	d.n++ // a comma, white space, or an element that is no object
	d.pass()
	return 1
}

// within reads a value. Of a document that is one value, all may pass but the byte that closes it; of an array, whole elements.
func (d *document) within(p []byte) int {
	n, ended := d.element.write(p)
	d.n += int64(n)
	switch {
	case !ended && d.state == inValue:
		d.pass()
	case ended && d.state == inValue:
		d.state = afterDocument
		d.passed = d.n - 1
	case ended:
		d.state = inArray
		if d.element.finished && d.terminal == "" {
			d.terminal = finishReason
		}
		d.pass()
	}
	return n
}

func (d *document) pass() {
	if d.terminal == "" {
		d.passed = d.n
	}
}

func (d *document) safe() int64   { return d.passed }
func (d *document) found() string { return d.terminal }
func (d *document) last() bool    { return false }
func (d *document) close()        {}

// value reads one JSON value, and notes two of its members: "type", and "finishReason" in the objects of "candidates". It accepts more than JSON: what
// is not JSON is for others to refuse. Its zero value is ready.
type value struct {
	finished bool // a candidate has a finishReason

	depth   int
	quoted  bool // in a string
	escaped bool // the byte before was a backslash
	arrays  byte // bit d is set if the container at depth d is an array, for the depths that matter
	key     bool // in an object, a name is expected
	text    []byte
	names   [4]string // the last name at each depth that matters, or "" if it does not matter
	kind    string    // the member "type" of the whole value
	ended   bool
}

// longestText is longer than every text that matters, even if each of its letters is written as an escape.
const longestText = 128

// write reads until the value ends, and reports whether it has ended.
func (v *value) write(p []byte) (n int, ended bool) {
	for n < len(p) && !v.ended {
		if v.quoted && !v.escaped {
			plain := bytes.IndexAny(p[n:], `"\`)
			if plain < 0 {
				plain = len(p) - n
			}
			v.text = upTo(v.text, p[n:n+plain], longestText)
			if n += plain; n == len(p) {
				break
			}
		}
		v.byte(p[n])
		n++
	}
	return n, v.ended
}

func (v *value) byte(b byte) {
	switch {
	case v.escaped:
		v.escaped = false
		v.text = upTo(v.text, []byte{b}, longestText)
	case v.quoted && b == '"':
		v.quoted = false
		v.endText()
	case v.quoted: // a backslash: all others are read above
		v.escaped = true
		v.text = upTo(v.text, []byte{b}, longestText)
	case b == '"':
		v.quoted, v.text = true, v.text[:0]
	case b == '{' || b == '[':
		v.open(b == '[')
	case b == '}' || b == ']':
		v.depth--
		v.key = false
		v.ended = v.depth <= 0
	case b == ',':
		v.key = v.depth < 8 && v.arrays>>v.depth&1 == 0
	}
}

func (v *value) open(array bool) {
	if v.depth++; v.depth < 8 {
		v.arrays &^= 1 << v.depth
		if array {
			v.arrays |= 1 << v.depth
		}
	}
	if v.depth < len(v.names) {
		v.names[v.depth] = ""
	}
	v.key = !array
}

// endText notes a string: a name, or the value of a name that matters.
func (v *value) endText() {
	text := v.text
	if bytes.IndexByte(text, '\\') >= 0 {
		if plain, err := jsontext.AppendUnquote(nil, append(append([]byte{'"'}, text...), '"')); err == nil {
			text = plain
		}
	}
	switch {
	case v.key && v.depth < len(v.names):
		v.names[v.depth] = known(text)
	case v.key:
	case v.depth == 1 && v.names[1] == "type":
		v.kind = string(text)
	case v.depth == 3 && v.names[1] == "candidates" && v.names[3] == finishReason && v.arrays>>2&1 == 1:
		v.finished = v.finished || string(text) != "FINISH_REASON_UNSPECIFIED"
	}
	v.key = false
}

// known returns a name that matters, or "".
func known(name []byte) string {
	switch string(name) {
	case "type":
		return "type"
	case "candidates":
		return "candidates"
	case finishReason:
		return finishReason
	}
	return ""
}

// reset makes v ready for another value.
func (v *value) reset() { *v = value{text: v.text[:0]} }
