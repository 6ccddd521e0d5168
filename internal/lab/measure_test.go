package lab

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

// TestAUCByPairs compares AUC with a count of all pairs, on random lists with many equal numbers.
func TestAUCByPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		list := func() []float64 {
			all := make([]float64, 1+random.IntN(12))
			for i := range all {
				all[i] = float64(random.IntN(6))
			}
			return all
		}
		above, below := list(), list()
		sum := 0.0
		for _, a := range above {
			for _, b := range below {
				switch {
				case a > b:
					sum++
				case a == b:
					sum += 0.5
				}
			}
		}
		want := sum / float64(len(above)*len(below))
		got, defined := rankAUC(above, below)
		if !defined || math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v over %v: %v, want %v", above, below, got, want)
		}
	}
	if _, defined := rankAUC(nil, []float64{1}); defined {
		t.Error("defined without cases")
	}
}

// TestHanleyMcNeil takes the example of Hanley and McNeil (1982): ratings of 58 normal and 51 abnormal pictures.
func TestHanleyMcNeil(t *testing.T) {
	ratings := func(counts ...int) (list []float64) {
		for rating, n := range counts {
			list = append(list, slices.Repeat([]float64{float64(rating)}, n)...)
		}
		return list
	}
	normal, abnormal := ratings(33, 6, 6, 11, 2), ratings(3, 2, 2, 11, 33)
	auc, _ := rankAUC(abnormal, normal)
	nearly(t, "area", auc, 0.893, 0.0005)
	nearly(t, "standard error", math.Sqrt(hanleyMcNeil(auc, 51, 58)), 0.032, 0.0006)
}

// TestAUCInterval: the borders are where the distance is 1.96 standard errors, and the interval of a perfect area has a width.
func TestAUCInterval(t *testing.T) {
	f := rankFigure(0.7, 20, 30)
	for _, border := range []float64{*f.Low, *f.High} {
		nearly(t, "distance in standard errors", math.Abs(0.7-border)/math.Sqrt(hanleyMcNeil(border, 20, 30)), z, 1e-6)
	}
	if !(*f.Low < 0.7 && 0.7 < *f.High) || f.Cases != 50 {
		t.Errorf("%v to %v of %d", *f.Low, *f.High, f.Cases)
	}
	perfect := rankFigure(1, 5, 5)
	if *perfect.High != 1 || *perfect.Low > 0.8 || *perfect.Low < 0.3 {
		t.Errorf("perfect on ten cases: %v to %v", *perfect.Low, *perfect.High)
	}
	worst := rankFigure(0, 5, 5)
	nearly(t, "mirrored", *worst.High, 1-*perfect.Low, 1e-9)
}

// TestCoverage simulates: the interval of an area holds the true one in about 95 of 100 sets of cases.
func TestCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const rounds = 2000
	held := 0
	for range rounds {
		above, below := make([]float64, 25), make([]float64, 15)
		for i := range above {
			above[i] = random.NormFloat64() + 1
		}
		for i := range below {
			below[i] = random.NormFloat64()
		}
		auc, _ := rankAUC(above, below)
		f := rankFigure(auc, 25, 15)
		if truth := 0.7602499; *f.Low <= truth && truth <= *f.High { // Φ(1/√2)
			held++
		}
	}
	if share := float64(held) / rounds; share < 0.93 || share > 0.98 {
		t.Errorf("%v of the intervals hold the truth", share)
	}
}

// TestWilson compares with the table of Newcombe (1998).
func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		k         float64
		n         int
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}} {
		f := shareFigure(tt.k, tt.n)
		nearly(t, "low", *f.Low, tt.low, 5e-5)
		nearly(t, "high", *f.High, tt.high, 5e-5)
	}
	if f := shareFigure(0, 0); f.Value != nil {
		t.Error("a share of nothing")
	}
	if f := shareFigure(7, 7); *f.High != 1 || *f.Low > 0.7 {
		t.Errorf("7 of 7: %v to %v", *f.Low, *f.High)
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
		got, defined := phi(n[1][1], n[1][0], n[0][1], n[0][0])
		mx, my := mean(x), mean(y)
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
		nearly(t, "votes", effectiveVotes(int(tt[0]), tt[1]), tt[2], 1e-12)
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
	b := bootstrap{Seed: 7, Samples: 20000}
	low, high, defined := b.Interval([][]int{{0, 1, 2}}, mean)
	if !defined {
		t.Fatal("not defined")
	}
	nearly(t, "low", low, all[0], 1e-9) // 1 of 27 samples is three times the first case: 3.7 %
	nearly(t, "high", high, all[26], 1e-9)
	again, _, _ := b.Interval([][]int{{0, 1, 2}}, mean)
	if again != low {
		t.Error("the same seed gives another interval")
	}
	// Strata stay whole: each sample has one case of each, so the mean of these two never varies.
	low, high, _ = b.Interval([][]int{{0}, {2}}, mean)
	nearly(t, "strata low", low, 4.5, 0)
	nearly(t, "strata high", high, 4.5, 0)
	if _, _, defined := b.Interval([][]int{{0}}, func([]int) (float64, bool) { return 0, false }); defined {
		t.Error("a figure that no sample defines has an interval")
	}
}

func TestMedian(t *testing.T) {
	nearly(t, "odd", median([]float64{9, 1, 5}), 5, 0)
	nearly(t, "even", median([]float64{9, 1, 5, 2}), 3.5, 0)
	nearly(t, "none", median(nil), 0, 0)
}
