package archive

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// A Hold prevents records from being deleted, and their texts from being erased.
type Hold struct {
	ID     string          `json:"id"`              // record id of the act that set it
	Chain  string          `json:"chain,omitzero"`  // all records of this chain
	Record evidence.Digest `json:"record,omitzero"` // one record; without it and a chain all records
	Reason string          `json:"reason"`
	By     string          `json:"by"`
	Since  time.Time       `json:"since"`
}

// What names what is held, for people.
func (h *Hold) What() string {
	switch {
	case h.Chain != "":
		return fmt.Sprintf("chain %q", h.Chain)
	case !h.Record.IsZero():
		return fmt.Sprintf("the record with payload digest %v", h.Record)
	}
	return "all records"
}

// A HeldError names the hold that forbids an operation.
type HeldError struct{ Hold Hold }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is on legal hold since %s (%s, by %s; hold %s)", e.Hold.What(), e.Hold.Since.UTC().Format(time.RFC3339),
		e.Hold.Reason, e.Hold.By, e.Hold.ID)
}

// An Expiry is an act about deleted records.
type Expiry struct {
	ID string
	operator.ExpiredRecords
}

// A Book is the state after some acts of the chain operator.RetentionChain.
type Book struct {
	Acts     int   // how many acts were read
	Days     int64 // how many days records are kept
	Holds    []Hold
	Expiries []Expiry
}

// Read reads all acts of the chain. It returns an error for an act that does not fit, so that nothing is deleted by a
// book that cannot be read.
func Read(acts []*evidence.Record) (*Book, error) {
	b := &Book{Days: operator.MinRetention}
	for _, r := range acts {
		e, err := operator.ReadRetentionEvent(&r.Payload)
		if err == nil {
			err = b.apply(e, r)
		}
		if err != nil {
			return nil, fmt.Errorf("reading retention acts: record %s: %w", r.Payload.RecordID, err)
		}
		b.Acts++
	}
	return b, nil
}

func (b *Book) apply(e *operator.RetentionEventBody, r *evidence.Record) error {
	id := r.Payload.RecordID
	switch e.Event {
	case operator.RetentionHeld:
		b.Holds = append(b.Holds, Hold{ID: id, Chain: e.Chain, Record: e.Record, Reason: e.Reason, By: e.By, Since: r.Payload.Time()})
	case operator.RetentionReleased:
		i := slices.IndexFunc(b.Holds, func(h Hold) bool { return h.ID == e.Hold })
		if i < 0 {
			return fmt.Errorf("it releases the hold %q, which is not in force", e.Hold)
		}
		b.Holds = slices.Delete(b.Holds, i, i+1)
	case operator.RetentionKept:
		b.Days = e.Days
	case operator.RetentionExpired:
		b.Expiries = append(b.Expiries, Expiry{ID: id, ExpiredRecords: *e.Gone})
	}
	return nil
}

// Held returns a *HeldError if a record is on hold, and otherwise nil.
func (b *Book) Held(digest evidence.Digest, chain string) error {
	for _, h := range b.Holds {
		if h.Chain == "" && h.Record.IsZero() || h.Chain != "" && h.Chain == chain || !h.Record.IsZero() && h.Record == digest {
			return &HeldError{h}
		}
	}
	return nil
}

var errNoAct = errors.New("no act of the log says that it was deleted")

// Explains returns an error unless the act says that records around this index were deleted.
func (b *Book) Explains(index int64, act string) error {
	for _, e := range b.Expiries {
		if e.ID == act && e.From <= index && index < e.To {
			return nil
		}
	}
	return fmt.Errorf("%w: the archive names the act %q", errNoAct, act)
}

// Kept returns the time until which a record must be kept that was sealed at the given time.
func (b *Book) Kept(sealed time.Time) time.Time {
	return sealed.AddDate(0, 0, int(max(b.Days, operator.MinRetention)))
}
