package verify

import (
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/internal/plural"
	"jurat/verify/counted"
)

// sight takes what a recorder saw, in the order of the file.
func (c *check) sight(e examined) {
	found := c.sights.Take(e.look)
	c.exchange(e, found)
	switch {
	case found == nil:
	case found.Refuted:
		c.refute(Vantage, found.Rule, e.record, "%s", found.Reason)
	default:
		c.doubt(Vantage, found.Rule, e.record, "%s", found.Reason)
	}
	if found != nil && found.Gap {
		c.gaps = append(c.gaps, e.record)
	}
}

// noteSights says from where recorders saw. What they saw is proved only as far as their records are.
func (c *check) noteSights() {
	if !c.applies(Vantage) {
		return
	}
	var from []string
	for _, s := range c.sights.Seen() {
		from = append(from, s.InWords())
	}
	c.notes[Vantage] = "the bytes are those that are stated, and say what the records say; that a recorder saw everything is not shown"
	if len(from) > 0 {
		c.notes[Vantage] = strings.Join(from[:min(len(from), 8)], "; ") + ": " + c.notes[Vantage]
	}
	if kept := c.sights.Elsewhere(); len(kept) > 0 {
		c.notes[Vantage] += "; a part of what was asked was kept by the provider, and is in no record before it: " + strings.Join(kept[:min(len(kept), 8)], ", ")
	}
	if said := c.sights.LeftOut(); len(said) > 0 {
		c.notes[Vantage] += "; the bytes also say what their records leave out: " + strings.Join(said[:min(len(said), 8)], ", ")
	}
	if n := int64(len(c.compared)); n > 0 {
		c.notes[Vantage] += "; the operator says that calls were compared with providers' usage exports (" + plural.Of(n, "act") + "): what the providers count is its word"
	}
	c.restOn(Vantage, Content, Authentication)
}

// countCalls takes in what a record has to do with the number of calls.
func (c *check) countCalls(e examined) {
	c.tally.Take(e.counts, e.record)
	if e.whole.Payload.ActionType == evidence.UsageComparison && (e.whole.Log == nil || len(e.placed) > 0 || slices.ContainsFunc(e.found, unsure)) {
		c.doubtful[e.record] = true
	}
}

// noteCounted refutes what the operator says of the number of calls, where the records of the file contradict it.
func (c *check) noteCounted() {
	c.compared = c.tally.Comparisons()
	for _, one := range c.compared {
		switch {
		case one.Answer != counted.Contradicted:
		case one.WrongFile() != "":
			c.refute(Content, "counted", one.Act(), "%s", one.Why)
		case c.log == nil || c.doubtful[one.Act()]: // anybody can make such an act, and change where in a log a record says that it is
			c.doubt(Vantage, "counted", one.Act(), "if the act is the operator's, of the log that has these records where they say, its account of recorded calls is wrong: %s", one.Why)
		default:
			c.refute(Vantage, "counted", one.Act(), "the operator's account of recorded calls is wrong: %s", one.Why)
		}
		c.miscounted = c.miscounted || one.Wrong()
	}
	c.compared = slices.DeleteFunc(c.compared, func(one *counted.Comparison) bool { return c.doubtful[one.Act()] }) // the operator says what is left
}

// noteGaps doubts completeness where a recorder missed something: that is in no record.
func (c *check) noteGaps() {
	for _, r := range c.gaps {
		if c.applies(Completeness) {
			c.doubt(Completeness, "gap", r, "a recorder says that it missed acts: they are in no record")
		}
	}
}
