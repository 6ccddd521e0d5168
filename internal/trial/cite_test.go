package trial_test

import (
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// TestNoRecordIsMadeUp: a finding on a conversation names no record, even if the juror named one.
func TestNoRecordIsMadeUp(t *testing.T) {
	h := jurattest.New(t)
	config := scripted(h, jury.MajorityVote)
	liar := jurattest.Opine(jury.NeedsReview, 50)
	liar.Findings = []jury.Finding{{Message: 4, Quote: "in transit", Rule: "x", Axis: "safety", Severity: jury.Minor, Explanation: "y",
		Record: evidence.DigestOf([]byte("of my own making"))}}
	config.Jurors[0] = &jurattest.Juror{Opinion: liar}
	done := must.Get(trial.Run(t.Context(), config, jurattest.Case(t)))(t)
	found := done.Result.Phase1Evaluations[0].Findings
	if len(found) != 1 || found[0].Record != (evidence.Digest{}) {
		t.Errorf("%+v", found)
	}
	if liar.Findings[0].Record == (evidence.Digest{}) {
		t.Error("the juror's own findings were changed")
	}
}
