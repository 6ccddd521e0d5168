package docket

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/find"
	"jurat/internal/inorder"
	"jurat/internal/ledger"
	"jurat/internal/trial"
	"jurat/verify"
	"jurat/verify/trust"
)

// Line is a trial in a list.
func Line(s *trial.Summary) api.TrialLine {
	l := api.TrialLine{ID: s.ID, Agent: s.Agent, Submitter: s.Submitter, Submitted: evidence.FormatTime(s.Submitted), Last: evidence.FormatTime(s.Last),
		NeedsPerson: s.NeedsPerson(), Degraded: s.Degraded, Offline: s.Offline, Case: s.Case.String()}
	if now := s.Taken(); now != nil {
		l.Taken = &api.Taken{Reviewer: now.Reviewer, Since: evidence.FormatTime(now.At), By: now.By, Reason: now.Reason}
	}
	if s.Over {
		l.State = api.Over
	}
	if o := s.Outcome; o != nil {
		score := o.Verdict.Score
		l.Verdict, l.Score, l.Outcome, l.By, l.Inconclusive = o.Verdict.Position, &score, o.Position, o.By, o.Verdict.Inconclusive
		if o.Decision != nil {
			l.Reviewer = o.Decision.Reviewer
		}
	}
	return l
}

// List is a page of trials, without what the index could not see.
func List(found *find.Listed) api.TrialList {
	c := found.Counts
	list := api.TrialList{Trials: []api.TrialLine{}, Next: found.Next,
		Counts: api.TrialCounts{Total: c.Total, AtMost: c.AtMost, Verdicts: c.Verdicts, Outcomes: c.Outcomes, NeedsPerson: c.Needs}}
	for i := range found.Trials {
		list.Trials = append(list.Trials, Line(&found.Trials[i]))
	}
	return list
}

// Hits is a page of records. Who said it and when is verified by a trust file, on all cores. trials are those whose outcomes
// the reader may see; visible selects them, nil: all. Its error is that of a panic while a record is verified.
func Hits(found *find.Found, by *trust.Trust, trials *trial.Index, visible func(*trial.Summary) bool) (api.HitList, error) {
	list := api.HitList{Hits: []api.Hit{}, Next: found.Next}
	err := inorder.Each(found.Hits, func(h find.Hit) (api.Hit, error) { return hit(&h, by), nil }, func(h api.Hit) error {
		if t, is := trials.Get(h.Chain); is && (visible == nil || visible(&t)) {
			h.Outcome = t.Outcome
		}
		list.Hits = append(list.Hits, h)
		return nil
	})
	if err != nil {
		return api.HitList{}, fmt.Errorf("verifying what was found: %w", err)
	}
	return list, nil
}

// Proved says whether it is proved who sealed a record, when, and that it is unchanged, and why not.
func Proved(report *verify.Report) (status verify.Status, why string) {
	for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
		if f := report.Of(g); f.Status != verify.Proved {
			return f.Status, string(g) + " is " + string(f.Status) + ": " + f.Reason
		}
	}
	return verify.Proved, ""
}

func hit(found *find.Hit, by *trust.Trust) api.Hit {
	p := &found.Record.Payload
	h := api.Hit{Record: p.RecordID, Action: string(p.ActionType), Role: string(p.Role()), Actor: p.Actor(), Chain: p.ChainID, Claimed: p.Timestamp,
		Place: found.Pointer, Said: found.Pointer != "" && found.Said(), Line: found.Excerpt}
	if p.Observed != nil {
		h.Agent = p.Observed.Agent
	}
	report := verify.Record(found.Record, verify.Options{Trust: by})
	status, why := Proved(report)
	if h.Status, h.Why = string(status), why; status != verify.Proved {
		return h
	}
	if at, ok := report.Answers().TimeOf(p.RecordID); ok {
		h.Proved, h.Authority, h.Clock = evidence.FormatTime(at.Time), at.Authority, string(at.Clock)
	}
	return h
}

// A Table has a head and rows of one length.
type Table struct {
	Head []string
	Rows [][]string
}

// WriteCSV writes a table as RFC 4180 has it, but with LF at the end of lines, in UTF-8. No cell is a formula. Its error is the writer's.
func (t *Table) WriteCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = inertCell(cell)
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// CSV returns what WriteCSV writes.
func (t *Table) CSV() []byte {
	var doc bytes.Buffer
	_ = t.WriteCSV(&doc) // a buffer takes everything
	return doc.Bytes()
}

// inertCell puts an apostrophe before what a spreadsheet program would compute: at the beginning of the cell, and wherever a program begins
// one that takes another character for the separator, and so does not see the quotation marks.
func inertCell(cell string) string {
	if _, err := strconv.ParseInt(cell, 10, 64); err == nil {
		return cell
	}
	var out strings.Builder
	for i := range len(cell) {
		if i == 0 && computed(cell, " ", "=+-@\t\r\n|%") || i > 0 && strings.IndexByte(";|\t\r\n", cell[i-1]) >= 0 && computed(cell[i:], " \"", "=+-@%") {
			out.WriteByte('\'')
		}
		out.WriteByte(cell[i])
	}
	return out.String()
}

// computed reports whether a cell begins with one of these characters, or a wide form of one. Some programs skip others before it.
func computed(cell, skipped, begins string) bool {
	bare := strings.TrimLeft(cell, skipped+"\u00a0\u3000\ufeff")
	return bare != "" && strings.Contains(begins, bare[:1]) || slices.ContainsFunc([]string{"＝", "＋", "－", "＠"}, func(wide string) bool { return strings.HasPrefix(bare, wide) })
}

// TrialTable is a list of trials as a table.
func TrialTable(list []api.TrialLine) *Table {
	t := &Table{Head: []string{"submitted", "agent", "outcome", "by", "reviewer", "verdict", "score", "needs_person", "degraded", "inconclusive", "offline", "submitter", "last", "trial", "case", "taken_by"}}
	for _, l := range list {
		score := ""
		if l.Score != nil {
			score = strconv.Itoa(*l.Score)
		}
		holder := ""
		if l.Taken != nil {
			holder = l.Taken.Reviewer
		}
		t.Rows = append(t.Rows, []string{l.Submitted, l.Agent, string(l.Outcome), string(l.By), l.Reviewer, string(l.Verdict), score, strconv.FormatBool(l.NeedsPerson),
			strconv.FormatBool(l.Degraded), strconv.FormatBool(l.Inconclusive), strconv.FormatBool(l.Offline), l.Submitter, l.Last, l.ID, l.Case, holder})
	}
	return t
}

// HitTable is a list of records as a table.
func HitTable(list []api.Hit) *Table {
	t := &Table{Head: []string{"claimed", "proved", "authority", "role", "actor", "action", "record", "chain", "outcome", "by", "reviewer", "verdict", "place", "said", "line", "why", "agent"}}
	for _, h := range list {
		outcome := Line(&trial.Summary{Outcome: h.Outcome})
		t.Rows = append(t.Rows, []string{h.Claimed, h.Proved, h.Authority, h.Role, h.Actor, h.Action, h.Record, h.Chain, string(outcome.Outcome), string(outcome.By),
			outcome.Reviewer, string(outcome.Verdict), h.Place, strconv.FormatBool(h.Said), h.Line, h.Why, h.Agent})
	}
	return t
}

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
		maps.Copy(out.Scores, e.AxisScores)
	}
	return out
}

// findings lists each finding once, with the jurors who had it, in the order of the acts.
func findings(v *trial.View) []api.TrialFinding {
	list, known := []api.TrialFinding{}, map[string]int{}
	for _, said := range v.Said {
		for _, f := range said.Findings {
			exactly := key(f.Message, f.Rule, f.Quote)
			at, seen := known[exactly]
			if !seen {
				at = len(list)
				known[exactly] = at
				list = append(list, api.TrialFinding{Message: f.Message, Quote: f.Quote, Rule: f.Rule, Axis: f.Axis, Severity: f.Severity, Stands: f.Stands})
			}
			if !slices.Contains(list[at].Jurors, said.Juror) {
				list[at].Jurors = append(list[at].Jurors, said.Juror)
			}
		}
	}
	return list
}

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
		if inB[same(f)] = true; !inA[same(f)] {
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
