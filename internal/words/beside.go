package words

import "jurat/jury"

// Beside has the sentences on what a reader should know beside a verdict.
type Beside struct {
	Abstained     Sentence // {juror}
	JudgeAlone    Sentence // {position}, {score}
	AfterTalk     Sentence // {position}, {score}
	VotesMeasured Sentence // {votes}
	VotesAssumed  Sentence // {votes}
	Talk          Sentence // {changes}, {majority}, {conformity}
	Moved         Moves
}

// Moves has a sentence for a change of position: {juror}, {from}, {to}, {round}; {toward}: who held the new position before; {message},
// {quote}: of the first new finding.
type Moves struct{ Citing, Uncited, CitingAlone, UncitedAlone Sentence }

// Of returns the sentence for a change.
func (m *Moves) Of(followed, cited bool) Sentence {
	switch {
	case followed && cited:
		return m.Citing
	case followed:
		return m.Uncited
	case cited:
		return m.CitingAlone
	}
	return m.UncitedAlone
}

// Reviews has a sentence for each reason why a person must see a verdict.
type Reviews struct {
	TurnedByTalk, OneExtreme, JudgeMilder Sentence
	Other                                 Sentence // {reason}: one that a later release knows
}

// Of returns the sentence for the reason.
func (r *Reviews) Of(reason jury.ReviewReason) Sentence {
	switch reason {
	case jury.TurnedByTalk:
		return r.TurnedByTalk
	case jury.OneExtreme:
		return r.OneExtreme
	case jury.JudgeMilder:
		return r.JudgeMilder
	}
	return r.Other
}
