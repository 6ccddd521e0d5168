package relay

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"strings"

	"jurat/internal/kit/fault"
	"jurat/internal/tap/traffic"
)

// A finder reads the copy of an answer, and says up to where the client may have it before the call is recorded.
type finder interface {
	// Write reads what follows.
	Write(p []byte)
	// Safe returns how many bytes, from the beginning, may pass.
	Safe() int64
	// Found returns the terminal event, or "". The event is complete then.
	Found() string
	// Last reports whether nothing can follow the event that was found. SDKs read on after some events.
	Last() bool
	// Close ends the reading.
	Close()
}

// encodingOf returns the encoding that a header names, in lower case. What several headers name is no encoding that every reader removes alike, and none that
// is known here.
func encodingOf(values []string) string {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(values, " and ")))
	if encoding == "identity" {
		return ""
	}
	return encoding
}

// finderFor returns the finder for an answer. A client of HTTP/1.0 takes a connection that was broken off for the end of a body without a length, so that
// something of the body itself must be held.
func finderFor(answer *http.Response, watched map[string]bool, ends ends, maxDecoded int64, http10 bool) finder {
	types := answer.Header["Content-Type"]
	f := plainFinder(strings.Join(types, ", "), watched, ends)
	if _, is := f.(*opaque); is && (http10 || len(types) > 1) { // of which each reader takes another
		f = blind(0)
	}
	if encoding := encodingOf(answer.Header["Content-Encoding"]); encoding != "" {
		f = newCompressed(encoding, maxDecoded, f)
	}
	if answer.ContentLength >= 0 {
		f = &counted{f, max(answer.ContentLength-1, 0)}
	}
	return f
}

func plainFinder(contentType string, watched map[string]bool, ends ends) finder {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		kind = strings.ToLower(strings.TrimSpace(contentType))
	}
	switch {
	case kind == "text/event-stream":
		return newEvents(watched, ends)
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return newDocument(watched, ends)
	}
	return &opaque{}
}

type progress struct {
	n        int64 // bytes read
	passed   int64 // bytes that may pass
	terminal string
	final    bool // nothing follows the terminal event
}

// pass lets pass what was read, if no terminal event was found that is held.
func (p *progress) pass() {
	if p.terminal == "" {
		p.passed = p.n
	}
}

func (p *progress) Safe() int64   { return p.passed }
func (p *progress) Found() string { return p.terminal }
func (p *progress) Last() bool    { return p.final }
func (p *progress) Close()        {}

// opaque knows nothing of the body: all of it may pass but its last bytes, if any are held, and only its end is held.
type opaque struct {
	progress
	held int64
}

func (o *opaque) Write(p []byte) { o.n += int64(len(p)) }
func (o *opaque) Safe() int64    { return max(o.n-o.held, 0) }

// blind holds the last bytes of a body of which nothing else is known. n of its bytes have come.
func blind(n int64) finder { return &opaque{progress: progress{n: n}, held: tail} }

// counted holds the last byte of a body whose length is known: clients need no end of the body then.
type counted struct {
	finder
	most int64
}

func (c *counted) Safe() int64 { return min(c.finder.Safe(), c.most) }

// tail is how many of the last bytes are held of a body that cannot be decoded.
const tail = 512

// compressed decodes the body for another finder, as far as that goes before Write returns, and translates what may pass back into compressed bytes.
type compressed struct {
	finder           // of the decoded body
	n       int64    // bytes written
	decoded int64    // bytes given to the finder
	passed  int64    // compressed bytes that may pass
	waiting []settle // in ascending order: they may pass when the finder says so

	in     []byte // what was written, and is not read yet
	before []byte // in, before the last byte was read
	piece  int    // how much of it a Read may take
	read   int64  // bytes taken so far
	ended  bool   // nothing more will be written
	gave   bool   // something was given to the finder since all before was settled
	eager  bool   // the decoder asks for input only when it has given out everything
	err    error  // why decoding ended
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
}

// settle says that the first bytes of the compressed body, in number at, decode to no more than the first bytes of the decoded one.
type settle struct{ at, decoded int64 }

// maxWaiting limits the memory for places at which a held event could be cut. If there are more, the oldest is left out, and its bytes pass
// with the next one.
const maxWaiting = 64

func newCompressed(encoding string, limit int64, decoded finder) *compressed {
	c := &compressed{finder: decoded, eager: encoding == "br"}
	c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		c.err = fault.Guard(func() error { return c.decode(encoding, limit) })
		c.in = nil
	})
	return c
}

// Write decodes p. After the decoder has ended, it only counts.
func (c *compressed) Write(p []byte) {
	c.n += int64(len(p))
	if c.err == nil {
		c.in, c.piece = p, 1+len(p)/64
		c.resume()
	}
	for len(c.waiting) > 0 && c.waiting[0].decoded <= c.finder.Safe() {
		c.passed = c.waiting[0].at
		c.waiting = append(c.waiting[:0], c.waiting[1:]...)
	}
}

func (c *compressed) Safe() int64 {
	if c.err != nil && !errors.Is(c.err, io.EOF) && c.finder.Found() == "" {
		return max(c.passed, c.n-tail)
	}
	return c.passed
}

// Close tells the decoder that the body has ended.
func (c *compressed) Close() {
	c.ended = true
	if c.err == nil {
		c.resume()
	}
	c.stop()
	c.finder.Close()
}

func (c *compressed) decode(encoding string, limit int64) error {
	d, err := traffic.DecodeOne(encoding, (*source)(c))
	if err != nil {
		return err
	}
	defer d.Close()
	buf := make([]byte, 4<<10)
	for {
		n, err := d.Read(buf)
		if limit -= int64(n); limit < 0 {
			return traffic.ErrTooLong
		}
		if n > 0 {
			c.gave, c.decoded = true, c.decoded+int64(n)
			c.finder.Write(buf[:n])
		}
		if errors.Is(err, io.EOF) {
			c.settled()
		}
		if err != nil {
			return err
		}
	}
}

// settled notes that everything that follows from the bytes read so far was given to the finder.
func (c *compressed) settled() {
	if n := len(c.waiting); n > 0 && c.waiting[n-1].decoded == c.decoded {
		c.waiting = c.waiting[:n-1]
	}
	if len(c.waiting) == maxWaiting {
		c.waiting = append(c.waiting[:0], c.waiting[1:]...)
	}
	c.waiting = append(c.waiting, settle{c.read, c.decoded})
}

type source compressed

// more waits until there is a byte to read. The decoder asks for more when it has given out what it has decoded: brotli always, the others
// if they have given out something since they last asked.
func (s *source) more() error {
	if s.gave || s.eager {
		s.gave = false
		(*compressed)(s).settled()
	}
	for len(s.in) == 0 {
		if s.ended || !s.yield(struct{}{}) {
			return io.EOF
		}
	}
	return nil
}

func (s *source) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := s.more(); err != nil {
		return 0, err
	}
	n := copy(p, s.in[:min(s.piece, len(s.in))])
	s.in, s.read = s.in[n:], s.read+int64(n)
	return n, nil
}

func (s *source) ReadByte() (byte, error) {
	if err := s.more(); err != nil {
		return 0, err
	}
	b := s.in[0]
	s.before, s.in, s.read = s.in, s.in[1:], s.read+1
	return b, nil
}

// UnreadByte takes back the last ReadByte.
func (s *source) UnreadByte() error {
	s.in, s.read = s.before, s.read-1
	return nil
}

// events find the terminal event of server-sent events, as the HTML standard describes them: an event is lines up to an empty one, and
// lines end with CR, LF, or both.
type events struct {
	progress
	ends ends

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

var byteOrderMark = []byte("\ufeff")

func newEvents(watched map[string]bool, ends ends) *events {
	return &events{ends: ends, data: value{watched: watched}}
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

func (e *events) endEvent() {
	if name, last := e.ends(Event{e.name, e.done, e.data.found}); name != "" {
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
