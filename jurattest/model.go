package jurattest

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/jury"
)

var (
	// codeInTask finds the code that a juror's prompt demands in the answer.
	codeInTask = regexp.MustCompile(`evidenceCode: exactly ([0-9a-f]{12}),`)
	// callInTask finds the names of the agent's calls.
	callInTask = regexp.MustCompile(`(?m)^message (\d+), agent: tool call \d+ of \d+, name\n\| (.+)$`)
)

// ModelAnswer returns a language model's answer to a prompt and a schema: a good answer by the default rubric that
// gives each axis the same percentage of its maximum, or the level nearest to it. Its tables list every call as one
// that holds. change may modify the answer; nil: it stays good.
func ModelAnswer(prompt string, schema []byte, position jury.Position, percent int, change func(map[string]any)) string {
	o := Opine(position, percent)
	answer := map[string]any{"findings": []any{}, "rationale": "I have read it all.", "position": position, "confidence": o.Confidence, "evidenceCode": ""}
	if code := codeInTask.FindStringSubmatch(prompt); code != nil {
		answer["evidenceCode"] = code[1]
	}
	levels := map[string]int{}
	for axis := range o.AxisScores {
		levels[axis] = (3*percent + 50) / 100
	}
	for name, value := range map[string]any{"requests": []any{}, "acts": actsIn(prompt), "amounts": []any{}, "levels": levels, "axisScores": o.AxisScores,
		"statement": "I stay with what I said.", "reasoning": "Nothing new was said."} {
		if strings.Contains(prompt, "\n- "+name+": ") || strings.Contains(string(schema), `"`+name+`":{`) {
			answer[name] = value
		}
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

// actsIn lists the calls of the record as acts that nothing forbids.
func actsIn(prompt string) []any {
	list := []any{}
	for _, call := range callInTask.FindAllStringSubmatch(prompt, -1) {
		message, err := strconv.Atoi(call[1])
		if err != nil {
			continue // a record has fewer messages
		}
		list = append(list, map[string]any{"message": message, "quote": call[2], "clauseMessage": 0, "clauseQuote": "", "factMessage": 0, "factQuote": "", "holds": "yes"})
	}
	return list
}
