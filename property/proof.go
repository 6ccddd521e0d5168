package property

import (
	"errors"
	"fmt"
	"io"

	"jurat/sigma"
)

var (
	// ErrFalse is the error of [Prove] for a statement that is not true of the values.
	ErrFalse = errors.New("the statement is not true of the value")
	// ErrProof is the error of [Verify] for a proof that does not show its statement.
	ErrProof = errors.New("the proof does not show the statement")

	errShort = errors.New("the proof ends early")
)

// Prove makes a proof of a statement from the openings of its members, in their order. random should be crypto/rand.Reader. Its errors are those
// of [Statement.Check], of values that are not of the kind, of reading random, and [ErrFalse].
func Prove(s *Statement, openings []Opening, random io.Reader) ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	if len(openings) != len(s.Members) {
		return nil, fmt.Errorf("proving a property: %d openings for %d members", len(openings), len(s.Members))
	}
	source := &source{random: random}
	c := newCompiler()
	c.proving, c.next = true, source.scalar
	known := make([]opened, len(openings))
	commitments := make([]Commitment, len(openings))
	for i, m := range s.Members {
		v, r, err := openings[i].open(s.Kind, m.Pointer)
		if err != nil {
			return nil, fmt.Errorf("proving a property: members/%d: %w", i, err)
		}
		known[i], commitments[i] = opened{v, r}, Commitment{sigma.MulGenerator(v).Add(h.Mul(r))}
	}
	if s.Form == Equal && known[0].v != known[1].v {
		return nil, fmt.Errorf("proving a property: %w", ErrFalse)
	}
	err := c.compile(s, commitments, known)
	if err = errors.Join(err, source.err); err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	tag, err := s.tag()
	if err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	numbers, err := sigma.Prove(tag, c.relation, c.scalars, random)
	if err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	var proof []byte
	for _, p := range c.points {
		proof = append(proof, p.Bytes()...)
	}
	return append(proof, numbers...), nil
}

// A source draws scalars, and keeps the first error.
type source struct {
	random io.Reader
	err    error
}

func (s *source) scalar() sigma.Scalar {
	var wide [48]byte
	if _, err := io.ReadFull(s.random, wide[:]); err != nil && s.err == nil {
		s.err = fmt.Errorf("reading randomness: %w", err)
	}
	return sigma.ReduceScalar(wide)
}

// furtherPoints returns how many points a proof of the statement begins with.
func (s *Statement) furtherPoints() (int, error) {
	switch s.Form {
	case In, NotIn:
		return len(s.Set) - 1, nil
	case Equal:
		return 0, nil
	}
	lo, hi, err := s.bounds()
	if err != nil {
		return 0, err
	}
	n := len(bases(uint64(hi - lo)))
	if s.Form == AtMostSum {
		n *= len(s.Members) + 1
	}
	return n, nil
}

// MaxProof is the size in bytes above which no statement has a proof.
const MaxProof = 1 << 20

// Verify checks that a proof shows a statement of commitments, which are those of its members in their order. It returns an error that wraps [ErrProof] if
// the proof does not, whatever is wrong with its form; other errors are those of [Statement.Check].
func Verify(s *Statement, commitments []Commitment, proof []byte) error {
	if err := s.Check(); err != nil {
		return fmt.Errorf("checking the proof of a property: %w", err)
	}
	if len(commitments) != len(s.Members) {
		return fmt.Errorf("checking the proof of a property: %d commitments for %d members", len(commitments), len(s.Members))
	}
	for i, c := range commitments {
		if c == (Commitment{}) {
			return fmt.Errorf("checking the proof of a property: commitment %d is empty", i)
		}
	}
	n, err := s.furtherPoints()
	if err != nil {
		return fmt.Errorf("checking the proof of a property: %w", err)
	}
	if len(proof) < n*sigma.PointSize || len(proof) > MaxProof {
		return fmt.Errorf("%w: it has %d bytes", ErrProof, len(proof))
	}
	c := newCompiler()
	for range n {
		p, err := sigma.ParsePoint(proof[:sigma.PointSize])
		if err != nil {
			return fmt.Errorf("%w: %w", ErrProof, err)
		}
		c.points, proof = append(c.points, p), proof[sigma.PointSize:]
	}
	if err := c.compile(s, commitments, nil); err != nil {
		return fmt.Errorf("checking the proof of a property: %w", err)
	}
	tag, err := s.tag()
	if err != nil {
		return fmt.Errorf("checking the proof of a property: %w", err)
	}
	if err := sigma.Verify(tag, c.relation, proof); err != nil {
		return fmt.Errorf("%w: %w", ErrProof, err)
	}
	return nil
}
