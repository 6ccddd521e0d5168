package rules

import (
	"encoding/json"
	"testing"

	"jurat/internal/juror"
	"jurat/internal/subject"
	"jurat/jury"
)

// FuzzEvaluate: whatever can be read can be judged, and the judgement is valid and quotes what is there.
func FuzzEvaluate(f *testing.F) {
	seed := func(c *subject.Case) {
		var whole struct {
			Conversation json.RawMessage `json:"conversation"`
		}
		if err := json.Unmarshal(c.Material(), &whole); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(whole.Conversation))
	}
	for _, one := range checks {
		seed(script(f, plainCard, one.fires))
	}
	seed(tradeNamed(f, "japanese-honest").c)
	f.Fuzz(func(t *testing.T, conversation []byte) {
		c, err := subject.New([]byte(plainCard), conversation)
		if err != nil {
			return
		}
		b := jury.Brief{Material: c.Material()}
		b.Rubric = jury.DefaultRubric()
		for i := range 3 {
			o, _, err := At(i).Evaluate(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			if err := jury.ValidateOpinion(&o, b.Rubric); err != nil {
				t.Fatal(err)
			}
			for _, one := range o.Findings {
				if !juror.Stands(c, one) {
					t.Fatalf("quotes what is not there: %+v", one)
				}
			}
		}
	})
}
