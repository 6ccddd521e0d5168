package relay

import (
	"errors"
	"io"
	"iter"

	"jurat/internal/fault"
	"jurat/internal/observe"
)

// A lockstep decodes what is written to it, as far as that goes, before Write returns.
type lockstep struct {
	out     func(p []byte) // is given what was decoded
	settled func(at int64) // is told when everything that follows from the first bytes written was given to out

	in     []byte // what was written, and is not read yet
	before []byte // in, before the last byte was read
	piece  int    // how much of it a Read may take
	read   int64  // bytes taken so far
	ended  bool   // nothing more will be written
	gave   bool   // something was given to out since settled was called
	eager  bool   // the decoder asks for input only when it has given out everything
	err    error  // why decoding ended
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
}

// newLockstep returns a Lockstep that gives what it decodes to out, up to a limit, and tells settled from where on more input is needed.
func newLockstep(encoding string, limit int64, out func([]byte), settled func(int64)) *lockstep {
	l := &lockstep{out: out, settled: settled, eager: encoding == "br"}
	l.resume, l.stop = iter.Pull(func(yield func(struct{}) bool) {
		l.yield = yield
		l.err = fault.Guard(func() error { return l.decode(encoding, limit) })
		l.in = nil
	})
	return l
}

// Write decodes p. After the decoder has ended, it does nothing.
func (l *lockstep) Write(p []byte) error {
	if l.err == nil {
		l.in, l.piece = p, 1+len(p)/64
		l.resume()
	}
	return l.err
}

// Close tells the decoder that the body has ended.
func (l *lockstep) Close() {
	l.ended = true
	if l.err == nil {
		l.resume()
	}
	l.stop()
}

func (l *lockstep) decode(encoding string, limit int64) error {
	d, err := observe.DecodeOne(encoding, (*source)(l))
	if err != nil {
		return err
	}
	defer d.Close()
	buf := make([]byte, 4<<10)
	for {
		n, err := d.Read(buf)
		if limit -= int64(n); limit < 0 {
			return observe.ErrTooLong
		}
		if n > 0 {
			l.gave = true
			l.out(buf[:n])
		}
		if errors.Is(err, io.EOF) {
			l.settled(l.read)
		}
		if err != nil {
			return err
		}
	}
}

// source is what the decoder of a Lockstep reads.
type source lockstep

// more waits until there is a byte to read. The decoder asks for more when it has given out what it has decoded: brotli always, the others
// if they have given out something since they last asked.
func (s *source) more() error {
	if s.gave || s.eager {
		s.gave = false
		s.settled(s.read)
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
