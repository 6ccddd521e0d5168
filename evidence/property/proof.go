package property

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	// ErrFalse is the error of [Prove] for a statement that is not true of the values.
	ErrFalse = errors.New("the statement is not true of the value")
	// ErrProof is the error of [Verify] for a proof that does not show its statement.
	ErrProof = errors.New("the proof does not show the statement")
)

// MaxProof is the size in bytes above which no statement has a proof.
const MaxProof = 1 << 20

// Verify checks that a proof shows a statement of the value to which a commitment is. It returns an error that wraps [ErrProof] if
// the proof does not, whatever is wrong with its form; other errors are those of [Statement.Check].
func Verify(s *Statement, commitment Commitment, proof []byte) error {
	tag, err := s.tag()
	if err != nil {
		return fmt.Errorf("checking the proof of a property: %w", err)
	}
	if commitment == (Commitment{}) {
		return errors.New("checking the proof of a property: the commitment is empty")
	}
	if len(proof) > MaxProof {
		return fmt.Errorf("%w: it has %d bytes", ErrProof, len(proof))
	}
	c := newCompiler()
	c.proof = proof
	err = c.compile(s, commitment, opened{})
	switch {
	case errors.Is(err, errShort):
		return fmt.Errorf("%w: it has %d bytes", ErrProof, len(proof))
	case errors.Is(err, errPoint):
		return fmt.Errorf("%w: %w", ErrProof, err)
	case err != nil:
		return fmt.Errorf("checking the proof of a property: %w", err)
	}
	if err := verifyRelation(tag, c.relation, c.proof); err != nil {
		return fmt.Errorf("%w: %w", ErrProof, err)
	}
	return nil
}

// A compiler turns a statement into a relation. A prover's knows the openings, and makes the further points; a verifier's takes the points
// from the proof. Both add the same points, scalars and equations in the same order.
type compiler struct {
	relation *relation
	h        int // number of H among the points
	scalars  []scalar
	proof    []byte // of a verifier, what is not read yet; of a prover, the further points

	proving bool
	next    func() scalar // a fresh random scalar, for a prover
}

// An opened is what a prover knows of a commitment.
type opened struct{ v, r scalar }

func newCompiler() *compiler {
	c := &compiler{relation: newRelation()}
	c.h = c.relation.Point(h)
	return c
}

// secret adds a scalar; a prover's has this value.
func (c *compiler) secret(value scalar) int {
	if c.proving {
		c.scalars = append(c.scalars, value)
	}
	return c.relation.Scalar()
}

// random returns a fresh scalar, and 0 to a verifier, which has no use for it.
func (c *compiler) random() scalar {
	if c.proving {
		return c.next()
	}
	return scalar{}
}

var errShort = errors.New("the proof ends early")

// further adds a point that stands in the proof. make computes it for a prover. Its errors are errShort and errPoint.
func (c *compiler) further(make func() point) (n int, p point, err error) {
	switch {
	case c.proving:
		p = make()
		c.proof = append(c.proof, p.Bytes()...)
	case len(c.proof) < pointSize:
		return 0, p, errShort
	default:
		if p, err = parsePoint(c.proof[:pointSize]); err != nil {
			return 0, p, err
		}
		c.proof = c.proof[pointSize:]
	}
	return c.relation.Point(p), p, nil
}

func plain(point int) part { return part{Factor: one, Point: point} }

func plainTerm(scalar, point int) term {
	return term{Scalar: scalar, Factor: one, Point: point}
}

// compile adds what a statement says of a commitment. known is empty for a verifier.
func (c *compiler) compile(s *Statement, commitment Commitment, known opened) error {
	number := c.relation.Point(commitment.point)
	if s.Form == In || s.Form == NotIn {
		return c.set(s, number, commitment.point, known)
	}
	lo, hi, err := s.bounds()
	if err != nil {
		return err
	}
	return c.inRange(number, lo, hi, known)
}

// bases returns numbers whose sums with each once or not at all are exactly 0 to width: powers of two, and what is left. It is ComputeBases
// of draft-ietf-privacypass-arc-crypto.
func bases(width uint64) []uint64 {
	n := bits.Len64(width)
	all := make([]uint64, n)
	for i := range n - 1 {
		all[i] = 1 << i
	}
	all[n-1] = width - (1<<(n-1) - 1)
	return all
}

// digits returns which bases add up to a value from 0 to the sum of all, without branching on the value.
func digits(value uint64, all []uint64) []uint64 {
	last := len(all) - 1
	chosen := make([]uint64, len(all))
	// The powers of two reach 2^last − 1. A value above takes the last base, too.
	_, above := bits.Sub64(1<<last-1, value, 0)
	chosen[last] = above
	value -= above * all[last]
	for i := range last {
		chosen[i] = value >> i & 1
	}
	return chosen
}

// inRange says that the number committed to lies from lo to hi. Each binary digit has a commitment D of its own; that
// D = b·D + t·H shows that b is 0 or 1.
func (c *compiler) inRange(commitment int, lo, hi int64, known opened) error {
	all := bases(uint64(hi - lo))
	var chosen []uint64
	if c.proving {
		offset := known.v.Sub(scalarOf(lo))
		value, small := offset.Uint64()
		if !small || value > uint64(hi-lo) {
			return ErrFalse
		}
		chosen = digits(value, all)
	}
	digit := make([]int, len(all))
	var terms []term
	values, blindings := make([]scalar, len(all)), make([]scalar, len(all))
	for i, base := range all {
		if c.proving {
			values[i] = smallScalar(chosen[i])
		}
		digit[i] = c.secret(values[i])
		terms = append(terms, term{Scalar: digit[i], Factor: smallScalar(base), Point: 0})
	}
	terms = append(terms, plainTerm(c.secret(known.r), c.h))
	c.relation.Equate([]part{plain(commitment), {Factor: scalarOf(lo).Negate(), Point: 0}}, terms...)
	for i := range all {
		blindings[i] = c.random()
		d, _, err := c.further(func() point { return mulGenerator(values[i]).Add(h.Mul(blindings[i])) })
		if err != nil {
			return err
		}
		s := c.secret(blindings[i])
		t := c.secret(blindings[i].Mul(one.Sub(values[i])))
		c.relation.Equate([]part{plain(d)}, plainTerm(digit[i], 0), plainTerm(s, c.h))
		c.relation.Equate([]part{plain(d)}, plainTerm(digit[i], d), plainTerm(t, c.h))
	}
	return nil
}

// set says that a number is, or is not, in a set. D₁ = C − s₁·G, and each further D = (v − s)·D' + t·H commits to the product of the
// differences so far. The last commits to 0 exactly if v is in the set: then it is u·H. Otherwise G = w·D + z·H with the w that
// inverts it.
func (c *compiler) set(s *Statement, commitment int, committed point, known opened) error {
	v := c.secret(known.v)
	c.relation.Equate([]part{plain(commitment)}, plainTerm(v, 0), plainTerm(c.secret(known.r), c.h))
	entries, err := s.entries()
	if err != nil {
		return err
	}
	before, d := committed.Sub(mulGenerator(entries[0])), 0
	product := opened{known.v.Sub(entries[0]), known.r} // D commits to this
	for i, entry := range entries[1:] {
		t := c.random()
		factor := known.v.Sub(entry)
		next, p, err := c.further(func() point { return before.Mul(factor).Add(h.Mul(t)) })
		if err != nil {
			return err
		}
		if i == 0 { // D₁ is no point of the relation: it is written as C − s₁·G
			image := []part{plain(next), {Factor: entry, Point: commitment}, {Factor: entry.Mul(entries[0]).Negate(), Point: 0}}
			c.relation.Equate(image, plainTerm(v, commitment), term{Scalar: v, Factor: entries[0].Negate(), Point: 0}, plainTerm(c.secret(t), c.h))
		} else {
			c.relation.Equate([]part{plain(next), {Factor: entry, Point: d}}, plainTerm(v, d), plainTerm(c.secret(t), c.h))
		}
		product = opened{product.v.Mul(factor), product.r.Mul(factor).Add(t)}
		before, d = p, next
	}
	return c.last(s.Form, d, product)
}

// last says that the last commitment of a set is to 0, or that it is not.
func (c *compiler) last(form Form, d int, product opened) error {
	if c.proving && product.v.IsZero() != (form == In) {
		return ErrFalse
	}
	if form == In {
		c.relation.Equate([]part{plain(d)}, plainTerm(c.secret(product.r), c.h))
		return nil
	}
	inverse := product.v.Inverse()
	c.relation.Equate([]part{plain(0)}, plainTerm(c.secret(inverse), d), plainTerm(c.secret(inverse.Mul(product.r).Negate()), c.h))
	return nil
}

// h is the second generator. Its logarithm is unknown to everyone: it is hash_to_curve of RFC 9380, suite P256_XMD:SHA-256_SSWU_RO_, of
// "jurat/property/v1/H" with the domain separation tag "jurat/property/v1/P256_XMD:SHA-256_SSWU_RO_".
var h = func() point {
	b, err := hex.DecodeString("03dd1ae5015663ba8042c22e51aceb3956f8da3fff5d544f44d18a1f8f844eb13f")
	if err != nil {
		panic(err) // a constant
	}
	p, err := parsePoint(b)
	if err != nil {
		panic(err) // a constant
	}
	return p
}()

// SaltSize is the size in bytes of a salt: that of a commitment by HMAC.
const SaltSize = 32

// A Commitment is a Pedersen commitment.
type Commitment struct{ point point }

const commitmentPrefix = "p256:"

// ParseCommitment reads a commitment as a payload has it: "p256:" and 66 hexadecimal digits in lower case. It returns an error for any
// other form, and for what is no point of P-256.
func ParseCommitment(text string) (Commitment, error) {
	digits, is := strings.CutPrefix(text, commitmentPrefix)
	if !is || len(digits) != 2*pointSize || strings.ToLower(digits) != digits {
		return Commitment{}, fmt.Errorf("commitment %.80q: want %s and %d hexadecimal digits in lower case", text, commitmentPrefix, 2*pointSize)
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return Commitment{}, fmt.Errorf("commitment %.80q: %w", text, err)
	}
	point, err := parsePoint(b)
	if err != nil {
		return Commitment{}, fmt.Errorf("commitment %.80q: %w", text, err)
	}
	return Commitment{point}, nil
}

// String writes a commitment as a payload has it.
func (c Commitment) String() string { return commitmentPrefix + hex.EncodeToString(c.point.Bytes()) }

// Equal reports whether two commitments are the same.
func (c Commitment) Equal(d Commitment) bool { return c.point.Equal(d.point) }

// An Opening opens a commitment: a reader who has it knows the value.
type Opening struct {
	Value jsontext.Value // canonical JSON
	Salt  [SaltSize]byte
}

// Commit makes the commitment to a value at a pointer. The value is canonical JSON. It returns an error if the value is not of the kind.
func Commit(kind Kind, pointer string, o Opening) (Commitment, error) {
	v, r, err := o.open(kind, pointer)
	if err != nil {
		return Commitment{}, err
	}
	return Commitment{mulGenerator(v).Add(h.Mul(r))}, nil
}

// open returns the two numbers of a commitment.
func (o *Opening) open(kind Kind, pointer string) (v, r scalar, err error) {
	if err := kind.Check(); err != nil {
		return v, r, err
	}
	if v, err = kind.scalar(o.Value); err != nil {
		return v, r, err
	}
	r, err = blinding(o.Salt, pointer)
	return v, r, err
}

// blinding derives r from the salt. So there is one secret to keep, and one to destroy.
func blinding(salt [SaltSize]byte, pointer string) (scalar, error) {
	wide, err := hkdf.Key(sha256.New, salt[:], nil, "jurat/property/v1\x00"+pointer, 48)
	if err != nil {
		return scalar{}, fmt.Errorf("deriving the blinding of %s: %w", pointer, err)
	}
	return reduceScalar([48]byte(wide)), nil
}
