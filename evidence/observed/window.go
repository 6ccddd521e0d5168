package observed

import (
	"errors"
	"fmt"

	"jurat/evidence"
)

// MaxWindow is how many bytes of bodies a Window holds. docs/format.md has the same number, because two verifiers must agree.
const MaxWindow = 128 << 20

var (
	// ErrMissing says that a body copies from one that the reader does not have.
	ErrMissing = errors.New("it copies from a body that is not there")
	// ErrBeyond says that a body copies from behind the end of another. No bytes can be meant.
	ErrBeyond = errors.New("it copies from behind the end of the body that it names")
)

// A Window holds the bodies that were read last, from which later ones may copy. The zero Window is empty.
type Window struct {
	bodies map[evidence.Digest][]byte
	order  []evidence.Digest // the oldest first
	size   int
}

// Keep adds a body. The caller must not change it afterwards. The oldest ones leave when all together exceed MaxWindow.
func (w *Window) Keep(body []byte) { w.keep(evidence.DigestOf(body), body) }

func (w *Window) keep(digest evidence.Digest, body []byte) {
	if _, known := w.bodies[digest]; known || len(body) == 0 {
		return
	}
	if w.bodies == nil {
		w.bodies = map[evidence.Digest][]byte{}
	}
	w.bodies[digest], w.order, w.size = body, append(w.order, digest), w.size+len(body)
	for w.size > MaxWindow {
		w.size -= len(w.bodies[w.order[0]])
		delete(w.bodies, w.order[0])
		w.order = w.order[1:]
	}
}

// Rebuild joins pieces. Its errors have ErrMissing or ErrBeyond in their chain.
func (w *Window) Rebuild(pieces []evidence.Piece) ([]byte, error) {
	return Rebuild(pieces, func(digest evidence.Digest) ([]byte, error) {
		if body, there := w.bodies[digest]; there {
			return body, nil
		}
		return nil, ErrMissing
	})
}

// Rebuild joins pieces; find returns the body with a digest, or an error. Its errors are those of find, and ErrBeyond in a chain.
func Rebuild(pieces []evidence.Piece, find func(evidence.Digest) ([]byte, error)) ([]byte, error) {
	length := int64(0)
	for _, p := range pieces {
		length += p.Length
	}
	body := make([]byte, 0, length)
	for _, p := range pieces {
		if p.From.IsZero() {
			body = append(body, p.Own...)
			continue
		}
		source, err := find(p.From)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, p.From)
		}
		if p.At+p.Length > int64(len(source)) {
			return nil, fmt.Errorf("%w: bytes %d to %d of %s, which has %d", ErrBeyond, p.At, p.At+p.Length, p.From, len(source))
		}
		body = append(body, source[p.At:p.At+p.Length]...)
	}
	return body, nil
}

// Copies reports how many bytes pieces copy.
func Copies(pieces []evidence.Piece) (n int64) {
	for _, p := range pieces {
		if !p.From.IsZero() {
			n += p.Length
		}
	}
	return n
}
