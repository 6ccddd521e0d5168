package jurattest

import (
	"context"
	"time"

	"jurat/jury"
)

// A Juror gives the answers of its script. It is safe for concurrent use as long as the script does not change.
type Juror struct {
	Opinion  jury.Opinion  // for phase 1 and as a judge
	Speeches []jury.Speech // by round; the last one repeats in later rounds; none: it keeps its opinion
	Err      error         // returned instead of any answer
	Delay    time.Duration // before each answer
}

var scripted = jury.Origin{Model: "scripted", ModelVersion: "1"}

func (j *Juror) wait(ctx context.Context) error {
	if j.Delay > 0 {
		select {
		case <-time.After(j.Delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return j.Err
}

// Evaluate implements jury.Juror.
func (j *Juror) Evaluate(ctx context.Context, _ jury.Brief) (jury.Opinion, jury.Origin, error) {
	return j.Opinion, scripted, j.wait(ctx)
}

// Discuss implements jury.Juror.
func (j *Juror) Discuss(ctx context.Context, b jury.Brief) (jury.Speech, jury.Origin, error) {
	if err := j.wait(ctx); err != nil {
		return jury.Speech{}, scripted, err
	}
	if len(j.Speeches) == 0 {
		return jury.Speech{Statement: "I stay with what I said.", Position: j.Opinion.Position, Reasoning: "Nothing new was said."}, scripted, nil
	}
	return j.Speeches[min(b.RoundNumber, len(j.Speeches))-1], scripted, nil
}

// Judge implements jury.Judge.
func (j *Juror) Judge(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	return j.Evaluate(ctx, b)
}

// Opine makes an opinion on the default rubric. Each axis has the same percentage of its maximum.
func Opine(position jury.Position, percent int) jury.Opinion {
	o := jury.Opinion{Position: position, AxisScores: jury.Scores{}, Confidence: 0.8,
		Rationale: "As the script has it.", Findings: []jury.Finding{}}
	for _, axis := range jury.DefaultRubric() {
		o.AxisScores[axis.ID] = axis.Max * percent / 100
		o.TotalScore += o.AxisScores[axis.ID]
	}
	return o
}
