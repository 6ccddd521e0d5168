package lab

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"jurat/internal/stats"
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
		nearly(t, "distance in standard errors", math.Abs(0.7-border)/math.Sqrt(hanleyMcNeil(border, 20, 30)), stats.Z, 1e-6)
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

func TestMedian(t *testing.T) {
	nearly(t, "odd", median([]float64{9, 1, 5}), 5, 0)
	nearly(t, "even", median([]float64{9, 1, 5, 2}), 3.5, 0)
	nearly(t, "none", median(nil), 0, 0)
}
