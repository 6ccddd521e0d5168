package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Z is the 97.5 % quantile of the standard normal distribution.
const Z = 1.959963984540054

// A Coefficient is a number with its 95 % interval. Members that are nil are not defined.
type Coefficient struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// Text writes the number in a unit, with its interval.
func (c Coefficient) Text(format string, unit float64) string {
	switch {
	case c.Value == nil:
		return "not defined"
	case c.Low == nil || c.High == nil:
		return fmt.Sprintf(format, *c.Value*unit)
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", *c.Value*unit, *c.Low*unit, *c.High*unit)
}

// Wilson is the 95 % score interval of a share (Wilson 1927). Hits may be a sum of shares of cases, and so need not be whole.
func Wilson(hits float64, cases int) (low, high float64) {
	if cases == 0 {
		return 0, 1
	}
	n := float64(cases)
	p := hits / n
	centre, half := p+Z*Z/(2*n), Z*math.Sqrt(max(0, p*(1-p)/n+Z*Z/(4*n*n)))
	return max(0, (centre-half)/(1+Z*Z/n)), min(1, (centre+half)/(1+Z*Z/n))
}

// Phi is the correlation of two yes-or-no properties, from how often they were so: both[1][0] counts where the first alone was. It is
// not defined if one of them always or never held.
func Phi(both [2][2]float64) (phi float64, defined bool) {
	a0, a1, b0, b1 := both[0][0]+both[0][1], both[1][0]+both[1][1], both[0][0]+both[1][0], both[0][1]+both[1][1]
	if a0 <= 0 || a1 <= 0 || b0 <= 0 || b1 <= 0 {
		return 0, false
	}
	return (both[1][1]*both[0][0] - both[1][0]*both[0][1]) / math.Sqrt(a0*a1*b0*b1), true
}

// EffectiveVotes is how many independent voters n voters are worth whose errors correlate by mean. Voters who tend to err apart are not
// counted as more than they are.
func EffectiveVotes(n int, mean float64) float64 {
	return float64(n) / (1 + float64(n-1)*max(0, mean))
}

// A Bootstrap says how cases are drawn again: from a fixed seed, so that the same trials give the same interval.
type Bootstrap struct {
	Seed    uint64
	Samples int
}

// Between measures a figure on all cases of the strata, and its percentile interval over samples. Each sample draws, with replacement, from each
// stratum as many cases as it has. There is no interval if the figure is undefined in more than a tenth of the samples.
func (b Bootstrap) Between(strata [][]int, figure func(drawn []int) (float64, bool)) (c Coefficient) {
	all := slices.Concat(strata...)
	value, defined := figure(all)
	if !defined {
		return c
	}
	c.Value = &value
	random := rand.New(rand.NewPCG(b.Seed, b.Seed))
	drawn, values := make([]int, 0, len(all)), make([]float64, 0, b.Samples)
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
	if len(all) >= 2 && len(values) > 0 && 10*len(values) >= 9*b.Samples {
		slices.Sort(values)
		c.Low, c.High = new(quantile(values, 0.025)), new(quantile(values, 0.975))
	}
	return c
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
