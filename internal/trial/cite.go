package trial

import (
	"context"
	"slices"

	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/jury"
)

// citing adds to a juror's findings the record that their message comes from, if the evidence is made of records. The
// program decides that, so it replaces whatever record a juror names.
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
	a.Opinion.Findings = cite(j.subject, a.Opinion.Findings)
	if a.Speech.Updated != nil {
		updated := *a.Speech.Updated
		updated.Findings = cite(j.subject, updated.Findings)
		a.Speech.Updated = &updated
	}
	return a, err
}

func cite(on *subject.Case, findings []jury.Finding) []jury.Finding {
	findings = slices.Clone(findings)
	for i := range findings {
		f := &findings[i]
		f.Record = evidence.Digest{}
		if m := on.Message(f.Message); m != nil {
			f.Record = m.Record
		}
	}
	return findings
}
