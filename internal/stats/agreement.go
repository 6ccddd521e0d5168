package stats

import (
	"slices"

	"jurat/jury"
)

// Agreement measures how much jurors agree over many trials, beyond chance.
type Agreement struct {
	Level float64     `json:"level"` // mean of the share of seats that hold the most common position
	Kappa Coefficient `json:"fleissKappa"`
	Alpha Coefficient `json:"krippendorffAlpha"` // for nominal data
}

// drawing is the bootstrap of agreement, over trials.
var drawing = Bootstrap{Seed: 20250101, Samples: 1000}

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

// estimate computes a coefficient, which is undefined if agreement cannot be measured: fewer than two votes in every trial, or the same
// position in all votes. 1 is full agreement, and 0 agreement by chance.
func estimate(table []counts, of func([]counts) (float64, bool)) Coefficient {
	all := make([]int, len(table))
	for i := range all {
		all[i] = i
	}
	drawn := make([]counts, len(table))
	return drawing.Between([][]int{all}, func(picked []int) (float64, bool) {
		for i, at := range picked {
			drawn[i] = table[at]
		}
		return of(drawn)
	})
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
