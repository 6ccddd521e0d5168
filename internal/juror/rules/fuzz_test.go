package rules

import (
	"encoding/json"
	"testing"

	"jurat/internal/juror"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/jury"
)

// FuzzEvaluate: every conversation that can be read gets a valid evaluation, and its quotations are in the conversation.
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
			a := must.Get(alone(i).Answer(t.Context(), b))(t)
			must.Do(t, b.ValidateOpinion(&a.Opinion))
			for _, one := range a.Opinion.Findings {
				if !juror.Stands(c, one) {
					t.Fatalf("has a quotation that is not in the message: %+v", one)
				}
			}
		}
	})
}
