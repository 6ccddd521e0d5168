package docket

import (
	"context"
	"slices"
	"strconv"

	"jurat/api"
	"jurat/internal/ledger"
	"jurat/internal/trial"
	"jurat/jury"
)

// Sheet reads a trial from the log and makes its sheet. Its errors are those of trial.Reopen.
func Sheet(ctx context.Context, l *ledger.Ledger, id string) (api.TrialSheet, error) {
	t, err := trial.Reopen(ctx, l, id)
	if err != nil {
		return api.TrialSheet{}, err
	}
	t.View.Check(t.Case)
	return SheetOf(t.View), nil
}

// SheetOf makes the sheet of a trial.
func SheetOf(v *trial.View) api.TrialSheet {
	s := api.TrialSheet{TrialLine: Line(&v.Summary), Axes: []string{}, Seats: []api.TrialSeat{}, Findings: findings(v), Cost: v.Spent, Calls: v.Calls,
		Took: v.Took().Milliseconds(), Broken: v.Broken}
	if v.Settings != nil {
		for _, axis := range v.Settings.Rubric {
			s.Axes = append(s.Axes, axis.ID)
		}
	}
	if j := v.Judgment; j != nil {
		s.Method, s.Rationale = j.Method, j.Rationale
	}
	if v.Outcome != nil {
		s.Decision = v.Outcome.Decision
	}
	for i := range v.Seats {
		s.Seats = append(s.Seats, seatOf(v, &v.Seats[i]))
	}
	return s
}

func seatOf(v *trial.View, seat *trial.Seat) api.TrialSeat {
	out := api.TrialSeat{JurorID: seat.JurorID, Role: seat.RoleName, Model: seat.Model, Scores: map[string]int{}, Abstained: seat.Abstains}
	if e := v.Now[seat.JurorID]; e != nil {
		out.Position, out.Score, out.Reason, out.Fallback = e.Position, e.TotalScore, e.Rationale, e.Fallback
		for axis, points := range e.AxisScores {
			out.Scores[axis] = points
		}
	}
	return out
}

// findings lists each finding once, with the jurors who had it, in the order of the acts.
func findings(v *trial.View) []api.TrialFinding {
	list, known := []api.TrialFinding{}, map[string]int{}
	for _, said := range v.Said {
		for _, f := range said.Findings {
			at, seen := known[exactly(f.Finding)]
			if !seen {
				at = len(list)
				known[exactly(f.Finding)] = at
				list = append(list, api.TrialFinding{Message: f.Message, Quote: f.Quote, Rule: f.Rule, Axis: f.Axis, Severity: f.Severity, Stands: f.Stands})
			}
			if !slices.Contains(list[at].Jurors, said.Juror) {
				list[at].Jurors = append(list[at].Jurors, said.Juror)
			}
		}
	}
	return list
}

func exactly(f jury.Finding) string { return key(f.Message, f.Rule, f.Quote) }

// key joins values so that no two lists have the same key.
func key(message int, texts ...string) string {
	out := strconv.Itoa(message)
	for _, text := range texts {
		out += strconv.Quote(text)
	}
	return out
}

// Compare puts two trials side by side.
func Compare(a, b api.TrialSheet) api.TrialComparison {
	c := api.TrialComparison{A: a, B: b, SameCase: a.Case == b.Case, Both: []api.TrialFinding{}, OnlyA: []api.TrialFinding{}, OnlyB: []api.TrialFinding{}}
	same := func(f api.TrialFinding) string {
		if c.SameCase {
			return key(f.Message, f.Rule, f.Quote)
		}
		return key(0, f.Rule, f.Axis)
	}
	inA, inB := map[string]bool{}, map[string]bool{}
	for _, f := range a.Findings {
		inA[same(f)] = true
	}
	for _, f := range b.Findings {
		inB[same(f)] = true
		if !inA[same(f)] {
			c.OnlyB = append(c.OnlyB, f)
		}
	}
	for _, f := range a.Findings {
		if inB[same(f)] {
			c.Both = append(c.Both, f)
		} else {
			c.OnlyA = append(c.OnlyA, f)
		}
	}
	return c
}

// SeatTable is who scored what in a trial, as a table.
func SeatTable(s *api.TrialSheet) *Table {
	t := &Table{Head: []string{"juror", "role", "model", "position", "score"}}
	for _, axis := range s.Axes {
		t.Head = append(t.Head, "axis_"+axis)
	}
	t.Head = append(t.Head, "fallback", "abstained", "reason")
	for _, seat := range s.Seats {
		row := []string{seat.JurorID, seat.Role, seat.Model, string(seat.Position), strconv.Itoa(seat.Score)}
		for _, axis := range s.Axes {
			row = append(row, strconv.Itoa(seat.Scores[axis]))
		}
		t.Rows = append(t.Rows, append(row, strconv.FormatBool(seat.Fallback), strconv.FormatBool(seat.Abstained), seat.Reason))
	}
	return t
}
