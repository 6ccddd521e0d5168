package relay

import "bytes"

// events find the terminal event of server-sent events, as the HTML standard describes them: an event is lines up to an empty one, and
// lines end with CR, LF, or both.
type events struct {
	rules    rules
	n        int64 // bytes read
	passed   int64 // bytes that may pass
	terminal string
	final    bool // nothing follows the terminal event

	begun    bool // a line of an event that is not complete has begun
	afterCR  bool // the last byte was a CR, so that an LF belongs to it
	length   int  // of the line so far, without the byte order mark
	comment  bool // the line is a comment
	field    []byte
	colon    bool // the line's field is complete
	value    []byte
	name     string         // the event's type
	data     value          // what is known of its data
	done     []byte         // the beginning of its data
	dataLine bool           // the event has a line of data already
	also     func(p []byte) // gets the data; nil: nobody does
}

const (
	longestField = 5  // "event", the longest that matters
	longestValue = 40 // longer than every name of a terminal event
)

// byteOrderMark may stand before a text.
var byteOrderMark = []byte("\ufeff")

// newEvents returns Events that nothing was written to. Also gets the data of each event; nil: nobody does.
func newEvents(r rules, also func(p []byte)) *events {
	return &events{rules: r, data: value{root: r.Watch}, also: also}
}

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
	if e.also != nil {
		e.also(p)
	}
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
	if !e.begun && e.terminal == "" {
		e.passed = e.n
	}
}

// endEvent says what the event was that an empty line has ended.
func (e *events) endEvent() {
	if name, last := e.rules.Ends(scannedEvent{e.name, e.done, e.data.found}); name != "" {
		e.find(name, last)
	}
	e.begun, e.dataLine, e.name, e.done = false, false, "", e.done[:0]
	e.data.reset()
}

// find notes a terminal event. The first one counts, since everything from there is held.
func (e *events) find(name string, final bool) {
	if e.terminal == "" {
		e.terminal = name
	}
	e.final = e.final || final
}

// Begun reports whether an event has begun that is not complete.
func (e *events) Begun() bool { return e.begun }

// Written returns how many bytes were written.
func (e *events) Written() int64 { return e.n }

// Safe returns how many bytes, from the beginning, may pass before the terminal event is known to be recorded.
func (e *events) Safe() int64 { return e.passed }

// Found returns the terminal event; "": none was found.
func (e *events) Found() string { return e.terminal }

// Last reports whether nothing can follow the event that was found.
func (e *events) Last() bool { return e.final }

// Close ends an event that no empty line ended: SDKs take it for one.
func (e *events) Close() {
	if e.begun {
		e.endLine() // which ends the event itself if no line has begun
	}
	if e.begun {
		e.endEvent()
	}
}

// A scannedEvent is what is known of an event of an answer. It is valid until the function that gets it returns.
type scannedEvent struct {
	Type    string // the field "event"
	Data    []byte // the beginning of its data, at most 40 bytes
	Members []member
}

// rules are how an answer ends.
type rules struct {
	Watch *watch                                      // which members an Event has
	Ends  func(scannedEvent) (name string, last bool) // names a terminal event. Last says that nothing can follow it
}
