package jury

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Effort is how an answer, or the lack of one, came about: every attempt at it, in order. It stands in the metadata of
// the act, where nothing rests on it.
type Effort struct {
	Attempts []Attempt `json:"attempts"`
	Peers    []string  `json:"peers,omitempty"` // the other jurors, in the order in which they were shown
}

// An Attempt is one call to the juror of a seat.
type Attempt struct {
	Model        string `json:"model"`                // as the provider reported it; "" if it reported none
	Version      string `json:"version,omitzero"`     // what else it reported of what answered, such as a fingerprint; likewise
	FinishReason string `json:"finishReason"`         // likewise
	Problem      string `json:"problem,omitzero"`     // why the attempt does not count, or counts only because none after it does; "" if nothing was wrong
	Answer       string `json:"answer,omitzero"`      // of an attempt with a problem: what came back, perhaps cut short
	Retries      int    `json:"retries,omitzero"`     // how often the provider was asked in vain before, as it limits rates or was down
	InputTokens  int64  `json:"inputTokens,omitzero"` // as the provider counted them
	OutputTokens int64  `json:"outputTokens,omitzero"`
	Cost         int64  `json:"costMicroUSD,omitzero"` // millionths of a US dollar, by the operator's price table
	Latency      int64  `json:"latencyMillis"`         // milliseconds from the question to the answer, waiting for the provider's limits included
}

// Encode writes the effort as the metadata of an act.
func (e Effort) Encode() (jsontext.Value, error) {
	if e.Attempts == nil {
		e.Attempts = []Attempt{}
	}
	doc, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding effort: %w", err)
	}
	return doc, nil
}

// ReadEffort reads the metadata of an act. Acts without any, such as those of rules, took no effort that is told.
func ReadEffort(metadata jsontext.Value) (Effort, error) {
	var e Effort
	if metadata == nil {
		return e, nil
	}
	if err := json.Unmarshal(metadata, &e); err != nil {
		return Effort{}, fmt.Errorf("reading effort: %w", evidence.Steady(err))
	}
	return e, nil
}
