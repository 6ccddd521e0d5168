package verify

import "strings"

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
	c.restOn(Vantage, Content, Authentication)
}

// noteGaps doubts completeness where a recorder missed something: that is in no record.
func (c *check) noteGaps() {
	for _, r := range c.gaps {
		if c.applies(Completeness) {
			c.doubt(Completeness, "gap", r, "a recorder says that it missed acts: they are in no record")
		}
	}
}
