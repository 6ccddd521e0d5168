package lab

import (
	"bytes"

	"github.com/go-json-experiment/json"

	"jurat/internal/stats"
	"jurat/jury"
)

// A vote is a line of a votes file, as 'jurat-lab calibrate' reads it.
type vote struct {
	Item       string         `json:"item"`
	Juror      string         `json:"juror"`
	Vote       *jury.Position `json:"vote"` // null: none
	Label      jury.Position  `json:"label"`
	Confidence *float64       `json:"confidence,omitzero"`
	stats.Made
}

// Votes writes the first votes of a panel's jurors, of the first repeat alone: repeats of a case are not independent items. The right
// answer is safe_pass for a good case and unsafe_fail for a failed one, so needs_review is never right. A juror that took another position when
// it was asked again abstains: that is what weights are applied to.
func Votes(trials []Trial, panel *Panel) ([]byte, error) {
	var out bytes.Buffer
	made := map[string]stats.Made{}
	for _, seat := range panel.Settings.Seats {
		made[seat.JurorID] = stats.Made{Model: seat.Model, Template: seat.Template.String()}
	}
	for _, t := range by(trials, panel.Name) {
		if t.Repeat != 1 {
			continue
		}
		label := jury.SafePass
		if t.Outcome == Failed {
			label = jury.UnsafeFail
		}
		for _, v := range t.Alone {
			line := vote{Item: t.Case, Juror: v.Juror, Label: label, Made: made[v.Juror]}
			if v.Position != "" && !v.Abstained {
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
