//go:build js || affine

//lint:file-ignore SA1019 crypto/elliptic says to use other packages, and none of the standard library adds points

package property

// This group is that of browsers. Its code is the standard library's, which a program that checks signatures has in any case. The other
// group would bring a second table of multiples of G, and with it add more to the program than all else that checks proofs. Here the
// time of an operation depends on its numbers, and a verifier has none that are secret. What the functions do is described in constant.go.
// The tag affine chooses this group on any machine, for tests.

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

func parseScalar(b []byte) (scalar, error) {
	if len(b) != scalarSize || slices.Compare(b, order) >= 0 {
		return scalar{}, errScalar
	}
	return scalar(b), nil
}

func reduceScalar(b [48]byte) scalar { return reduced(new(big.Int).SetBytes(b[:])) }

// reduced returns any number modulo n.
func reduced(n *big.Int) (s scalar) {
	n.Mod(n, modulus).FillBytes(s[:])
	return s
}

func (s *scalar) number() *big.Int { return new(big.Int).SetBytes(s[:]) }

func (s scalar) Add(t scalar) scalar { return reduced(s.number().Add(s.number(), t.number())) }

func (s scalar) Sub(t scalar) scalar { return reduced(s.number().Sub(s.number(), t.number())) }

func (s scalar) Mul(t scalar) scalar { return reduced(s.number().Mul(s.number(), t.number())) }

func (s scalar) Inverse() scalar {
	inverse := new(big.Int).ModInverse(s.number(), modulus)
	if inverse == nil {
		return scalar{}
	}
	return reduced(inverse)
}

// A point is a point of P-256. It is made by [parsePoint], [generator] or a method of another point.
type point struct{ x, y *big.Int } // the identity is (0, 0), as in crypto/elliptic

func parsePoint(b []byte) (point, error) {
	if len(b) != pointSize || b[0] != 2 && b[0] != 3 {
		return point{}, errPoint
	}
	x, y := decompressor.UnmarshalCompressed(b)
	if x == nil {
		return point{}, errPoint
	}
	return point{x, y}, nil
}

func generator() point { return point{curve.Params().Gx, curve.Params().Gy} }

func identity() point { return point{new(big.Int), new(big.Int)} }

func (p point) Bytes() []byte {
	if p.IsIdentity() {
		return []byte{0}
	}
	return elliptic.MarshalCompressed(curve, p.x, p.y)
}

func (p point) IsIdentity() bool { return p.x.Sign() == 0 && p.y.Sign() == 0 }

func (p point) Equal(q point) bool { return p.x.Cmp(q.x) == 0 && p.y.Cmp(q.y) == 0 }

func (p point) Add(q point) point {
	switch {
	case p.IsIdentity():
		return q // saves the conversion of both
	case q.IsIdentity():
		return p
	}
	x, y := curve.Add(p.x, p.y, q.x, q.y)
	return point{x, y}
}

func (p point) Sub(q point) point {
	if q.IsIdentity() {
		return p
	}
	return p.Add(point{q.x, new(big.Int).Sub(curve.Params().P, q.y)})
}

func (p point) Mul(s scalar) point {
	x, y := curve.ScalarMult(p.x, p.y, s[:])
	return point{x, y}
}

func mulGenerator(s scalar) point {
	x, y := curve.ScalarBaseMult(s[:])
	return point{x, y}
}
