package juror

import (
	"strings"

	"jurat/internal/subject"
	"jurat/jury"
)

// Stands reports whether a finding's quotation is in the evidence: to the letter, in the message that it names (its
// text, or the name or arguments of a call that it makes). A finding that does not stand counts nowhere.
func Stands(c *subject.Case, f jury.Finding) bool {
	m := c.Message(f.Message)
	return m != nil && strings.TrimSpace(f.Quote) != "" && m.Holds(f.Quote)
}

// same reports whether two findings are about the same thing: same message, and the same rule; or, as jurors name
// rules differently, the same axis and overlapping quotations.
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
		return false // the checklist keeps its own rules apart
	}
	return a.Axis == b.Axis && (strings.Contains(a.Quote, b.Quote) || strings.Contains(b.Quote, a.Quote))
}

func holds(list []jury.Finding, f jury.Finding) bool { return indexOf(list, f) >= 0 }

func indexOf(list []jury.Finding, f jury.Finding) int {
	for i, one := range list {
		if same(one, f) {
			return i
		}
	}
	return -1
}

func rank(s jury.Severity) int {
	switch s {
	case jury.Critical:
		return 3
	case jury.Major:
		return 2
	case jury.Minor:
		return 1
	}
	return 0
}
