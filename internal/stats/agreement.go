package stats

import (
	"math/rand/v2"
	"slices"

	"jurat/jury"
)

// Agreement measures how much jurors agree over many trials, beyond chance.
type Agreement struct {
	Level float64     `json:"level"` // mean of the share of seats that hold the most common position
	Kappa Coefficient `json:"fleissKappa"`
	Alpha Coefficient `json:"krippendorffAlpha"` // for nominal data
}

// A Coefficient is 1 for full agreement and 0 for agreement by chance. It is undefined if agreement cannot be
// measured: fewer than two votes in every trial, or the same position in all votes.
type Coefficient struct {
	Value *float64 `json:"value"` // null: undefined
	Low   *float64 `json:"low"`   // 95 % bootstrap interval over trials; null: too few samples define it
	High  *float64 `json:"high"`
}

const (
	samples    = 1000 // of the bootstrap
	inInterval = 0.95
	seed       = 20250101 // fixed, so that the same trials give the same interval
)

// positions are the categories, in the order of counts.
var positions = []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail}

// counts is the number of jurors with each position in one trial.
type counts [3]int

func count(votes []jury.Position) (c counts) {
	for _, vote := range votes {
		if i := slices.Index(positions, vote); i >= 0 {
			c[i]++
		}
	}
	return c
}

func (c counts) sum() int { return c[0] + c[1] + c[2] }

// agreement measures trials by the position of each seat; "" means that the seat had none.
func agreement(trials [][]jury.Position) Agreement {
	a := Agreement{}
	table := make([]counts, len(trials))
	for i, votes := range trials {
		table[i] = count(votes)
		a.Level += jury.Consensus(votes, 2, false).AgreementLevel / float64(len(trials))
	}
	a.Kappa = estimate(table, fleiss)
	a.Alpha = estimate(table, krippendorff)
	return a
}

// estimate computes a coefficient and its bootstrap interval. It draws trials with replacement.
func estimate(table []counts, of func([]counts) (float64, bool)) Coefficient {
	c := Coefficient{}
	value, defined := of(table)
	if !defined {
		return c
	}
	c.Value = &value
	random := rand.New(rand.NewPCG(seed, seed))
	drawn, values := make([]counts, len(table)), make([]float64, 0, samples)
	for range samples {
		for i := range drawn {
			drawn[i] = table[random.IntN(len(table))]
		}
		if v, ok := of(drawn); ok {
			values = append(values, v)
		}
	}
	if len(values) < samples*9/10 || len(table) < 2 {
		return c
	}
	slices.Sort(values)
	tail := (1 - inInterval) / 2
	c.Low, c.High = new(quantile(values, tail)), new(quantile(values, 1-tail))
	return c
}

// quantile interpolates between neighbours.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-2)
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// fleiss is Fleiss' kappa over trials with at least two votes, whose number may differ. The share of agreeing pairs
// is averaged over trials; agreement by chance follows from the shares of all votes.
func fleiss(table []counts) (float64, bool) {
	var total [3]float64
	votes, trials, observed := 0.0, 0.0, 0.0
	for _, c := range table {
		n := float64(c.sum())
		if n < 2 {
			continue
		}
		pairs := 0.0
		for i, k := range c {
			pairs += float64(k * (k - 1))
			total[i] += float64(k)
		}
		observed += pairs / (n * (n - 1))
		votes += n
		trials++
	}
	if trials == 0 {
		return 0, false
	}
	observed /= trials
	chance := 0.0
	for _, k := range total {
		chance += (k / votes) * (k / votes)
	}
	if chance == 1 { // exact: one of the shares is 1 and the others 0
		return 0, false
	}
	return (observed - chance) / (1 - chance), true
}

// krippendorff is Krippendorff's alpha for nominal data with any number of votes per trial, from the matrix of
// coincidences.
func krippendorff(table []counts) (float64, bool) {
	var total [3]float64
	votes, disagreeing := 0.0, 0.0
	for _, c := range table {
		n := float64(c.sum())
		if n < 2 {
			continue // a single vote has no pair
		}
		for i, k := range c {
			total[i] += float64(k)
			disagreeing += float64(k) * (n - float64(k)) / (n - 1)
		}
		votes += n
	}
	if votes < 2 {
		return 0, false
	}
	expected := 0.0
	for _, k := range total {
		expected += k * (votes - k)
	}
	if expected == 0 {
		return 0, false
	}
	return 1 - (votes-1)*disagreeing/expected, true
}
