package sigma

import (
	"crypto/sha3"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
)

// ErrFalse is the error of [Verify] for a proof that has the right form and does not hold.
var ErrFalse = errors.New("the proof does not hold")

// ErrWitness is the error of [Prove] for scalars with which the relation does not hold.
var ErrWitness = errors.New("the relation does not hold with these scalars")

// Size returns how many bytes a proof of the relation has.
func (r *Relation) Size() int { return ScalarSize * (1 + r.scalars) }

// Prove makes a proof that the caller knows the scalars of a relation. It is bound to the tag and to the relation, and its verifier needs
// both. The 64 bytes that it reads from random should be from crypto/rand. Its errors are those of [Relation.Check], of reading random,
// and [ErrWitness].
func Prove(tag string, r *Relation, scalars []Scalar, random io.Reader) ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("making a proof: %w", err)
	}
	if len(scalars) != r.scalars {
		return nil, fmt.Errorf("making a proof: %d scalars for a relation with %d", len(scalars), r.scalars)
	}
	for i := range r.equations {
		if e := &r.equations[i]; !r.image(e).Equal(r.sum(e, scalars)) {
			return nil, fmt.Errorf("making a proof: %w: equation %d", ErrWitness, i)
		}
	}
	nonces, err := makeNonces(tag, r, scalars, random)
	if err != nil {
		return nil, fmt.Errorf("making a proof: %w", err)
	}
	commitments := make([]Point, len(r.equations))
	for i := range r.equations {
		commitments[i] = r.sum(&r.equations[i], nonces)
	}
	return respond(tag, r, scalars, nonces, commitments), nil
}

// respond makes the proof from its commitments.
func respond(tag string, r *Relation, scalars, nonces []Scalar, commitments []Point) []byte {
	c := challenge(tag, r, commitments)
	proof := append(make([]byte, 0, r.Size()), c[:]...)
	for i, s := range scalars {
		response := nonces[i].Add(s.Mul(c))
		proof = append(proof, response[:]...)
	}
	return proof
}

// makeNonces draws a nonce for each scalar. They depend on the randomness, the scalars and all that is proved.
func makeNonces(tag string, r *Relation, scalars []Scalar, random io.Reader) ([]Scalar, error) {
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
	nonces := make([]Scalar, len(scalars))
	for i := range nonces {
		var wide [48]byte
		h.Read(wide[:])
		nonces[i] = ReduceScalar(wide)
	}
	return nonces, nil
}

// Verify checks a proof. Its error is [ErrFalse] for a proof of the right form that does not hold, and says what is wrong with the form otherwise;
// it is that of [Relation.Check] for a relation of which nothing can be proved.
func Verify(tag string, r *Relation, proof []byte) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("checking a proof: %w", err)
	}
	if len(proof) != r.Size() {
		return fmt.Errorf("checking a proof: it has %d bytes, want %d", len(proof), r.Size())
	}
	numbers := make([]Scalar, 1+r.scalars)
	for i := range numbers {
		var err error
		if numbers[i], err = ParseScalar(proof[ScalarSize*i : ScalarSize*(i+1)]); err != nil {
			return fmt.Errorf("checking a proof: number %d: %w", i, err)
		}
	}
	c, responses := numbers[0], numbers[1:]
	commitments := make([]Point, len(r.equations))
	for i := range r.equations {
		commitments[i] = r.commitment(&r.equations[i], responses, c)
		if commitments[i].IsIdentity() {
			return fmt.Errorf("checking a proof: %w: the commitment of equation %d is the identity", ErrFalse, i)
		}
	}
	expected := challenge(tag, r, commitments)
	if subtle.ConstantTimeCompare(c[:], expected[:]) != 1 {
		return fmt.Errorf("checking a proof: %w", ErrFalse)
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
func challenge(tag string, r *Relation, commitments []Point) Scalar {
	s := sponge(sessionID(tag))
	s.Write(r.Bytes())
	for _, p := range commitments {
		s.Write(p.Bytes())
	}
	return squeezeScalar(s)
}

// squeezeScalar reads 48 bytes, a little-endian number, modulo n.
func squeezeScalar(s io.Reader) Scalar {
	var wide [48]byte
	if _, err := io.ReadFull(s, wide[:]); err != nil {
		panic(err) // a sponge does not end
	}
	for i, j := 0, len(wide)-1; i < j; i, j = i+1, j-1 {
		wide[i], wide[j] = wide[j], wide[i]
	}
	return ReduceScalar(wide)
}
