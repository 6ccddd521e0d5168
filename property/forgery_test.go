package property

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"testing"

	"jurat/internal/must"
	"jurat/sigma"
)

// A sample is a statement with a proof that holds.
type sample struct {
	name       string
	statement  *Statement
	commitment Commitment
	proof      []byte
	points     int // with which the proof begins
}

func samples(t testing.TB) []sample {
	t.Helper()
	made := []sample{}
	add := func(name string, s *Statement, value string) {
		t.Helper()
		proof, commitment := prove(t, s, value)
		n := must.Get(s.furtherPoints())(t)
		made = append(made, sample{name, s, commitment, proof, n})
	}
	add("0 to 3", inRange(Integer, "0", "3"), "2")
	add("0 to 3, another value", inRange(Integer, "0", "3"), "1")
	add("7 or 8", inRange(Integer, "7", "8"), "8")
	add("one of two", inSet(In, Text, `"refund"`, `"quote"`), `"quote"`)
	add("one of two, the other", inSet(In, Text, `"refund"`, `"quote"`), `"refund"`)
	add("neither of two", inSet(NotIn, Text, `"refund"`, `"quote"`), `"pay"`)
	return made
}

// A forger changes proofs at random, as somebody does who knows their form.
type forger struct {
	*mathrand.Rand
	all []sample
}

func (f *forger) scalar() sigma.Scalar {
	var wide [48]byte
	for i := range wide {
		wide[i] = byte(f.IntN(256))
	}
	return sigma.ReduceScalar(wide)
}

func (f *forger) point() sigma.Point { return sigma.MulGenerator(f.scalar()) }

// scalars returns the part of a proof that has numbers: the challenge and the responses.
func (s *sample) scalars(proof []byte) []byte { return proof[s.points*sigma.PointSize:] }

func (f *forger) pickScalar(s *sample, proof []byte) []byte {
	all := s.scalars(proof)
	i := f.IntN(len(all) / sigma.ScalarSize)
	return all[i*sigma.ScalarSize : (i+1)*sigma.ScalarSize]
}

func (f *forger) pickPoint(s *sample, proof []byte) []byte {
	i := f.IntN(s.points)
	return proof[i*sigma.PointSize : (i+1)*sigma.PointSize]
}

func plus(b []byte, d sigma.Scalar) {
	s, err := sigma.ParseScalar(b)
	if err == nil {
		s = s.Add(d)
		copy(b, s[:])
	}
}

// forge changes a copy of the proof of a sample. It returns what it did, and another statement or another commitment where it changed these.
func (f *forger) forge(s *sample) (how string, statement *Statement, commitment Commitment, proof []byte) {
	statement, commitment, proof = s.statement, s.commitment, bytes.Clone(s.proof)
	points := s.points > 0
	switch way := f.IntN(14); {
	case way == 0:
		for i := range proof {
			proof[i] = byte(f.IntN(256))
		}
		return "random bytes", statement, commitment, proof
	case way == 1:
		for i := range s.points {
			copy(proof[i*sigma.PointSize:], f.point().Bytes())
		}
		all := s.scalars(proof)
		for i := 0; i < len(all); i += sigma.ScalarSize {
			one := f.scalar()
			copy(all[i:], one[:])
		}
		return "random points and numbers", statement, commitment, proof
	case way == 2:
		plus(f.pickScalar(s, proof), f.scalar())
		return "a number changed", statement, commitment, proof
	case way == 3: // all responses as if the challenge were larger
		d := sigma.ScalarOf(uint64(1 + f.IntN(3)))
		all := s.scalars(proof)
		for i := 0; i < len(all); i += sigma.ScalarSize {
			plus(all[i:i+sigma.ScalarSize], d)
		}
		return "all numbers moved", statement, commitment, proof
	case way == 4:
		plus(s.scalars(proof)[:sigma.ScalarSize], sigma.ScalarOf(uint64(1+f.IntN(1000))))
		return "the challenge moved", statement, commitment, proof
	case way == 5 && points:
		b := f.pickPoint(s, proof)
		p, err := sigma.ParsePoint(b)
		if err != nil {
			panic(err)
		}
		copy(b, p.Add(sigma.Generator()).Bytes())
		return "a digit one more", statement, commitment, proof
	case way == 6 && points:
		b := f.pickPoint(s, proof)
		b[0] ^= 1
		return "a point negated", statement, commitment, proof
	case way == 7 && s.points > 1:
		a, b := bytes.Clone(f.pickPoint(s, proof)), f.pickPoint(s, proof)
		copy(b, a)
		return "a point twice", statement, commitment, proof
	case way == 8:
		a, b := bytes.Clone(f.pickScalar(s, proof)), f.pickScalar(s, proof)
		copy(b, a)
		return "a number twice", statement, commitment, proof
	case way == 9:
		other := &f.all[f.IntN(len(f.all))]
		return "another's proof", statement, commitment, bytes.Clone(other.proof)
	case way == 10:
		other := &f.all[f.IntN(len(f.all))]
		commitment = other.commitment
		return "another's values", statement, commitment, proof
	case way == 11:
		changed := *statement
		changed.Audience = fmt.Sprint("auditor ", f.IntN(100))
		return "for another audience", &changed, commitment, proof
	case way == 12:
		if f.IntN(2) == 0 {
			return "cut", statement, commitment, proof[:f.IntN(len(proof))]
		}
		return "longer", statement, commitment, append(proof, proof[:1+f.IntN(sigma.PointSize)]...)
	}
	// A number that is written as itself plus the order of the group, where that fits, or as the order itself.
	b := f.pickScalar(s, proof)
	for i := range b {
		b[i] = 0xff
	}
	return "a number above the order", statement, commitment, proof
}

// TestRandomForgeries: of random forgeries, made by somebody who knows the form of proofs, none holds. The short form tries a fifth of them.
func TestRandomForgeries(t *testing.T) {
	n := 10_000
	if os.Getenv("JURAT_TEST_LONG") == "" {
		n = 2_000
	}
	f := &forger{mathrand.New(mathrand.NewPCG(15, 1)), samples(t)}
	ways := map[string]int{}
	for i := 0; i < n; {
		s := &f.all[f.IntN(len(f.all))]
		how, statement, commitment, proof := f.forge(s)
		if statement == s.statement && bytes.Equal(proof, s.proof) && commitment == s.commitment {
			continue // nothing was changed
		}
		i++
		ways[how]++
		if err := Verify(statement, commitment, proof); !errors.Is(err, ErrProof) {
			t.Fatalf("forgery %d of %q, %s: %v", i, s.name, how, err)
		}
	}
	if len(ways) != 15 {
		t.Errorf("%d ways: %v", len(ways), ways)
	}
	for _, s := range f.all {
		if err := Verify(s.statement, s.commitment, s.proof); err != nil {
			t.Errorf("%s: the samples were changed: %v", s.name, err)
		}
	}
}

// TestEveryByteOfEveryForm: a bit of each byte of the proof of each form changed, in long tests all of them.
func TestEveryByteOfEveryForm(t *testing.T) {
	long := os.Getenv("JURAT_TEST_LONG") != ""
	for _, s := range samples(t) {
		for i := range s.proof {
			for bit := range 8 {
				if !long && bit != i%8 {
					continue
				}
				changed := bytes.Clone(s.proof)
				changed[i] ^= 1 << bit
				if err := Verify(s.statement, s.commitment, changed); !errors.Is(err, ErrProof) {
					t.Fatalf("%s, byte %d, bit %d: %v", s.name, i, bit, err)
				}
			}
		}
	}
}

// TestRangesBelow64: in each range from 0 to less than 64, the values at its ends and a random one are proved, and those beside it are not. Long tests
// take every value from -1 to 64.
func TestRangesBelow64(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(15, 2))
	long := os.Getenv("JURAT_TEST_LONG") != ""
	for hi := 1; hi < 64; hi++ {
		s := inRange(Integer, "0", fmt.Sprint(hi))
		values := []int{-1, 0, hi, hi + 1, random.IntN(hi + 1)}
		if long {
			values = nil
			for v := -1; v <= 64; v++ {
				values = append(values, v)
			}
		}
		for _, v := range values {
			opening, commitment := open(t, s, fmt.Sprint(v))
			proof, err := Prove(s, opening, rand.Reader)
			if inside := v >= 0 && v <= hi; inside != (err == nil) || !inside && !errors.Is(err, ErrFalse) {
				t.Fatalf("%d in 0 to %d: %v", v, hi, err)
			}
			if err == nil && Verify(s, commitment, proof) != nil {
				t.Fatalf("%d in 0 to %d: the proof does not hold", v, hi)
			}
		}
	}
}
