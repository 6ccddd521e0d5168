package jurattest

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/jury"
)

// codeInTask is where a juror's prompt says which code its answer must carry.
var codeInTask = regexp.MustCompile(`evidenceCode: exactly ([0-9a-f]{12}),`)

// ModelAnswer is what a language model says that was asked by a prompt and a schema: a good answer by the default rubric that
// gives each axis the same part of its maximum. change may make it another one; nil: it stays good.
func ModelAnswer(prompt string, schema []byte, position jury.Position, percent int, change func(map[string]any)) string {
	o := Opine(position, percent)
	answer := map[string]any{"findings": []any{}, "rationale": "I have read it all.", "axisScores": o.AxisScores, "totalScore": o.TotalScore,
		"position": position, "confidence": o.Confidence, "evidenceCode": ""}
	if code := codeInTask.FindStringSubmatch(prompt); code != nil {
		answer["evidenceCode"] = code[1]
	}
	if strings.Contains(string(schema), `"statement"`) {
		answer["statement"], answer["reasoning"] = "I stay with what I said.", "Nothing new was said."
	}
	if change != nil {
		change(answer)
	}
	doc, err := json.Marshal(answer)
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(doc)
}
