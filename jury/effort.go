package jury

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Effort says how an answer, or its absence, came about: every attempt, in order. It is in the metadata of the act,
// and no rule depends on it.
type Effort struct {
	Attempts []Attempt `json:"attempts"`
	Peers    []string  `json:"peers,omitempty"` // the other jurors, in the order in which they were shown
}

// An Attempt is one call to the juror of a seat.
type Attempt struct {
	Model        string `json:"model"`                // as the provider reported it; "" if it reported none
	Version      string `json:"version,omitzero"`     // the provider's further description of what answered, such as a fingerprint; "" if none
	FinishReason string `json:"finishReason"`         // as the provider reported it; "" if it reported none
	Problem      string `json:"problem,omitzero"`     // why the attempt does not count, or counts only because no later one does; "" if nothing was wrong
	Answer       string `json:"answer,omitzero"`      // after a problem: what came back, perhaps shortened
	Retries      int    `json:"retries,omitzero"`     // failed requests before this one, because of rate limits or outages
	InputTokens  int64  `json:"inputTokens,omitzero"` // as the provider counted them
	OutputTokens int64  `json:"outputTokens,omitzero"`
	Cost         int64  `json:"costMicroUSD,omitzero"` // millionths of a US dollar, by the operator's price table; 0 also if it is unknown
	Unpriced     bool   `json:"costUnknown,omitzero"`  // no price or no count of tokens is known
	Latency      int64  `json:"latencyMillis"`         // milliseconds from the question to the answer, including waits for the provider's limits
}

// Encode returns the effort as the metadata of an act. It refuses text that is not valid UTF-8.
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

// ReadEffort reads the metadata of an act. It returns an empty Effort for acts without metadata, such as those of
// rules. It refuses metadata that does not decode into an Effort.
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
