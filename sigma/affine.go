//go:build js || affine

//lint:file-ignore SA1019 crypto/elliptic says to use other packages, and none of the standard library adds points

package sigma

// This group is that of browsers. Its code is the standard library's, which a program that checks signatures has in any case. The other
// group would bring a second table of multiples of G, and with it add more to the program than all else that checks proofs. Here the
// time of an operation depends on its numbers, and a verifier has none that are secret. The tag affine chooses this group on any machine, for tests.

import (
	"crypto/elliptic"
	"math/big"
	"slices"
)

var (
	curve   = elliptic.P256()
	modulus = curve.Params().N

	// decompressor is what elliptic.UnmarshalCompressed asks, which itself links square roots for curves of any kind: 4 KB, packed.
	decompressor = curve.(interface {
		UnmarshalCompressed(b []byte) (x, y *big.Int)
	})
)

// ParseScalar reads a scalar from 32 bytes. Its error is [ErrScalar].
func ParseScalar(b []byte) (Scalar, error) {
	if len(b) != ScalarSize || slices.Compare(b, order) >= 0 {
		return Scalar{}, ErrScalar
	}
	return Scalar(b), nil
}

// ReduceScalar returns 48 bytes, a big-endian number, modulo n. If the bytes are random, so is the scalar, up to a difference that no one
// can notice.
func ReduceScalar(b [48]byte) Scalar { return scalarOf(new(big.Int).SetBytes(b[:])) }

// scalarOf returns any number modulo n.
func scalarOf(n *big.Int) (s Scalar) {
	n.Mod(n, modulus).FillBytes(s[:])
	return s
}

func (s *Scalar) number() *big.Int { return new(big.Int).SetBytes(s[:]) }

// Add returns s + t.
func (s Scalar) Add(t Scalar) Scalar { return scalarOf(s.number().Add(s.number(), t.number())) }

// Sub returns s − t.
func (s Scalar) Sub(t Scalar) Scalar { return scalarOf(s.number().Sub(s.number(), t.number())) }

// Mul returns s·t.
func (s Scalar) Mul(t Scalar) Scalar { return scalarOf(s.number().Mul(s.number(), t.number())) }

// Inverse returns 1/s, and 0 for 0.
func (s Scalar) Inverse() Scalar {
	inverse := new(big.Int).ModInverse(s.number(), modulus)
	if inverse == nil {
		return Scalar{}
	}
	return scalarOf(inverse)
}

// A Point is a point of P-256. It is made by [ParsePoint], [Generator] or a method of another point.
type Point struct{ x, y *big.Int } // the identity is (0, 0), as in crypto/elliptic

// ParsePoint reads a point other than the identity from its compressed form: 33 bytes. Its error is [ErrPoint].
func ParsePoint(b []byte) (Point, error) {
	if len(b) != PointSize || b[0] != 2 && b[0] != 3 {
		return Point{}, ErrPoint
	}
	x, y := decompressor.UnmarshalCompressed(b)
	if x == nil {
		return Point{}, ErrPoint
	}
	return Point{x, y}, nil
}

// Generator returns G.
func Generator() Point { return Point{curve.Params().Gx, curve.Params().Gy} }

func identity() Point { return Point{new(big.Int), new(big.Int)} }

// Bytes writes a point in its compressed form. The identity has none: it is written as a single 0.
func (p Point) Bytes() []byte {
	if p.IsIdentity() {
		return []byte{0}
	}
	return elliptic.MarshalCompressed(curve, p.x, p.y)
}

// IsIdentity reports whether p is the identity of the group.
func (p Point) IsIdentity() bool { return p.x.Sign() == 0 && p.y.Sign() == 0 }

// Equal reports whether p and q are the same point.
func (p Point) Equal(q Point) bool { return p.x.Cmp(q.x) == 0 && p.y.Cmp(q.y) == 0 }

// Add returns p + q.
func (p Point) Add(q Point) Point {
	switch {
	case p.IsIdentity():
		return q // saves the conversion of both
	case q.IsIdentity():
		return p
	}
	x, y := curve.Add(p.x, p.y, q.x, q.y)
	return Point{x, y}
}

// Sub returns p − q.
func (p Point) Sub(q Point) Point {
	if q.IsIdentity() {
		return p
	}
	return p.Add(Point{q.x, new(big.Int).Sub(curve.Params().P, q.y)})
}

// Mul returns s·p.
func (p Point) Mul(s Scalar) Point {
	x, y := curve.ScalarMult(p.x, p.y, s[:])
	return Point{x, y}
}

// MulGenerator returns s·G.
func MulGenerator(s Scalar) Point {
	x, y := curve.ScalarBaseMult(s[:])
	return Point{x, y}
}
