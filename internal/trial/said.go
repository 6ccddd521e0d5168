package trial

import (
	"slices"
	"time"

	"jurat/internal/subject"
	"jurat/jury"
)

// A Seat is a juror's seat and the juror's current state.
type Seat struct {
	jury.Seat
	Number   int    // from 1
	Reported string // the model's name in its provider's last report; "": it has not answered
	Alone    *Said  // in phase 1; nil: not yet
	Again    *Said  // when it was asked a second time; nil: it was not
	Abstains bool   // the second answer had another position, and it has not spoken since
	Absences []jury.Absent
}

// A Said is one answer of a seat, or its absence.
type Said struct {
	Seat     int    // the seat's number; 0: the judge's
	Juror    string // the juror's id
	Nth      int    // the record's number in the trial, from 1
	Record   string // the record's id
	At       time.Time
	Model    string
	Round    int
	Body     any           // *jury.Evaluation, *jury.Statement, *jury.Opinion or *jury.Absent
	From     jury.Position // of a statement that changes the position: the previous one
	Findings []Finding     // the findings that are new for this seat
	Effort   jury.Effort
}

// A Finding is a juror's finding, checked against the evidence.
type Finding struct {
	jury.Finding
	Here   bool // the evidence has a message with this number
	Stands bool // and that message has the quotation
}

// Discusses reports whether it belongs to a round of discussion.
func (s *Said) Discusses() bool {
	absent, is := s.Body.(*jury.Absent)
	_, states := s.Body.(*jury.Statement)
	return s.Seat > 0 && (states || is && absent.Phase == jury.Discussion)
}

// seat finds a seat by its juror; nil if the juror has no seat.
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

// say stores an answer of a seat. A nil seat is the judge's, who may speak in phase 1, too.
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
		if v.Phase == jury.Initial {
			v.Reading = said
		} else {
			v.Judge = said
		}
		return said
	}
	said.Seat = at.Number
	if said.Model != "" {
		at.Reported = said.Model
	}
	return said
}

// quote checks findings against the evidence, and stores for each message which answers cite it.
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

// SaidSince returns the answers after the record of this number, and the earlier ones of the same round.
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

// SaidAfter returns the answers after the record of this number.
func (v *View) SaidAfter(nth int) []*Said {
	i, _ := slices.BinarySearchFunc(v.Said, nth+1, func(s *Said, nth int) int { return s.Nth - nth })
	return v.Said[i:len(v.Said):len(v.Said)]
}
