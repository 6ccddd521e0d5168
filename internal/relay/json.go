package relay

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// A Member is a member of JSON that a protocol watches. Of an object and an array Value is empty.
type Member struct {
	Path  string // as watching takes it
	Kind  jsontext.Kind
	Value string // a text without its quotes, or a number, true, false or null as it stands
	Long  bool   // Value is only the beginning, as it stands longer than 127 bytes
}

// A watch is a place in JSON, with the places in it that are watched.
type watch struct {
	path    string // "": only places in it are watched
	members map[string]*watch
	each    *watch // the elements of an array
}

// watching makes a tree of paths that are watched, such as "candidates/*/finishReason". "*" stands for each element of an array, and "~1" for a slash in a
// name, as in a JSON pointer.
func watching(paths []string) *watch {
	root := &watch{}
	for _, path := range paths {
		at := root
		for step := range bytes.SplitSeq([]byte(path), []byte("/")) {
			at = at.step(string(bytes.ReplaceAll(step, []byte("~1"), []byte("/"))))
		}
		at.path = path
	}
	return root
}

// step returns the place that a step leads to, and makes it if it is not there.
func (w *watch) step(step string) *watch {
	if step == "*" {
		if w.each == nil {
			w.each = &watch{}
		}
		return w.each
	}
	if w.members[step] == nil {
		if w.members == nil {
			w.members = map[string]*watch{}
		}
		w.members[step] = &watch{}
	}
	return w.members[step]
}

// value reads one JSON value, and notes its members that are watched. It accepts more than JSON: what is not JSON is for others to refuse.
type value struct {
	root *watch

	depth   int
	within  []container // the containers that are watched, the outermost first; those in others are only counted
	quoted  bool        // in a string
	escaped bool        // the byte before was a backslash
	key     bool        // in a watched object, a name is expected
	text    []byte      // the string or, where it is watched, the number or word that is being read
	plain   *watch      // where that number or word stands
	found   []Member
	ended   bool
}

type container struct {
	at    *watch
	array bool
	next  *watch // of an object: where the name that was read last leads; nil: it is not watched
}

const (
	// longestText is longer than every name and word that matters, even if each of its letters is written as an escape.
	longestText = 128
	// mostFound bounds the members that are noted. Equal ones are noted once, so only hostile JSON has more.
	mostFound = 64
)

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
		if v.plain == nil {
			if v.plain, v.text = v.here(), v.text[:0]; v.plain == nil {
				return
			}
		}
		v.text = upTo(v.text, []byte{b}, longestText)
	}
}

// top returns the container that is being read, if it is watched.
func (v *value) top() *container {
	if n := len(v.within); n > 0 && n == v.depth {
		return &v.within[n-1]
	}
	return nil
}

// here returns the place of the value that begins; nil: it is not watched.
func (v *value) here() *watch {
	if v.depth == 0 {
		return v.root
	}
	switch top := v.top(); {
	case top == nil || v.key:
		return nil
	case top.array:
		return top.at.each
	default:
		return top.next
	}
}

func (v *value) open(b byte) {
	at := v.here()
	v.note(at, jsontext.Kind(b), nil, false)
	if v.depth++; at != nil && v.depth == len(v.within)+1 {
		v.within = append(v.within, container{at: at, array: b == '['})
		v.key = b == '{'
	} else {
		v.key = false
	}
}

func (v *value) close() {
	if v.top() != nil {
		v.within = v.within[:len(v.within)-1]
	}
	v.depth--
	v.key, v.ended = false, v.depth <= 0
}

// endText ends a string: a name, or a value.
func (v *value) endText() {
	text, long := v.text, len(v.text) == longestText
	if bytes.IndexByte(text, '\\') >= 0 {
		if plain, err := jsontext.AppendUnquote(nil, append(append([]byte{'"'}, text...), '"')); err == nil {
			text = plain
		}
	}
	if v.key {
		top := v.top()
		top.next, v.key = top.at.members[string(text)], false
		return
	}
	v.note(v.here(), '"', text, long)
}

// endPlain ends a number or a word.
func (v *value) endPlain() {
	if v.plain == nil {
		return
	}
	v.note(v.plain, jsontext.Value(v.text).Kind(), v.text, len(v.text) == longestText)
	v.plain = nil
}

// note keeps a value that is watched.
func (v *value) note(at *watch, kind jsontext.Kind, text []byte, long bool) {
	if at == nil || at.path == "" {
		return
	}
	known := func(m Member) bool { return m.Path == at.path && m.Kind == kind && m.Value == string(text) }
	if len(v.found) < mostFound && !slices.ContainsFunc(v.found, known) {
		v.found = append(v.found, Member{at.path, kind, string(text), long})
	}
}

// reset makes v ready for another value.
func (v *value) reset() {
	*v = value{root: v.root, within: v.within[:0], text: v.text[:0], found: v.found[:0]}
}

// A document finds the end of a JSON document. If it is an array, as Gemini streams them, it finds the element that is a terminal event.
type document struct {
	progress
	rules   rules
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

func newDocument(r rules) *document { return &document{rules: r, element: value{root: r.Watch}} }

// Write reads what follows.
func (d *document) Write(p []byte) {
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
		if d.terminal == "" {
			d.terminal, _ = d.rules.Ends(Event{Members: d.element.found})
		}
		d.pass()
	}
	return n
}

// Whole reports whether there is one document, and it has ended.
func (d *document) Whole() bool { return d.state == afterDocument }

// Members are those that were found in a document that is no array, or in the last element of an array.
func (d *document) Members() []Member { return d.element.found }
