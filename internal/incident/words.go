package incident

import (
	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// Words are a language's names for what reports and records speak of, so that whatever shows a report calls things as the
// statement does.
type Words struct{ in *language }

// WordsIn returns the words of a language; the English ones for a language that has none.
func WordsIn(l Lang) Words { return Words{languageOf(l)} }

// A question is what a guarantee is called, and what it answers.
type question struct{ name, asks string }

// Action names an action type.
func (w Words) Action(a evidence.ActionType) string { return w.in.action(a) }

// Role names a role.
func (w Words) Role(r evidence.Role) string { return w.in.role(r) }

// Guarantee names a guarantee.
func (w Words) Guarantee(g verify.Guarantee) string {
	return named(w.in.questions, g, question{name: string(g)}).name
}

// Question is what a guarantee answers, as a question; "" for a guarantee that it has none for.
func (w Words) Question(g verify.Guarantee) string { return w.in.questions[g].asks }

// Status names an answer.
func (w Words) Status(s verify.Status) string { return named(w.in.statuses, s, string(s)) }

// Kind names what was checked.
func (w Words) Kind(k verify.Kind) string { return named(w.in.kinds, k, string(k)) }

// Clock says whose clock an authority reads.
func (w Words) Clock(c verify.Clock) string { return named(w.in.clocks, c, string(c)) }

// Approval says what a review decided.
func (w Words) Approval(s evidence.ApprovalStatus) string { return w.in.approval(s) }

// Position names a position.
func (w Words) Position(p jury.Position) string { return w.in.position(p) }

// Outcome says what a trial came to, in a sentence or two.
func (w Words) Outcome(o *jury.TrialOutcome) string { return w.in.outcomeOf(o) }

// NotShown says one of the things that a report does not prove, given in the report's words.
func (w Words) NotShown(item string) string { return named(w.in.notShown, item, item) }
