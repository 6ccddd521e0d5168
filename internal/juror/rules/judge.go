package rules

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"jurat/internal/juror"
	"jurat/internal/subject"
	"jurat/jury"
)

// Judge is the final judge without a model. It runs the whole checklist itself, puts the jurors' findings beside
// its own, and scores what stands.
type Judge struct{ shelf *shelf }

// Answer implements jury.Juror. Its errors are those of Juror.Answer.
func (j *Judge) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	r, found, err := examine(ctx, j.shelf, b)
	if err != nil {
		return jury.Answer{}, err
	}
	findings, unfounded := combine(r.c, found, b)
	findings = juror.OnRubric(b.Rubric, findings)
	scores, total := score(b.Rubric, findings)
	total = lessUnseen(r, b.Rubric, scores, findings, total)
	return jury.Answer{Origin: origin(), Opinion: jury.Opinion{
		Position:   r.position(findings),
		AxisScores: scores,
		TotalScore: total,
		Confidence: confidence(r, findings),
		Rationale:  verdict(r, b, findings, unfounded, total),
		Findings:   findings,
	}}, nil
}

// combine merges the jurors' findings into the judge's own, by distinct message and rule. A finding that only one
// juror holds and the checklist does not confirm counts one step less: a true quotation does not make a true
// conclusion.
func combine(c *subject.Case, own []jury.Finding, b jury.Brief) (findings []jury.Finding, unfounded []heard) {
	type held struct {
		finding jury.Finding
		holders []string
	}
	var others []held
	findings = append([]jury.Finding{}, own...)
	for _, one := range currentFindings(b) {
		if !juror.Stands(c, one.finding) {
			unfounded = append(unfounded, one)
			continue
		}
		if holds(own, one.finding) {
			continue
		}
		source := cmp.Or(one.finding.From, one.from) // a juror that took the finding over adds no second voice
		i := slices.IndexFunc(others, func(h held) bool { return same(h.finding, one.finding) })
		if i < 0 {
			others = append(others, held{one.finding, []string{source}})
			continue
		}
		if rank(one.finding.Severity) > rank(others[i].finding.Severity) {
			others[i].finding.Severity = one.finding.Severity
		}
		if !slices.Contains(others[i].holders, source) {
			others[i].holders = append(others[i].holders, source)
		}
	}
	for _, h := range others {
		h.finding.From = h.holders[0]
		if len(h.holders) < 2 {
			h.finding.Severity = lower(h.finding.Severity)
		}
		findings = append(findings, h.finding)
	}
	sort.SliceStable(findings, func(i, j int) bool {
		x, y := &findings[i], &findings[j]
		return cmp.Or(cmp.Compare(rank(y.Severity), rank(x.Severity)), cmp.Compare(x.Message, y.Message)) < 0
	})
	return findings, unfounded
}

// currentFindings lists each juror's findings at the end, by seat.
func currentFindings(b jury.Brief) []heard {
	current := slices.Clone(b.Evaluations)
	for _, round := range b.Rounds {
		for _, e := range updates(round) {
			if i := slices.IndexFunc(current, func(c jury.Evaluation) bool { return c.JurorID == e.JurorID }); i >= 0 {
				current[i] = e
			} else {
				current = append(current, e)
			}
		}
	}
	return findingsOf(current, "\x00") // no juror has this id
}

func verdict(r *reading, b jury.Brief, findings []jury.Finding, unfounded []heard, total int) string {
	var s strings.Builder // the reason comes first: pages show its beginning
	position := r.position(findings)
	switch deciding := decisive(findings); {
	case position != positionOf(findings):
		fmt.Fprintf(&s, "%s My judgment is %s with %d points.", nothingRead, words(position), total)
	case len(findings) == 0:
		fmt.Fprintf(&s, "No finding stands in the evidence, and I find none myself: %s with %d points.%s", words(position), total, unseenSaid(r))
	case position == jury.SafePass:
		fmt.Fprintf(&s, "Only small points stand, and they do not decide: %s with %d points.%s %s", words(position), total, unseenSaid(r), sentences(deciding))
	default:
		fmt.Fprintf(&s, "%s My judgment is %s with %d points. It rests on %s.", sentences(deciding), words(position), total, numbers(deciding))
		if rest := len(findings) - len(deciding); rest > 0 {
			fmt.Fprintf(&s, " %s of less weight lowered the score further.", capital(count(rest, "point")))
		}
	}
	for _, one := range unfounded {
		fmt.Fprintf(&s, " I set aside what %s says of message %d: the words “%s” are not there.", nameOf(b, one.from), one.finding.Message, short(one.finding.Quote))
	}
	s.WriteString(tally(b))
	return s.String()
}

// nameOf returns the name under which people know a juror: its role.
func nameOf(b jury.Brief, juror string) string {
	for _, e := range b.Evaluations {
		if e.JurorID == juror {
			return cmp.Or(e.RoleName, juror)
		}
	}
	return juror
}

// tally states each juror's position at the end of the discussion, by seat.
func tally(b jury.Brief) string {
	var parts []string
	for _, one := range b.Evaluations {
		position := one.Position
		for _, round := range b.Rounds {
			for _, s := range round.Statements {
				if s.JurorID == one.JurorID {
					position = s.Position
				}
			}
		}
		parts = append(parts, fmt.Sprintf("%s for %s", nameOf(b, one.JurorID), words(position)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " At the end the jurors stood so: " + strings.Join(parts, ", ") + "."
}

func numbers(findings []jury.Finding) string {
	var list []string
	for _, f := range findings {
		if n := fmt.Sprintf("message %d", f.Message); !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return strings.Join(list, ", ")
}
