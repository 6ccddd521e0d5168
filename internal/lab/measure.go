package lab

import (
	"math"
	"slices"

	"jurat/internal/stats"
)

// A Figure is a number with its 95 % interval, and on how many cases it rests.
type Figure struct {
	stats.Coefficient
	Cases int `json:"cases"`
}

// figureOf makes a figure of a value and an interval.
func figureOf(value, low, high float64, cases int) Figure {
	return Figure{stats.Coefficient{Value: &value, Low: &low, High: &high}, cases}
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
	outside := func(area float64) bool { return math.Abs(area-auc) > stats.Z*math.Sqrt(hanleyMcNeil(area, m, n)) }
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
	low, high := stats.Wilson(hits, cases)
	return figureOf(hits/float64(cases), low, high, cases)
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
