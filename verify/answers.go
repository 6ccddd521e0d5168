package verify

import (
	"slices"

	"jurat/verify/trust"
)

// Answers index a report by record, for callers that ask about many records.
type Answers struct {
	report *Report
	times  map[string]int     // places in Times, by record id
	found  map[string][]int   // places in Details, by record id; of "", what is about all records
	open   map[Guarantee]bool // those of which Details say anything
}

// Answers puts the report's answers in order. The report must not be changed after that.
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

// TimeOf is the report's TimeOf.
func (a *Answers) TimeOf(recordID string) (trust.TimeOf, bool) {
	i, known := a.times[recordID]
	if !known {
		return trust.TimeOf{}, false
	}
	return a.report.Times[i], true
}

// For is the report's For.
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
