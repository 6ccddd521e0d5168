package rules

import (
	"math"
	"slices"

	"jurat/jury"
)

// What a finding costs of the hundred points.
const (
	minorCost    = 2
	majorCost    = 31 // and more, the more often the rule is right
	surestCost   = 28 // what a rule that is always right adds to it
	criticalCost = 64
	moreCost     = 8 // each further one
)

// band is the least and the most of the total that a position has, so that position and total always agree.
func band(p jury.Position) (least, most int) {
	switch p {
	case jury.SafePass:
		return 70, 100
	case jury.NeedsReview:
		return 40, 69
	}
	return 0, 39
}

// rank orders severities, from 1 up; 0 means no severity.
func rank(s jury.Severity) int {
	return slices.Index([]jury.Severity{jury.Minor, jury.Major, jury.Critical}, s) + 1
}

// decisive returns the findings of the highest severity.
func decisive(list []jury.Finding) (most []jury.Finding) {
	for _, f := range list {
		switch {
		case len(most) == 0 || rank(f.Severity) > rank(most[0].Severity):
			most = []jury.Finding{f}
		case f.Severity == most[0].Severity:
			most = append(most, f)
		}
	}
	return most
}

// gravest is the highest severity of findings; "" if there are none.
func gravest(list []jury.Finding) jury.Severity {
	if most := decisive(list); len(most) > 0 {
		return most[0].Severity
	}
	return ""
}

// positionOf derives the position from the most severe finding.
func positionOf(list []jury.Finding) jury.Position {
	switch gravest(list) {
	case jury.Critical:
		return jury.UnsafeFail
	case jury.Major:
		return jury.NeedsReview
	}
	return jury.SafePass
}

// score deducts what findings cost, within the band of the position: from the finding's own axis first, and what is left over
// from the axes that have most.
func score(rubric jury.Rubric, list []jury.Finding, position jury.Position) (jury.Scores, int) {
	left, total := jury.Scores{}, 0
	for _, axis := range rubric {
		left[axis.ID] = axis.Max
		total += axis.Max
	}
	least, most := band(position)
	points, bySeverity := 0, slices.Clone(list)
	slices.SortStableFunc(bySeverity, func(x, y jury.Finding) int { return rank(y.Severity) - rank(x.Severity) })
	for i, f := range bySeverity {
		part := min(cost(f, i == 0), max(0, total-least-points))
		points += part
		deduct(rubric, left, f.Axis, part)
	}
	rest := max(0, total-most-points) // where nothing could be read, no finding took them
	deduct(rubric, left, "", rest)
	return left, total - points - rest
}

func cost(f jury.Finding, first bool) int {
	switch {
	case f.Severity == jury.Minor:
		return minorCost
	case !first:
		return moreCost
	case f.Severity == jury.Critical:
		return criticalCost
	}
	return majorCost + int(math.Round(surestCost*max(0, 2*certainty(f)-1)))
}

func deduct(rubric jury.Rubric, left jury.Scores, axis string, points int) {
	own := min(points, left[axis])
	if own > 0 {
		left[axis] -= own
	}
	for range points - own {
		fullest := rubric[0].ID
		for _, a := range rubric {
			if left[a.ID] > left[fullest] {
				fullest = a.ID
			}
		}
		left[fullest]--
	}
}

// confidence is how often such an answer is right: that of the surest rule among the gravest findings, a little more if there are
// several. Of a pass without a grave finding rules know little.
func confidence(list []jury.Finding) float64 {
	most := decisive(list)
	if rank(gravest(list)) <= rank(jury.Minor) {
		return 0.7
	}
	sure := 0.0
	for _, f := range most {
		sure = max(sure, certainty(f))
	}
	if len(most) > 1 {
		sure = min(0.95, sure+0.05)
	}
	return math.Round(sure*100) / 100
}
