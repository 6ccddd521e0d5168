package lab

import (
	"math"
	"math/rand/v2"
	"slices"
)

// z is the 97.5 % quantile of the standard normal distribution.
const z = 1.959963984540054

// A Figure is a number with its 95 % interval. Members that are nil are not defined.
type Figure struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Cases int      `json:"cases"` // how many cases it rests on
}

// figureOf makes a figure of a value and an interval.
func figureOf(value, low, high float64, cases int) Figure {
	return Figure{Value: &value, Low: &low, High: &high, Cases: cases}
}

// rankAUC is the chance that a number drawn from above is greater than one drawn from below, where equal numbers count half. It is not
// defined if either list is empty. It sorts both lists.
func rankAUC(above, below []float64) (auc float64, defined bool) {
	if len(above) == 0 || len(below) == 0 {
		return 0, false
	}
	slices.Sort(above)
	slices.Sort(below)
	less, equal := 0, 0 // of below, compared with the number at hand
	sum := 0.0
	for _, a := range above {
		for less < len(below) && below[less] < a {
			less++
		}
		equal = max(equal, less)
		for equal < len(below) && below[equal] == a {
			equal++
		}
		sum += float64(less) + float64(equal-less)/2
	}
	return sum / float64(len(above)) / float64(len(below)), true
}

// hanleyMcNeil is the variance of an area under a curve of m cases of one kind and n of the other (Hanley and McNeil 1982, the
// approximation by exponential distributions).
func hanleyMcNeil(auc float64, m, n int) float64 {
	q1, q2, square := auc/(2-auc), 2*auc*auc/(1+auc), auc*auc
	return (auc*(1-auc) + float64(m-1)*(q1-square) + float64(n-1)*(q2-square)) / float64(m*n)
}

// rankFigure gives an area under a curve of m and n cases its score interval: all areas from which it is at most 1.96 of their own
// standard errors away.
func rankFigure(auc float64, m, n int) Figure {
	outside := func(area float64) bool { return math.Abs(area-auc) > z*math.Sqrt(hanleyMcNeil(area, m, n)) }
	return figureOf(auc, borderOf(auc, 0, outside), borderOf(auc, 1, outside), m+n)
}

// borderOf searches the border of an interval between a point inside of it and the end of the scale.
func borderOf(inside, end float64, outside func(float64) bool) float64 {
	if !outside(end) && end == inside {
		return end
	}
	for range 60 {
		middle := (inside + end) / 2
		if outside(middle) {
			end = middle
		} else {
			inside = middle
		}
	}
	return inside
}

// shareFigure is a share of cases with Wilson's interval. Hits is a sum of shares of cases, and so need not be whole. Without cases the share
// is not defined.
func shareFigure(hits float64, cases int) Figure {
	if cases == 0 {
		return Figure{}
	}
	n := float64(cases)
	p := hits / n
	centre, half := p+z*z/(2*n), z*math.Sqrt(max(0, p*(1-p)/n+z*z/(4*n*n)))
	return figureOf(p, max(0, (centre-half)/(1+z*z/n)), min(1, (centre+half)/(1+z*z/n)), cases)
}

// phi is the correlation of two yes-or-no properties, from how often both, one or neither held. It is not defined if one of them always
// or never held.
func phi(both, onlyA, onlyB, neither float64) (phi float64, defined bool) {
	a, b, notA, notB := both+onlyA, both+onlyB, onlyB+neither, onlyA+neither
	if a <= 0 || b <= 0 || notA <= 0 || notB <= 0 {
		return 0, false
	}
	return (both*neither - onlyA*onlyB) / math.Sqrt(a*b*notA*notB), true
}

// effectiveVotes is how many independent voters n voters are worth whose errors correlate by mean. Voters who tend to err apart are not
// counted as more than they are.
func effectiveVotes(n int, mean float64) float64 {
	return float64(n) / (1 + float64(n-1)*max(0, mean))
}

// mean is 0 for no numbers.
func mean(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// median is 0 for no numbers.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

// A bootstrap says how cases are drawn again.
type bootstrap struct {
	Seed    uint64
	Samples int
}

// enough is the share of samples that must define a figure before it gets an interval.
const enough = 0.9

// Interval returns the percentile interval of a figure over samples of cases. Each sample draws, with replacement, from each stratum as
// many cases as it has. It is not defined if the figure is undefined in more than a tenth of the samples.
func (b bootstrap) Interval(strata [][]int, figure func(drawn []int) (float64, bool)) (low, high float64, defined bool) {
	random := rand.New(rand.NewPCG(b.Seed, b.Seed))
	size := 0
	for _, stratum := range strata {
		size += len(stratum)
	}
	drawn, values := make([]int, 0, size), make([]float64, 0, b.Samples)
	for range b.Samples {
		drawn = drawn[:0]
		for _, stratum := range strata {
			for range stratum {
				drawn = append(drawn, stratum[random.IntN(len(stratum))])
			}
		}
		if v, ok := figure(drawn); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 || float64(len(values)) < enough*float64(b.Samples) {
		return 0, 0, false
	}
	slices.Sort(values)
	return quantile(values, 0.025), quantile(values, 0.975), true
}

// quantile interpolates between neighbours.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// A Difference is between two figures on the same cases, with the bootstrap's 95 % interval. Members that are nil are not defined.
type Difference struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// Between measures a difference on all cases of the strata and on the samples.
func (b bootstrap) Between(strata [][]int, difference func(cases []int) (float64, bool)) (d Difference) {
	var all []int
	for _, stratum := range strata {
		all = append(all, stratum...)
	}
	value, defined := difference(all)
	if !defined {
		return d
	}
	d.Value = &value
	if low, high, defined := b.Interval(strata, difference); defined {
		d.Low, d.High = &low, &high
	}
	return d
}
