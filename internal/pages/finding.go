package pages

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/words"
	"jurat/verify"
	"jurat/verify/trust"
)

// Trials is the page that searches trials.
type Trials struct {
	Searched
	Found  []FoundTrial
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

// Value returns a parameter of the search.
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

// A FoundTrial is a trial in a list.
type FoundTrial struct {
	api.TrialLine
	When   time.Time
	Number int // on the page, from 1
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

// Fill adds what was found.
func (t *Trials) Fill(list api.TrialList) {
	t.found("trials", list.Next, list.Index)
	t.Found, t.Counts = foundTrials(list.Trials), list.Counts
}

func foundTrials(list []api.TrialLine) (found []FoundTrial) {
	for i, line := range list {
		at, _ := time.Parse(time.RFC3339, line.Submitted) // this program wrote it
		found = append(found, FoundTrial{line, at, i + 1})
	}
	return found
}

// Orders lists the orders of the list.
func (t *Trials) Orders() []string {
	return []string{"newest", "oldest", "latest", "highest", "lowest", "agent"}
}

// Search is the page that searches records: who said this, and when.
type Search struct {
	Searched
	Found []Hit
}

// A Hit is a record in a list.
type Hit struct {
	api.Hit
	Action evidence.ActionType
	Role   evidence.Role
	Clock  trust.Clock
	When   time.Time     // when it existed, as an authority proves; zero: that is not proved
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

// Fill adds what was found.
func (s *Search) Fill(list api.HitList) {
	s.found("search", list.Next, list.Index)
	for _, h := range list.Hits {
		hit := Hit{Hit: h, Action: evidence.ActionType(h.Action), Role: evidence.Role(h.Role), Clock: trust.Clock(h.Clock), Status: verify.Status(h.Status)}
		if h.Proved != "" {
			hit.When, _ = time.Parse(time.RFC3339, h.Proved) // this program wrote it
		}
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

// Orders lists the orders of the list.
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

// NewComparison makes the page.
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
	Found []FoundTrial
	Next  string // the address of all of them; "": these are all
}

// NewHistory makes that part of the page.
func NewHistory(h api.AgentHistory) *History {
	out := &History{AgentHistory: h, Found: foundTrials(h.Trials.Trials)}
	if h.Trials.Next != "" && len(out.Found) > 0 {
		out.Next = "/trials?" + url.Values{"agent": {out.Found[0].Agent}}.Encode()
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
