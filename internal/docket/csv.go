package docket

import (
	"bytes"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"jurat/api"
)

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
		outcome := api.TrialLine{}
		if o := h.Outcome; o != nil {
			outcome.Outcome, outcome.By, outcome.Verdict = o.Position, o.By, o.Verdict.Position
			if o.Decision != nil {
				outcome.Reviewer = o.Decision.Reviewer
			}
		}
		t.Rows = append(t.Rows, []string{h.Claimed, h.Proved, h.Authority, h.Role, h.Actor, h.Action, h.Record, h.Chain, string(outcome.Outcome), string(outcome.By),
			outcome.Reviewer, string(outcome.Verdict), h.Place, strconv.FormatBool(h.Said), h.Line, h.Why, h.Agent})
	}
	return t
}
