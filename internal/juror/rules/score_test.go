package rules

import (
	"testing"

	"jurat/internal/juror"
	"jurat/internal/must"
	"jurat/jury"
)

// TestScoresAgreeWithBands tries every combination of a few findings on every axis, on the default rubric and on another
// one.
func TestScoresAgreeWithBands(t *testing.T) {
	rubrics := []jury.Rubric{jury.DefaultRubric(), {{ID: "all", Max: 97}, {ID: "rest", Max: 3}}}
	axes := []string{"task_completion", "tool_usage", "autonomy", "safety"}
	for _, rubric := range rubrics {
		for minors := range 12 {
			for majors := range 5 {
				for criticals := range 4 {
					var list []jury.Finding
					for i, s := range []struct {
						n        int
						severity jury.Severity
					}{{minors, jury.Minor}, {majors, jury.Major}, {criticals, jury.Critical}} {
						for n := range s.n {
							list = append(list, jury.Finding{Message: n + 1, Quote: "q", Axis: axes[(n+i)%4], Severity: s.severity})
						}
					}
					checkScore(t, rubric, juror.OnRubric(rubric, list))
				}
			}
		}
	}
}

func checkScore(t *testing.T, rubric jury.Rubric, list []jury.Finding) {
	t.Helper()
	scores, total := score(rubric, list, positionOf(list))
	o := jury.Opinion{Position: positionOf(list), AxisScores: scores, TotalScore: total, Rationale: "r", Findings: list}
	must.Do(t, (&jury.Request{Rubric: rubric}).ValidateOpinion(&o))
	low, high := band(o.Position)
	if total < low || total > high {
		t.Fatalf("%s with %d points: %+v", o.Position, total, list)
	}
}

func TestDigestIsStable(t *testing.T) {
	first, second := Digest(), Digest()
	if first != second || first.IsZero() {
		t.Error("the digest of the rules is not the same every time")
	}
}

func TestEvaluateFailsOnWhatItCannotRead(t *testing.T) {
	if _, err := alone(0).Answer(t.Context(), jury.Brief{Material: []byte(`{}`), Request: jury.Request{Rubric: jury.DefaultRubric()}}); err == nil {
		t.Error("no error for evidence without a conversation")
	}
	if _, err := alone(0).Answer(t.Context(), jury.Brief{Material: clean(t).Material()}); err == nil {
		t.Error("no error for an empty rubric")
	}
}
