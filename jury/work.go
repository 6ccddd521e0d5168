package jury

import (
	"cmp"
	"fmt"
	"slices"
)

// check returns what is wrong with tables, or nil. No tables are not wrong.
func (w *Work) check() error {
	if w == nil {
		return nil
	}
	err := cmp.Or(checkRows("requests", len(w.Requests)), checkRows("acts", len(w.Acts)), checkRows("amounts", len(w.Amounts)))
	for i := range w.Requests {
		r, at := &w.Requests[i], fmt.Sprintf("work.requests[%d].", i)
		err = cmp.Or(err, r.Request.check(at+"request."),
			oneOf(at+"state", r.State, RequestDone, RequestPartly, RequestNotDone, RequestDeclined, RequestOpen), r.Shown.check(at+"shown."))
	}
	for i := range w.Acts {
		a, at := &w.Acts[i], fmt.Sprintf("work.acts[%d].", i)
		err = cmp.Or(err, a.Call.check(at+"call."), a.Clause.check(at+"clause."), a.Fact.check(at+"fact."), a.Holds.check(at+"holds"))
	}
	for i := range w.Amounts {
		a, at := &w.Amounts[i], fmt.Sprintf("work.amounts[%d].", i)
		if err == nil && a.Announced == nil && a.Charged == nil {
			return wrong(at+"announced", "missing, and so is charged: want one of them at least")
		}
		err = cmp.Or(err, a.Announced.check(at+"announced."), a.Charged.check(at+"charged."), a.Agrees.check(at+"agrees"))
	}
	return err
}

func checkRows(table string, n int) error {
	if n > maxFindings {
		return wrong("work."+table, "%d of them: want at most %d", n, maxFindings)
	}
	return nil
}

func (a Answered) check(field string) error { return oneOf(field, a, AnsweredYes, AnsweredNo, Unclear) }

// check returns what is wrong with a passage, or nil; a passage that is not there is not wrong.
func (p *Passage) check(field string) error {
	if p == nil {
		return nil
	}
	return cmp.Or(checkMessage(field+"message", p.Message), checkText(field+"quote", p.Quote))
}

// Passages lists the passages in the tables, so that a caller can check and mark them.
func (w *Work) Passages() (list []*Passage) {
	if w == nil {
		return nil
	}
	for i := range w.Requests {
		list = append(list, &w.Requests[i].Request, w.Requests[i].Shown)
	}
	for i := range w.Acts {
		list = append(list, &w.Acts[i].Call, w.Acts[i].Clause, w.Acts[i].Fact)
	}
	for i := range w.Amounts {
		list = append(list, w.Amounts[i].Announced, w.Amounts[i].Charged)
	}
	return slices.DeleteFunc(list, func(p *Passage) bool { return p == nil })
}
