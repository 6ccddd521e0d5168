package stats

import (
	"math/rand/v2"
	"slices"

	"jurat/jury"
)

// Agreement is how far jurors agree over many trials, beyond what chance would give.
type Agreement struct {
	Level float64     `json:"level"` // mean of the share of seats that hold the most common position
	Kappa Coefficient `json:"fleissKappa"`
	Alpha Coefficient `json:"krippendorffAlpha"` // for nominal data
}

// A Coefficient is 1 where all agree and 0 where they agree as chance would have them. It is not defined where there is
// nothing to agree on: fewer than two votes everywhere, or one position throughout.
type Coefficient struct {
	Value *float64 `json:"value"` // null: not defined
	Low   *float64 `json:"low"`   // 95 % bootstrap interval over trials; null: too few of the samples define it
	High  *float64 `json:"high"`
}

const (
	samples    = 1000 // of the bootstrap
	inInterval = 0.95
	seed       = 20250101 // so that the same trials have the same interval
)

// positions are the categories, in the order in which they are counted.
var positions = []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail}

// counts says how many jurors hold each position in one trial.
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

// agreement measures trials by what each seat held; "" is a seat that held nothing.
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

// estimate computes a coefficient and its bootstrap interval: trials are drawn with replacement.
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

// fleiss is Fleiss' kappa over trials with at least two votes, whose number may differ: the share of agreeing pairs is
// averaged over trials, and what chance gives is computed from the shares of all votes.
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
			continue // a vote alone agrees with nothing
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
