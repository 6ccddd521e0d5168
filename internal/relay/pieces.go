package relay

import (
	"bytes"
	"crypto/rand"
	"io"

	"jurat/internal/relay/scan"
)

// pieces reads a stream of events, each with what stands before it. What stands between two events is a piece of its own if nothing follows it yet.
type pieces struct {
	relay *relay
	from  io.Reader
	buf   []byte
	ahead []byte // what was read and is in no piece yet
	err   error  // why nothing more comes
	scan  *scan.Events
	ended bool // the event is complete

	kind     string // of the event, see line
	named    []byte // the beginning of its data
	messages *messages
}

// longestEndpoint bounds the data of an event that is kept as a text.
const longestEndpoint = 2048

func newPieces(r *relay, from io.Reader) *pieces {
	s := &pieces{relay: r, from: from, buf: make([]byte, 32<<10), messages: newMessages()}
	ends := func(e Event) (string, bool) {
		s.kind, s.ended = e.Type, s.ended || s.scan.Begun()
		return "", false
	}
	s.scan = scan.NewEvents(scan.Rules{Watch: scan.Watching(nil), Ends: ends}, func(p []byte) {
		s.named = append(s.named, p[:min(len(p), longestEndpoint+2-len(s.named))]...) // a space goes before it
		_, _ = s.messages.Write(p)                                                    // never fails
	})
	return s
}

// next reads a piece. At the end it returns what came after the last event, and why the stream ended. Of a piece for whose copy there is no room, see [lines.next].
func (s *pieces) next() (*line, error) {
	l := &line{id: rand.Text(), ready: make(chan error, 1)}
	l.body = s.relay.spool.response(l.id, "", s.relay.MaxDecoded)
	l.refs.Store(1)
	for {
		part, whole := s.read()
		if len(part) > 0 && l.at.IsZero() {
			l.at = s.relay.Now()
		}
		if lost := l.body.add(part); lost != nil {
			l.body.seal()
			if s.relay.Mode == Closed {
				return l, lost
			}
			l.rest = make(chan []byte, 1)
			l.rest <- bytes.Clone(part)
			return l, nil
		}
		if whole || len(part) == 0 {
			break
		}
	}
	l.body.seal()
	s.describe(l)
	switch {
	case l.body.n == 0:
		return nil, s.err
	case len(s.ahead) > 0:
		return l, nil
	}
	return l, s.err
}

// read returns what belongs to the piece that is being read, and whether its end was reached: the end of an event, or of what there is outside of one.
func (s *pieces) read() (part []byte, whole bool) {
	for len(s.ahead) == 0 && s.err == nil {
		var n int
		n, s.err = s.from.Read(s.buf)
		s.ahead = s.buf[:n]
	}
	n := 0
	for n < len(s.ahead) && !s.ended {
		n += s.scan.Step(s.ahead[n:])
	}
	if s.ended && n < len(s.ahead) && s.ahead[n-1] == '\r' && s.ahead[n] == '\n' {
		n += s.scan.Step(s.ahead[n:])
	}
	part, s.ahead = s.ahead[:n], s.ahead[n:]
	if s.err != nil && len(s.ahead) == 0 {
		s.scan.Close()
	}
	return part, s.ended || !s.scan.Begun()
}

// describe says what is in a piece, and begins another.
func (s *pieces) describe(l *line) {
	if l.kind = s.kind; s.ended {
		l.messages, l.data, l.said = s.messages.end(), string(s.named), s.messages.first != 0
	}
	s.kind, s.named, s.ended, s.messages = "", s.named[:0], false, newMessages()
}

// pass hands the rest of a piece to who writes it.
func (s *pieces) pass(l *line, stop <-chan struct{}) error {
	defer close(l.rest)
	for whole := s.ended; !whole; {
		var part []byte
		if part, whole = s.read(); len(part) == 0 {
			break
		}
		select {
		case l.rest <- bytes.Clone(part):
		case <-stop:
			return nil
		}
	}
	s.describe(l)
	if len(s.ahead) > 0 {
		return nil
	}
	return s.err
}
