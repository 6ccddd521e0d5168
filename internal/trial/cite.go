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
	jury.Juror
	subject *subject.Case
}

type citingJudge struct {
	judge   jury.Judge
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
		c.Judge = citingJudge{c.Judge, on}
	}
	return c
}

// Evaluate implements jury.Juror.
func (j citing) Evaluate(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	opinion, origin, err := j.Juror.Evaluate(ctx, b)
	opinion.Findings = cite(j.subject, opinion.Findings)
	return opinion, origin, err
}

// Discuss implements jury.Juror.
func (j citing) Discuss(ctx context.Context, b jury.Brief) (jury.Speech, jury.Origin, error) {
	speech, origin, err := j.Juror.Discuss(ctx, b)
	if speech.Updated != nil {
		updated := *speech.Updated
		updated.Findings = cite(j.subject, updated.Findings)
		speech.Updated = &updated
	}
	return speech, origin, err
}

// Judge implements jury.Judge.
func (j citingJudge) Judge(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	opinion, origin, err := j.judge.Judge(ctx, b)
	opinion.Findings = cite(j.subject, opinion.Findings)
	return opinion, origin, err
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
