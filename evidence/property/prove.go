//go:build !js

package property

import (
	"crypto/sha3"
	"errors"
	"fmt"
	"io"
)

// Prove makes a proof of a statement from what opens the commitment to its value. random should be crypto/rand.Reader. Its errors are those
// of [Statement.Check], of values that are not of the kind, of reading random, and [ErrFalse].
func Prove(s *Statement, opening Opening, random io.Reader) ([]byte, error) {
	tag, err := s.tag()
	if err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	source := &source{random: random}
	c := newCompiler()
	c.proving, c.next = true, source.scalar
	v, r, err := opening.open(s.Kind, s.Members[0].Pointer)
	if err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	err = c.compile(s, Commitment{mulGenerator(v).Add(h.Mul(r))}, opened{v, r})
	if err = errors.Join(err, source.err); err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	numbers, err := proveRelation(tag, c.relation, c.scalars, random)
	if err != nil {
		return nil, fmt.Errorf("proving a property: %w", err)
	}
	return append(c.proof, numbers...), nil
}

// A source draws scalars, and keeps the first error.
type source struct {
	random io.Reader
	err    error
}

func (s *source) scalar() scalar {
	var wide [48]byte
	if _, err := io.ReadFull(s.random, wide[:]); err != nil && s.err == nil {
		s.err = fmt.Errorf("reading randomness: %w", err)
	}
	return reduceScalar(wide)
}

// Prove makes a proof that the caller knows the scalars of a relation. It is bound to the tag and to the relation, and its verifier needs
// both. The 64 bytes that it reads from random should be from crypto/rand. Its errors are those of [relation.Check], of reading random,
// and [errWitness].
func proveRelation(tag string, r *relation, scalars []scalar, random io.Reader) ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("making a proof: %w", err)
	}
	if len(scalars) != r.scalars {
		return nil, fmt.Errorf("making a proof: %d scalars for a relation with %d", len(scalars), r.scalars)
	}
	for i := range r.equations {
		if e := &r.equations[i]; !r.total(e.image).Equal(r.sum(e, scalars)) {
			return nil, fmt.Errorf("making a proof: %w: equation %d", errWitness, i)
		}
	}
	nonces, err := makeNonces(tag, r, scalars, random)
	if err != nil {
		return nil, fmt.Errorf("making a proof: %w", err)
	}
	commitments := make([]point, len(r.equations))
	for i := range r.equations {
		commitments[i] = r.sum(&r.equations[i], nonces)
	}
	return respond(tag, r, scalars, nonces, commitments), nil
}

// respond makes the proof from its commitments.
func respond(tag string, r *relation, scalars, nonces []scalar, commitments []point) []byte {
	c := challenge(tag, r, commitments)
	proof := append(make([]byte, 0, r.Size()), c[:]...)
	for i, s := range scalars {
		response := nonces[i].Add(s.Mul(c))
		proof = append(proof, response[:]...)
	}
	return proof
}

// makeNonces draws a nonce for each scalar. They depend on the randomness, the scalars and all that is proved.
func makeNonces(tag string, r *relation, scalars []scalar, random io.Reader) ([]scalar, error) {
	var fresh [64]byte
	if _, err := io.ReadFull(random, fresh[:]); err != nil {
		return nil, fmt.Errorf("reading randomness: %w", err)
	}
	h := sha3.NewCSHAKE256(nil, []byte("jurat/sigma/nonce/v1"))
	h.Write(fresh[:])
	session := sessionID(tag)
	h.Write(session[:])
	for _, s := range scalars {
		h.Write(s[:])
	}
	h.Write(r.Bytes())
	nonces := make([]scalar, len(scalars))
	for i := range nonces {
		var wide [48]byte
		h.Read(wide[:])
		nonces[i] = reduceScalar(wide)
	}
	return nonces, nil
}
