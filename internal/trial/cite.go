package trial

import (
	"context"
	"slices"

	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/jury"
)

// citing adds to a juror's findings, and to the passages in its tables, the record that their message comes from, if the
// evidence is made of records, and marks quotations that do not stand in their message. The program decides that, so it
// replaces whatever record a juror names, and no juror can show a quotation that it made up as one that stands.
type citing struct {
	juror   jury.Juror
	subject *subject.Case
}

// cite wraps the jurors and the judge in citing.
func (c Config) cite(on *subject.Case) Config {
	c.Jurors = slices.Clone(c.Jurors)
	for i, j := range c.Jurors {
		if j != nil {
			c.Jurors[i] = citing{j, on}
		}
	}
	if c.Judge != nil {
		c.Judge = citing{c.Judge, on}
	}
	return c
}

// Answer implements jury.Juror.
func (j citing) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := j.juror.Answer(ctx, b)
	a.Opinion = citeOpinion(j.subject, a.Opinion)
	if a.Speech.Updated != nil {
		a.Speech.Updated = new(citeOpinion(j.subject, *a.Speech.Updated))
	}
	return a, err
}

func citeOpinion(on *subject.Case, o jury.Opinion) jury.Opinion {
	o.Findings, o.Work = cite(on, o.Findings), o.Work.Clone()
	for _, p := range o.Work.Passages() {
		p.Quote, p.Record, p.Unfounded = stands(on.Message(p.Message), p.Quote, p.Unfounded)
	}
	return o
}

func cite(on *subject.Case, findings []jury.Finding) []jury.Finding {
	findings = slices.Clone(findings)
	for i := range findings {
		f := &findings[i]
		f.Quote, f.Record, f.Unfounded = stands(on.Message(f.Message), f.Quote, f.Unfounded)
	}
	return findings
}

// stands returns a quotation as it stands in its message, the message's record, and whether the quotation is unfounded. m is nil
// if there is no such message.
func stands(m *subject.Message, quote string, unfounded bool) (string, evidence.Digest, bool) {
	if m == nil {
		return quote, evidence.Digest{}, true
	}
	if passage, found := m.Passage(quote); found {
		return passage, m.Record, unfounded
	}
	return quote, m.Record, true
}
