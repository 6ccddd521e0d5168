package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"jurat/jury"
)

// The values here were computed by hand from the definitions.

func TestFleissByHand(t *testing.T) {
	// Four trials of three votes. Agreeing pairs: 1, 1/3, 1, 1/3; mean 2/3. Shares: 7/12, 2/12, 3/12.
	table := []counts{{3, 0, 0}, {2, 1, 0}, {0, 0, 3}, {2, 1, 0}}
	chance := (49.0 + 4 + 9) / 144
	want := (2.0/3 - chance) / (1 - chance)
	if got, ok := fleiss(table); !ok || math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestKrippendorffByHand(t *testing.T) {
	// The same trials. Coincidences that disagree: twice (2·1+1·2)/2 = 4 of 12. Expected: (7·5+2·10+3·9)/11.
	table := []counts{{3, 0, 0}, {2, 1, 0}, {0, 0, 3}, {2, 1, 0}}
	want := 1 - 4.0/((7.0*5+2*10+3*9)/11)
	if got, ok := krippendorff(table); !ok || math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	// A trial with one vote, or without votes, changes nothing.
	if got, ok := krippendorff(append(table, counts{0, 1, 0}, counts{})); !ok || math.Abs(got-want) > 1e-12 {
		t.Errorf("with lone votes: %v", got)
	}
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
			if ok != tt.defined || ok && math.Abs(got-want) > 1e-12 {
				t.Errorf("%s, %s: %v, %t", name, which, got, ok)
			}
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
		if c.Value == nil || math.Abs(*c.Value) > 0.08 || *c.Low > 0 || *c.High < 0 || *c.Low > *c.Value || *c.High < *c.Value {
			t.Errorf("%s: %v", name, c)
		}
	}
	again := agreement(trials)
	if *again.Alpha.Low != *a.Alpha.Low || *again.Kappa.High != *a.Kappa.High {
		t.Error("the same trials gave another interval")
	}
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
	if few, many := width(20), width(500); many > few/2 {
		t.Errorf("%v with 20, %v with 500", few, many)
	}
}

func TestOneTrialHasNoInterval(t *testing.T) {
	a := agreement([][]jury.Position{{jury.SafePass, jury.SafePass, jury.UnsafeFail}})
	if a.Kappa.Value == nil || a.Kappa.Low != nil || a.Level != 0.67 {
		t.Errorf("%+v", a)
	}
}
