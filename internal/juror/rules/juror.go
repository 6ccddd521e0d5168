package rules

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/juror"
	"jurat/jury"
)

// A Juror goes through the checklist with one focus. The same brief gets the same answer, and it is safe for concurrent use.
type Juror struct {
	focus focus
	shelf *shelf // shared by a panel; nil: each brief is read again
}

func origin() jury.Origin {
	return jury.Origin{Model: Model, ModelVersion: Version, Parameters: jsontext.Value(`{}`)}
}

var errNoRubric = errors.New("the rubric has no axes")

// examine reads the evidence of a brief and runs the checklist over it.
func examine(ctx context.Context, h *shelf, b jury.Brief) (*reading, []jury.Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if len(b.Rubric) == 0 {
		return nil, nil, errNoRubric
	}
	s, err := h.study(ctx, b.Material)
	if err != nil {
		return nil, nil, err
	}
	return s.read, juror.OnRubric(b.Rubric, s.found), nil
}

// Answer implements jury.Juror. It returns an error for a brief without a rubric, for evidence that it cannot read,
// and the context's error.
func (j *Juror) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	r, found, err := examine(ctx, j.shelf, b)
	if err != nil {
		return jury.Answer{}, err
	}
	first := j.opinion(r, b.Rubric, through(j.focus, found))
	if b.Phase != jury.Discussion {
		return jury.Answer{Opinion: first, Origin: origin()}, nil
	}
	return jury.Answer{Speech: j.discuss(r, b, first), Origin: origin()}, nil
}

// opinion makes a complete opinion from findings.
func (j *Juror) opinion(r *reading, rubric jury.Rubric, findings []jury.Finding) jury.Opinion {
	if findings == nil {
		findings = []jury.Finding{}
	}
	scores, total := score(rubric, findings)
	total = lessUnseen(r, rubric, scores, findings, total)
	return jury.Opinion{
		Position:   r.position(findings),
		AxisScores: scores,
		TotalScore: total,
		Confidence: confidence(r, findings),
		Rationale:  rationale(j.focus, r, findings),
		Findings:   findings,
	}
}
