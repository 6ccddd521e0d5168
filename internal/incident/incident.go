// Package incident writes the incident statement: the paragraph that tells somebody who was not there what an agent
// said, when, under which configuration, and how far that is proved.
//
// A statement asserts only what the verification report proves. What is not proved is either said to be unproved, or
// attributed ("it claims"), and what is refuted is said to be false. Text from the records is quoted so that it cannot
// be taken for a sentence of the statement.
package incident

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// Statement returns the paragraphs of the statement on one record, or on the trial that the records are, by the
// report that verification made of them.
func Statement(records []*evidence.Record, report *verify.Report) []string {
	if report.Kind == verify.Trial {
		return trialStatement(records, report)
	}
	var paragraphs []string
	for _, r := range records {
		paragraphs = append(paragraphs, recordStatement(r, report)...)
	}
	return append(paragraphs, disclaimer(report))
}

func recordStatement(r *evidence.Record, report *verify.Report) []string {
	p := &r.Payload
	facts := []string{
		who(r, report),
		when(r, report),
		sealed(r, report),
	}
	paragraphs := []string{strings.Join(facts, " ")}
	if under := configuration(p); under != "" {
		paragraphs = append(paragraphs, under)
	}
	return append(paragraphs, fmt.Sprintf("The record is %s, with payload digest %s. Whoever holds it and a trust file can check all this alone: jurat verify --trust FILE.", p.RecordID, r.Digest))
}

// who says who produced it, as a fact only if the signature proves it.
func who(r *evidence.Record, report *verify.Report) string {
	p := &r.Payload
	what := fmt.Sprintf("this %s", strings.ReplaceAll(string(p.ActionType), "_", " "))
	model := ""
	if p.Model != "" {
		model = fmt.Sprintf(" with the model %s (version %s)", word(p.Model), word(p.ModelVersion))
	}
	switch {
	case holds(report, r, verify.Content, verify.Authentication):
		return fmt.Sprintf("%s was recorded as that of %s %q%s, and is signed with the key that is known to be that actor's.",
			capital(what), p.Role(), p.Actor(), model)
	case refuted(report, r, verify.Content, verify.Authentication):
		return fmt.Sprintf("It is refuted that %s, which names %s %q as its author, is what that actor signed: %s.",
			what, p.Role(), p.Actor(), why(report, r, verify.Content, verify.Authentication))
	}
	return fmt.Sprintf("It is not proved who produced %s. It names %s %q%s, but %s.",
		what, p.Role(), p.Actor(), model, why(report, r, verify.Content, verify.Authentication))
}

// when keeps the actor's claim and the authority's word apart.
func when(r *evidence.Record, report *verify.Report) string {
	claimed := fmt.Sprintf("Its author gives the time %s.", r.Payload.Timestamp)
	if refuted(report, r, verify.Time) {
		return claimed + fmt.Sprintf(" The time stamp that comes with it is refuted: %s.", why(report, r, verify.Time))
	}
	t, ok := report.TimeOf(r.Payload.RecordID)
	if !ok || !holds(report, r, verify.Content) {
		return claimed + fmt.Sprintf(" No proved time stands behind that: %s.", why(report, r, verify.Time, verify.Content))
	}
	clock := "an authority whose clock is independent of the operator"
	if t.Clock == verify.OperatorClock {
		clock = "the operator's own authority, so that this rests on the operator's word"
	}
	return claimed + fmt.Sprintf(" The signature existed at %s (RFC 3161 time stamp by %s: %s).", t.Time.UTC().Format(time.RFC3339Nano), t.Authority, clock)
}

func sealed(r *evidence.Record, report *verify.Report) string {
	if !holds(report, r, verify.Content) {
		return "It is not proved that the content is what was sealed."
	}
	var algorithms []string
	for _, s := range r.Payload.Signers {
		algorithms = append(algorithms, string(s.Algorithm))
	}
	text := fmt.Sprintf("It was sealed with a signature (%s), and its content has not been changed since.", strings.Join(algorithms, ", "))
	if holds(report, r, verify.Order) && r.Log != nil {
		text += fmt.Sprintf(" It stands at place %d of the log.", r.Log.Index)
	}
	return text
}

// configuration names what the output was produced under, as the record has it.
func configuration(p *evidence.Payload) string {
	var parts []string
	if under := parameters(p.Parameters); under != "" {
		parts = append(parts, "By the record, the configuration was "+under+".")
	}
	if len(p.Context) > 0 {
		parts = append(parts, "By the record, the context was: "+shown(p, "/context", p.Context))
	}
	return strings.Join(parts, " ")
}

// parameters writes {"temperature":0.2} as temperature=0.2, in the order of names.
func parameters(value jsontext.Value) string {
	members := map[string]jsontext.Value{}
	if len(value) == 0 || json.Unmarshal(value, &members) != nil {
		return ""
	}
	var parts []string
	for name, v := range members {
		parts = append(parts, fmt.Sprintf("%s=%s", word(name), inert(shortened(string(v)))))
	}
	slices.Sort(parts)
	return shortened(strings.Join(parts, ", "))
}

// shown is a member's text, or that it is withheld.
func shown(p *evidence.Payload, pointer string, value jsontext.Value) string {
	if slices.Contains(p.SealedApart, pointer) {
		return "sealed apart; what was signed has a commitment to it in its place."
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return strconv.Quote(shortened(text)) + "."
}

// shortened keeps a statement one that people read to its end.
func shortened(text string) string {
	const most = 600 // characters
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// word shows a name as it is where it is one word, and quoted where it could pass for more.
func word(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+"
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune(plain, c) }) {
		return s
	}
	return strconv.Quote(s)
}

// inert keeps a text on its line: what would move a cursor or turn the direction is written out.
func inert(s string) string {
	return strings.Map(func(c rune) rune {
		if c == ' ' || unicode.IsPrint(c) {
			return c
		}
		return unicode.ReplacementChar
	}, s)
}

// holds reports whether all these guarantees are proved of the record.
func holds(report *verify.Report, r *evidence.Record, guarantees ...verify.Guarantee) bool {
	for _, g := range guarantees {
		if report.For(g, r.Payload.RecordID).Status != verify.Proved {
			return false
		}
	}
	return true
}

// refuted reports whether any of these guarantees is refuted of the record.
func refuted(report *verify.Report, r *evidence.Record, guarantees ...verify.Guarantee) bool {
	for _, g := range guarantees {
		if report.For(g, r.Payload.RecordID).Status == verify.Refuted {
			return true
		}
	}
	return false
}

// why is the reason of the first of these guarantees that is not proved of the record.
func why(report *verify.Report, r *evidence.Record, guarantees ...verify.Guarantee) string {
	for _, g := range guarantees {
		if f := report.For(g, r.Payload.RecordID); f.Status != verify.Proved {
			return inert(f.Reason)
		}
	}
	return "no reason was found"
}

func disclaimer(report *verify.Report) string {
	return "None of this says " + strings.Join(report.NotShown, ", nor ") + "."
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// trialStatement tells what a jury decided and whether the votes bear it out.
func trialStatement(records []*evidence.Record, report *verify.Report) []string {
	acts := slices.DeleteFunc(slices.Clone(records), func(r *evidence.Record) bool { return !r.Payload.ActionType.InTrial() })
	if len(acts) == 0 {
		return []string{"The file holds no act of a trial.", disclaimer(report)}
	}
	first := acts[0]
	head := fmt.Sprintf("The file holds %d acts. The first names its trial %s, and evidence with the digest %s.",
		len(acts), word(first.Payload.ChainID), first.Payload.Case)
	paragraphs := []string{head + " " + when(first, report) + " " + signed(report)}
	paragraphs = append(paragraphs, judgments(acts, report)...)
	for _, g := range []verify.Guarantee{verify.Completeness, verify.Simultaneity} {
		f := report.Of(g)
		paragraphs = append(paragraphs, fmt.Sprintf("%s: %s; %s.", capital(string(g)), f.Status, inert(f.Reason)))
	}
	return append(paragraphs, disclaimer(report))
}

// signed says of all acts together whether they are their actors', and unchanged.
func signed(report *verify.Report) string {
	for _, question := range []struct {
		guarantee verify.Guarantee
		what      string
	}{{verify.Authentication, "That the acts are their actors'"}, {verify.Content, "That the acts are what was sealed"}} {
		if f := report.Of(question.guarantee); f.Status != verify.Proved {
			return fmt.Sprintf("%s is %s: %s.", question.what, f.Status, inert(f.Reason))
		}
	}
	return "Every act is signed by its actor and unchanged."
}

func judgments(acts []*evidence.Record, report *verify.Report) []string {
	var paragraphs []string
	for _, r := range acts {
		if r.Payload.ActionType == evidence.FinalJudgment {
			paragraphs = append(paragraphs, judgmentStatement(r, report))
		}
	}
	if paragraphs == nil {
		return []string{"The file holds no judgment."}
	}
	return paragraphs
}

func judgmentStatement(r *evidence.Record, report *verify.Report) string {
	var j jury.Judgment
	if err := json.Unmarshal(r.Payload.Response, &j); err != nil {
		return "The sealed judgment cannot be read: " + inert(err.Error()) + "."
	}
	what := fmt.Sprintf("%s with %d of 100 points by %s", word(string(j.Position)), j.Score, word(string(j.Method)))
	if f := report.Of(verify.Verdict); f.Status != verify.Proved {
		return fmt.Sprintf("The file states the judgment %s, and that this follows from the votes is %s: %s.%s",
			what, f.Status, inert(f.Reason), flags(&j, "It states that the"))
	}
	return fmt.Sprintf("The jury judged %s; run again on the sealed votes, consensus and method give the same.%s",
		what, flags(&j, "The"))
}

// flags says what takes away from a judgment, on whose word is in the beginning.
func flags(j *jury.Judgment, beginning string) string {
	text := ""
	if j.Degraded {
		text += fmt.Sprintf(" %s trial was degraded: a juror was absent or blocked, or the judge failed.", beginning)
	}
	if j.Inconclusive {
		text += fmt.Sprintf(" %s trial was inconclusive: fewer than two valid votes.", beginning)
	}
	return text
}
