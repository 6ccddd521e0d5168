//go:build !js && !affine

package property

import (
	"slices"

	"filippo.io/bigmod"
	"filippo.io/nistec"
)

var (
	modulus = fixed(bigmod.NewModulus(order))
	// shift is 2²⁵⁶ modulo n: what the 33rd byte and those above it of a longer number count.
	shift = fixed(bigmod.NewNat().SetBytes([]byte{
		0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x43, 0x19, 0x05, 0x52, 0x58, 0xe8, 0x61, 0x7b, 0x0c, 0x46, 0x35, 0x3d, 0x03, 0x9c, 0xda, 0xaf,
	}, modulus))
)

func fixed[T any](v T, err error) T {
	if err != nil {
		panic(err) // only of constants
	}
	return v
}

// parseScalar reads a scalar from 32 bytes. Its error is [errScalar].
func parseScalar(b []byte) (scalar, error) {
	if len(b) != scalarSize {
		return scalar{}, errScalar
	}
	if _, err := bigmod.NewNat().SetBytes(b, modulus); err != nil {
		return scalar{}, errScalar
	}
	return scalar(b), nil
}

// reduceScalar returns 48 bytes, a big-endian number, modulo n. If the bytes are random, so is the scalar, up to a difference that no one
// can notice.
func reduceScalar(b [48]byte) scalar {
	low := fixed(bigmod.NewNat().SetOverflowingBytes(b[16:], modulus)) // 32 bytes are never longer than n
	high := fixed(bigmod.NewNat().SetBytes(b[:16], modulus))           // 16 bytes are less than n
	return reduced(high.Mul(shift, modulus).Add(low, modulus))
}

func reduced(n *bigmod.Nat) scalar { return scalar(n.Bytes(modulus)) }

func (s *scalar) nat() *bigmod.Nat { return fixed(bigmod.NewNat().SetBytes(s[:], modulus)) }

// Add returns s + t.
func (s scalar) Add(t scalar) scalar { return reduced(s.nat().Add(t.nat(), modulus)) }

// Sub returns s − t.
func (s scalar) Sub(t scalar) scalar { return reduced(s.nat().Sub(t.nat(), modulus)) }

// Mul returns s·t.
func (s scalar) Mul(t scalar) scalar { return reduced(s.nat().Mul(t.nat(), modulus)) }

// Inverse returns 1/s, and 0 for 0. It takes the same time for every s.
func (s scalar) Inverse() scalar {
	exponent := slices.Clone(order)
	exponent[scalarSize-1] -= 2
	return reduced(bigmod.NewNat().Exp(s.nat(), exponent, modulus))
}

// A point is a point of P-256. It is made by [parsePoint], [generator] or a method of another point.
type point struct{ p *nistec.P256Point }

// parsePoint reads a point other than the identity from its compressed form: 33 bytes. Its error is [errPoint].
func parsePoint(b []byte) (point, error) {
	if len(b) != pointSize || b[0] != 2 && b[0] != 3 {
		return point{}, errPoint
	}
	p, err := nistec.NewP256Point().SetBytes(b)
	if err != nil {
		return point{}, errPoint
	}
	return point{p}, nil
}

// generator returns G.
func generator() point { return point{nistec.NewP256Point().SetGenerator()} }

func identity() point { return point{nistec.NewP256Point()} }

// Bytes writes a point in its compressed form. The identity has none: it is written as a single 0.
func (p point) Bytes() []byte { return p.p.BytesCompressed() }

// IsIdentity reports whether p is the identity of the group.
func (p point) IsIdentity() bool { return p.p.IsInfinity() == 1 }

// Equal reports whether p and q are the same point.
func (p point) Equal(q point) bool { return p.p.Equal(q.p) == 1 }

// Add returns p + q.
func (p point) Add(q point) point { return point{nistec.NewP256Point().Add(p.p, q.p)} }

// Sub returns p − q.
func (p point) Sub(q point) point {
	return point{nistec.NewP256Point().Add(p.p, nistec.NewP256Point().Negate(q.p))}
}

// Mul returns s·p, in constant time.
func (p point) Mul(s scalar) point {
	return point{fixed(nistec.NewP256Point().ScalarMult(p.p, s[:]))} // fails for another length only
}

// mulGenerator returns s·G, in constant time.
func mulGenerator(s scalar) point { return point{fixed(nistec.NewP256Point().ScalarBaseMult(s[:]))} }
