package token

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"jurat/evidence"
)

const (
	// maxRequest is the largest request: a payload in base64, and a little more.
	maxRequest = evidence.MaxDocument/3*4 + 8<<10
	// maxAnswer is the largest answer: a list of maxKeys keys.
	maxAnswer = 8 << 20
)

// A reader reads frames. It waits for a frame as long as it takes, and for the rest of one for the patience. It sets a deadline only where it
// has to wait: many small frames may come with one read.
type reader struct {
	in       *bufio.Reader
	deadline func(time.Time) error
	patience time.Duration
	armed    bool // a deadline is set
	most     int
	reserve  func(n int) error // waits until a frame of n bytes may be read; the caller of next releases it
	release  func(n int)
}

// next reads a frame. Memory grows with what came, not with the length that the peer claims.
func (r *reader) next() ([]byte, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return nil, fmt.Errorf("reading the length of a frame: %w", err)
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || int64(size) > int64(r.most) {
		return nil, fmt.Errorf("%w: a frame of %d bytes; want 1 to %d", errRequest, size, r.most)
	}
	if err := r.reserve(int(size)); err != nil {
		return nil, err
	}
	frame, err := r.body(int(size))
	if err != nil {
		r.release(int(size))
	}
	return frame, err
}

// begin waits for a frame. Unless the whole frame is in the buffer then, the rest of it has to come within the patience.
func (r *reader) begin() error {
	if r.in.Buffered() == 0 {
		if err := r.arm(false); err != nil {
			return err
		}
		if _, err := r.in.Peek(1); err != nil {
			return err
		}
	}
	if ahead, err := r.in.Peek(r.in.Buffered()); err == nil && len(ahead) >= 4 && uint64(len(ahead)-4) >= uint64(binary.BigEndian.Uint32(ahead)) {
		return nil
	}
	return r.arm(true)
}

// arm sets the deadline anew, or takes it away.
func (r *reader) arm(on bool) error {
	if !on && !r.armed {
		return nil
	}
	r.armed = on
	if !on {
		return r.deadline(time.Time{})
	}
	return r.deadline(time.Now().Add(r.patience))
}

func (r *reader) body(size int) ([]byte, error) {
	const chunk = 64 << 10
	var frame []byte
	for len(frame) < size {
		from := len(frame)
		frame = append(frame, make([]byte, min(chunk, size-from))...)
		if _, err := io.ReadFull(r.in, frame[from:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("reading a frame: %w", err)
		}
	}
	return frame, nil
}

// A writer writes frames of any number of callers. The last caller in line flushes for all.
type writer struct {
	waiting  atomic.Int32
	deadline func(time.Time) error
	patience time.Duration
	mu       sync.Mutex // held while a frame is written
	out      *bufio.Writer
}

func (w *writer) send(frame []byte) error {
	w.waiting.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.waiting.Add(-1) == 0
	if last || w.out.Available() < 4+len(frame) {
		if err := w.deadline(time.Now().Add(w.patience)); err != nil {
			return err
		}
	}
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(frame)))
	_, err := w.out.Write(head[:])
	if err == nil {
		_, err = w.out.Write(frame)
	}
	if err == nil && last {
		err = w.out.Flush()
	}
	return err
}
