package observed

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

const (
	blockSize = 64  // bytes that are looked up at once
	leastCopy = 256 // a shorter copy takes more room than its bytes
	factor    = 0x9E3779B1
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

// Why the bytes of a body cannot be read. They say nothing against the record.
var (
	ErrWithheld  = errors.New("its bytes are withheld")
	ErrUnsealed  = errors.New("its bytes are not sealed")
	ErrTruncated = errors.New("only its beginning is sealed")
	ErrMasked    = errors.New("secrets in it were overwritten before it was sealed")
)

// ErrWrong is in the chain of every error that says that a record contradicts itself: what it seals is not what it states.
var ErrWrong = errors.New("what is sealed is not what is stated")

// Opened is what the record of a recorder seals of both directions, as far as it can be read without other records.
type Opened struct {
	Record            *evidence.Record
	request, response openedBody
}

type openedBody struct {
	stated *evidence.ObservedBody
	pieces []evidence.Piece
	body   []byte // if no piece is copied
	err    error
}

// Open reads what the record of an observed act seals. It reads and hashes bodies that stand in the record alone; many records can be
// opened at once. The record must have the member observed.
func Open(r *evidence.Record) *Opened {
	p := &r.Payload
	return &Opened{Record: r, request: openBody(r, "/request_body", p.Observed.Request, p.RequestBody),
		response: openBody(r, "/response_body", p.Observed.Response, p.ResponseBody)}
}

func openBody(r *evidence.Record, pointer string, stated *evidence.ObservedBody, value jsontext.Value) openedBody {
	b := openedBody{stated: stated}
	said, withheld := r.Said(pointer, value)
	switch {
	case stated == nil && value == nil, value == nil && stated.Bytes == 0:
		return b
	case stated == nil:
		b.err = fmt.Errorf("%w: bytes are sealed, and observed states none", ErrWrong)
	case value == nil:
		b.err = ErrUnsealed
	case withheld:
		b.err = ErrWithheld
	default:
		b.read(said)
	}
	return b
}

// read reads the value of a body. A body that copies nothing is complete then.
func (b *openedBody) read(value jsontext.Value) {
	if b.pieces, b.err = evidence.ParseBody(value); b.err != nil {
		b.err = fmt.Errorf("%w: not a body: %w", ErrWrong, b.err)
		return
	}
	if Copies(b.pieces) == 0 {
		b.body, b.err = Rebuild(b.pieces, nil)
		b.compare()
	}
}

func (b *openedBody) compare() {
	if b.err != nil {
		return
	}
	digest, whole := evidence.DigestOf(b.body), b.stated.DecodedSHA256.IsZero()
	whole = whole || b.stated.Masked && b.stated.Encoding == "" && !b.stated.Truncated
	switch {
	case digest != b.stated.Sealed():
		b.body, b.err = nil, fmt.Errorf("%w: its bytes have the digest %s, and observed states %s", ErrWrong, digest, b.stated.Sealed())
	case whole && int64(len(b.body)) != b.stated.Bytes:
		b.body, b.err = nil, fmt.Errorf("%w: it has %d bytes, and observed states %d", ErrWrong, len(b.body), b.stated.Bytes)
	}
}

// Alone returns the bytes of a record that copies nothing; false: it copies from other records.
func (o *Opened) Alone() (Reading, bool) {
	if o.Copied() > 0 {
		return Reading{}, false
	}
	return new(Window).Read(o), true
}

// Copied is how many bytes the record copies from others.
func (o *Opened) Copied() int64 { return Copies(o.request.pieces) + Copies(o.response.pieces) }

// A Reading holds the bytes of an observed act.
type Reading struct {
	Request, Response []byte  // nil: none, or an error says why not
	Errs              []error // at most one of each direction, with one of the errors of this package in its chain
}

// Read returns the bytes of a record. The records must come in the order of their log; bodies that they copy from must be in the window.
func (w *Window) Read(o *Opened) Reading {
	var r Reading
	r.Request, r.Errs = w.body("request", &o.request, r.Errs)
	r.Response, r.Errs = w.body("response", &o.response, r.Errs)
	return r
}

func (w *Window) body(direction string, b *openedBody, errs []error) ([]byte, []error) {
	if b.err == nil && b.body == nil && len(b.pieces) > 0 {
		b.body, b.err = w.Rebuild(b.pieces)
		if errors.Is(b.err, ErrBeyond) { // the digest of a body says which bytes it has
			b.err = fmt.Errorf("%w: %w", ErrWrong, b.err)
		}
		b.compare()
	}
	if b.body != nil {
		w.keep(b.stated.Sealed(), b.body)
	}
	err := b.err
	switch {
	case err != nil || b.stated == nil:
	case b.stated.Truncated:
		err = ErrTruncated
	case b.stated.Masked:
		err = ErrMasked
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", direction, err))
	}
	return b.body, errs
}

// Facts finds the facts in the bytes of a record. known is false if they are not all there, if the record states none, or if none are read of the protocol.
func (o *Opened) Facts(r Reading) (f Facts, known bool) {
	for _, err := range r.Errs {
		if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrMasked) {
			return f, false
		}
	}
	if o.request.stated == nil && o.response.stated == nil {
		return f, false
	}
	return FactsOf(o.Record.Payload.Observed, r.Request, r.Response)
}
