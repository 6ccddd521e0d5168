package pages

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/web/words"
	"jurat/reputation"
	"jurat/verify"
	"jurat/verify/trust"
)

type Trials struct {
	Searched
	Found  []api.TrialLine
	Counts api.TrialCounts
}

// Searched is what the page of each search has.
type Searched struct {
	Query url.Values // the parameters, as they were asked for
	Index api.IndexState
	Next  string // the address of the next page; "": this is the last one
	CSV   string
	JSON  string
	Begun bool // there was a search, and it was not refused
	Refusal
}

func (s *Searched) Value(name string) string { return s.Query.Get(name) }

// found notes that a search of this name has come to its end.
func (s *Searched) found(name, next string, index api.IndexState) {
	filters := filtersOf(s.Query)
	s.Index, s.Begun = index, s.Problem == ""
	s.CSV, s.JSON = "/v1/"+name+".csv?"+filters.Encode(), "/v1/"+name+"?"+filters.Encode()
	if next != "" {
		filters.Set("after", next)
		s.Next = "/" + name + "?" + filters.Encode()
	}
}

// filtersOf returns the conditions of a search without what is empty or no condition.
func filtersOf(query url.Values) url.Values {
	filters := url.Values{}
	for name, values := range query {
		if !slices.Contains([]string{"lang", "a", "b"}, name) && len(values) == 1 && values[0] != "" {
			filters.Set(name, values[0])
		}
	}
	return filters
}

func (t *Trials) Fill(list api.TrialList) {
	t.found("trials", list.Next, list.Index)
	t.Found, t.Counts = list.Trials, list.Counts
}

func (t *Trials) Orders() []string {
	return []string{"newest", "oldest", "latest", "highest", "lowest", "agent"}
}

// Search is the page that searches records: who said this, and when.
type Search struct {
	Searched
	Found []Hit
}

type Hit struct {
	api.Hit
	Action evidence.ActionType
	Role   evidence.Role
	Clock  trust.Clock
	Status verify.Status // of who and when
	Trial  bool          // its chain is a trial's
	Path   string        // of the page of its chain, for a trial the courtroom; "": it is in no chain
}

// Asks reports whether the parameters have a condition.
func (s *Search) Asks() bool {
	filters := filtersOf(s.Query)
	for _, name := range []string{"sort", "limit"} {
		filters.Del(name)
	}
	return len(filters) > 0
}

func (s *Search) Fill(list api.HitList) {
	s.found("search", list.Next, list.Index)
	for _, h := range list.Hits {
		hit := Hit{Hit: h, Action: evidence.ActionType(h.Action), Role: evidence.Role(h.Role), Clock: trust.Clock(h.Clock), Status: verify.Status(h.Status)}
		if hit.Trial = strings.HasPrefix(h.Chain, evidence.TrialPrefix); hit.Trial {
			hit.Path = submissionPath(h.Chain)
		} else if h.Agent != "" && h.Chain != "" {
			hit.Path = recordingPath(h.Chain)
		} else if h.Chain != "" {
			hit.Path = chainPath(h.Chain)
		}
		s.Found = append(s.Found, hit)
	}
}

// Kinds lists the action types, by their names.
func (s *Search) Kinds(lang words.Lang) []evidence.ActionType {
	return slices.SortedStableFunc(slices.Values(evidence.ActionTypes()), func(a, b evidence.ActionType) int {
		return strings.Compare(known(lang, a), known(lang, b))
	})
}

func (s *Search) Orders() []string { return []string{"newest", "oldest"} }

// Comparison is the page of two trials side by side.
type Comparison struct {
	api.TrialComparison
	Rows []ScoreRow
}

// A ScoreRow is a juror's total, or its points on an axis, in both trials; "": it has none.
type ScoreRow struct {
	Juror, Axis string // Axis "": the total
	A, B        string
	Differ      bool
}

func NewComparison(both api.TrialComparison) *Comparison {
	c := &Comparison{TrialComparison: both}
	var jurors, axes []string
	for _, s := range []api.TrialSheet{both.A, both.B} {
		for _, seat := range s.Seats {
			if !slices.Contains(jurors, seat.JurorID) {
				jurors = append(jurors, seat.JurorID)
			}
		}
		for _, axis := range s.Axes {
			if !slices.Contains(axes, axis) {
				axes = append(axes, axis)
			}
		}
	}
	for _, juror := range jurors {
		for _, axis := range append([]string{""}, axes...) {
			row := ScoreRow{Juror: juror, Axis: axis, A: pointsOf(both.A, juror, axis), B: pointsOf(both.B, juror, axis)}
			row.Differ = row.A != row.B
			c.Rows = append(c.Rows, row)
		}
	}
	return c
}

// pointsOf returns a juror's points on an axis, or its total for the axis ""; "" if it has none.
func pointsOf(s api.TrialSheet, juror, axis string) string {
	for _, seat := range s.Seats {
		if seat.JurorID != juror || seat.Position == "" {
			continue
		}
		if axis == "" {
			return strconv.Itoa(seat.Score)
		}
		if n, has := seat.Scores[axis]; has {
			return strconv.Itoa(n)
		}
	}
	return ""
}

// History is what an agent's page shows of its trials.
type History struct {
	api.AgentHistory
	Next string // the address of all trials; "": these are all
}

func NewHistory(h api.AgentHistory) *History {
	out := &History{AgentHistory: h}
	if found := h.Trials.Trials; h.Trials.Next != "" && len(found) > 0 {
		out.Next = "/trials?" + url.Values{"agent": {found[0].Agent}}.Encode()
	}
	return out
}

// share2 writes a coefficient with two decimals.
func share2(says words.Texts, value *float64) string {
	if value == nil {
		return says.Say("find.undefined")
	}
	return fmt.Sprintf("%.2f", *value)
}

// shownMoves is how many of the latest moves of a class a page lists. The JSON has all.
const shownMoves = 200

// Agent is the page of what a log shows about an agent.
type Agent struct {
	*reputation.View
	Classes []Class
	Left    []LeftOut
	History *History // nil: the viewer may not see it
}

// A Class is what raters of one kind found.
type Class struct {
	*reputation.Class
	Number int // on the page, from 1
	Picture
	Moves   []reputation.Move
	Earlier int // moves that are not listed
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

func NewAgent(v *reputation.View) *Agent {
	a := &Agent{View: v}
	for i := range v.Classes {
		c := &v.Classes[i]
		made := Class{Class: c, Number: i + 1, Picture: picture(c.Moves, moment(v.At)), Moves: c.Moves}
		if n := len(made.Moves) - shownMoves; n > 0 {
			made.Moves, made.Earlier = made.Moves[n:], n
		}
		a.Classes = append(a.Classes, made)
	}
	a.leftOut()
	return a
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

const (
	pictureWidth  = 600
	pictureHeight = 200
)

// picture draws the bounds from the first moment at which there were any. A later move that takes the number away ends the lines.
func picture(moves []reputation.Move, at time.Time) (p Picture) {
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
	p.Since = moment(moves[first].At)
	span := max(at.Sub(p.Since), time.Second)
	var lower, upper [][2]int
	for i := first; i < len(moves); i++ {
		x := int(float64(pictureWidth) * float64(moment(moves[i].At).Sub(p.Since)) / float64(span))
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

func percent(n int64) string { return fmt.Sprintf("%d.%02d %%", n/100, n%100) }

func (a *Agent) Path() string { return "/v1/agents/" + url.PathEscape(a.Identity.Name) + "/reputation" }
