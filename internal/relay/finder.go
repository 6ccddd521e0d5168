package relay

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
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

// encodingOf returns the encoding that a header names, in lower case. What several headers name is no encoding that every reader removes alike, and none that is known here.
func encodingOf(values []string) string {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(values, " and ")))
	if encoding == "identity" {
		return ""
	}
	return encoding
}

// finderFor returns the finder for an answer. A client of HTTP/1.0 takes a connection that was broken off for the end of a body without a length, so that
// something of the body itself must be held.
func finderFor(answer *http.Response, r rules, maxDecoded int64, http10 bool) finder {
	types := answer.Header["Content-Type"]
	f := plainFinder(strings.Join(types, ", "), r)
	if _, is := f.(*opaque); is && (http10 || len(types) > 1) { // of which each reader takes another
		f = blind(0)
	}
	if encoding := encodingOf(answer.Header["Content-Encoding"]); encoding != "" {
		f = newCompressed(encoding, maxDecoded, f)
	}
	if answer.ContentLength >= 0 {
		f = &counted{finder: f, length: answer.ContentLength}
	}
	return f
}

func plainFinder(contentType string, r rules) finder {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		kind = strings.ToLower(strings.TrimSpace(contentType))
	}
	switch {
	case kind == "text/event-stream":
		return newEvents(r)
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return newDocument(r)
	}
	return &opaque{}
}

// progress is what a finder was shown, and what it found.
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
	length int64
}

func (c *counted) Safe() int64 { return min(c.finder.Safe(), max(c.length-1, 0)) }

// tail is how many of the last bytes are held of a body that cannot be decoded.
const tail = 512

// compressed decodes the body for another finder, and translates what may pass back into compressed bytes.
type compressed struct {
	inner   finder
	steps   *lockstep
	n       int64    // bytes written
	decoded int64    // bytes given to inner
	passed  int64    // compressed bytes that may pass
	waiting []settle // in ascending order: they may pass when inner says so
	err     error    // set when the decoder has ended
}

// settle says that the first bytes of the compressed body, in number at, decode to no more than the first bytes of the decoded one.
type settle struct{ at, decoded int64 }

// maxWaiting limits the memory for places at which a held event could be cut. If there are more, the oldest is left out, and its bytes pass
// with the next one.
const maxWaiting = 64

func newCompressed(encoding string, limit int64, inner finder) *compressed {
	c := &compressed{inner: inner}
	c.steps = newLockstep(encoding, limit, func(p []byte) {
		c.decoded += int64(len(p))
		c.inner.Write(p)
	}, c.settled)
	return c
}

func (c *compressed) settled(at int64) {
	if n := len(c.waiting); n > 0 && c.waiting[n-1].decoded == c.decoded {
		c.waiting = c.waiting[:n-1]
	}
	if len(c.waiting) == maxWaiting {
		c.waiting = append(c.waiting[:0], c.waiting[1:]...)
	}
	c.waiting = append(c.waiting, settle{at, c.decoded})
}

func (c *compressed) Write(p []byte) {
	c.n += int64(len(p))
	c.err = c.steps.Write(p)
	for len(c.waiting) > 0 && c.waiting[0].decoded <= c.inner.Safe() {
		c.passed = c.waiting[0].at
		c.waiting = append(c.waiting[:0], c.waiting[1:]...)
	}
}

func (c *compressed) Safe() int64 {
	if c.err != nil && !errors.Is(c.err, io.EOF) && c.inner.Found() == "" {
		return max(c.passed, c.n-tail)
	}
	return c.passed
}

func (c *compressed) Found() string { return c.inner.Found() }
func (c *compressed) Last() bool    { return c.inner.Last() }

func (c *compressed) Close() {
	c.steps.Close()
	c.inner.Close()
}
