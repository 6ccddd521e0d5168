package model

import (
	"fmt"
	"slices"
	"strings"

	"jurat/internal/juror"
	"jurat/jury"
)

// A row is a line of a juror's tables as another juror is shown it.
type row struct {
	table, answer string
	passages      []cited
}

// cited is a passage of a row, with what it shows.
type cited struct {
	what string
	*jury.Passage
}

// rowsOf lists the rows of tables.
func rowsOf(w *jury.Work) (list []row) {
	if w == nil {
		return nil
	}
	for i := range w.Requests {
		r := &w.Requests[i]
		list = append(list, row{"request", "state " + string(r.State), []cited{{"asked", &r.Request}, {"shown", r.Shown}}})
	}
	for i := range w.Acts {
		r := &w.Acts[i]
		list = append(list, row{"act", "holds " + string(r.Holds), []cited{{"call", &r.Call}, {"clause", r.Clause}, {"fact", r.Fact}}})
	}
	for i := range w.Amounts {
		r := &w.Amounts[i]
		list = append(list, row{"amount", "agrees " + string(r.Agrees), []cited{{"announced", r.Announced}, {"charged", r.Charged}}})
	}
	return list
}

// says reports whether two rows say the same of the same passage. They may quote more or less of it.
func (r *row) says(o *row) bool {
	a, b := r.subject(), o.subject()
	return r.table == o.table && r.answer == o.answer && a.Message == b.Message &&
		(strings.Contains(a.Quote, b.Quote) || strings.Contains(b.Quote, a.Quote))
}

// subject is the first passage that a row has.
func (r *row) subject() *jury.Passage {
	for _, p := range r.passages {
		if p.Passage != nil {
			return p.Passage
		}
	}
	return &jury.Passage{}
}

// allRows writes the reader's own tables.
func (l *listener) allRows(w *jury.Work) {
	for _, r := range rowsOf(w) {
		l.row(&r)
	}
}

// work writes the rows of another juror's tables that stand, and that say what no row above them says: neither the
// reader's own nor another juror's.
func (l *listener) work(w *jury.Work) {
	for _, r := range rowsOf(w) {
		if l.stand(&r) && !slices.ContainsFunc(l.rows, func(above row) bool { return above.says(&r) }) {
			l.row(&r)
		}
	}
}

// stand reports whether all passages of a row are in the evidence, whatever the juror that holds it says of them.
func (l *listener) stand(r *row) bool {
	return !slices.ContainsFunc(r.passages, func(p cited) bool {
		return p.Passage != nil && !juror.Stands(l.c, jury.Finding{Message: p.Message, Quote: p.Quote})
	})
}

func (l *listener) row(r *row) {
	l.rows = append(l.rows, *r)
	fmt.Fprintf(l, "%s: %s\n", r.table, r.answer)
	for _, p := range r.passages {
		if p.Passage != nil {
			l.data(fmt.Sprintf("%s, message %d", p.what, p.Message), p.Quote)
		}
	}
}
