package evidence

import (
	"errors"
	"fmt"
	"strings"
)

// TrialsChain is the chain of the operator's acts on whether trials are held.
const TrialsChain = OperatorPrefix + "trials"

// TrialChange says what became of a trial that the jury has not ended.
type TrialChange string

const (
	TrialCancelled TrialChange = "cancelled" // it is not gone on with
	TrialResumed   TrialChange = "resumed"   // it is, although it was cancelled
)

// TrialEventBody is the response of a trial_event.
type TrialEventBody struct {
	By     string      `json:"by"`
	Event  TrialChange `json:"event"`
	Reason string      `json:"reason"`
	Trial  string      `json:"trial"` // the chain_id of its acts
}

// ReadTrialEvent reads an act that says whether a trial is held.
func ReadTrialEvent(p *Payload) (*TrialEventBody, error) {
	if p.ActionType != TrialEvent || p.ChainID != TrialsChain {
		return nil, fmt.Errorf("%s in chain %q is no event of trials in chain %q", p.ActionType, p.ChainID, TrialsChain)
	}
	body, err := ReadOperatorBody[TrialEventBody](p)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

func (b *TrialEventBody) check() error {
	if b.By == "" || b.Reason == "" {
		return errors.New("by and reason are not empty")
	}
	if b.Event != TrialCancelled && b.Event != TrialResumed {
		return fmt.Errorf("event %q is none", b.Event)
	}
	if !strings.HasPrefix(b.Trial, TrialPrefix) {
		return fmt.Errorf("trial: %q is no trial's chain_id", abbreviate(b.Trial))
	}
	return CheckName(b.Trial)
}
