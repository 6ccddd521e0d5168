package model

import (
	"slices"

	"jurat/jury"
)

// The tables of an answer, by the members that hold them.
const (
	requestsTable = "requests"
	actsTable     = "acts"
	amountsTable  = "amounts"
)

// An order is the order in which one seat reads, writes and scores. Each seat of a panel has its own, so that the
// jurors do not share what an order does to a reader. A seat that is asked again gets another one: an answer that
// depends on it is no judgment.
type order struct {
	reading   jury.Reading
	tables    []string // in the order in which they are filled in; nil: the answer has none
	axes      jury.Rubric
	positions []jury.Position
	sections  []string // of the system text, after the rules about evidence
	best      bool     // the levels of an axis are listed from the best one down
}

// orderOf returns the order for a brief.
func orderOf(b *jury.Brief) order {
	o := order{reading: b.Seat.Reading, positions: []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail},
		sections: []string{"axes", "positions", "quoting"}}
	if b.Phase == jury.Repetition {
		o.reading, o.best = another(o.reading), true
		slices.Reverse(o.positions)
		slices.Reverse(o.sections)
	}
	o.tables, o.axes = []string{requestsTable, amountsTable, actsTable}, slices.Clone(b.Rubric)
	switch o.reading {
	case jury.PolicyFirst:
		o.tables = []string{actsTable, requestsTable, amountsTable}
		slices.Reverse(o.axes)
	case jury.ActsFirst:
		o.tables = []string{actsTable, amountsTable, requestsTable}
		o.axes = append(o.axes[1:], o.axes[0])
	case jury.ClaimsFirst:
	default:
		o.tables = []string{requestsTable, actsTable, amountsTable}
	}
	if !b.Tables {
		o.tables = nil
	}
	return o
}

// another returns the reading of a seat that is asked again. It is never the seat's own.
func another(r jury.Reading) jury.Reading {
	switch r {
	case jury.PolicyFirst:
		return jury.ActsFirst
	case jury.ActsFirst:
		return jury.ClaimsFirst
	}
	return jury.PolicyFirst
}

// A shownAxis is an axis as the system text shows it.
type shownAxis struct {
	jury.Axis
	Least  string // the least level or points that allow a pass; "": any do
	Levels []shownLevel
}

type shownLevel struct {
	Number      int
	Description string
}

func (o *order) shownAxes() []shownAxis {
	var list []shownAxis
	for _, axis := range o.axes {
		a := shownAxis{Axis: axis, Least: leastOf(axis)}
		for i, level := range axis.Levels {
			a.Levels = append(a.Levels, shownLevel{i, level.Description})
		}
		if o.best {
			slices.Reverse(a.Levels)
		}
		list = append(list, a)
	}
	return list
}
