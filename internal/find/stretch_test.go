package find

import (
	"math/rand/v2"
	"testing"
)

// TestNumberSet compares sets with maps.
func TestNumberSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fill := func() (s numberSet, m map[int64]bool) {
		m = map[int64]bool{}
		for range r.IntN(100) {
			n := r.Int64N(1000)
			s.add(n)
			m[n] = true
		}
		return s, m
	}
	for range 100 {
		a, inA := fill()
		b, inB := fill()
		sum := a.or(b)
		for n := range int64(1100) {
			if a.has(n) != inA[n] || b.has(n) != inB[n] || sum.has(n) != (inA[n] || inB[n]) {
				t.Fatalf("%d: %t, %t, %t", n, a.has(n), b.has(n), sum.has(n))
			}
		}
	}
}
