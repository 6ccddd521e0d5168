package jurattest

import (
	"context"
	"time"

	"jurat/jury"
)

// A Juror gives the answers of its script. It is safe for concurrent use as long as the script does not change.
type Juror struct {
	Opinion  jury.Opinion  // for phase 1 and as a judge
	Again    *jury.Opinion // when it is asked a second time; nil: Opinion
	Reading  *jury.Opinion // as a judge in phase 1; nil: Opinion
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

// Answer implements jury.Juror. It returns Err, and the context's error if the context ends during Delay.
func (j *Juror) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a := jury.Answer{Opinion: j.Opinion, Origin: scripted}
	switch {
	case b.Phase == jury.Repetition && j.Again != nil:
		a.Opinion = *j.Again
	case b.Phase == jury.Initial && j.Reading != nil:
		a.Opinion = *j.Reading
	case b.Phase != jury.Discussion:
	case len(j.Speeches) == 0:
		a.Speech = jury.Speech{Statement: "I stay with what I said.", Position: j.Opinion.Position, Reasoning: "Nothing new was said."}
	default:
		a.Speech = j.Speeches[min(b.RoundNumber, len(j.Speeches))-1]
	}
	return a, j.wait(ctx)
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
