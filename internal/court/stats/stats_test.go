package stats_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/court/stats"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
)

// priced is a juror whose evaluations cost something.
type priced struct{ jury.Juror }

func (p priced) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := p.Juror.Answer(ctx, b)
	if b.Phase != jury.Initial {
		return a, err
	}
	effort := jury.Effort{Attempts: []jury.Attempt{{Problem: "malformed", InputTokens: 5, Cost: 3, Latency: 100},
		{InputTokens: 7, OutputTokens: 2, Cost: 4, Latency: 50}}}
	metadata, encodeErr := effort.Encode()
	a.Origin.Metadata = metadata
	if err == nil {
		err = encodeErr
	}
	return a, err
}

func try(t *testing.T, h *jurattest.House, method jury.Method) []*evidence.Record {
	t.Helper()
	jurors, judge := jurattest.Panel()
	settings := jurattest.Settings(method)
	if settings.Judge == nil {
		judge = nil
	}
	jurors[0] = priced{jurors[0]}
	done, err := trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random,
		Settings: settings, Jurors: jurors, Judge: judge}, jurattest.Case(t))
	must.Do(t, err)
	return done.Records
}

// TestStats counts two trials of the scripted panel. In both, juror-b changes to safe_pass in round 1 (see
// jurattest.Panel).
func TestStats(t *testing.T) {
	h := jurattest.New(t)
	tally := stats.New()
	for _, method := range []jury.Method{jury.MajorityVote, jury.FinalJudge} {
		must.Do(t, tally.Add(try(t, h, method)))
	}
	s := tally.Stats()
	must.Hold(t, s.Trials == 2 && s.Verdicts[jury.SafePass] == 2 && s.Discussed == 2 && s.Judged == 2 && s.Changes == 2 && s.ToMajority == 2, "%+v", s)
	must.Hold(t, s.AfterDiscussion.Level == 1 && s.AfterPhase1.Level < 1, "%+v, %+v", s.AfterPhase1, s.AfterDiscussion)
	want := stats.JurorStats{JurorID: "juror-a", Asked: s.Jurors[1].Asked, Answered: s.Jurors[1].Asked, Attempts: 4, InputTokens: 24,
		OutputTokens: 4, Cost: 14, Latency: 150}
	must.Equal(t, cmp.Diff(want, s.Jurors[1], cmp.AllowUnexported(stats.JurorStats{})), "")
	must.Hold(t, s.Jurors[0].JurorID == "judge" && s.Jurors[0].Asked == 1, "%+v", s.Jurors[0])
}

func TestUnfinishedTrial(t *testing.T) {
	h := jurattest.New(t)
	records := try(t, h, jury.MajorityVote)
	err := stats.New().Add(records[:len(records)-1])
	must.Hold(t, err != nil, "an unfinished trial was counted")
}

// TestCalibratedTalkIsCounted: the votes of a calibrated judgment are those before the discussion. What stood after it is counted all the same.
func TestCalibratedTalkIsCounted(t *testing.T) {
	h := jurattest.New(t)
	tally := stats.New()
	jurors, _ := jurattest.Panel()
	settings := jurattest.Settings(jury.Calibrated)
	settings.Weights = map[string]int{"juror-a": 10, "juror-b": 20, "juror-c": 30}
	must.Do(t, tally.Add(h.TryBefore(t, settings, jurors, nil).Records))
	s := tally.Stats()
	// In phase 1 two of three jurors passed the agent. In round 1 the third follows them.
	must.Hold(t, s.AfterPhase1.Level == 0.67 && s.AfterDiscussion.Level == 1,
		"agreement before the discussion %v, after it %v", s.AfterPhase1.Level, s.AfterDiscussion.Level)
}
