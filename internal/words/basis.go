package words

import (
	"slices"
	"strconv"
	"strings"

	"jurat/verify"
	"jurat/verify/assurance"
	"jurat/verify/trust"
)

// Basis are the sentences that say what a proof rests on.
type Basis struct {
	Refuted, Unproved, Signed, Operator, Independent, Qualified string // the first words: what it comes to

	Keys                                     Sentence // {who}
	KeysOperator, KeysOwner, KeysCA          Sentence // {roles}
	Time                                     Sentence // {whose}
	TimeOperator, TimeIndependent, TimeTrust string
	Log                                      Sentence // {who}
	LogAlone, LogCompared, LogWitnessed      string
	LogBoth, Open                            string // Open: a part that is not proved
	And                                      string // between two parts of the keys

	Demanded                         Sentence // {level}
	Unmet                            Sentence // {parts}
	PartKeys, PartTime, PartLog      string
	LevelSigned, LevelOperator       string // the levels' names, for Demanded
	LevelIndependent, LevelQualified string
	File                             Sentence // {name}, {fingerprint}
	Changed                          Sentence // {n}, {record}, {action}, {role}, {actor}, {time}, {guarantee}, {reason}
}

// BasisIn returns the sentences about what a proof rests on in a language.
func BasisIn(l Lang) *Basis { return in(l).basis() }

// RestsOn says in one line on whose word a proof rests: what it comes to, and keys, time and log, each apart. It is "" if the report
// does not say.
func RestsOn(l Lang, r *verify.Report) string {
	w, b := BasisIn(l), r.Basis
	if b == nil {
		return ""
	}
	parts := []string{w.level(r.Outcome, b.Level)}
	if r.Kind != verify.OneCheckpoint {
		parts = append(parts, w.Keys.With("who", w.keys(l, b)), w.Time.With("whose", w.clock(b.Time)))
	}
	return strings.Join(append(parts, w.Log.With("who", w.log(b.Log))), string(StatementIn(l).Between))
}

// Wanted says what the reader demanded of the basis, and which parts of that are not met. It is empty if nothing was demanded.
func Wanted(l Lang, r *verify.Report) []string {
	w, d := BasisIn(l), r.Demanded
	if d == nil {
		return nil
	}
	var said []string
	if d.File != nil {
		said = append(said, w.File.With("name", d.File.Name, "fingerprint", d.File.Fingerprint))
	}
	if d.Level != "" {
		said = append(said, w.Demanded.With("level", w.nameOf(d.Level)))
	}
	if r.Basis != nil && len(r.Basis.Unmet) > 0 {
		var parts []string
		for _, p := range r.Basis.Unmet {
			parts = append(parts, w.part(p))
		}
		said = append(said, w.Unmet.With("parts", strings.Join(parts, ", ")))
	}
	return said
}

func (w *Basis) level(outcome verify.Status, l assurance.Level) string {
	if outcome == verify.Refuted {
		return w.Refuted
	}
	switch l {
	case assurance.Signed:
		return w.Signed
	case assurance.Operator:
		return w.Operator
	case assurance.Independent:
		return w.Independent
	case assurance.IndependentQualified:
		return w.Qualified
	}
	return w.Unproved
}

func (w *Basis) nameOf(l assurance.Level) string {
	switch l {
	case assurance.Signed:
		return w.LevelSigned
	case assurance.Operator:
		return w.LevelOperator
	case assurance.Independent:
		return w.LevelIndependent
	case assurance.IndependentQualified:
		return w.LevelQualified
	}
	return string(l)
}

func (w *Basis) part(p assurance.Part) string {
	switch p {
	case assurance.PartKeys:
		return w.PartKeys
	case assurance.PartTime:
		return w.PartTime
	}
	return w.PartLog
}

// keys says who keeps the keys of which roles.
func (w *Basis) keys(l Lang, b *assurance.Basis) string {
	if b.Keys == "" || len(b.Parties) == 0 {
		return w.Open
	}
	of := func(is func(assurance.Party) bool, said Sentence) string {
		var roles []string
		for _, p := range b.Parties {
			if name := TermsIn(l).Roles.Of(p.Role); is(p) && !slices.Contains(roles, name) {
				roles = append(roles, name)
			}
		}
		if len(roles) == 0 {
			return ""
		}
		return said.With("roles", strings.Join(roles, ", "))
	}
	said := []string{
		of(func(p assurance.Party) bool { return p.Custody == trust.ByOperator }, w.KeysOperator),
		of(func(p assurance.Party) bool { return p.Custody == trust.ByOwner && p.By == trust.ByKey }, w.KeysOwner),
		of(func(p assurance.Party) bool { return p.Custody == trust.ByOwner && p.By == trust.ByCA }, w.KeysCA),
	}
	return strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), w.And)
}

func (w *Basis) clock(c assurance.Clock) string {
	switch c {
	case assurance.OperatorClock:
		return w.TimeOperator
	case assurance.IndependentClock:
		return w.TimeIndependent
	case assurance.QualifiedClock:
		return w.TimeTrust
	}
	return w.Open
}

func (w *Basis) log(l assurance.Log) string {
	switch l {
	case assurance.Alone:
		return w.LogAlone
	case assurance.Compared:
		return w.LogCompared
	case assurance.Witness:
		return w.LogWitnessed
	case assurance.Both:
		return w.LogBoth
	}
	return w.Open
}

// Quoted quotes a name or a text from a file, so that nobody takes it for a sentence of the program.
func Quoted(text string) string { return strconv.Quote(text) }
