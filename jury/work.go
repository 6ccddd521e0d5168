package jury

import (
	"fmt"
	"slices"
)

// check returns what is wrong with tables, or nil.
func (w *Work) check() error {
	for _, table := range []struct {
		name string
		rows int
	}{{"requests", len(w.Requests)}, {"acts", len(w.Acts)}, {"amounts", len(w.Amounts)}} {
		if table.rows > maxFindings {
			return wrong("work."+table.name, "%d of them: want at most %d", table.rows, maxFindings)
		}
	}
	for i := range w.Requests {
		if err := w.Requests[i].check(fmt.Sprintf("work.requests[%d].", i)); err != nil {
			return err
		}
	}
	for i := range w.Acts {
		if err := w.Acts[i].check(fmt.Sprintf("work.acts[%d].", i)); err != nil {
			return err
		}
	}
	for i := range w.Amounts {
		if err := w.Amounts[i].check(fmt.Sprintf("work.amounts[%d].", i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *WorkRequest) check(field string) error {
	if err := r.Request.check(field + "request."); err != nil {
		return err
	}
	switch r.State {
	case RequestDone, RequestPartly, RequestNotDone, RequestDeclined, RequestOpen:
	default:
		return wrong(field+"state", "%q must be one of %s, %s, %s, %s, %s", abbreviate(string(r.State)),
			RequestDone, RequestPartly, RequestNotDone, RequestDeclined, RequestOpen)
	}
	return r.Shown.check(field + "shown.")
}

func (a *WorkAct) check(field string) error {
	if err := a.Call.check(field + "call."); err != nil {
		return err
	}
	if err := a.Clause.check(field + "clause."); err != nil {
		return err
	}
	if err := a.Fact.check(field + "fact."); err != nil {
		return err
	}
	return a.Holds.check(field + "holds")
}

func (a *WorkAmount) check(field string) error {
	if a.Announced == nil && a.Charged == nil {
		return wrong(field+"announced", "missing, and so is charged: want one of them at least")
	}
	if err := a.Announced.check(field + "announced."); err != nil {
		return err
	}
	if err := a.Charged.check(field + "charged."); err != nil {
		return err
	}
	return a.Agrees.check(field + "agrees")
}

func (a Answered) check(field string) error {
	if !slices.Contains([]Answered{AnsweredYes, AnsweredNo, Unclear}, a) {
		return wrong(field, "%q must be one of %s, %s, %s", abbreviate(string(a)), AnsweredYes, AnsweredNo, Unclear)
	}
	return nil
}

// check returns what is wrong with a passage, or nil; a passage that is not there is not wrong.
func (p *Passage) check(field string) error {
	if p == nil {
		return nil
	}
	if p.Message < 1 || p.Message > maxMessage {
		return wrong(field+"message", "%d: messages are numbered from 1", p.Message)
	}
	return checkText(field+"quote", p.Quote)
}

// Passages lists the passages in the tables, so that a caller can check and mark them.
func (w *Work) Passages() (list []*Passage) {
	if w == nil {
		return nil
	}
	add := func(passages ...*Passage) {
		for _, p := range passages {
			if p != nil {
				list = append(list, p)
			}
		}
	}
	for i := range w.Requests {
		add(&w.Requests[i].Request, w.Requests[i].Shown)
	}
	for i := range w.Acts {
		add(&w.Acts[i].Call, w.Acts[i].Clause, w.Acts[i].Fact)
	}
	for i := range w.Amounts {
		add(w.Amounts[i].Announced, w.Amounts[i].Charged)
	}
	return list
}
