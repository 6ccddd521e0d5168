package jurattest

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/jury"
)

// codeInTask finds the code that a juror's prompt demands in the answer.
var codeInTask = regexp.MustCompile(`evidenceCode: exactly ([0-9a-f]{12}),`)

// ModelAnswer returns a language model's answer to a prompt and a schema: a good answer by the default rubric that
// gives each axis the same percentage of its maximum. change may modify it; nil: it stays good.
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
		panic(err) // cannot fail: texts and numbers
	}
	return string(doc)
}
