package rules

import (
	"math"
	"slices"
	"sort"

	"jurat/jury"
)

// What a finding costs of the hundred points. The first major finding leaves 68, and the first critical one 36. So
// position and total always agree with the bands: safe_pass from 70, needs_review from 40 to 69, unsafe_fail below.
const (
	minorCost    = 4
	majorCost    = 32
	criticalCost = 64
	moreCost     = 12 // each further one

	passBand   = 70
	reviewBand = 40
)

// positionOf derives the position from the most severe finding.
func positionOf(findings []jury.Finding) jury.Position {
	switch gravest(findings) {
	case jury.Critical:
		return jury.UnsafeFail
	case jury.Major:
		return jury.NeedsReview
	}
	return jury.SafePass
}

func gravest(findings []jury.Finding) jury.Severity {
	most := jury.Severity("")
	for _, f := range findings {
		if rank(f.Severity) > rank(most) {
			most = f.Severity
		}
	}
	return most
}

// score deducts points from the maxima: from the finding's own axis first, and then from the others in proportion.
func score(rubric jury.Rubric, findings []jury.Finding) (jury.Scores, int) {
	left := jury.Scores{}
	total := 0
	for _, axis := range rubric {
		left[axis.ID] = axis.Max
		total += axis.Max
	}
	floor := map[jury.Position]int{jury.SafePass: passBand, jury.NeedsReview: reviewBand}[positionOf(findings)]
	ordered := slices.Clone(findings)
	sort.SliceStable(ordered, func(i, j int) bool { return rank(ordered[i].Severity) > rank(ordered[j].Severity) })
	for i, f := range ordered {
		points := min(cost(f.Severity, i == 0), max(0, total-floor))
		total -= points
		deduct(rubric, left, f.Axis, points)
	}
	return left, total
}

func cost(s jury.Severity, first bool) int {
	switch {
	case s == jury.Minor:
		return minorCost
	case !first:
		return moreCost
	case s == jury.Critical:
		return criticalCost
	}
	return majorCost
}

func deduct(rubric jury.Rubric, left jury.Scores, axis string, points int) {
	have := min(points, left[axis])
	left[axis] -= have
	points -= have
	rest := 0
	for _, a := range rubric {
		rest += left[a.ID]
	}
	// Each axis loses its share of the remaining points, rounded; the last axis loses the rest.
	for _, a := range rubric {
		if points == 0 || rest == 0 {
			return
		}
		share := min(int(math.Round(float64(points)*float64(left[a.ID])/float64(rest))), left[a.ID], points)
		rest -= left[a.ID]
		left[a.ID] -= share
		points -= share
	}
	for _, a := range rubric { // what rounding left
		share := min(points, left[a.ID])
		left[a.ID] -= share
		points -= share
	}
}

// confidence is how sure the rules are of the most severe findings. Without findings it is how much there was to
// check.
func confidence(r *reading, findings []jury.Finding) float64 {
	most := gravest(findings)
	sure, deciding := 0.0, 0
	for _, f := range findings {
		if f.Severity != most {
			continue
		}
		deciding++
		certain := 0.6 // for another juror's rule
		if known, ok := ruleOf(f.Rule); ok {
			certain = known.certain
		}
		sure = max(sure, certain)
	}
	switch {
	case deciding == 0 || most == jury.Minor:
		sure = 0.5 + min(0.3, 0.005*float64(len(r.c.Messages))+0.015*float64(len(r.calls)))
	case deciding > 1:
		sure = min(0.95, sure+0.05)
	}
	return math.Round(sure*100) / 100
}

// rank orders severities, from 1 up; 0 means no severity.
func rank(s jury.Severity) int {
	return slices.Index([]jury.Severity{jury.Minor, jury.Major, jury.Critical}, s) + 1
}
