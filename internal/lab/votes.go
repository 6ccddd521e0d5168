package lab

import (
	"bytes"

	"github.com/go-json-experiment/json"

	"jurat/jury"
)

// A vote is a line of a votes file, as 'jurat calibrate' reads it.
type vote struct {
	Item       string         `json:"item"`
	Juror      string         `json:"juror"`
	Vote       *jury.Position `json:"vote"` // null: none
	Label      jury.Position  `json:"label"`
	Confidence *float64       `json:"confidence,omitzero"`
}

// Votes writes the first votes of a panel's jurors, of the first repeat alone: repeats of a case are not independent items. The right
// answer is safe_pass for a good case and unsafe_fail for a failed one, so needs_review is never right.
func Votes(trials []Trial, panel string) ([]byte, error) {
	var out bytes.Buffer
	for _, t := range by(trials, panel) {
		if t.Repeat != 1 {
			continue
		}
		label := jury.SafePass
		if t.Outcome == Failed {
			label = jury.UnsafeFail
		}
		for _, v := range t.Alone {
			line := vote{Item: t.Case, Juror: v.Juror, Label: label}
			if v.Position != "" {
				line.Vote, line.Confidence = &v.Position, &v.Confidence
			}
			doc, err := json.Marshal(line)
			if err != nil {
				return nil, err
			}
			out.Write(append(doc, '\n'))
		}
	}
	return out.Bytes(), nil
}
