package relay

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// A line is a line on its way: its copy, and what is known of the messages in it.
type line struct {
	id       string
	at       time.Time // when its first byte was read
	body     *Body     // without the line feed at its end
	feed     bool      // it has one
	messages []message // nil: it is nothing that can be read
	rest     chan []byte
	ready    chan error // whether it may go on
	refs     atomic.Int32
}

// free gives a line's copy back, once nobody else needs it.
func (r *relay) free(l *line) {
	if l.refs.Add(-1) > 0 {
		return
	}
	if err := l.body.release(); err != nil {
		r.Log.Error("relay: removing the copy of a message", "call", l.id, "error", err)
	}
}

// next reads a line of any length. Of one for whose copy there is no room, it reads what has room, and open mode reads the rest of it with pass. At the end it
// returns what came without a line feed, and io.EOF.
func (s *side) next() (*line, error) {
	part, err := s.from.ReadSlice('\n')
	if len(part) == 0 {
		return nil, err
	}
	l := &line{id: rand.Text(), at: time.Now(), ready: make(chan error, 1)}
	l.body = s.pipe.spool.body(l.id+".line", "", s.pipe.MaxDecoded)
	l.refs.Store(1)
	scan := newMessages()
	for {
		text := part
		if n := len(part); n > 0 && part[n-1] == '\n' {
			text, l.feed = part[:n-1], true
		}
		_, _ = scan.Write(text) // never fails
		if lost := l.body.add(text); lost != nil {
			return l, s.full(l, part, lost)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = s.from.ReadSlice('\n')
	}
	l.body.seal()
	l.messages = scan.end()
	return l, err
}

// full is what becomes of a line for whose copy there is no room.
func (s *side) full(l *line, part []byte, lost error) error {
	if s.pipe.Mode == Closed {
		return lost
	}
	l.body.seal()
	l.rest = make(chan []byte, 1)
	l.rest <- append([]byte(nil), part...)
	return nil
}

// pass hands the rest of a line to who writes it.
func (s *side) pass(l *line) error {
	defer close(l.rest)
	for !l.feed {
		part, err := s.from.ReadSlice('\n')
		l.feed = len(part) > 0 && part[len(part)-1] == '\n'
		select {
		case l.rest <- append([]byte(nil), part...):
		case <-s.pipe.stop:
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	return nil
}

// write writes a line as it came.
func (l *line) write(to io.Writer) error {
	if l.rest == nil && l.body.Kept < smallLine {
		text := make([]byte, l.body.Kept, l.body.Kept+1)
		if _, err := io.ReadFull(l.body.Open(), text); err != nil {
			return errors.Join(errUnreadable, err)
		}
		if l.feed {
			text = append(text, '\n')
		}
		_, err := to.Write(text)
		return err
	}
	if _, err := io.Copy(to, copyOf{l.body.Open()}); err != nil {
		return err
	}
	if l.rest == nil {
		if l.feed {
			_, err := to.Write([]byte{'\n'})
			return err
		}
		return nil
	}
	for part := range l.rest {
		if _, err := to.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// smallLine is how long a line is that is written at once.
const smallLine = 32 << 10

// errUnreadable says that the copy of a line, from which it is written, cannot be read.
var errUnreadable = errors.New("the copy of a message cannot be read")

// copyOf reads a copy. Its errors are told from those of who is written to.
type copyOf struct{ from io.Reader }

func (c copyOf) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if err != nil && err != io.EOF {
		err = errors.Join(errUnreadable, err)
	}
	return n, err
}
