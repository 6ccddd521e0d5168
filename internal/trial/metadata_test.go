package trial_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// talkative is a juror whose evaluations have metadata, even with an error.
type talkative struct {
	jury.Juror
	err error
}

func (j talkative) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := j.Juror.Answer(ctx, b)
	if b.Phase != jury.Initial {
		return a, err
	}
	a.Origin.Metadata = jsontext.Value(`{"attempts": 2}`)
	return a, errors.Join(err, j.err)
}

// TestMetadataIsSealed: the metadata of an answer or an absence is sealed with it.
func TestMetadataIsSealed(t *testing.T) {
	h := jurattest.New(t)
	config := scripted(h, jury.MajorityVote)
	config.Jurors[0] = talkative{Juror: config.Jurors[0]}
	config.Jurors[1] = talkative{Juror: config.Jurors[1], err: errors.New("out of order")}
	done := must.Get(trial.Run(t.Context(), config, jurattest.Case(t)))(t)
	told := map[evidence.ActionType]int{}
	for _, r := range done.Records {
		if r.Payload.Metadata == nil {
			continue
		}
		told[r.Payload.ActionType]++
		if got := string(r.Payload.Metadata); got != `{"attempts":2}` {
			t.Errorf("%s: %s", r.Payload.ActionType, got)
		}
	}
	if told[evidence.Evaluation] != 1 || told[evidence.Absence] != 1 || len(told) != 2 {
		t.Errorf("%v", told)
	}
	if r := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t)); r.Outcome != verify.Proved {
		t.Errorf("%s: %+v", r.Outcome, r.Details)
	}
}
