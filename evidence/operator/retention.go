package operator

import (
	"errors"
	"fmt"

	"jurat/evidence"
)

// RetentionChain is the chain of the operator's acts on how long records are kept, which are on hold, and which were deleted.
const RetentionChain = evidence.OperatorPrefix + "retention"

// MinRetention is the fewest days for which a record is kept: six months, as Articles 19 and 26(6) of the EU AI Act require of logs.
const MinRetention = 183

// RetentionChange is what the operator decided on keeping records.
type RetentionChange string

const (
	RetentionHeld     RetentionChange = "held"     // its records are neither deleted nor erased until the hold is released
	RetentionReleased RetentionChange = "released" // a hold ended
	RetentionKept     RetentionChange = "kept"     // records are kept for so many days from now on
	RetentionExpired  RetentionChange = "expired"  // records were deleted
)

// RetentionEventBody is the response of a retention_event.
type RetentionEventBody struct {
	By     string          `json:"by"`
	Chain  string          `json:"chain,omitzero"` // of held: all records of this chain
	Days   int64           `json:"days,omitzero"`  // of kept
	Event  RetentionChange `json:"event"`
	Gone   *ExpiredRecords `json:"gone,omitempty"` // of expired
	Hold   string          `json:"hold,omitzero"`  // of released: the record id of the act that held
	Reason string          `json:"reason"`
	Record evidence.Digest `json:"record,omitzero"` // of held: one record. A hold without chain and record is on all records
}

// ExpiredRecords says which records were deleted. The archive file lists them; the log keeps its hashes.
type ExpiredRecords struct {
	Archive  evidence.Digest `json:"archive"`  // of the file with the remaining hashes
	Before   string          `json:"before"`   // RFC 3339: they were sealed before this
	Count    int64           `json:"count"`    // how many
	From     int64           `json:"from"`     // of the file: index of the first record, and after the last
	Replaces evidence.Digest `json:"replaces"` // of the file that held the records
	To       int64           `json:"to"`
}

// ReadRetentionEvent reads a retention_event. It returns an error if the act stands in another chain or breaks a rule of its event.
func ReadRetentionEvent(p *evidence.Payload) (*RetentionEventBody, error) {
	if p.ActionType != evidence.RetentionEvent || p.ChainID != RetentionChain {
		return nil, fmt.Errorf("%s in chain %q is not a retention event of chain %q", p.ActionType, p.ChainID, RetentionChain)
	}
	body, err := Read[RetentionEventBody](p)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

func (b *RetentionEventBody) check() error {
	if b.By == "" || b.Reason == "" {
		return errors.New("by or reason is empty")
	}
	has := map[RetentionChange]bool{RetentionReleased: b.Hold != "", RetentionKept: b.Days != 0, RetentionExpired: b.Gone != nil,
		RetentionHeld: b.Event == RetentionHeld}
	if !has[b.Event] {
		return fmt.Errorf("event %q is unknown, or lacks its member", b.Event)
	}
	for event, there := range has {
		if there && event != b.Event {
			return fmt.Errorf("%s must not have the member of %s", b.Event, event)
		}
	}
	if b.Event != RetentionHeld && (b.Chain != "" || !b.Record.IsZero()) {
		return fmt.Errorf("%s must not have a chain or a record", b.Event)
	}
	switch {
	case b.Chain != "" && !b.Record.IsZero():
		return errors.New("a hold is on a chain or on a record, not on both")
	case b.Chain != "":
		return evidence.CheckName(b.Chain)
	case b.Event == RetentionReleased:
		if err := evidence.CheckRecordID(b.Hold); err != nil {
			return fmt.Errorf("hold: %w", err)
		}
	case b.Event == RetentionKept && b.Days < MinRetention:
		return fmt.Errorf("days: %d, want at least %d", b.Days, MinRetention)
	case b.Gone != nil:
		return b.Gone.check()
	}
	return nil
}

func (g *ExpiredRecords) check() error {
	if _, err := evidence.ParseTime(g.Before); err != nil {
		return fmt.Errorf("gone: before: %w", err)
	}
	if g.Archive.IsZero() || g.Replaces.IsZero() || g.Archive == g.Replaces || g.From < 0 || g.Count < 1 || g.Count > g.To-g.From {
		return fmt.Errorf("gone: %d records of %d to %d, or the digests of the files, contradict each other", g.Count, g.From, g.To)
	}
	return nil
}
