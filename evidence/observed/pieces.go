package observed

import (
	"bytes"
	"errors"
	"fmt"

	"jurat/evidence"
)

const (
	blockSize = 64  // bytes that are looked up at once
	leastCopy = 256 // a shorter copy takes more room than its bytes
	factor    = 0x9E3779B1
)

// Pieces writes a body as copies from earlier ones, with bytes of its own in between. It compares bytes, as rsync does: a window of 64
// bytes moves through the body and is looked up among the blocks of the earlier ones. So what was inserted, moved or repeated is found, in
// whatever format, and what the pieces make is the body itself. If nothing is gained, the body is one piece of its own.
func Pieces(body []byte, earlier ...[]byte) []evidence.Piece {
	m := &matcher{body: body, earlier: earlier}
	if len(body) >= leastCopy {
		m.index()
		m.match()
	}
	m.own(len(body))
	if len(m.pieces) == 0 || len(m.pieces) > evidence.MaxPieces {
		return []evidence.Piece{{Own: body, Length: int64(len(body))}}
	}
	return m.pieces
}

// A place is where a block begins: in which of the earlier bodies, and at which offset.
type place struct{ body, at int }

type matcher struct {
	body    []byte
	earlier [][]byte
	digests []evidence.Digest
	blocks  map[uint32]place
	done    int // bytes of the body that are in pieces
	pieces  []evidence.Piece
}

// index notes where each block of the earlier bodies begins. Of equal blocks the first counts.
func (m *matcher) index() {
	m.blocks = map[uint32]place{}
	for n, source := range m.earlier {
		m.digests = append(m.digests, evidence.DigestOf(source))
		for at := 0; at+blockSize <= len(source); at += blockSize {
			sum := sumOf(source[at : at+blockSize])
			if _, taken := m.blocks[sum]; !taken {
				m.blocks[sum] = place{n, at}
			}
		}
	}
}

// sumOf is a rolling sum: that of the next window follows from it in one step.
func sumOf(block []byte) (sum uint32) {
	for _, c := range block {
		sum = sum*factor + uint32(c)
	}
	return sum
}

// outgoing is the factor of the byte that leaves a window.
var outgoing = func() uint32 {
	power := uint32(1)
	for range blockSize {
		power *= factor
	}
	return power
}()

// match finds copies from the beginning to the end.
func (m *matcher) match() {
	if len(m.blocks) == 0 {
		return
	}
	for at, sum := 0, sumOf(m.body[:blockSize]); ; {
		found, hit := m.blocks[sum]
		if hit && bytes.Equal(m.block(found), m.body[at:at+blockSize]) {
			if end, copied := m.copy(found, at); copied {
				if at = end; at+blockSize > len(m.body) {
					return
				}
				sum = sumOf(m.body[at : at+blockSize])
				continue
			}
		}
		if at+blockSize >= len(m.body) {
			return
		}
		sum = sum*factor + uint32(m.body[at+blockSize]) - outgoing*uint32(m.body[at])
		at++
	}
}

func (m *matcher) block(p place) []byte { return m.earlier[p.body][p.at : p.at+blockSize] }

// copy extends a match in both directions, and takes it if it is long enough. It returns where it ends.
func (m *matcher) copy(p place, at int) (end int, copied bool) {
	source := m.earlier[p.body]
	from, length := p.at, blockSize
	for at > m.done && from > 0 && m.body[at-1] == source[from-1] {
		at, from, length = at-1, from-1, length+1
	}
	for at+length < len(m.body) && from+length < len(source) && m.body[at+length] == source[from+length] {
		length++
	}
	if length < leastCopy {
		return 0, false
	}
	m.own(at)
	m.pieces = append(m.pieces, evidence.Piece{From: m.digests[p.body], At: int64(from), Length: int64(length)})
	m.done = at + length
	return m.done, true
}

// own adds the bytes up to an offset as a piece of their own.
func (m *matcher) own(to int) {
	if to > m.done {
		m.pieces = append(m.pieces, evidence.Piece{Own: m.body[m.done:to], Length: int64(to - m.done)})
		m.done = to
	}
}

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
