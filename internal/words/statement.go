package words

import (
	"jurat/jury"
	"jurat/verify"
)

// Statement holds the sentences of incident statements. Every language has the same places.
type Statement struct {
	Between Sentence // stands between two sentences of a paragraph

	// Who produced it: {action}, {role}, {actor}, {model}, {version}; {because} is a sentence of Because.
	Recorded          Sentence
	RecordedWithModel Sentence
	NotProved         Sentence
	NotProvedModel    Sentence
	Refuted           Sentence

	// When: {time} is the author's word in Claimed, and proved in the others.
	Claimed      Sentence
	TimeRefuted  Sentence
	TimeUnproved Sentence
	Independent  Sentence
	Operator     Sentence

	// Who else could have signed: of a record, and of all acts of a trial.
	KeyOfActor     Sentence
	KeyOfOperator  Sentence
	KeysOfOperator Sentence
	KeyUnproved    Sentence // {reason}

	// How it was sealed.
	Sealed           Sentence
	Place            Sentence
	ContentNotProved Sentence
	ContentRefuted   Sentence

	// Its configuration, and where to check it.
	Configuration Sentence
	Context       Sentence
	ContextApart  Sentence
	Check         Sentence
	CheckTrial    Sentence // {submission}, {judgment}: record ids
	Page          Sentence // {link}

	Hidden Hidden

	// What a person decided, and delivered: {status}, {original}, {actor}, {time}, {record}.
	Reviewed       Sentence // of one record
	Decided        Sentence
	DecidedVerdict Sentence // with {position}
	DecidedOpen    Sentence
	DecidedDoubted Sentence
	DecidedWhy     Sentence // {why}: in the reviewer's words
	Delivered      Sentence

	// The outcome of a trial: {position}, {actor}, {status}; {jury}, {score} and {method} are the jury's.
	Outcome Deciders
	Open    Deciders // the agent neither passed nor failed
	Doubted Sentence
	Unknown Sentence // {count} decisions in the file, of which nothing is stated

	// Who sat: {seat}, {model}, {provider}, {reported}.
	Sat        Sentence // {items}
	SeatRules  Sentence
	SeatModel  Sentence
	SeatOther  Sentence
	SeatSilent Sentence

	// Because says what is missing or false of a guarantee. The reader then need not understand {reason}, which
	// verification gives in English.
	Because  Because
	NoReason Sentence

	// A trial.
	NoActs       Sentence
	Acts         Sentence
	ActsProved   Sentence
	ActsDoubted  ActsDoubted
	Procedure    Procedure
	NoJudgment   Sentence
	Unreadable   Sentence
	Judged       Sentence
	JudgedStated Doubts

	// What weakens a judgment: as a fact, and as the file's statement.
	Degraded           Sentence
	DegradedStated     Sentence
	Inconclusive       Sentence
	InconclusiveStated Sentence

	MustSee Reviews
	Beside  Beside

	// The disclaimer: {items} are those of NotShown in Terms, joined with Nor.
	Disclaimer Sentence
	Nor        Sentence
}

// Hidden has the sentences on proofs about hidden values. {pointer} is the place of the value in the record.
type Hidden struct {
	Range    Sentence // {lo}, {hi}
	In       Sentence // {set}
	NotIn    Sentence // {set}
	Age      Sentence // {years}, {at}
	Audience Sentence // {audience}
	OwnWord  Sentence
	Doubt    Doubts   // {reason}
	Between  Sentence // stands between two values
	More     Sentence // {n}
}

// Deciders has a sentence for each possible decider.
type Deciders struct{ ByJury, ByPerson Sentence }

// Of returns the sentence for the decider.
func (d *Deciders) Of(by jury.Decider) Sentence {
	if by == jury.ByPerson {
		return d.ByPerson
	}
	return d.ByJury
}

// Doubts has a sentence for each answer except "proved".
type Doubts struct{ NotProved, Refuted Sentence }

// Of returns the sentence for an answer that is not "proved".
func (d *Doubts) Of(s verify.Status) Sentence {
	if s == verify.Refuted {
		return d.Refuted
	}
	return d.NotProved
}

// Answers has a sentence for each answer.
type Answers struct{ Proved, NotProved, Refuted Sentence }

// Of returns the sentence for an answer.
func (a *Answers) Of(s verify.Status) Sentence {
	switch s {
	case verify.Proved:
		return a.Proved
	case verify.Refuted:
		return a.Refuted
	}
	return a.NotProved
}

// Because covers the guarantees behind a statement about one record.
type Because struct{ Content, Authentication, Time Doubts }

// ActsDoubted covers the guarantees behind a statement about all acts of a trial.
type ActsDoubted struct{ Authentication, Content Doubts }

// Procedure covers the guarantees about how a trial was held.
type Procedure struct{ Completeness, Simultaneity Answers }
