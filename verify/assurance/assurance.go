// Package assurance says what a proof rests on, and how much a reader demands.
//
// A [Basis] says of one verified file, each apart: who keeps the keys, whose clock gave the times, and who besides the log's operator
// saw its history. All three follow from the reader's trust file and from what was proved by it. Nothing is taken from what the file
// says of itself.
//
// A [Level] is a name for what all of this comes to. A [Need] is what a reader demands of it, and a [Policy] a file that says so.
//
// # Levels are few, and the weakest part decides
//
// A proof on the operator's word fails whole if the operator lies. It makes no difference whether the lie is about a key, a clock
// or the log. So a level names the weakest of the three, and the basis says which of them are better.
//
// # The keys of a jury are the operator's
//
// The operator runs the jurors and keeps their keys, so a trial is proved on the operator's word. What the agent said can be
// proved independently at the same time. The basis has the keys of each role apart.
package assurance

import (
	"cmp"
	"slices"

	"jurat/evidence"
	"jurat/verify/trust"
)

// Level says on whose word a proof rests. The empty Level is none: not even the signatures are proved.
type Level string

const (
	Signed               Level = "signed"                // unchanged since it was signed with its actor's key; time and place in a log are open
	Operator             Level = "operator"              // all is proved, and a part of it as far as the operator's word
	Independent          Level = "independent"           // proved without the operator's word
	IndependentQualified Level = "independent-qualified" // likewise, and a qualified trust service by the EU's lists stamped each record
)

// Levels returns every level but the empty one, the lowest first.
func Levels() []Level { return []Level{Signed, Operator, Independent, IndependentQualified} }

// Keys says who keeps the keys that signed; "": the signatures are not proved.
type Keys string

const (
	ByOperator Keys = "operator" // the operator keeps at least one of them
	ByCA       Keys = "ca"       // the actors keep them, and a CA of the trust file says whose at least one of them is
	ByOwner    Keys = "owner"    // the actors keep them, and the trust file itself says whose they are
)

// Clock says whose clock proves when the records existed; "": the time of a record is not proved. A record with several time stamps
// counts by the best of them, and a file by the worst of its records.
type Clock string

const (
	OperatorClock    Clock = "operator"
	IndependentClock Clock = "independent"
	QualifiedClock   Clock = "qualified" // independent, and a qualified service by the EU's trusted lists
)

// Log says who besides its operator saw the log's history; "": no place in a log is proved.
type Log string

const (
	Alone    Log = "alone"                  // only the operator
	Compared Log = "compared"               // the reader, who compared it with a checkpoint from elsewhere
	Witness  Log = "witnessed"              // the reader's witnesses, who cosigned its checkpoint
	Both     Log = "witnessed_and_compared" // both
)

// A Party is a role whose keys signed, who keeps them, and by whose word.
type Party struct {
	Role    evidence.Role `json:"role"`
	Custody trust.Custody `json:"custody"`
	By      trust.Source  `json:"by"`
}

// A Basis is what the proof of one file rests on.
type Basis struct {
	Level   Level   `json:"level,omitzero"` // the highest that it reaches
	Keys    Keys    `json:"keys,omitzero"`
	Time    Clock   `json:"time,omitzero"`
	Log     Log     `json:"log,omitzero"`
	Parties []Party `json:"parties,omitempty"` // of Keys, each once, sorted
	Unmet   []Part  `json:"unmet,omitempty"`   // of what the reader demands
}

// Part is a part of a basis.
type Part string

const (
	PartKeys Part = "keys"
	PartTime Part = "time"
	PartLog  Part = "log"
)

// Facts are what verification found, from which Rate makes the Basis.
type Facts struct {
	Signed  bool // content and authentication are proved; of a checkpoint: its log signed it
	Proved  bool // all that counts by default is proved, and nothing is refuted
	Keys    Keys
	Time    Clock
	Log     Log
	Parties []Party
	OwnWord bool // an answer rests on the operator's clock alone, beside an independent one that proves less
	LogOnly bool // it is a checkpoint, which has no signers and times
}

// Rate returns the basis: the parts, and the highest level that they reach.
func Rate(f Facts) *Basis {
	b := &Basis{Keys: f.Keys, Time: f.Time, Log: f.Log, Parties: f.Parties}
	independent := f.LogOnly || b.Keys.atLeast(ByCA) && b.Time.atLeast(IndependentClock) && !f.OwnWord
	switch {
	case !f.Signed:
	case !f.Proved:
		b.Level = Signed
	case !independent || !b.Log.seen():
		b.Level = Operator
	case f.LogOnly || b.Time != QualifiedClock:
		b.Level = Independent
	default:
		b.Level = IndependentQualified
	}
	return b
}

// AddParty keeps the list sorted, with each party once.
func AddParty(list []Party, p Party) []Party {
	order := func(a, b Party) int {
		return cmp.Or(cmp.Compare(slices.Index(evidence.Roles(), a.Role), slices.Index(evidence.Roles(), b.Role)), cmp.Compare(a.Custody, b.Custody), cmp.Compare(a.By, b.By))
	}
	if i, known := slices.BinarySearchFunc(list, p, order); !known {
		return slices.Insert(slices.Clip(list), i, p)
	}
	return list
}

// rankOf returns the place of a value in a list from weak to strong, which the empty value precedes.
func rankOf[T comparable](value T, list ...T) int { return slices.Index(list, value) }

func (k Keys) rank() int             { return rankOf(k, ByOperator, ByCA, ByOwner) }
func (k Keys) atLeast(o Keys) bool   { return k.rank() >= o.rank() }
func (c Clock) rank() int            { return rankOf(c, OperatorClock, IndependentClock, QualifiedClock) }
func (c Clock) atLeast(o Clock) bool { return c.rank() >= o.rank() }

// Weaker returns the weaker of two clocks.
func (c Clock) Weaker(o Clock) Clock {
	if c.atLeast(o) {
		return o
	}
	return c
}

// seen reports whether anybody but the operator saw the log.
func (l Log) seen() bool { return l != "" && l != Alone }

// atLeast: the two ways of seeing a log do not replace each other.
func (l Log) atLeast(o Log) bool { return l == o || o == "" || o == Alone && l != "" || l == Both }
