package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"jurat/internal/test/must"
	"jurat/jury"
)

// The values here were computed by hand from the definitions.

func TestFleissByHand(t *testing.T) {
	// Four trials of three votes. Agreeing pairs: 1, 1/3, 1, 1/3; mean 2/3. Shares: 7/12, 2/12, 3/12.
	table := []counts{{3, 0, 0}, {2, 1, 0}, {0, 0, 3}, {2, 1, 0}}
	chance := (49.0 + 4 + 9) / 144
	want := (2.0/3 - chance) / (1 - chance)
	got, ok := fleiss(table)
	must.Hold(t, ok && math.Abs(got-want) <= 1e-12, "%v, want %v", got, want)
}

func TestKrippendorffByHand(t *testing.T) {
	// The same trials. Coincidences that disagree: twice (2·1+1·2)/2 = 4 of 12. Expected: (7·5+2·10+3·9)/11.
	table := []counts{{3, 0, 0}, {2, 1, 0}, {0, 0, 3}, {2, 1, 0}}
	want := 1 - 4.0/((7.0*5+2*10+3*9)/11)
	got, ok := krippendorff(table)
	must.Hold(t, ok && math.Abs(got-want) <= 1e-12, "%v, want %v", got, want)
	// A trial with one vote, or without votes, changes nothing.
	got, ok = krippendorff(append(table, counts{0, 1, 0}, counts{}))
	must.Hold(t, ok && math.Abs(got-want) <= 1e-12, "with lone votes: %v", got)
}

func TestExtremes(t *testing.T) {
	for name, tt := range map[string]struct {
		table   []counts
		want    float64
		defined bool
	}{
		"all agree":           {[]counts{{3, 0, 0}, {0, 3, 0}, {0, 0, 3}}, 1, true},
		"one position only":   {[]counts{{3, 0, 0}, {3, 0, 0}}, 0, false},
		"nobody":              {[]counts{{}, {}}, 0, false},
		"no trials":           {nil, 0, false},
		"single votes":        {[]counts{{1, 0, 0}, {0, 1, 0}}, 0, false},
		"always one of each":  {[]counts{{1, 1, 0}, {1, 1, 0}}, -1, true},
		"pairs that disagree": {[]counts{{1, 1, 0}}, -1, true},
	} {
		for which, of := range map[string]func([]counts) (float64, bool){"kappa": fleiss, "alpha": krippendorff} {
			got, ok := of(tt.table)
			want := tt.want
			if which == "alpha" && want == -1 { // which corrects for the small number of votes
				n := float64(2 * len(tt.table))
				want = 1 - (n-1)*n/(n*n/2)
			}
			must.Hold(t, ok == tt.defined && (!ok || math.Abs(got-want) <= 1e-12), "%s, %s: %v, %t", name, which, got, ok)
		}
	}
}

// TestChance: for jurors who vote at random, the interval contains the agreement that chance gives.
func TestChance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	trials := make([][]jury.Position, 300)
	for i := range trials {
		for range 3 {
			trials[i] = append(trials[i], positions[random.IntN(3)])
		}
	}
	a := agreement(trials)
	for name, c := range map[string]Coefficient{"kappa": a.Kappa, "alpha": a.Alpha} {
		must.Hold(t, c.Value != nil && math.Abs(*c.Value) <= 0.08 && *c.Low <= 0 && *c.High >= 0 && *c.Low <= *c.Value && *c.High >= *c.Value, "%s: %v", name, c)
	}
	again := agreement(trials)
	must.Hold(t, *again.Alpha.Low == *a.Alpha.Low && *again.Kappa.High == *a.Kappa.High, "the same trials gave another interval")
}

// TestIntervalNarrows: with more trials, the interval is narrower.
func TestIntervalNarrows(t *testing.T) {
	width := func(n int) float64 {
		var trials [][]jury.Position
		for i := range n {
			p := positions[i%3]
			trials = append(trials, []jury.Position{p, p, positions[(i/3)%3]})
		}
		c := agreement(trials).Alpha
		return *c.High - *c.Low
	}
	few, many := width(20), width(500)
	must.Hold(t, many <= few/2, "%v with 20, %v with 500", few, many)
}

func TestOneTrialHasNoInterval(t *testing.T) {
	a := agreement([][]jury.Position{{jury.SafePass, jury.SafePass, jury.UnsafeFail}})
	must.Hold(t, a.Kappa.Value != nil && a.Kappa.Low == nil && a.Level == 0.67, "%+v", a)
}

func nearly(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	must.Hold(t, math.Abs(got-want) <= within && !math.IsNaN(got), "%s: %v, want %v", what, got, want)
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
	low, high := Wilson(7, 7)
	must.Hold(t, high == 1 && low <= 0.7, "7 of 7: %v to %v", low, high)
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
		must.Need(t, defined == (xx > 0 && yy > 0), "defined %v for %v", defined, n)
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
	again := b.Between([][]int{{0, 1, 2}}, mean)
	must.Hold(t, *again.Low == *c.Low, "the same seed gives another interval")
	// Strata stay whole: each sample has one case of each, so the mean of these two never varies.
	c = b.Between([][]int{{0}, {2}}, mean)
	nearly(t, "strata low", *c.Low, 4.5, 0)
	nearly(t, "strata high", *c.High, 4.5, 0)
	c = b.Between([][]int{{0}}, func([]int) (float64, bool) { return 0, false })
	must.Hold(t, c.Value == nil && c.Low == nil, "a figure that no sample defines has an interval")
}
