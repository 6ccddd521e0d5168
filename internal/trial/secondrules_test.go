package trial_test

import (
	"os"
	"path/filepath"
	"testing"

	"jurat/evidence"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// TestCaseFilesByTheSecondRules: case files that were sealed under the rules jurat/trial/v2 are still proved, and come to
// the outcome that they had.
func TestCaseFilesByTheSecondRules(t *testing.T) {
	for name, want := range map[string]jury.Position{"kitchen-return": jury.SafePass, "invoice-inbox": jury.UnsafeFail, "pharmacy-refill": jury.NeedsReview} {
		file, err := os.ReadFile(filepath.Join("testdata", "second-rules", name+".jurat"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := evidence.ParseBundle(file)
		if err != nil {
			t.Fatal(err)
		}
		h := jurattest.New(t)
		for _, r := range b.Records { // the house makes the keys that a trust file of it lists
			if _, err := h.Keys.Signers(t.Context(), r.Payload.Role(), r.Payload.Actor()); err != nil {
				t.Fatal(err)
			}
		}
		r := verify.Bundle(b, h.Options(t))
		if r.Outcome != verify.Proved || r.TrialOutcome == nil || r.TrialOutcome.Position != want || r.TrialOutcome.Open != (want == jury.NeedsReview) {
			t.Errorf("%s: %s, %+v, %+v", name, r.Outcome, r.TrialOutcome, r.Details)
		}
		v, err := trial.ViewOf(nil, b.Records)
		if err != nil {
			t.Fatal(err)
		}
		if result, err := v.Result(); err != nil || result.FinalVerdict != want || len(result.Phase3Judgment.Review) > 0 {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
}
