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

// Prove makes a proof of a statement from what opens the commitment to its value. random should be crypto/rand.Reader. Its errors are those
// of [Statement.Check], of values that are not of the kind, of reading random, and [ErrFalse].
func Prove(s *Statement, opening Opening, random io.Reader) ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	source := &source{random: random}
	c := newCompiler()
	c.proving, c.next = true, source.scalar
	v, r, err := opening.open(s.Kind, s.Members[0].Pointer)
	if err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	err = c.compile(s, Commitment{sigma.MulGenerator(v).Add(h.Mul(r))}, opened{v, r})
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
	if s.Form == In || s.Form == NotIn {
		return len(s.Set) - 1, nil
	}
	lo, hi, err := s.bounds()
	if err != nil {
		return 0, err
	}
	return len(bases(uint64(hi - lo))), nil
}

// MaxProof is the size in bytes above which no statement has a proof.
const MaxProof = 1 << 20

// Verify checks that a proof shows a statement of the value to which a commitment is. It returns an error that wraps [ErrProof] if
// the proof does not, whatever is wrong with its form; other errors are those of [Statement.Check].
func Verify(s *Statement, commitment Commitment, proof []byte) error {
	if err := s.Check(); err != nil {
		return fmt.Errorf("checking the proof of a property: %w", err)
	}
	if commitment == (Commitment{}) {
		return errors.New("checking the proof of a property: the commitment is empty")
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
	if err := c.compile(s, commitment, opened{}); err != nil {
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
