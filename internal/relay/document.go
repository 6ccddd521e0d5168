package relay

import "bytes"

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
