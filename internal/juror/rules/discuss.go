package rules

import (
	"slices"
	"strings"

	"jurat/internal/juror"
	"jurat/internal/subject"
	"jurat/jury"
)

// A hearing is one juror's reaction to what the others have put forward since it last spoke.
type hearing struct {
	took    []taken
	refused []heard // the quotation is not in the evidence
	left    []heard // the quotation stands, but the matter is outside this juror's focus
}

type heard struct {
	from    string
	finding jury.Finding
}

type taken struct {
	heard
	had jury.Severity // how severe this juror held it before; "" if it did not hold it
}

// discuss returns what the juror says in a round. It starts from its last opinion, or from the first one that it
// would have. A juror only adds findings or raises them, so a discussion ends.
func (j *Juror) discuss(r *reading, b jury.Brief, before jury.Opinion) jury.Speech {
	if b.Last != nil && !b.Last.Fallback {
		before = b.Last.Opinion
	}
	h, after := j.hear(r.c, b, before.Findings)
	now := before
	if len(h.took) > 0 {
		now = j.opinion(r, b.Rubric, juror.OnRubric(b.Rubric, after))
	}
	speech := jury.Speech{
		Statement: j.statement(b, h, before, now),
		Position:  now.Position,
		Reasoning: reasoning(h, now),
	}
	if len(h.took) > 0 || b.Last == nil || b.Last.Fallback {
		speech.Updated = &now
	}
	return speech
}

// hear goes through the new findings in the order of seats, and returns the juror's updated findings.
func (j *Juror) hear(c *subject.Case, b jury.Brief, mine []jury.Finding) (hearing, []jury.Finding) {
	var h hearing
	after := slices.Clone(mine)
	for _, one := range news(b) {
		f := one.finding
		if !juror.Stands(c, f) {
			h.refused = append(h.refused, one)
			continue
		}
		severity, cares := j.weigh(f)
		i := indexOf(after, f)
		switch {
		case i >= 0 && rank(after[i].Severity) >= rank(severity):
			continue // already held, at least as severe
		case !cares:
			if !slices.ContainsFunc(h.left, func(l heard) bool { return same(l.finding, f) }) {
				h.left = append(h.left, one)
			}
			continue
		}
		f.Severity, f.From = severity, one.from
		had := jury.Severity("")
		if i >= 0 {
			had = after[i].Severity
			after[i] = f
		} else {
			after = append(after, f)
		}
		h.took = append(h.took, taken{heard{one.from, f}, had})
	}
	return h, after
}

// weigh decides how severe a peer's finding is for this juror, and whether it counts at all.
func (j *Juror) weigh(f jury.Finding) (jury.Severity, bool) {
	known, ok := ruleOf(f.Rule)
	if !ok { // the rule of another kind of juror: the quotation was checked, the conclusion was not
		return lower(f.Severity), f.Severity == jury.Critical || f.Severity == jury.Major && j.near(f.Axis)
	}
	switch known.concern(j.focus) {
	case own:
		return f.Severity, true
	case light:
		return f.Severity, f.Severity != jury.Minor
	}
	if f.Severity == jury.Critical {
		return jury.Critical, true
	}
	return jury.Minor, f.Severity == jury.Major
}

// near reports whether an axis belongs to the focus.
func (j *Juror) near(axis string) bool {
	switch j.focus {
	case policyCompliance:
		return axis == toolAxis || axis == autonomyAxis
	case safetyAndLeaks:
		return axis == safetyAxis
	}
	return axis == taskAxis || axis == autonomyAxis
}

// news lists the others' findings that this juror has not seen before.
func news(b jury.Brief) []heard {
	if len(b.Rounds) == 0 {
		return findingsOf(b.Evaluations, b.Seat.JurorID)
	}
	old := findingsOf(b.Evaluations, b.Seat.JurorID)
	for _, round := range b.Rounds[:len(b.Rounds)-1] {
		old = append(old, findingsOf(updates(round), b.Seat.JurorID)...)
	}
	var fresh []heard
	for _, one := range findingsOf(updates(b.Rounds[len(b.Rounds)-1]), b.Seat.JurorID) {
		if !slices.ContainsFunc(old, func(o heard) bool { return o.finding.Severity == one.finding.Severity && same(o.finding, one.finding) }) {
			fresh = append(fresh, one)
		}
	}
	return fresh
}

func updates(round jury.Round) []jury.Evaluation {
	var list []jury.Evaluation
	for _, s := range round.Statements {
		if s.UpdatedEvaluation != nil {
			list = append(list, *s.UpdatedEvaluation)
		}
	}
	return list
}

// findingsOf lists findings by seat. It skips findings that their holder took over from me.
func findingsOf(evaluations []jury.Evaluation, me string) []heard {
	var list []heard
	for _, e := range evaluations {
		if e.JurorID == me || e.Fallback {
			continue
		}
		for _, f := range e.Findings {
			if f.From != me {
				list = append(list, heard{e.JurorID, f})
			}
		}
	}
	return list
}

// same reports whether two findings are about the same thing: the same message and rule, or, as jurors name rules
// differently, the same message and axis with overlapping quotations.
func same(a, b jury.Finding) bool {
	if a.Message != b.Message {
		return false
	}
	if a.Rule == b.Rule {
		return true
	}
	_, knowA := ruleOf(a.Rule)
	_, knowB := ruleOf(b.Rule)
	if knowA && knowB {
		return false // the rules of the checklist are distinct
	}
	return a.Axis == b.Axis && (strings.Contains(a.Quote, b.Quote) || strings.Contains(b.Quote, a.Quote))
}

func indexOf(list []jury.Finding, f jury.Finding) int {
	return slices.IndexFunc(list, func(one jury.Finding) bool { return same(one, f) })
}

func holds(list []jury.Finding, f jury.Finding) bool { return indexOf(list, f) >= 0 }
