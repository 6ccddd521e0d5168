package sigma

import (
	"math/rand/v2"
	"testing"
)

// twoWays is the relation that a committed value is 0 or 1, and scalars of both cases. That needs the number that nobody knows for the H of
// property: here it is known, so the same points open both ways.
func twoWays(random *rand.Rand) (r *Relation, witnesses [2][]Scalar) {
	h, opening := anyScalar(random), anyScalar(random)
	r = NewRelation()
	base := r.Point(MulGenerator(h))
	c := r.Point(MulGenerator(opening)) // 0·G + (opening / h)·H, and 1·G + ((opening − 1) / h)·H
	b, s, t := r.Scalar(), r.Scalar(), r.Scalar()
	image := []Part{{Factor: One, Point: c}}
	r.Equate(image, Term{b, One, 0}, Term{s, One, base})
	r.Equate(image, Term{b, One, c}, Term{t, One, base})
	whole := opening.Mul(h.Inverse())
	witnesses[0] = []Scalar{{}, whole, whole}
	witnesses[1] = []Scalar{One, opening.Sub(One).Mul(h.Inverse()), {}}
	return r, witnesses
}

func anyScalar(random *rand.Rand) Scalar {
	var wide [48]byte
	for i := range wide {
		wide[i] = byte(random.Uint32())
	}
	return ReduceScalar(wide)
}

// TestSimulator: without the scalars, for each challenge and each responses there are commitments that fit, and a prover of either value makes
// exactly this transcript from exactly one choice of nonces. Nonces are uniform, so no transcript is likelier for one value than for the other.
func TestSimulator(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		r, witnesses := twoWays(random)
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		challenge := anyScalar(random)
		var responses []Scalar
		for range r.Scalars() {
			responses = append(responses, anyScalar(random))
		}
		for value, scalars := range witnesses {
			var nonces []Scalar
			for i, s := range scalars {
				nonces = append(nonces, responses[i].Sub(challenge.Mul(s)))
			}
			for i := range r.equations {
				e := &r.equations[i]
				if simulated := r.commitment(e, responses, challenge); !r.sum(e, nonces).Equal(simulated) {
					t.Fatalf("equation %d: the prover of %d commits to another point than the simulator", i, value)
				}
			}
		}
	}
}

// TestNoncesAreUniform: whatever is proved, each byte of each nonce is as likely as any other, and no two proofs share a nonce, even if the
// randomness repeats itself: nonces depend on what is proved, too.
func TestNoncesAreUniform(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	r, witnesses := twoWays(random)
	seen := map[Scalar]bool{}
	const draws = 4_000
	for value, scalars := range witnesses {
		var first, last [256]int
		source := rand.NewChaCha8([32]byte{1}) // the same for both
		for range draws {
			nonces, err := makeNonces("a tag", r, scalars, source)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nonces {
				if seen[n] {
					t.Fatal("a nonce was used before")
				}
				seen[n] = true
				first[n[0]]++
				last[n[ScalarSize-1]]++
			}
		}
		for name, counts := range map[string][256]int{"first": first, "last": last} {
			want, distance := float64(draws*len(scalars))/256, 0.0
			for _, n := range counts {
				distance += (float64(n) - want) * (float64(n) - want) / want
			}
			if distance > 350 { // chi square of 255 degrees: one uniform sample in 30,000 is above
				t.Errorf("the %s bytes of the nonces that prove %d are not uniform: %.0f", name, value, distance)
			}
		}
	}
}
