package ledger

import (
	"fmt"

	"jurat/evidence"
)

// A GroupStamper gives many records one time stamp together.
type GroupStamper interface {
	// StampGroup stamps records none of which has a time stamp of this kind. What it returns gives the time stamp of each, by its place
	// in the group, and may be called by many at once. It is called while everybody waits, so it asks nobody over a network.
	StampGroup(records []*evidence.Record) (func(i int) (evidence.Timestamp, error), error)
}

// A share is what an appending has of the time stamp of a group.
type share struct {
	stamp func(i int) (evidence.Timestamp, error) // of the group
	first int                                     // place of its first record there
}

// joins reports whether a record is stamped together with others: all but those whose stamps never wait, which have their own.
func joins(r *evidence.Record) bool { return !neverWaits(r.Payload.ActionType) }

// joining is how many of its records are stamped together with others.
func (a *appending) joining() (n int) {
	for _, r := range a.records {
		if joins(r) {
			n++
		}
	}
	return n
}

// gather stamps together what is in the queue and is not stamped, which whoever has the turn to commit does first. While the
// transaction is under way, the others make of the common time stamp what belongs to their records, on whatever core is idle, and are
// ready for the next one.
func (l *Ledger) gather() error {
	var waiting []*appending
	var records []*evidence.Record
	for _, a := range l.queue.unready() {
		if a.gathered {
			continue
		}
		waiting = append(waiting, a)
		for _, r := range a.records {
			if joins(r) {
				records = append(records, r)
			}
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	stamp, err := l.cfg.Group.StampGroup(records)
	if err != nil {
		return fmt.Errorf("stamping %d records together: %w", len(records), err)
	}
	first := 0
	for _, a := range waiting {
		a.gathered = true
		a.joined <- share{stamp, first}
		first += a.joining()
	}
	return nil
}

// stampWith gives the records their time stamps of the group, before their own. From then on they can be committed.
func (l *Ledger) stampWith(a *appending, s share) error {
	for i, r := range a.records {
		if !joins(r) {
			continue
		}
		t, err := s.stamp(s.first)
		if err != nil {
			return fmt.Errorf("stamping together with others: %w", err)
		}
		s.first++
		r.Timestamps = append([]evidence.Timestamp{t}, r.Timestamps...)
		a.rows[i].Timestamps = r.Timestamps
	}
	l.queue.makeReady(a)
	return nil
}
