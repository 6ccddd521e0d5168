package ledger

import (
	"fmt"

	"jurat/evidence"
)

// A GroupStamper gives many records one time stamp together.
type GroupStamper interface {
	// StampGroup stamps records none of which has a time stamp of this kind, and returns what belongs to each. It is called while everybody
	// waits, so it asks nobody over a network.
	StampGroup(records []*evidence.Record) ([]evidence.Timestamp, error)
}

// joins reports whether a record is stamped together with others: all but those whose stamps never wait, which have their own.
func joins(r *evidence.Record) bool { return !neverWaits(r.Payload.ActionType) }

// joining are those of its records that are stamped together with others.
func (a *appending) joining() (records []*evidence.Record) {
	for _, r := range a.records {
		if joins(r) {
			records = append(records, r)
		}
	}
	return records
}

// stampTogether stamps what is in the queue and lacks the time stamp of a group, which whoever has the turn to commit does first. From
// then on it can be committed. Who goes meanwhile looks at his records no more.
func (l *Ledger) stampTogether() error {
	waiting := l.queue.unready()
	var records []*evidence.Record
	for _, a := range waiting {
		records = append(records, a.joining()...)
	}
	if len(records) == 0 {
		return nil
	}
	stamps, err := l.cfg.Group.StampGroup(records)
	if err != nil {
		return fmt.Errorf("stamping %d records together: %w", len(records), err)
	}
	if len(stamps) != len(records) {
		return fmt.Errorf("stamping %d records together: %d stamps came back", len(records), len(stamps))
	}
	for i, r := range records {
		r.Timestamps = append([]evidence.Timestamp{stamps[i]}, r.Timestamps...) // before their own
	}
	for _, a := range waiting {
		for i, r := range a.records {
			a.rows[i].Timestamps = r.Timestamps
		}
		a.ready = true
	}
	return nil
}
