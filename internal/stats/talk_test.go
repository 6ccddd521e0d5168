package stats_test

import (
	"testing"

	"jurat/internal/must"
	"jurat/internal/stats"
	"jurat/jurattest"
	"jurat/jury"
)

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
	if s.AfterPhase1.Level != 0.67 || s.AfterDiscussion.Level != 1 {
		t.Errorf("agreement before the discussion %v, after it %v", s.AfterPhase1.Level, s.AfterDiscussion.Level)
	}
}
