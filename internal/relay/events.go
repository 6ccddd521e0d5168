package relay

import (
	"bytes"
	"cmp"
)

// events find the terminal event of server-sent events, as the HTML standard describes them: an event is lines up to an empty one, and
// lines end with CR, LF, or both.
type events struct {
	progress
	rules rules

	begun    bool // a line of an event that is not complete has begun
	afterCR  bool // the last byte was a CR, so that an LF belongs to it
	length   int  // of the line so far, without the byte order mark
	comment  bool // the line is a comment
	field    []byte
	colon    bool // the line's field is complete
	value    []byte
	name     string // the event's type
	data     value  // what is known of its data
	done     []byte // the beginning of its data
	dataLine bool   // the event has a line of data already
}

const (
	longestField = 5  // "event", the longest that matters
	longestValue = 40 // longer than every name of a terminal event
)

// byteOrderMark may stand before a text.
var byteOrderMark = []byte("\ufeff")

func newEvents(r rules) *events { return &events{rules: r, data: value{root: r.Watch}} }

// Write reads what follows.
func (e *events) Write(p []byte) {
	for len(p) > 0 {
		p = p[e.Step(p):]
	}
}

// Step reads up to the end of a line, and returns how many bytes that is.
func (e *events) Step(p []byte) int {
	if e.afterCR && p[0] == '\n' {
		e.n++
		e.afterCR = false
		e.pass()
		return 1
	}
	e.afterCR = false
	at := bytes.IndexAny(p, "\r\n")
	if at < 0 {
		e.line(p)
		return len(p)
	}
	e.line(p[:at])
	e.afterCR = p[at] == '\r'
	e.n++
	e.endLine()
	return at + 1
}

// line reads a part of a line.
func (e *events) line(p []byte) {
	if e.n < 3 { // a byte order mark may come in parts
		for len(p) > 0 && e.n < 3 && e.length == 0 && p[0] == byteOrderMark[e.n] {
			p = p[1:]
			e.n++
		}
	}
	if len(p) == 0 {
		return
	}
	e.n += int64(len(p))
	if e.length == 0 {
		e.comment = p[0] == ':'
		e.begun = e.begun || !e.comment
	}
	e.length += len(p)
	if e.comment {
		e.pass()
		return
	}
	if !e.colon {
		at := bytes.IndexByte(p, ':')
		if at < 0 {
			e.field = upTo(e.field, p, longestField+1)
			return
		}
		e.field = upTo(e.field, p[:at], longestField+1)
		e.colon = true
		if string(e.field) == "data" && e.dataLine {
			e.content([]byte("\n"))
		}
		p = p[at+1:]
	}
	switch string(e.field) {
	case "event":
		e.value = upTo(e.value, p, longestValue)
	case "data":
		e.dataLine = true
		e.content(p)
	}
}

func (e *events) content(p []byte) {
	e.done = upTo(e.done, p, longestValue)
	e.data.write(p)
}

// upTo appends to b as much of p as leaves it with n bytes at most.
func upTo(b, p []byte, n int) []byte { return append(b, p[:min(len(p), n-len(b))]...) }

func (e *events) endLine() {
	if string(e.field) == "event" && e.colon {
		e.name = string(bytes.TrimPrefix(e.value, []byte(" ")))
	}
	if e.length == 0 {
		e.endEvent()
	}
	e.length, e.colon, e.comment = 0, false, false
	e.field, e.value = e.field[:0], e.value[:0]
	e.pass()
}

// pass lets pass what was read, if no event has begun and none was found that is held.
func (e *events) pass() {
	if !e.begun {
		e.progress.pass()
	}
}

// endEvent says what the event was that an empty line has ended.
func (e *events) endEvent() {
	if name, last := e.rules.Ends(Event{e.name, e.done, e.data.found}); name != "" {
		e.terminal = cmp.Or(e.terminal, name) // the first one counts, since everything from there is held
		e.final = e.final || last
	}
	e.begun, e.dataLine, e.name, e.done = false, false, "", e.done[:0]
	e.data.reset()
}

// Close ends an event that no empty line ended: SDKs take it for one.
func (e *events) Close() {
	if e.begun {
		e.endLine() // which ends the event itself if no line has begun
	}
	if e.begun {
		e.endEvent()
	}
}
