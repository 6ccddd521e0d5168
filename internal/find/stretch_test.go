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

// TestSlotOf: each stretch of 4,096 places has a slot of its own, 64 of them in a block.
func TestSlotOf(t *testing.T) {
	seen := map[[2]int64]int64{}
	for n := range int64(200) {
		block, slot := slotOf(n * stretchRecords)
		if other, is := seen[[2]int64{block, slot}]; is || block != n/64 {
			t.Errorf("stretch %d: block %d, slot %b, as stretch %d", n, block, slot, other)
		}
		if b, s := slotOf(n*stretchRecords + stretchRecords - 1); b != block || s != slot {
			t.Errorf("stretch %d: its last place is in block %d, slot %b", n, b, s)
		}
		seen[[2]int64{block, slot}] = n
	}
}
