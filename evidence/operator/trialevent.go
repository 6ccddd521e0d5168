package operator

import (
	"errors"
	"fmt"
	"strings"

	"jurat/evidence"
)

// TrialsChain is the chain of the operator's acts that cancel and resume trials.
const TrialsChain = evidence.OperatorPrefix + "trials"

// TrialChange is what happened to a trial before the jury ended it.
type TrialChange string

const (
	TrialCancelled TrialChange = "cancelled" // it does not go on
	TrialResumed   TrialChange = "resumed"   // it goes on after all
)

// TrialEventBody is the response of a trial_event.
type TrialEventBody struct {
	By     string      `json:"by"`
	Event  TrialChange `json:"event"`
	Reason string      `json:"reason"`
	Trial  string      `json:"trial"` // the chain_id of its acts
}

// ReadTrialEvent reads a trial_event. It returns an error if the act stands in another chain or breaks a rule of its event.
func ReadTrialEvent(p *evidence.Payload) (*TrialEventBody, error) {
	if p.ActionType != evidence.TrialEvent || p.ChainID != TrialsChain {
		return nil, fmt.Errorf("%s in chain %q is not a trial event of chain %q", p.ActionType, p.ChainID, TrialsChain)
	}
	body, err := Read[TrialEventBody](p)
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
		return errors.New("by or reason is empty")
	}
	if b.Event != TrialCancelled && b.Event != TrialResumed {
		return fmt.Errorf("unknown event %q", b.Event)
	}
	if !strings.HasPrefix(b.Trial, evidence.TrialPrefix) {
		return fmt.Errorf("trial: %q is not the chain_id of a trial", evidence.Abbreviate(b.Trial))
	}
	return evidence.CheckName(b.Trial)
}
