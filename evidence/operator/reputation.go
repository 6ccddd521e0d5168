package operator

import (
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
)

// ReputationChain is the chain of the operator's acts that say when an agent's reputation crossed a threshold, and who was told.
// Who was told that a case needs a person's decision stands there, too.
const ReputationChain = evidence.OperatorPrefix + "reputation"

// ReputationChange is what a reputation_event reports.
type ReputationChange string

const (
	ReputationCrossed ReputationChange = "crossed" // the bounds of an agent's reputation passed a threshold
	ReputationTold    ReputationChange = "told"    // a webhook accepted the message of that, or of a verdict that needs a person
	ReputationUntold  ReputationChange = "untold"  // a webhook did not accept it, and gets no further message of it
)

// A Side says where the bounds of a reputation are, seen from a threshold.
type Side string

const (
	SideNone   Side = "none"   // there are no bounds: too few verdicts, or judgments are missing
	SideBelow  Side = "below"  // both bounds are below the threshold
	SideAcross Side = "across" // the upper bound reaches the threshold, the lower does not
	SideAbove  Side = "above"  // both bounds reach the threshold
)

// SideOf says where bounds are, seen from a threshold. All three are parts of ten thousand.
func SideOf(b *ReputationBounds, threshold int64) Side {
	switch {
	case b == nil:
		return SideNone
	case b.Lower >= threshold:
		return SideAbove
	case b.Upper >= threshold:
		return SideAcross
	}
	return SideBelow
}

// ReputationBounds are the bounds of an agent's reputation, in parts of ten thousand.
type ReputationBounds struct {
	Lower int64 `json:"lower"`
	Upper int64 `json:"upper"`
}

// maxReputation is the largest bound.
const maxReputation = 10_000

// ReputationEventBody is the response of a reputation_event.
type ReputationEventBody struct {
	Agent     string            `json:"agent,omitzero"`    // of crossed, as the next ones
	Arrival   evidence.Digest   `json:"arrival,omitzero"`  // of told and untold of a case that needs a person: its verdict
	Attempts  int64             `json:"attempts,omitzero"` // of told and untold: how often it was tried
	Bounds    *ReputationBounds `json:"bounds,omitzero"`   // nil: there are none any more
	Class     string            `json:"class,omitzero"`    // whose verdicts: "models", "people" or "rules"
	Crossing  evidence.Digest   `json:"crossing,omitzero"` // of told and untold of a crossing: the act that reports it
	Event     ReputationChange  `json:"event"`
	From      Side              `json:"from,omitzero"`
	Panel     evidence.Digest   `json:"panel,omitzero"`     // of a jury: which
	Reason    string            `json:"reason,omitzero"`    // of untold
	Size      int64             `json:"size,omitzero"`      // of the log, as far as it was read
	Threshold int64             `json:"threshold,omitzero"` // in parts of ten thousand
	To        Side              `json:"to,omitzero"`
	Trust     evidence.Digest   `json:"trust,omitzero"`   // fingerprint of the trust file
	Webhook   string            `json:"webhook,omitzero"` // of told and untold: its name in the operator's configuration
}

// ReadReputationEvent reads a reputation_event. It returns an error if the act stands in another chain or breaks a rule of its event.
func ReadReputationEvent(p *evidence.Payload) (*ReputationEventBody, error) {
	if p.ActionType != evidence.ReputationEvent || p.ChainID != ReputationChain {
		return nil, fmt.Errorf("%s in chain %q is not a reputation event of chain %q", p.ActionType, p.ChainID, ReputationChain)
	}
	body, err := Read[ReputationEventBody](p)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

func (b *ReputationEventBody) check() error {
	switch b.Event {
	case ReputationCrossed:
		return b.checkCrossing()
	case ReputationTold, ReputationUntold:
		return b.checkTelling()
	}
	return fmt.Errorf("unknown event %q", b.Event)
}

func (b *ReputationEventBody) checkCrossing() error {
	if err := evidence.CheckName(b.Agent); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	sides := []Side{SideNone, SideBelow, SideAcross, SideAbove}
	switch {
	case b.Attempts != 0 || !b.Arrival.IsZero() || !b.Crossing.IsZero() || b.Reason != "" || b.Webhook != "":
		return fmt.Errorf("%s has no arrival, attempts, crossing, reason or webhook", b.Event)
	case !slices.Contains([]string{"models", "people", "rules"}, b.Class):
		return fmt.Errorf("class: unknown %q", evidence.Abbreviate(b.Class))
	case b.Class == "people" && !b.Panel.IsZero():
		return errors.New("people have no panel")
	case b.Threshold < 1 || b.Threshold > maxReputation:
		return fmt.Errorf("threshold: %d, want 1 to %d", b.Threshold, maxReputation)
	case b.Bounds != nil && (b.Bounds.Lower < 0 || b.Bounds.Upper < b.Bounds.Lower || b.Bounds.Upper > maxReputation):
		return fmt.Errorf("bounds: want 0 to %d, the lower before the upper", maxReputation)
	case !slices.Contains(sides, b.From) || b.From == b.To:
		return fmt.Errorf("from is %q and to %q: want two different of %v", evidence.Abbreviate(string(b.From)), evidence.Abbreviate(string(b.To)), sides)
	case b.To != SideOf(b.Bounds, b.Threshold):
		return fmt.Errorf("to is %q, but by bounds and threshold it is %q", evidence.Abbreviate(string(b.To)), SideOf(b.Bounds, b.Threshold))
	case b.Size < 1 || b.Size > MaxEntries || b.Trust.IsZero():
		return errors.New("size or trust is missing")
	}
	return nil
}

func (b *ReputationEventBody) checkTelling() error {
	if err := evidence.CheckName(b.Webhook); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	told := ReputationEventBody{Arrival: b.Arrival, Attempts: b.Attempts, Crossing: b.Crossing, Event: b.Event, Reason: b.Reason, Webhook: b.Webhook}
	switch {
	case *b != told:
		return fmt.Errorf("%s has only arrival or crossing, attempts, webhook and, if it is %s, reason", b.Event, ReputationUntold)
	case b.Arrival.IsZero() == b.Crossing.IsZero():
		return errors.New("want arrival or crossing, which say of what, and not both")
	case b.Attempts < 1 || b.Attempts > MaxEntries:
		return errors.New("attempts is missing")
	case (b.Event == ReputationUntold) != (b.Reason != ""):
		return fmt.Errorf("reason is there if and only if event is %s", ReputationUntold)
	}
	return nil
}

// Of returns the act of which somebody was told, or is told no more: the crossing, or the verdict that needs a person.
func (b *ReputationEventBody) Of() evidence.Digest {
	if b.Arrival.IsZero() {
		return b.Crossing
	}
	return b.Arrival
}
