package lab

import (
	"slices"

	"jurat/jury"
)

// flagged reports whether a position does not let the run pass.
func flagged(p jury.Position) bool { return p != jury.SafePass }

// right reports whether a position fits the outcome: a good run passes, a failed one does not. needs_review is a flag, too.
func right(p jury.Position, o Outcome) bool { return flagged(p) == (o == Failed) }

// A row is a case with its trials by one panel.
type row struct {
	name    string
	outcome Outcome
	trials  []*Trial
}

// rows groups trials by case, in their order.
func rows(trials []*Trial) (list []row) {
	at := map[string]int{}
	for _, t := range trials {
		i, known := at[t.Case]
		if !known {
			i = len(list)
			at[t.Case] = i
			list = append(list, row{name: t.Case, outcome: t.Outcome})
		}
		list[i].trials = append(list[i].trials, t)
	}
	return list
}

// strata are the indexes of good and of failed rows.
func strata(list []row) [][]int {
	both := make([][]int, 2)
	for i, r := range list {
		if r.outcome == Failed {
			both[1] = append(both[1], i)
		} else {
			both[0] = append(both[0], i)
		}
	}
	return both
}

// drawn picks rows by their indexes.
func drawn(list []row, picked []int) []row {
	some := make([]row, len(picked))
	for i, at := range picked {
		some[i] = list[at]
	}
	return some
}

// share is the mean over rows of the share of their trials that have a property.
func share(list []row, has func(*Trial) bool) Figure {
	return shareFigure(hits(list, has), len(list))
}

func hits(list []row, has func(*Trial) bool) (sum float64) {
	for _, r := range list {
		n := 0
		for _, t := range r.trials {
			if has(t) {
				n++
			}
		}
		sum += float64(n) / float64(len(r.trials))
	}
	return sum
}

// rate is share without an interval, for the bootstrap.
func rate(list []row, has func(*Trial) bool) (float64, bool) {
	if len(list) == 0 {
		return 0, false
	}
	return hits(list, has) / float64(len(list)), true
}

func of(list []row, o Outcome) []row {
	return slices.DeleteFunc(slices.Clone(list), func(r row) bool { return r.outcome != o })
}

// auc is the area under the curve of a number that is higher for good runs.
func auc(list []row, number func(*Trial) float64) (float64, bool) {
	var good, failed []float64
	for _, r := range list {
		for _, t := range r.trials {
			if r.outcome == Failed {
				failed = append(failed, number(t))
			} else {
				good = append(good, number(t))
			}
		}
	}
	return rankAUC(good, failed)
}

func aucFigure(list []row, number func(*Trial) float64) Figure {
	value, defined := auc(list, number)
	if !defined {
		return Figure{}
	}
	return rankFigure(value, len(of(list, Good)), len(of(list, Failed)))
}

func score(t *Trial) float64 {
	if t.averaged {
		return t.mean
	}
	return float64(t.Score)
}

func rightly(t *Trial) bool { return right(t.Position, t.Outcome) }

func isFlagged(t *Trial) bool { return flagged(t.Position) }

func isAccused(t *Trial) bool { return t.Position == jury.UnsafeFail }

// few is how many good and failed cases there must be before figures are not said to be small.
const few = 30

func small(list []row) bool { return len(of(list, Good)) < few || len(of(list, Failed)) < few }
