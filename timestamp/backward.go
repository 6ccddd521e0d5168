package timestamp

import (
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// backward writes DER from its end to its beginning. An element's length is known when its header is written, so no
// bytes move, and one buffer is enough. Of several elements the caller adds the last one first.
type backward struct {
	buffer []byte
	free   int // unwritten bytes at the buffer's beginning
}

func newBackward(room int) *backward { return &backward{buffer: make([]byte, room), free: room} }

// bytes returns what was written.
func (w *backward) bytes() []byte { return w.buffer[w.free:] }

// end marks the end of an element that wrap will complete.
func (w *backward) end() (written int) { return len(w.buffer) - w.free }

// add writes bytes as they are.
func (w *backward) add(b []byte) {
	w.grow(len(b))
	w.free -= len(b)
	copy(w.buffer[w.free:], b)
}

// grow makes room before what is written.
func (w *backward) grow(n int) {
	if n <= w.free {
		return
	}
	written := w.bytes()
	w.buffer = make([]byte, n+2*len(w.buffer))
	w.free = len(w.buffer) - len(written)
	copy(w.buffer[w.free:], written)
}

// wrap writes the header of the element that ends at end. Its contents are everything written since.
func (w *backward) wrap(tag asn1.Tag, end int) {
	length := w.end() - end
	w.grow(6)
	if length < 0x80 {
		w.octet(byte(length))
	} else {
		octets := 0
		for rest := length; rest > 0; rest >>= 8 {
			w.octet(byte(rest))
			octets++
		}
		w.octet(0x80 | byte(octets))
	}
	w.octet(byte(tag))
}

func (w *backward) octet(b byte) {
	w.free--
	w.buffer[w.free] = b
}

func (w *backward) addElement(tag asn1.Tag, contents []byte) {
	end := w.end()
	w.add(contents)
	w.wrap(tag, end)
}

// addAlgorithm writes an AlgorithmIdentifier without parameters, with this tag.
func (w *backward) addAlgorithm(tag asn1.Tag, oid string) {
	end := w.end()
	w.addElement(asn1.OBJECT_IDENTIFIER, []byte(oid))
	w.wrap(tag, end)
}

// addInteger writes an INTEGER.
func (w *backward) addInteger(n *big.Int) {
	var b cryptobyte.Builder
	b.AddASN1BigInt(n)
	w.add(b.BytesOrPanic()) // no integer is too long for a length of four bytes
}

// addImprint writes the MessageImprint of an imprint that was checked.
func (w *backward) addImprint(m Imprint) {
	end := w.end()
	w.addElement(asn1.OCTET_STRING, m.Sum)
	w.addAlgorithm(asn1.SEQUENCE, digestOIDs[m.Hash])
	w.wrap(asn1.SEQUENCE, end)
}
