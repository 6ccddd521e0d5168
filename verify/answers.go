package verify

import (
	"slices"

	"jurat/verify/trust"
)

// Answers is an index of a report by record. It serves callers that ask about many records.
type Answers struct {
	report *Report
	times  map[string]int     // places in Times, by record id
	found  map[string][]int   // places in Details, by record id; under "", the findings about all records
	open   map[Guarantee]bool // guarantees that Details mentions
}

// Answers builds an index of the report. The caller must not change the report afterwards.
func (r *Report) Answers() *Answers {
	a := &Answers{report: r, times: make(map[string]int, len(r.Times)), found: map[string][]int{}, open: map[Guarantee]bool{}}
	for i, t := range r.Times {
		if _, known := a.times[t.Record]; !known {
			a.times[t.Record] = i
		}
	}
	for i, f := range r.Details {
		a.found[f.Record], a.open[f.Guarantee] = append(a.found[f.Record], i), true
	}
	return a
}

// TimeOf returns the same as Report.TimeOf.
func (a *Answers) TimeOf(recordID string) (trust.TimeOf, bool) {
	i, known := a.times[recordID]
	if !known {
		return trust.TimeOf{}, false
	}
	return a.report.Times[i], true
}

// For returns the same as Report.For.
func (a *Answers) For(g Guarantee, recordID string) Finding {
	answer := a.report.Of(g)
	if answer.Status == Proved || !a.open[g] {
		return answer
	}
	places := slices.Concat(a.found[recordID], a.found[""])
	slices.Sort(places)
	details := make([]Finding, len(places))
	for i, place := range places {
		details[i] = a.report.Details[place]
	}
	return worstOf(details, g, recordID)
}
