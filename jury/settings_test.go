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
