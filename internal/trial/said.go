package trial

import (
	"slices"
	"time"

	"jurat/internal/subject"
	"jurat/jury"
)

// A Seat is a juror's place, and what its juror came to so far.
type Seat struct {
	jury.Seat
	Number   int    // from 1
	Reported string // the model, as its provider reported it last; "": it never answered
	Alone    *Said  // in phase 1; nil: nothing yet
	Absences []jury.Absent
}

// A Said is what one seat said once, or that it was absent.
type Said struct {
	Seat     int    // its number; 0: the judge's
	Juror    string // the id of who sits there
	Nth      int    // of the records of the trial, from 1
	Record   string // the record's id
	At       time.Time
	Model    string
	Round    int
	Body     any           // *jury.Evaluation, *jury.Statement, *jury.Opinion or *jury.Absent
	From     jury.Position // of a statement that changes a position: the one before
	Findings []Finding     // those that the seat had not before
	Effort   jury.Effort
}

// A Finding is a juror's, held against the evidence.
type Finding struct {
	jury.Finding
	Here   bool // the evidence has a message with this number
	Stands bool // and the quotation stands in it
}

// Discusses reports whether it belongs into a round of discussion.
func (s *Said) Discusses() bool {
	absent, is := s.Body.(*jury.Absent)
	_, states := s.Body.(*jury.Statement)
	return s.Seat > 0 && (states || is && absent.Phase == jury.Discussion)
}

// seat finds a seat by its juror; nil: no juror of this name sits.
func (v *View) seat(juror string) *Seat {
	i := slices.IndexFunc(v.Seats, func(s Seat) bool { return s.JurorID == juror })
	if i < 0 {
		return nil
	}
	return &v.Seats[i]
}

// sit makes the seats that the first opening names.
func (v *View) sit() {
	if v.Settings = v.tally.State().Settings; v.Settings == nil {
		return
	}
	for i, seat := range v.Settings.Seats {
		v.Seats = append(v.Seats, Seat{Seat: seat, Number: i + 1})
	}
}

// say notes what a seat said. A nil seat is the judge's.
func (v *View) say(at *Seat, s *step, juror string, round int, findings []jury.Finding) *Said {
	said := &Said{Juror: juror, Nth: v.Records, Record: s.Payload.RecordID, At: s.Payload.Time(), Model: s.Payload.Model, Round: round,
		Body: s.act.Body, Effort: s.effort}
	for _, f := range findings {
		said.Findings = append(said.Findings, Finding{Finding: f})
	}
	switch {
	case v.evidence != nil:
		v.quote(v.evidence, said)
	case len(findings) > 0:
		v.unchecked = append(v.unchecked, said)
	}
	if v.Said = append(v.Said, said); at == nil {
		v.Judge = said
		return said
	}
	said.Seat = at.Number
	if said.Model != "" {
		at.Reported = said.Model
	}
	return said
}

// quote holds findings against the evidence, and notes at each message by whom it is cited.
func (v *View) quote(on *subject.Case, said *Said) {
	for i := range said.Findings {
		f := &said.Findings[i]
		if on == nil || on.Message(f.Message) == nil {
			continue
		}
		m := on.Message(f.Message)
		f.Here, f.Stands = true, !f.Unfounded && f.Quote != "" && m.Holds(f.Quote)
		if cited := v.Cited[m.Number]; !slices.Contains(cited, said) {
			v.Cited[m.Number] = append(cited, said)
		}
	}
}

// added lists the findings that an evaluation adds to the one before.
func added(now, before *jury.Evaluation) []jury.Finding {
	if before == nil {
		return now.Findings
	}
	return slices.DeleteFunc(slices.Clone(now.Findings), func(f jury.Finding) bool { return slices.Contains(before.Findings, f) })
}

// SaidSince returns what was said after the record of this number, and before it in the same round.
func (v *View) SaidSince(nth int) []*Said {
	i := len(v.Said) - len(v.SaidAfter(nth))
	if i == len(v.Said) {
		return nil
	}
	for i > 0 && v.Said[i-1].Round == v.Said[i].Round {
		i--
	}
	return v.Said[i:len(v.Said):len(v.Said)]
}

// SaidAfter returns what was said after the record of this number.
func (v *View) SaidAfter(nth int) []*Said {
	i, _ := slices.BinarySearchFunc(v.Said, nth+1, func(s *Said, nth int) int { return s.Nth - nth })
	return v.Said[i:len(v.Said):len(v.Said)]
}
