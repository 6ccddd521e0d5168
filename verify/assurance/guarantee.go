package assurance

import "slices"

// Status is the answer to one question about a record.
type Status string

const (
	Proved    Status = "proved"
	NotProved Status = "not proved" // nothing shows that it is false, and a proof is missing
	Refuted   Status = "refuted"    // it is false
)

// Worse reports whether a is the worse answer.
func (a Status) Worse(b Status) bool { return a.Rank() > b.Rank() }

// Rank is 0 for Proved, and higher for what is worse.
func (a Status) Rank() int { return rank[a] }

var rank = map[Status]int{Proved: 0, NotProved: 1, Refuted: 2}

// Guarantee is a question that verification answers.
type Guarantee string

const (
	Content        Guarantee = "content"         // unchanged since it was signed
	Authentication Guarantee = "authentication"  // signed with the key of the actor that it names, in the actor's role
	NonRepudiation Guarantee = "non_repudiation" // only the actor can have signed it
	Configuration  Guarantee = "configuration"   // for model output: it states model and settings, as signed
	Vantage        Guarantee = "vantage"         // for what a recorder saw: these are the bytes, and this is what they say
	Time           Guarantee = "time"            // it existed at a time that an authority vouches for
	Order          Guarantee = "order"           // it has its place in a log
	Qualified      Guarantee = "qualified"       // that authority was a qualified trust service by the EU's trusted lists
	Property       Guarantee = "property"        // the proofs that it carries of hidden values hold
	Before         Guarantee = "before"          // it existed before the time that the reader asks about
	Chain          Guarantee = "chain"           // records of a chain follow each other as they say, and none is left out
	HumanReview    Guarantee = "human_review"    // for reviews and deliveries: a person decided on this text, and this text was delivered
	GivenOn        Guarantee = "given_on"        // for deliveries without a review: they pass on their text unchanged, and claim no person's decision
	Completeness   Guarantee = "completeness"    // for a trial: every act is there, once, in its place; with the reader's knowledge of the log: nothing was dropped
	Simultaneity   Guarantee = "simultaneity"    // for a trial: no juror saw what the same round said
	Verdict        Guarantee = "verdict"         // for a trial: the judgment follows from the votes
	Envelope       Guarantee = "envelope"        // for a record in a SCITT statement: who exported it
)

// Kind is the kind of file that was checked.
type Kind string

const (
	OneRecord   Kind = "record"
	ManyRecords Kind = "bundle"
	Trial       Kind = "trial"

	SeveralFiles Kind = "files" // the files of one log together; each has a report of its own

	OneCheckpoint Kind = "checkpoint" // a checkpoint of a log, by itself
)

// required are the guarantees that count by default, where they apply. NonRepudiation does not count: where the
// operator keeps the keys, it is impossible, and the report says so. Configuration does not count: it is only the
// actor's statement about a model. Vantage does not count: recorders seal bytes so that they can be withheld. Qualified does not count: only some readers need it. Property does not count: a
// file may carry any number of proofs, or none. For a single record, HumanReview does not count: its file cannot hold the reviewed
// record.
var required = map[Kind][]Guarantee{
	OneRecord:   {Content, Authentication, Time, Order, Before, Envelope},
	ManyRecords: {Content, Authentication, Time, Order, Before, Chain, HumanReview, GivenOn, Completeness, Envelope},
	Trial:       {Content, Authentication, Time, Order, Before, Chain, HumanReview, GivenOn, Completeness, Simultaneity, Verdict, Envelope},

	SeveralFiles: {Content, Authentication, Order, Chain, HumanReview, GivenOn},

	OneCheckpoint: {Order, Completeness},
}

// Named is a policy that has a name, and needs no file.
type Named string

const (
	Default Named = ""       // what required lists, where it applies
	Strict  Named = "strict" // all that applies; each record's time by an independent clock; revocation asked about all that counts
)

// Guarantees returns every guarantee, in the order of the report.
func Guarantees() []Guarantee { return slices.Clone(allGuarantees) }

// WhyUncounted explains to people why a guarantee does not count for the outcome of such a file.
func WhyUncounted(kind Kind, g Guarantee) string {
	switch {
	case g == NonRepudiation:
		return "it is impossible where the operator keeps the keys"
	case g == Configuration:
		return "what a record says of its model is only its actor's word"
	case g == Vantage:
		return "what a recorder saw is often withheld, and what telemetry tells nobody saw"
	case g == Qualified:
		return "a time stamp is good evidence without being a qualified one"
	case g == Property:
		return "proofs of properties are no part of what was signed"
	case g == HumanReview, g == GivenOn:
		return "what it is about is another record, which is not in this file"
	case slices.Contains(required[kind], g):
		return "you require only the level signed"
	}
	return "it does not apply to such a file"
}

// allGuarantees is in the order of the report.
var allGuarantees = []Guarantee{Content, Authentication, NonRepudiation, Configuration, Vantage, Time, Qualified, Property, Before, Order, Chain, HumanReview, GivenOn, Completeness, Simultaneity, Verdict, Envelope}

// Required returns the guarantees that count by default for such a file, where they apply.
func Required(kind Kind) []Guarantee { return slices.Clone(required[kind]) }

// Counts reports whether a guarantee counts for the outcome of such a file, if it applies. By Strict all count but those that such a
// file cannot have.
func Counts(kind Kind, g Guarantee, policy Named, level Level) bool {
	switch {
	case policy == Strict && kind != SeveralFiles && (kind != OneRecord || g != HumanReview):
		return true
	case level == Signed:
		return g == Content || g == Authentication || g == Order && kind == OneCheckpoint
	case level == IndependentQualified && g == Qualified, (level == Independent || level == IndependentQualified) && g == NonRepudiation:
		return kind != OneCheckpoint && kind != SeveralFiles
	}
	return slices.Contains(required[kind], g)
}
