package ledger

import (
	"fmt"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// A GroupStamper gives many records one time stamp together.
type GroupStamper interface {
	// StampGroup stamps records that have no such stamp yet, and returns the time stamp of each. Other callers wait
	// meanwhile, so it uses no network.
	StampGroup(records []*evidence.Record) ([]evidence.Timestamp, error)
}

// joins reports whether a record gets a group stamp. Acts that never wait have stamps of their own.
func joins(r *evidence.Record) bool { return !neverWaits(r.Payload.ActionType) }

// joining returns the records that get a group stamp.
func (a *appending) joining() (records []*evidence.Record) {
	for _, r := range a.records {
		if joins(r) {
			records = append(records, r)
		}
	}
	return records
}

// stampTogether adds group stamps to the records in the queue that lack them, so that they can be committed. The
// caller has the turn to commit. A caller that withdraws meanwhile must not use its records any more.
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
		r.Timestamps = append([]evidence.Timestamp{stamps[i]}, r.Timestamps...) // before each record's own stamps
	}
	for _, a := range waiting {
		for i, r := range a.records {
			a.rows[i].Timestamps, a.rows[i].Packed = r.Timestamps, storage.Packed{}
		}
		a.ready = true
	}
	return nil
}
