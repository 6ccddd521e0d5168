package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func nearly(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within || math.IsNaN(got) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestWilson compares with the table of Newcombe (1998).
func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		k         float64
		n         int
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}} {
		low, high := Wilson(tt.k, tt.n)
		nearly(t, "low", low, tt.low, 5e-5)
		nearly(t, "high", high, tt.high, 5e-5)
	}
	if low, high := Wilson(7, 7); high != 1 || low > 0.7 {
		t.Errorf("7 of 7: %v to %v", low, high)
	}
}

// TestPhi compares with Pearson's correlation of the same pairs.
func TestPhi(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var n [2][2]float64
		var x, y []float64
		for range 20 {
			a, b := random.IntN(2), random.IntN(2)
			n[a][b]++
			x, y = append(x, float64(a)), append(y, float64(b))
		}
		got, defined := Phi(n)
		mx, my := 0.0, 0.0
		for i := range x {
			mx, my = mx+x[i]/20, my+y[i]/20
		}
		var xy, xx, yy float64
		for i := range x {
			xy, xx, yy = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx), yy+(y[i]-my)*(y[i]-my)
		}
		if defined != (xx > 0 && yy > 0) {
			t.Fatalf("defined %v for %v", defined, n)
		}
		if defined {
			nearly(t, "phi", got, xy/math.Sqrt(xx*yy), 1e-9)
		}
	}
}

func TestEffectiveVotes(t *testing.T) {
	for _, tt := range [][3]float64{{3, 0, 3}, {3, 1, 1}, {3, 0.5, 1.5}, {3, -0.4, 3}, {1, 1, 1}} {
		nearly(t, "votes", EffectiveVotes(int(tt[0]), tt[1]), tt[2], 1e-12)
	}
}

// TestBootstrap compares the interval of a mean of three cases with all 27 samples there are.
func TestBootstrap(t *testing.T) {
	cases := []float64{0, 3, 9}
	mean := func(drawn []int) (float64, bool) {
		sum := 0.0
		for _, i := range drawn {
			sum += cases[i]
		}
		return sum / float64(len(drawn)), true
	}
	var all []float64
	for a := range 3 {
		for b := range 3 {
			for c := range 3 {
				v, _ := mean([]int{a, b, c})
				all = append(all, v)
			}
		}
	}
	slices.Sort(all)
	b := Bootstrap{Seed: 7, Samples: 20000}
	c := b.Between([][]int{{0, 1, 2}}, mean)
	nearly(t, "value", *c.Value, 4, 1e-9)
	nearly(t, "low", *c.Low, all[0], 1e-9) // 1 of 27 samples is three times the first case: 3.7 %
	nearly(t, "high", *c.High, all[26], 1e-9)
	if again := b.Between([][]int{{0, 1, 2}}, mean); *again.Low != *c.Low {
		t.Error("the same seed gives another interval")
	}
	// Strata stay whole: each sample has one case of each, so the mean of these two never varies.
	c = b.Between([][]int{{0}, {2}}, mean)
	nearly(t, "strata low", *c.Low, 4.5, 0)
	nearly(t, "strata high", *c.High, 4.5, 0)
	if c := b.Between([][]int{{0}}, func([]int) (float64, bool) { return 0, false }); c.Value != nil || c.Low != nil {
		t.Error("a figure that no sample defines has an interval")
	}
}
