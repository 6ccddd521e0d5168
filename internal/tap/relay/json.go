package relay

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Member is a member of JSON that a protocol watches. Of an object and an array Value is empty.
type Member struct {
	Path  string // as watching takes it
	Kind  jsontext.Kind
	Value string // a text without its quotes, or a number, true, false or null as it stands
	Long  bool   // Value is only the beginning, as it stands longer than 127 bytes
}

// watching makes of paths that are watched, such as "candidates/*/finishReason", a set that also has, with false, those that lead there. "*" stands for each
// element of an array; in names, "~1" stands for a slash, as in a JSON pointer, and "~2" for an asterisk.
func watching(paths []string) map[string]bool {
	all := map[string]bool{"": false}
	for _, path := range paths {
		for at := strings.LastIndexByte(path, '/'); at >= 0; at = strings.LastIndexByte(path[:at], '/') {
			if !all[path[:at]] {
				all[path[:at]] = false
			}
		}
		all[path] = true
	}
	return all
}

var escapes = strings.NewReplacer("~", "~0", "/", "~1", "*", "~2")

// value reads one JSON value, and notes its members that are watched. It accepts more than JSON: what is not JSON is for others to refuse.
type value struct {
	watched map[string]bool // as watching makes it

	depth   int
	within  []container // the containers that lead to watched places, the outermost first; those in others are only counted
	quoted  bool        // in a string
	escaped bool        // the byte before was a backslash
	key     bool        // in a container of within that is an object, a name is expected
	text    []byte      // the string or, where it is watched, the number or word that is being read
	plain   bool        // a number or word is being read, which stands at the following path
	at      string
	found   []Member
	ended   bool
}

type container struct {
	at    string
	array bool
	next  string // where the next value in it stands; "": that is not watched, and leads to nothing that is
}

const (
	// longestText is longer than every name and word that matters, even if each of its letters is written as an escape.
	longestText = 128
	// mostFound bounds the members that are noted. Equal ones are noted once, so only hostile JSON has more.
	mostFound = 64
)

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
		return
	case v.quoted && b == '"':
		v.quoted = false
		v.endText()
		return
	case v.quoted: // a backslash: all others are read above
		v.escaped = true
		v.text = upTo(v.text, []byte{b}, longestText)
		return
	}
	switch b {
	case '"':
		v.endPlain()
		v.quoted, v.text = true, v.text[:0]
	case '{', '[':
		v.endPlain()
		v.open(b)
	case '}', ']':
		v.endPlain()
		v.close()
	case ',':
		v.endPlain()
		v.key = v.top() != nil && !v.top().array
	case ':', ' ', '\t', '\r', '\n':
		v.endPlain()
	default:
		if !v.plain {
			v.at, v.plain = v.here()
			v.text = v.text[:0]
		}
		if v.plain {
			v.text = upTo(v.text, []byte{b}, longestText)
		}
	}
}

// top returns the container that is being read, if it is watched.
func (v *value) top() *container {
	if n := len(v.within); n > 0 && n == v.depth {
		return &v.within[n-1]
	}
	return nil
}

// here returns where the value stands that begins, and whether that is watched or leads to what is.
func (v *value) here() (at string, known bool) {
	if v.depth == 0 {
		return "", true
	}
	if top := v.top(); top != nil && !v.key {
		return top.next, top.next != ""
	}
	return "", false
}

func (v *value) open(b byte) {
	at, known := v.here()
	v.note(at, jsontext.Kind(b), nil, false)
	v.key = false
	if v.depth++; !known || v.depth != len(v.within)+1 {
		return
	}
	v.within, v.key = append(v.within, container{at: at, array: b == '['}), b == '{'
	if b == '[' {
		v.follow("*")
	}
}

// follow notes what the name in the innermost container is of the value that comes next.
func (v *value) follow(name string) {
	top := v.top()
	next := strings.TrimPrefix(top.at+"/"+name, "/")
	if _, known := v.watched[next]; !known {
		next = ""
	}
	top.next = next
}

func (v *value) close() {
	if v.top() != nil {
		v.within = v.within[:len(v.within)-1]
	}
	v.depth--
	v.key, v.ended = false, v.depth <= 0
}

func (v *value) endText() {
	text, long := v.text, len(v.text) == longestText
	if bytes.IndexByte(text, '\\') >= 0 {
		if plain, err := jsontext.AppendUnquote(nil, append(append([]byte{'"'}, text...), '"')); err == nil {
			text = plain
		}
	}
	if v.key {
		v.key = false
		v.follow(escapes.Replace(string(text)))
		return
	}
	at, _ := v.here()
	v.note(at, '"', text, long)
}

func (v *value) endPlain() {
	if v.plain {
		v.plain = false
		v.note(v.at, jsontext.Value(v.text).Kind(), v.text, len(v.text) == longestText)
	}
}

func (v *value) note(at string, kind jsontext.Kind, text []byte, long bool) {
	known := func(m Member) bool { return m.Path == at && m.Kind == kind && m.Value == string(text) }
	if v.watched[at] && len(v.found) < mostFound && !slices.ContainsFunc(v.found, known) {
		v.found = append(v.found, Member{at, kind, string(text), long})
	}
}

func (v *value) reset() {
	*v = value{watched: v.watched, within: v.within[:0], text: v.text[:0], found: v.found[:0]}
}

// A document finds the end of a JSON document. If it is an array, as Gemini streams them, it finds the element that is a terminal event.
type document struct {
	progress
	ends    ends
	state   documentState
	element value
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

func newDocument(watched map[string]bool, ends ends) *document {
	return &document{ends: ends, element: value{watched: watched}}
}

// Write reads what follows.
func (d *document) Write(p []byte) {
	for len(p) > 0 {
		n := 1
		if d.state == inValue || d.state == inElement {
			n = d.within(p)
		} else if !d.between(p[0]) {
			n = 0
		}
		p = p[n:]
	}
}

// between reads a byte outside of values. It reports false for the first one of a value, which within reads.
func (d *document) between(b byte) bool {
	space, held := b == ' ' || b == '\t' || b == '\r' || b == '\n', false
	switch {
	case d.state == beforeDocument && b == '[':
		d.state = inArray
	case d.state == beforeDocument && !space && bytes.IndexByte(byteOrderMark, b) < 0:
		d.state = inValue
		return false
	case d.state == inArray && b == '{':
		d.state = inElement
		d.element.reset()
		return false
	case d.state == inArray && b == ']': // other bytes there are commas, white space, or of elements that are no objects
		d.state, held = afterDocument, true
	case d.state == afterDocument && (space || d.terminal != ""):
		held = true
	case d.state == afterDocument:
		d.state = manyDocuments
	}
	if d.n++; !held {
		d.pass()
	}
	return true
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
		if d.terminal == "" {
			d.terminal, _ = d.ends(Event{Members: d.element.found})
		}
		d.pass()
	}
	return n
}

// Whole reports whether there is one document, and it has ended.
func (d *document) Whole() bool { return d.state == afterDocument }

// Members are those that were found in a document that is no array, or in the last element of an array.
func (d *document) Members() []Member { return d.element.found }
