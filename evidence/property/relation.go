package property

import (
	"crypto/sha3"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A relation is a system of linear equations over points, with secret scalars.
type relation struct {
	points    []point // the first is G
	equations []equation
	scalars   int
}

// An equation says that the sum of the image is the sum of the terms.
type equation struct {
	image []part
	terms []term
}

// A part of an image is a point of the relation, times a public factor.
type part struct {
	Factor scalar
	Point  int // as relation.Point numbers it; 0 is G
}

// A term is the product of a secret scalar, a public factor and a point of the relation.
type term struct {
	Scalar int // as relation.Scalar numbers it
	Factor scalar
	Point  int // as relation.Point numbers it; 0 is G
}

// one is the factor that changes nothing.
var one = smallScalar(1)

// newRelation returns a relation whose only point is G, number 0.
func newRelation() *relation { return &relation{points: []point{generator()}} }

// point adds a point, and returns its number.
func (r *relation) Point(p point) int {
	r.points = append(r.points, p)
	return len(r.points) - 1
}

// scalar adds a secret scalar, and returns its number.
func (r *relation) Scalar() int {
	r.scalars++
	return r.scalars - 1
}

// Equate adds an equation: the sum of the image is the sum of the terms.
func (r *relation) Equate(image []part, terms ...term) {
	r.equations = append(r.equations, equation{image, terms})
}

// maxSize bounds the equations, points, scalars, parts and terms of a relation. The draft allows more; no statement of this program needs them.
const maxSize = 1 << 16

// Check returns an error for a relation that can be no statement, by the draft's section on the validation of instances: without
// equations, parts or terms, with a number that nothing has, with a point or scalar that nothing uses, with the identity as a point or
// as the image of an equation, or with a scalar that has no effect.
func (r *relation) Check() error {
	if n := len(r.equations); n == 0 || n > maxSize || len(r.points) > maxSize || r.scalars > maxSize {
		return fmt.Errorf("it has %d equations, %d points and %d scalars: want at least one equation, and at most %d of each", n, len(r.points), r.scalars, maxSize)
	}
	for i, p := range r.points {
		if p.IsIdentity() {
			return fmt.Errorf("point %d is the identity", i)
		}
	}
	if !r.points[0].Equal(generator()) {
		return errors.New("point 0 is not the generator")
	}
	points, scalars := make([]bool, len(r.points)), make([]bool, r.scalars) // which are used; which have an effect
	for i := range r.equations {
		if err := r.equations[i].check(r, points, scalars); err != nil {
			return fmt.Errorf("equation %d: %w", i, err)
		}
	}
	if i := slices.Index(points[1:], false); i >= 0 {
		return fmt.Errorf("nothing uses point %d", i+1)
	}
	if i := slices.Index(scalars, false); i >= 0 {
		return fmt.Errorf("scalar %d has no effect", i)
	}
	for i := range r.equations {
		var image combination
		for _, p := range r.equations[i].image {
			image = image.add(p.Point, p.Factor)
		}
		if r.isIdentity(image) {
			return fmt.Errorf("equation %d: its image is the identity", i)
		}
	}
	return nil
}

// check marks the points that an equation uses, and the scalars that have an effect in it.
func (e *equation) check(r *relation, points, scalars []bool) error {
	if n, m := len(e.image), len(e.terms); n == 0 || m == 0 || n > maxSize || m > maxSize {
		return fmt.Errorf("it has %d parts and %d terms: want 1 to %d of each", n, m, maxSize)
	}
	var all []int
	for _, p := range e.image {
		all = append(all, p.Point)
	}
	for _, t := range e.terms {
		if all = append(all, t.Point); t.Scalar < 0 || t.Scalar >= len(scalars) {
			return fmt.Errorf("there is no scalar %d", t.Scalar)
		}
	}
	for _, i := range all {
		if i < 0 || i >= len(points) {
			return fmt.Errorf("there is no point %d", i)
		}
		points[i] = true
	}
	effects := map[int]combination{} // of each scalar: the sum of its factors and points
	for _, t := range e.terms {
		effects[t.Scalar] = effects[t.Scalar].add(t.Point, t.Factor)
	}
	for scalar, effect := range effects {
		scalars[scalar] = scalars[scalar] || !r.isIdentity(effect)
	}
	return nil
}

// A combination is a sum of points of a relation, each once, times a factor.
type combination []part

// add adds a point, times a factor. In proofs, of one point there are many terms and of most few.
func (c combination) add(point int, factor scalar) combination {
	for i := range c {
		if c[i].Point == point {
			c[i].Factor = c[i].Factor.Add(factor)
			return c
		}
	}
	return append(c, part{Factor: factor, Point: point})
}

// isIdentity reports whether a combination comes to the identity.
func (r *relation) isIdentity(c combination) bool {
	c = slices.DeleteFunc(c, func(p part) bool { return p.Factor.IsZero() })
	if len(c) < 2 {
		return len(c) == 0 // the order is a prime, so no multiple of a point is the identity
	}
	return r.total(c).IsIdentity()
}

// total returns what a combination of public points and factors comes to.
func (r *relation) total(c combination) point {
	sum := identity()
	for _, p := range c {
		switch {
		case p.Factor == one:
			sum = sum.Add(r.points[p.Point])
		case p.Point == 0:
			sum = sum.Add(mulGenerator(p.Factor))
		default:
			sum = sum.Add(r.points[p.Point].Mul(p.Factor))
		}
	}
	return sum
}

// commitment returns the sum of an equation's terms with these responses, less the challenge times its image: that is what the prover committed
// to. All of it is public. It multiplies each point once.
func (r *relation) commitment(e *equation, responses []scalar, challenge scalar) point {
	var c combination
	for _, t := range e.terms {
		c = c.add(t.Point, times(responses[t.Scalar], t.Factor))
	}
	minus := challenge.Negate()
	for _, p := range e.image {
		c = c.add(p.Point, times(minus, p.Factor))
	}
	return r.total(c)
}

func times(s, factor scalar) scalar {
	if factor == one {
		return s
	}
	return s.Mul(factor)
}

// sum returns what an equation's terms come to with these scalars, in constant time.
func (r *relation) sum(e *equation, scalars []scalar) point {
	sum := identity()
	for _, t := range e.terms {
		s := times(scalars[t.Scalar], t.Factor)
		if t.Point == 0 {
			sum = sum.Add(mulGenerator(s))
		} else {
			sum = sum.Add(r.points[t.Point].Mul(s))
		}
	}
	return sum
}

// Bytes writes the relation as the draft serialises instances: it is what the challenge is made from.
func (r *relation) Bytes() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(r.equations)))
	for _, e := range r.equations {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e.image)))
		for _, p := range e.image {
			b = binary.LittleEndian.AppendUint32(b, uint32(p.Point))
			b = append(b, p.Factor[:]...)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e.terms)))
		for _, t := range e.terms {
			b = binary.LittleEndian.AppendUint32(b, uint32(t.Scalar))
			b = binary.LittleEndian.AppendUint32(b, uint32(t.Point))
			b = append(b, t.Factor[:]...)
		}
	}
	for _, p := range r.points[1:] {
		b = append(b, p.Bytes()...)
	}
	return b
}

// scalarSize and pointSize are the sizes in bytes of a [scalar], and of a [point] as it is written.
const (
	scalarSize = 32
	pointSize  = 33
)

// order is that of the group: n, in big-endian bytes.
var order = []byte{
	0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
}

// A scalar is a number modulo the order n of the group: 32 bytes, big-endian, less than n. The zero value is 0.
type scalar [scalarSize]byte

// errScalar is the error for 32 bytes that are no scalar, as the number is not less than the order of the group.
var errScalar = errors.New("the number is not less than the order of P-256")

// errPoint is the error for bytes that are no point in the one form.
var errPoint = errors.New("these are not the 33 bytes of a compressed point of P-256")

// smallScalar returns a small number as a scalar.
func smallScalar(n uint64) (s scalar) {
	for i := range 8 {
		s[scalarSize-1-i] = byte(n >> (8 * i))
	}
	return s
}

// Negate returns −s.
func (s scalar) Negate() scalar { return scalar{}.Sub(s) }

// IsZero reports whether s is 0, in constant time.
func (s scalar) IsZero() bool { return subtle.ConstantTimeCompare(s[:], make([]byte, scalarSize)) == 1 }

// Uint64 returns a scalar below 2⁶⁴ as a number, and whether it is one.
func (s scalar) Uint64() (n uint64, small bool) {
	var above byte
	for _, b := range s[:scalarSize-8] {
		above |= b
	}
	return binary.BigEndian.Uint64(s[scalarSize-8:]), above == 0
}

// errNotShown is the error of [verifyRelation] for a proof that has the right form and does not hold.
var errNotShown = errors.New("the proof does not hold")

// errWitness is the error of [Prove] for scalars with which the relation does not hold.
var errWitness = errors.New("the relation does not hold with these scalars")

// Size returns how many bytes a proof of the relation has.
func (r *relation) Size() int { return scalarSize * (1 + r.scalars) }

// verifyRelation checks a proof. Its error is [errNotShown] for a proof of the right form that does not hold, and says what is wrong with the form otherwise;
// it is that of [relation.Check] for a relation of which nothing can be proved.
func verifyRelation(tag string, r *relation, proof []byte) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("checking a proof: %w", err)
	}
	if len(proof) != r.Size() {
		return fmt.Errorf("checking a proof: it has %d bytes, want %d", len(proof), r.Size())
	}
	numbers := make([]scalar, 1+r.scalars)
	for i := range numbers {
		var err error
		if numbers[i], err = parseScalar(proof[scalarSize*i : scalarSize*(i+1)]); err != nil {
			return fmt.Errorf("checking a proof: number %d: %w", i, err)
		}
	}
	c, responses := numbers[0], numbers[1:]
	commitments := make([]point, len(r.equations))
	for i := range r.equations {
		commitments[i] = r.commitment(&r.equations[i], responses, c)
		if commitments[i].IsIdentity() {
			return fmt.Errorf("checking a proof: %w: the commitment of equation %d is the identity", errNotShown, i)
		}
	}
	expected := challenge(tag, r, commitments)
	if subtle.ConstantTimeCompare(c[:], expected[:]) != 1 {
		return fmt.Errorf("checking a proof: %w", errNotShown)
	}
	return nil
}

// rate is that of SHAKE128: what is absorbed first fills one block.
const rate = 168

// sponge begins the draft's duplex sponge with an identifier of 32 bytes.
func sponge(id [32]byte) *sha3.SHAKE {
	var block [rate]byte
	copy(block[:], id[:])
	s := sha3.NewSHAKE128()
	s.Write(block[:])
	return s
}

// sessionID derives the identifier of a session from a tag.
func sessionID(tag string) (id [32]byte) {
	s := sponge([32]byte([]byte("irtf-cfrg-fiat-shamir/session-id")))
	s.Write([]byte(tag))
	s.Read(id[:])
	return id
}

// challenge hashes all that the proof is about.
func challenge(tag string, r *relation, commitments []point) scalar {
	s := sponge(sessionID(tag))
	s.Write(r.Bytes())
	for _, p := range commitments {
		s.Write(p.Bytes())
	}
	return squeezeScalar(s)
}

// squeezeScalar reads 48 bytes, a little-endian number, modulo n.
func squeezeScalar(s io.Reader) scalar {
	var wide [48]byte
	if _, err := io.ReadFull(s, wide[:]); err != nil {
		panic(err) // a sponge does not end
	}
	for i, j := 0, len(wide)-1; i < j; i, j = i+1, j-1 {
		wide[i], wide[j] = wide[j], wide[i]
	}
	return reduceScalar(wide)
}
