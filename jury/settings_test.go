package jury

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/must"
)

func TestSettingsNameTheField(t *testing.T) {
	tests := []struct {
		field string
		spoil func(*Settings)
	}{
		{"seats", func(s *Settings) { s.Seats = s.Seats[:1] }},
		{"seats", func(s *Settings) {
			for i := range 11 {
				s.Seats = append(s.Seats, Seat{JurorID: fmt.Sprint(i)})
			}
		}},
		{"seats[1].jurorId", func(s *Settings) { s.Seats[1].JurorID = s.Seats[0].JurorID }},
		{"seats[0].jurorId", func(s *Settings) { s.Seats[0].JurorID = " " }},
		{"seats[0].jurorId", func(s *Settings) { s.Seats[0].JurorID = "a\x00b" }},
		{"seats[0].jurorId", func(s *Settings) { s.Seats[0].JurorID = "\xff" }},
		{"seats[0].jurorId", func(s *Settings) { s.Seats[0].JurorID = strings.Repeat("x", 201) }},
		{"seats[1].parameters", func(s *Settings) { s.Seats[1].Parameters = jsontext.Value(`[]`) }},
		{"seats[1].parameters", func(s *Settings) { s.Seats[1].Parameters = jsontext.Value(`{"seed":1e400}`) }},
		{"seats[1].roleFocus", func(s *Settings) { s.Seats[1].RoleFocus = "\xff" }},
		{"judge", func(s *Settings) { s.Judge = nil }},
		{"judge", func(s *Settings) { s.Method = MajorityVote }},
		{"judge.jurorId", func(s *Settings) { s.Judge.JurorID = s.Seats[1].JurorID }},
		{"judge.jurorId", func(s *Settings) { s.Judge.JurorID = "" }},
		{"judge.model", func(s *Settings) { s.Judge.Model = "\xff" }},
		{"method", func(s *Settings) { s.Method = "lots" }},
		{"rubric", func(s *Settings) { s.Rubric = nil }},
		{"rubric", func(s *Settings) { s.Rubric[0].Max++ }},
		{"rubric[0].max", func(s *Settings) { s.Rubric[0].Max = 0 }},
		{"rubric[0].max", func(s *Settings) { s.Rubric[0].Max = math.MaxInt }},
		{"rubric[1].id", func(s *Settings) { s.Rubric[1].ID = s.Rubric[0].ID }},
		{"rubric[1].id", func(s *Settings) { s.Rubric[1].ID = "" }},
		{"rubric[1].description", func(s *Settings) { s.Rubric[1].Description = "\xff" }},
		{"maxRounds", func(s *Settings) { s.MaxRounds = -1 }},
		{"maxRounds", func(s *Settings) { s.MaxRounds = 21 }},
		{"costCeiling", func(s *Settings) { s.CostCeiling = maxCeiling + 1 }},
		{"shortening.limit", func(s *Settings) { s.Shortening = &Shortening{Rule: "r", Limit: maxMessage + 1} }},
		{"judgeReads", func(s *Settings) { s.Method, s.Judge, s.JudgeReads = MajorityVote, nil, true }},
		{"judgeReads", func(s *Settings) { s.Judge.Provider, s.JudgeReads = Offline, true }},
		{"effectiveVotes", func(s *Settings) { s.EffectiveVotes = 1 }},
		{"effectiveVotes", func(s *Settings) { s.EffectiveVotes = math.Copysign(0, -1) }},
		{"rubric[0].levels", func(s *Settings) {
			for i := range maxLevels + 1 {
				s.Rubric[0].Levels = append(s.Rubric[0].Levels, Level{Points: i, Description: "d"})
			}
		}},
		{"threshold", func(s *Settings) { s.Threshold = math.NaN() }},
		{"threshold", func(s *Settings) { s.Threshold = math.Inf(1) }},
		{"threshold", func(s *Settings) { s.Threshold = -0.1 }},
		{"threshold", func(s *Settings) { s.Threshold = math.Copysign(0, -1) }},
	}
	for i, tt := range tests {
		s := seated(FinalJudge, new(script), new(script)).Settings
		must.Do(t, s.Validate())
		tt.spoil(&s)
		var wrong *FieldError
		if err := s.Validate(); !errors.As(err, &wrong) || wrong.Field != tt.field {
			t.Errorf("%d: got %v, want an error about %s", i, err, tt.field)
		}
	}
}

func TestDefaultRubric(t *testing.T) {
	sum := 0
	for _, axis := range DefaultRubric() {
		sum += axis.Max
		if axis.Description == "" {
			t.Errorf("%s has no description", axis.ID)
		}
	}
	if sum != 100 || len(DefaultRubric()) != 4 {
		t.Errorf("%d axes that sum to %d", len(DefaultRubric()), sum)
	}
}

// lies are invalid opinions, by the field that is wrong.
var lies = []struct {
	field string
	tell  func(*Opinion)
}{
	{"position", func(o *Opinion) { o.Position = "great" }},
	{"position", func(o *Opinion) { o.Position = "" }},
	{"axisScores.safety", func(o *Opinion) { delete(o.AxisScores, "safety") }},
	{"axisScores.safety", func(o *Opinion) { o.AxisScores["safety"], o.TotalScore = 51, 81 }},
	{"axisScores.safety", func(o *Opinion) { o.AxisScores["safety"], o.TotalScore = -1, 29 }},
	{"axisScores.task_completion", func(o *Opinion) { o.AxisScores = nil }},
	{"axisScores", func(o *Opinion) { o.AxisScores["charm"] = 0 }},
	{"totalScore", func(o *Opinion) { o.TotalScore++ }},
	{"confidence", func(o *Opinion) { o.Confidence = math.NaN() }},
	{"confidence", func(o *Opinion) { o.Confidence = 1.01 }},
	{"confidence", func(o *Opinion) { o.Confidence = -0.01 }},
	{"confidence", func(o *Opinion) { o.Confidence = math.Copysign(0, -1) }},
	{"rationale", func(o *Opinion) { o.Rationale = " \n" }},
	{"rationale", func(o *Opinion) { o.Rationale = "\xff" }},
	{"findings[1].message", func(o *Opinion) { o.Findings[1].Message = 0 }},
	{"findings[1].message", func(o *Opinion) { o.Findings[1].Message = 1 << 53 }},
	{"findings[0].quote", func(o *Opinion) { o.Findings[0].Quote = "" }},
	{"findings[0].axis", func(o *Opinion) { o.Findings[0].Axis = "charm" }},
	{"findings[0].severity", func(o *Opinion) { o.Findings[0].Severity = "mild" }},
	{"findings[0].rule", func(o *Opinion) { o.Findings[0].Rule = "\xff" }},
	{"findings", func(o *Opinion) { o.Findings = make([]Finding, 1001) }},
	{"answer", func(o *Opinion) { o.Rationale = strings.Repeat("long", 1<<18) + "!" }},
}

func truth() Opinion {
	o := think(SafePass, 80)
	f := Finding{Message: 1, Quote: "yes", Axis: "safety", Severity: Minor}
	o.Findings = []Finding{f, f}
	return o
}

func TestValidateOpinion(t *testing.T) {
	asked := Request{Rubric: DefaultRubric()}
	must.Do(t, asked.ValidateOpinion(new(truth())))
	for i, lie := range lies {
		o := truth()
		lie.tell(&o)
		expectField(t, i, asked.ValidateOpinion(&o), lie.field)
	}
}

func expectField(t *testing.T, i int, err error, field string) {
	t.Helper()
	var wrong *FieldError
	if !errors.Is(err, ErrInvalid) || !errors.As(err, &wrong) || wrong.Field != field {
		t.Errorf("%d: got %v, want an invalid answer because of %s", i, err, field)
	}
}

var speeches = []struct {
	field string
	last  *Evaluation
	give  func(*Speech)
}{
	{"statement", &Evaluation{Opinion: truth()}, func(s *Speech) { s.Statement = "" }},
	{"reasoning", &Evaluation{Opinion: truth()}, func(s *Speech) { s.Reasoning = "" }},
	{"position", &Evaluation{Opinion: truth()}, func(s *Speech) { s.Position = "?" }},
	{"updatedEvaluation", &Evaluation{Opinion: think(UnsafeFail, 3)}, func(s *Speech) {}},
	{"updatedEvaluation", nil, func(s *Speech) {}},
	{"updatedEvaluation", &Evaluation{Opinion: truth(), Fallback: true}, func(s *Speech) {}},
	{"updatedEvaluation.totalScore", nil, func(s *Speech) { s.Updated = new(truth()); s.Updated.TotalScore++ }},
	{"updatedEvaluation.position", nil, func(s *Speech) { s.Updated = new(truth()); s.Updated.Position = UnsafeFail }},
	{"answer", &Evaluation{Opinion: truth()}, func(s *Speech) { s.Reasoning = strings.Repeat("x", 1<<20) }},
}

func TestValidateSpeech(t *testing.T) {
	asked := Request{Rubric: DefaultRubric()}
	for i, tt := range speeches {
		s := Speech{Statement: "so", Position: SafePass, Reasoning: "thus"}
		tt.give(&s)
		expectField(t, i, asked.ValidateSpeech(&s, tt.last), tt.field)
	}
	s := Speech{Statement: "so", Position: SafePass, Reasoning: "thus"}
	if err := asked.ValidateSpeech(&s, &Evaluation{Opinion: truth()}); err != nil {
		t.Error(err)
	}
	s.Updated = new(truth())
	if err := asked.ValidateSpeech(&s, nil); err != nil {
		t.Error(err)
	}
}

// TestLiarIsAbsent gives each invalid opinion in phase 1, in a round, and as the judge.
func TestLiarIsAbsent(t *testing.T) {
	for i, lie := range lies {
		o := truth()
		lie.tell(&o)
		liar := &script{initial: move{opinion: o}, rounds: []move{{speech: Speech{Statement: "s", Position: SafePass, Reasoning: "r", Updated: &o}}}}
		d := seated(FinalJudge, liar, &script{initial: holding(SafePass, 80), rounds: []move{staying(SafePass)}})
		d.Settings.MaxRounds = 1
		d.Judge.(*script).judge = move{opinion: o}
		d.Jurors = append(d.Jurors, &script{initial: holding(SafePass, 90), rounds: []move{staying(SafePass)}})
		d.Settings.Seats = append(d.Settings.Seats, Seat{JurorID: "third"})
		r := run(t, d)
		if len(r.Absences) != 3 {
			t.Fatalf("%d: absences %+v", i, r.Absences)
		}
		for _, absent := range r.Absences {
			if absent.Reason != Invalid || !strings.Contains(absent.Detail, lie.field) {
				t.Errorf("%d: %+v does not name %s", i, absent, lie.field)
			}
		}
		if r.Phase3Judgment.Method != MajorityVote || !r.Degraded || r.FinalScore != 85 || r.FinalVerdict != SafePass {
			t.Errorf("%d: %+v", i, r.Phase3Judgment)
		}
	}
}

func TestOrigin(t *testing.T) {
	for _, bad := range []Origin{{Model: "a\nb"}, {ModelVersion: strings.Repeat("x", 300)}, {Parameters: jsontext.Value(`3`)}, {Model: "\xff"}} {
		d := seated(MajorityVote, &script{initial: move{opinion: truth(), origin: bad}}, &script{initial: holding(SafePass, 1)})
		d.Settings.Collaborative = false
		r := run(t, d)
		if len(r.Absences) != 1 || r.Absences[0].Reason != Invalid {
			t.Errorf("%+v: %+v", bad, r.Absences)
		}
	}
	got, err := Origin{}.normal()
	if err != nil || got.Model != Unreported || got.ModelVersion != Unreported || string(got.Parameters) != "{}" {
		t.Errorf("%+v %v", got, err)
	}
}
