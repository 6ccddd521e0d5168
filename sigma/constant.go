//go:build !js && !affine

package sigma

import (
	"slices"

	"filippo.io/bigmod"
	"filippo.io/nistec"
)

var (
	modulus = must(bigmod.NewModulus(order))
	// shift is 2²⁵⁶ modulo n: what the 33rd byte and those above it of a longer number count.
	shift = must(bigmod.NewNat().SetBytes([]byte{
		0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x43, 0x19, 0x05, 0x52, 0x58, 0xe8, 0x61, 0x7b, 0x0c, 0x46, 0x35, 0x3d, 0x03, 0x9c, 0xda, 0xaf,
	}, modulus))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // only of constants
	}
	return v
}

// ParseScalar reads a scalar from 32 bytes. Its error is [ErrScalar].
func ParseScalar(b []byte) (Scalar, error) {
	if len(b) != ScalarSize {
		return Scalar{}, ErrScalar
	}
	if _, err := bigmod.NewNat().SetBytes(b, modulus); err != nil {
		return Scalar{}, ErrScalar
	}
	return Scalar(b), nil
}

// ReduceScalar returns 48 bytes, a big-endian number, modulo n. If the bytes are random, so is the scalar, up to a difference that no one
// can notice.
func ReduceScalar(b [48]byte) Scalar {
	low := must(bigmod.NewNat().SetOverflowingBytes(b[16:], modulus)) // 32 bytes are never longer than n
	high := must(bigmod.NewNat().SetBytes(b[:16], modulus))           // 16 bytes are less than n
	return scalarOf(high.Mul(shift, modulus).Add(low, modulus))
}

func scalarOf(n *bigmod.Nat) Scalar { return Scalar(n.Bytes(modulus)) }

func (s *Scalar) nat() *bigmod.Nat { return must(bigmod.NewNat().SetBytes(s[:], modulus)) }

// Add returns s + t.
func (s Scalar) Add(t Scalar) Scalar { return scalarOf(s.nat().Add(t.nat(), modulus)) }

// Sub returns s − t.
func (s Scalar) Sub(t Scalar) Scalar { return scalarOf(s.nat().Sub(t.nat(), modulus)) }

// Mul returns s·t.
func (s Scalar) Mul(t Scalar) Scalar { return scalarOf(s.nat().Mul(t.nat(), modulus)) }

// Inverse returns 1/s, and 0 for 0. It takes the same time for every s.
func (s Scalar) Inverse() Scalar {
	exponent := slices.Clone(order)
	exponent[ScalarSize-1] -= 2
	return scalarOf(bigmod.NewNat().Exp(s.nat(), exponent, modulus))
}

// A Point is a point of P-256. It is made by [ParsePoint], [Generator] or a method of another point.
type Point struct{ p *nistec.P256Point }

// ParsePoint reads a point other than the identity from its compressed form: 33 bytes. Its error is [ErrPoint].
func ParsePoint(b []byte) (Point, error) {
	if len(b) != PointSize || b[0] != 2 && b[0] != 3 {
		return Point{}, ErrPoint
	}
	p, err := nistec.NewP256Point().SetBytes(b)
	if err != nil {
		return Point{}, ErrPoint
	}
	return Point{p}, nil
}

// Generator returns G.
func Generator() Point { return Point{nistec.NewP256Point().SetGenerator()} }

func identity() Point { return Point{nistec.NewP256Point()} }

// Bytes writes a point in its compressed form. The identity has none: it is written as a single 0.
func (p Point) Bytes() []byte { return p.p.BytesCompressed() }

// IsIdentity reports whether p is the identity of the group.
func (p Point) IsIdentity() bool { return p.p.IsInfinity() == 1 }

// Equal reports whether p and q are the same point.
func (p Point) Equal(q Point) bool { return p.p.Equal(q.p) == 1 }

// Add returns p + q.
func (p Point) Add(q Point) Point { return Point{nistec.NewP256Point().Add(p.p, q.p)} }

// Sub returns p − q.
func (p Point) Sub(q Point) Point {
	return Point{nistec.NewP256Point().Add(p.p, nistec.NewP256Point().Negate(q.p))}
}

// Mul returns s·p, in constant time.
func (p Point) Mul(s Scalar) Point {
	return Point{must(nistec.NewP256Point().ScalarMult(p.p, s[:]))} // fails for another length only
}

// MulGenerator returns s·G, in constant time.
func MulGenerator(s Scalar) Point { return Point{must(nistec.NewP256Point().ScalarBaseMult(s[:]))} }
