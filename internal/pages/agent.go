package pages

import (
	"fmt"
	"strings"
	"time"

	"jurat/reputation"
)

// shownMoves is how many of the latest moves of a class a page lists. The JSON has all.
const shownMoves = 200

// Agent is the page of what a log shows about an agent.
type Agent struct {
	*reputation.View
	When    time.Time // as of when
	Classes []Class
	Left    []LeftOut
	History *History // nil: the viewer may not see it
}

// A Class is what raters of one kind found.
type Class struct {
	*reputation.Class
	Number int // on the page, from 1
	Picture
	Moves   []Move
	Earlier int // moves that are not listed
}

// A Move is a verdict that changed a class.
type Move struct {
	*reputation.Move
	When time.Time
}

// LeftOut counts what does not count, by its kind and rule.
type LeftOut struct {
	What reputation.What
	Rule string
	N    int
}

// A Picture is both bounds over time, in a coordinate system that is 600 wide and 200 high, in which 0 % is at the bottom.
type Picture struct {
	Band, Lower, Upper string // points of the polygon between the bounds, and of the step lines; "": there was never a number
	Since              time.Time
}

// NewAgent makes the page of a view. Its error says that the view's times cannot be read.
func NewAgent(v *reputation.View) (*Agent, error) {
	at, err := time.Parse(time.RFC3339, v.At)
	if err != nil {
		return nil, fmt.Errorf("reading a view: %w", err)
	}
	a := &Agent{View: v, When: at}
	for i := range v.Classes {
		c := &v.Classes[i]
		made := Class{Class: c, Number: i + 1}
		for j := range c.Moves {
			when, err := time.Parse(time.RFC3339, c.Moves[j].At)
			if err != nil {
				return nil, fmt.Errorf("reading a view: %w", err)
			}
			made.Moves = append(made.Moves, Move{Move: &c.Moves[j], When: when})
		}
		made.Picture = picture(made.Moves, at)
		if n := len(made.Moves) - shownMoves; n > 0 {
			made.Moves, made.Earlier = made.Moves[n:], n
		}
		a.Classes = append(a.Classes, made)
	}
	a.leftOut()
	return a, nil
}

// leftOut counts what does not count, in the view's order.
func (a *Agent) leftOut() {
	place := map[[2]string]int{}
	for _, o := range a.View.LeftOut {
		k := [2]string{string(o.What), o.Rule}
		i, known := place[k]
		if !known {
			i = len(a.Left)
			place[k] = i
			a.Left = append(a.Left, LeftOut{What: o.What, Rule: o.Rule})
		}
		a.Left[i].N++
	}
}

// Size of a picture.
const (
	pictureWidth  = 600
	pictureHeight = 200
)

// picture draws the bounds from the first moment at which there were any. A later move that takes the number away ends the lines.
func picture(moves []Move, at time.Time) (p Picture) {
	first := -1
	for i := range moves {
		if moves[i].Bounds == nil {
			first = -1
		} else if first < 0 {
			first = i
		}
	}
	if first < 0 {
		return p
	}
	p.Since = moves[first].When
	span := max(at.Sub(p.Since), time.Second)
	var lower, upper [][2]int
	for i := first; i < len(moves); i++ {
		x := int(float64(pictureWidth) * float64(moves[i].When.Sub(p.Since)) / float64(span))
		lower, upper = step(lower, x, moves[i].Bounds.Lower), step(upper, x, moves[i].Bounds.Upper)
	}
	last := moves[len(moves)-1].Bounds
	lower, upper = step(lower, pictureWidth, last.Lower), step(upper, pictureWidth, last.Upper)
	p.Lower, p.Upper = points(lower), points(upper)
	for i := len(lower) - 1; i >= 0; i-- {
		upper = append(upper, lower[i])
	}
	p.Band = points(upper)
	return p
}

// step goes on to x, and there to a bound. Several moves in one place are one step.
func step(line [][2]int, x int, bound int64) [][2]int {
	y := height(bound)
	if n := len(line); n > 0 {
		if line[n-1][0] == x {
			line[n-1][1] = y
			return line
		}
		line = append(line, [2]int{x, line[n-1][1]})
	}
	return append(line, [2]int{x, y})
}

func height(bound int64) int { return pictureHeight - int(bound*pictureHeight/10_000) }

func points(line [][2]int) string {
	var b strings.Builder
	for i, p := range line {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d,%d", p[0], p[1])
	}
	return b.String()
}

// Command computes the same from the log.
func (a *Agent) Command() string {
	command := "jurat reputation " + quote(a.Identity.Name)
	if a.Identity.CA != "" {
		command += " --ca " + quote(a.Identity.CA)
	}
	return command + " --at " + a.At + " --json"
}

// quote writes a name for a shell, of which no character means anything within single quotes but that quote itself.
func quote(name string) string { return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'" }

// percent writes ten-thousandths.
func percent(n int64) string { return fmt.Sprintf("%d.%02d %%", n/100, n%100) }

// Path is the path of the agent's JSON.
func (a *Agent) Path() string { return agentPath(a.Identity.Name) }
