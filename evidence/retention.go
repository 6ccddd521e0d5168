package evidence

import (
	"errors"
	"fmt"
)

// RetentionChain is the chain of the operator's acts on how long records are kept, which are not deleted, and which were.
const RetentionChain = OperatorPrefix + "retention"

// MinRetention is for how many days every record is kept at least: six months, as Articles 19 and 26(6) of the EU AI Act ask of logs.
const MinRetention = 183

// RetentionChange says what was decided on keeping records.
type RetentionChange string

const (
	RetentionHeld     RetentionChange = "held"     // nothing of it is deleted or erased until it is released
	RetentionReleased RetentionChange = "released" // a hold has ended
	RetentionKept     RetentionChange = "kept"     // for how many days records are kept from now on
	RetentionExpired  RetentionChange = "expired"  // records were deleted
)

// RetentionEventBody is the response of a retention_event.
type RetentionEventBody struct {
	By     string          `json:"by"`
	Chain  string          `json:"chain,omitzero"` // of held: all records of this chain
	Days   int64           `json:"days,omitzero"`  // of kept
	Event  RetentionChange `json:"event"`          //
	Gone   *ExpiredRecords `json:"gone,omitempty"` // of expired
	Hold   string          `json:"hold,omitzero"`  // of released: the record id of the act that held
	Reason string          `json:"reason"`
	Record Digest          `json:"record,omitzero"` // of held: one record. Where neither chain nor record is there, all are held
}

// ExpiredRecords says which records were deleted. Which ones exactly is in the archive file, of which the log has the hashes.
type ExpiredRecords struct {
	Archive  Digest `json:"archive"`  // of the file that has the hashes that are left
	Before   string `json:"before"`   // RFC 3339: they were sealed before this
	Count    int64  `json:"count"`    // how many
	From     int64  `json:"from"`     // of the file: index of the first record, and after the last
	Replaces Digest `json:"replaces"` // of the file that had the records
	To       int64  `json:"to"`
}

// ReadRetentionEvent reads an act on keeping records.
func ReadRetentionEvent(p *Payload) (*RetentionEventBody, error) {
	if p.ActionType != RetentionEvent || p.ChainID != RetentionChain {
		return nil, fmt.Errorf("%s in chain %q is no event of retention in chain %q", p.ActionType, p.ChainID, RetentionChain)
	}
	body, err := ReadOperatorBody[RetentionEventBody](p)
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
		return errors.New("by and reason are not empty")
	}
	has := map[RetentionChange]bool{RetentionReleased: b.Hold != "", RetentionKept: b.Days != 0, RetentionExpired: b.Gone != nil,
		RetentionHeld: b.Event == RetentionHeld}
	if !has[b.Event] {
		return fmt.Errorf("event %q is none, or lacks what it is about", b.Event)
	}
	for event, there := range has {
		if there && event != b.Event {
			return fmt.Errorf("%s has no member of %s", b.Event, event)
		}
	}
	if b.Event != RetentionHeld && (b.Chain != "" || !b.Record.IsZero()) {
		return fmt.Errorf("%s has no chain or record", b.Event)
	}
	switch {
	case b.Chain != "" && !b.Record.IsZero():
		return errors.New("held is a chain or a record")
	case b.Chain != "":
		return CheckName(b.Chain)
	case b.Event == RetentionReleased:
		if err := checkRecordID(b.Hold); err != nil {
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
	if _, err := ParseTime(g.Before); err != nil {
		return fmt.Errorf("gone: before: %w", err)
	}
	if g.Archive.IsZero() || g.Replaces.IsZero() || g.Archive == g.Replaces || g.From < 0 || g.Count < 1 || g.Count > g.To-g.From {
		return fmt.Errorf("gone: %d records of %d to %d, or the digests of the files, make no sense", g.Count, g.From, g.To)
	}
	return nil
}
