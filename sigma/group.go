package sigma

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
)

// ScalarSize and PointSize are the sizes in bytes of a [Scalar], and of a [Point] as it is written.
const (
	ScalarSize = 32
	PointSize  = 33
)

// order is that of the group: n, in big-endian bytes.
var order = []byte{
	0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
}

// A Scalar is a number modulo the order n of the group: 32 bytes, big-endian, less than n. The zero value is 0.
type Scalar [ScalarSize]byte

// ErrScalar is the error for 32 bytes that are no scalar, as the number is not less than the order of the group.
var ErrScalar = errors.New("the number is not less than the order of P-256")

// ErrPoint is the error for bytes that are no point in the one form.
var ErrPoint = errors.New("these are not the 33 bytes of a compressed point of P-256")

// ScalarOf returns a small number as a scalar.
func ScalarOf(n uint64) (s Scalar) {
	for i := range 8 {
		s[ScalarSize-1-i] = byte(n >> (8 * i))
	}
	return s
}

// Negate returns −s.
func (s Scalar) Negate() Scalar { return Scalar{}.Sub(s) }

// IsZero reports whether s is 0, in constant time.
func (s Scalar) IsZero() bool { return subtle.ConstantTimeCompare(s[:], make([]byte, ScalarSize)) == 1 }

// Uint64 returns a scalar below 2⁶⁴ as a number, and whether it is one.
func (s Scalar) Uint64() (n uint64, small bool) {
	var above byte
	for _, b := range s[:ScalarSize-8] {
		above |= b
	}
	return binary.BigEndian.Uint64(s[ScalarSize-8:]), above == 0
}
