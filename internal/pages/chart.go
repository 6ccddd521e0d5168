package pages

import (
	"fmt"
	"strings"

	"jurat/jury"
)

// A Chart draws the scores of a grid, a line for each juror, and below them how far the jury agreed. The grid has the same
// numbers as a table.
type Chart struct {
	Lines  []Line
	Labels []Label
	Bars   []Bar
}

// A Line is a juror's scores from left to right. It is broken where the juror has no vote.
type Line struct {
	Who
	Style  int // by which it is told from the others: colour, dashes and mark
	Path   string
	Marks  string // one at each score
	Sample string // its mark in the legend
	Scores []int
}

// A Label names a column, or the columns of the discussion.
type Label struct {
	X, Y int
	Of   string // alone, again, talk or end
}

// A Bar is the agreement at one time.
type Bar struct {
	X, Y, Height int
	Middle, Over int // where its number stands
	Level        float64
}

// Measures of a chart in units of its picture. On a phone, a unit is about a pixel.
const (
	chartLeft  = 40
	chartRight = 320
	chartTop   = 10
	chartSpan  = 100 // height of the scores: a unit is a point
	barsBottom = 190
	barsSpan   = 40
	barWidth   = 14
	styles     = 12 // a panel has no more seats
)

// Chart draws the grid. It returns nil if there was no discussion to show.
func (g Grid) Chart() *Chart {
	if len(g.Rounds) == 0 {
		return nil
	}
	c := &Chart{Labels: g.labels()}
	for i, row := range g.jurors() {
		c.Lines = append(c.Lines, g.line(i, row))
	}
	for i, check := range g.Checks {
		if check != nil {
			c.Bars = append(c.Bars, bar(g.x(i), check))
		}
	}
	return c
}

// jurors returns the rows but the judge's.
func (g Grid) jurors() (rows []Row) {
	for _, row := range g.Rows {
		if row.Number > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// x returns where a column stands.
func (g Grid) x(column int) int {
	return chartLeft + 20 + (chartRight-chartLeft-40)*column/(g.columns()-1)
}

// labels names the columns, in two lines by turns, as the names are wider than a column.
func (g Grid) labels() (list []Label) {
	first := g.columns() - 1 - len(g.Rounds)
	add := func(of string, x int) {
		list = append(list, Label{X: x, Y: barsBottom + 16 + 14*(len(list)%2), Of: of})
	}
	add("alone", g.x(0))
	if g.Again {
		add("again", g.x(1))
	}
	add("talk", (g.x(first)+g.x(first+len(g.Rounds)-1))/2)
	add("end", g.x(g.columns()-1))
	return list
}

// line draws a juror's scores. Jurors stand a little beside each other, so that equal scores do not hide one another.
func (g Grid) line(i int, row Row) Line {
	l := Line{Who: row.Who, Style: i % styles, Sample: markAt(i, 14, 7)}
	aside := 4*i - 2*(len(g.jurors())-1)
	var path, marks strings.Builder
	step := "M"
	for column, cell := range row.Cells {
		if cell.Vote == nil {
			if cell.Absent != "" {
				step = "M"
			}
			continue
		}
		x, y := g.x(column)+aside, chartTop+chartSpan-cell.Vote.Score
		fmt.Fprintf(&path, "%s%d %d", step, x, y)
		marks.WriteString(markAt(i, x, y))
		l.Scores, step = append(l.Scores, cell.Vote.Score), "L"
	}
	l.Path, l.Marks = path.String(), marks.String()
	return l
}

// markAt draws a circle, a square, a triangle or a diamond around a point.
func markAt(i, x, y int) string {
	switch i % 4 {
	case 0:
		return fmt.Sprintf("M%d %da4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x-4, y)
	case 1:
		return fmt.Sprintf("M%d %dh7v7h-7z", x-3, y-3)
	case 2:
		return fmt.Sprintf("M%d %dl5 9h-10z", x, y-5)
	}
	return fmt.Sprintf("M%d %dl5 5l-5 5l-5 -5z", x, y-5)
}

func bar(x int, check *jury.ConsensusResult) Bar {
	height := int(check.AgreementLevel*barsSpan + 0.5)
	return Bar{X: x - barWidth/2, Y: barsBottom - height, Height: height, Middle: x, Over: barsBottom - height - 4, Level: check.AgreementLevel}
}
