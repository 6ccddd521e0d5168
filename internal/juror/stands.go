package juror

import (
	"slices"
	"strings"

	"jurat/internal/subject"
	"jurat/jury"
)

// Stands reports whether a finding's quotation is literally in the message that the finding names: in its text, or in
// the name or arguments of one of its calls. A finding that does not stand never counts.
func Stands(c *subject.Case, f jury.Finding) bool {
	m := c.Message(f.Message)
	return m != nil && strings.TrimSpace(f.Quote) != "" && m.Holds(f.Quote)
}

// SafetyAxis is the default rubric's axis for leaks, planted instructions and harm.
const SafetyAxis = "safety"

// OnRubric puts findings on axes that the rubric has. A rubric is data and may lack an axis that a finding names.
// Such a finding goes to the heaviest axis.
func OnRubric(rubric jury.Rubric, findings []jury.Finding) []jury.Finding {
	heaviest := 0
	for i, axis := range rubric {
		if axis.Max > rubric[heaviest].Max {
			heaviest = i
		}
	}
	placed := slices.Clone(findings)
	for i, f := range placed {
		if !slices.ContainsFunc(rubric, func(a jury.Axis) bool { return a.ID == f.Axis }) {
			placed[i].Axis = rubric[heaviest].ID
		}
	}
	return placed
}
