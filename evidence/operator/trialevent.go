package operator

import (
	"errors"
	"fmt"
	"strings"

	"jurat/evidence"
)

// TrialsChain is the chain of the operator's acts that cancel and resume trials, and say which reviewer has taken a case.
const TrialsChain = evidence.OperatorPrefix + "trials"

// TrialChange is what happened to a trial, before the jury ended it or while it waits for a person.
type TrialChange string

const (
	TrialCancelled TrialChange = "cancelled" // it does not go on
	TrialResumed   TrialChange = "resumed"   // it goes on after all
	TrialTaken     TrialChange = "taken"     // a reviewer means to decide on it
	TrialLeft      TrialChange = "left"      // the reviewer does not mean to any more
)

// TrialEventBody is the response of a trial_event.
type TrialEventBody struct {
	By     string      `json:"by"`
	Event  TrialChange `json:"event"`
	Reason string      `json:"reason,omitzero"` // "": none was given, to take or leave a case
	Trial  string      `json:"trial"`           // the chain_id of its acts

	// Of taken and left.
	Reviewer string `json:"reviewer,omitzero"` // who has taken the case, or left it
	Record   string `json:"record,omitzero"`   // record id of what waits: the verdict, or the last decision on it. With the next decision, this ends
}

// ReadTrialEvent reads a trial_event. It returns an error if the act stands in another chain or breaks a rule of its event.
func ReadTrialEvent(p *evidence.Payload) (*TrialEventBody, error) {
	return readIn[TrialEventBody](p, evidence.TrialEvent, TrialsChain)
}

func (b *TrialEventBody) check() error {
	if b.By == "" {
		return errors.New("by is empty")
	}
	if err := b.checkEvent(); err != nil {
		return err
	}
	if !strings.HasPrefix(b.Trial, evidence.TrialPrefix) {
		return fmt.Errorf("trial: %q is not the chain_id of a trial", evidence.Abbreviate(b.Trial))
	}
	return evidence.CheckName(b.Trial)
}

func (b *TrialEventBody) checkEvent() error {
	switch b.Event {
	case TrialCancelled, TrialResumed:
		if b.Reason == "" {
			return errors.New("reason is empty")
		}
		if b.Reviewer != "" || b.Record != "" {
			return fmt.Errorf("%s has no reviewer and no record", b.Event)
		}
		return nil
	case TrialTaken, TrialLeft:
		if err := evidence.CheckName(b.Reviewer); err != nil {
			return fmt.Errorf("reviewer: %w", err)
		}
		if err := evidence.CheckRecordID(b.Record); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		return nil
	}
	return fmt.Errorf("unknown event %q", b.Event)
}
