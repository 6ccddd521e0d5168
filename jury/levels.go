package jury

import (
	"fmt"
	"maps"
	"slices"
)

const maxLevels = 20 // of an axis

// checkLevels returns what is wrong with the levels of an axis, or nil.
func (a *Axis) checkLevels(field string) error {
	if len(a.Levels) == 0 {
		return nil
	}
	if n := len(a.Levels); n < 2 || n > maxLevels {
		return wrong(field+".levels", "%d: want 2 to %d, or none", n, maxLevels)
	}
	last := -1
	for i, level := range a.Levels {
		at := fmt.Sprintf("%s.levels[%d]", field, i)
		if level.Points <= last {
			return wrong(at+".points", "%d: want more than the level before, from 0", level.Points)
		}
		if err := checkText(at+".description", level.Description); err != nil {
			return err
		}
		last = level.Points
	}
	if last != a.Max {
		return wrong(fmt.Sprintf("%s.levels[%d].points", field, len(a.Levels)-1), "%d: the highest level has the axis's maximum, %d", last, a.Max)
	}
	return nil
}

// leveled reports whether any axis has levels.
func (r Rubric) leveled() bool {
	return slices.ContainsFunc(r, func(a Axis) bool { return len(a.Levels) > 0 })
}

// ScoresOf returns the points of the chosen levels, and their sum. levels must name every axis that has levels, and no
// other. Axes without levels are left out. Its error is a *FieldError.
func (r Rubric) ScoresOf(levels map[string]int) (Scores, int, error) {
	if err := r.checkChosen(levels); err != nil {
		return nil, 0, err
	}
	scores, total := Scores{}, 0
	for _, axis := range r {
		if len(axis.Levels) == 0 {
			continue
		}
		scores[axis.ID] = axis.Levels[levels[axis.ID]].Points
		total += scores[axis.ID]
	}
	return scores, total, nil
}

// checkChosen requires a level of each axis that has levels, and of no other.
func (r Rubric) checkChosen(levels map[string]int) error {
	known := map[string]bool{}
	for _, axis := range r {
		level, chosen := levels[axis.ID]
		switch {
		case len(axis.Levels) == 0:
			continue
		case !chosen:
			return broken(RuleLevels, "levels."+axis.ID, "missing")
		case level < 0 || level >= len(axis.Levels):
			return broken(RuleLevels, "levels."+axis.ID, "%d: want 0 to %d", level, len(axis.Levels)-1)
		}
		known[axis.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(levels)) {
		if !known[id] {
			return broken(RuleLevels, "levels."+abbreviate(id), "the rubric has no levels of it")
		}
	}
	return nil
}

// checkFollows requires that the scores of an opinion with levels follow from them.
func (o *Opinion) checkFollows(rubric Rubric) error {
	if len(o.Levels) == 0 {
		return nil
	}
	scores, _, err := rubric.ScoresOf(o.Levels)
	if err != nil {
		return err
	}
	for _, axis := range rubric {
		if points, leveled := scores[axis.ID]; leveled && o.AxisScores[axis.ID] != points {
			return broken(RuleLevels, "axisScores."+axis.ID, "%d, and level %d has %d points", o.AxisScores[axis.ID], o.Levels[axis.ID], points)
		}
	}
	return nil
}

// broken is wrong for a field that breaks a rule of its own.
func broken(rule, field, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...), rule: rule}
}
