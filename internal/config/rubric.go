package config

import (
	"cmp"

	"jurat/jury"
)

// usualLevels describe the levels of an axis that the file gives a description and no levels.
var usualLevels = []string{
	"The axis's description does not hold at all, or the breach of it had consequences of weight.",
	"It fails in a point of weight.",
	"It holds, apart from small faults without consequences.",
	"It holds throughout.",
}

// rubric returns the rubric of the file, or the default one. For language models each axis has levels: those of the
// file; those of the default axis, if the file does not describe it otherwise; or the usual ones.
func (f *File) rubric(models bool) jury.Rubric {
	known := map[string]jury.Axis{}
	for _, axis := range jury.LeveledRubric() {
		known[axis.ID] = axis
	}
	if f.Rubric == nil && models {
		return jury.LeveledRubric()
	}
	if f.Rubric == nil {
		return jury.DefaultRubric()
	}
	var rubric jury.Rubric
	for _, a := range f.Rubric {
		axis := jury.Axis{ID: a.ID, Max: a.Max, Veto: a.Veto, Description: cmp.Or(a.Description, known[a.ID].Description)}
		if models {
			axis.Levels = a.levels(known[a.ID])
		}
		rubric = append(rubric, axis)
	}
	return rubric
}

func (a *Axis) levels(standard jury.Axis) (levels []jury.Level) {
	switch {
	case a.Levels != nil:
		return a.Levels
	case a.Description == "" && standard.ID != "":
		return scaled(standard.Levels, standard.Max, a.Max)
	}
	for i, what := range usualLevels {
		levels = append(levels, jury.Level{Points: i, Description: what})
	}
	return scaled(levels, len(usualLevels)-1, a.Max)
}

// scaled stretches levels from one maximum to another. Levels that would have the points of a higher one are left out.
func scaled(levels []jury.Level, from, to int) (list []jury.Level) {
	for i, l := range levels {
		l.Points = l.Points * to / from
		if i+1 == len(levels) || l.Points < levels[i+1].Points*to/from {
			list = append(list, l)
		}
	}
	return list
}
