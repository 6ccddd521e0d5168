package storage

import (
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// A Plan decides on what to append to a log that is locked against all other writers. It must not call the Store.
type Plan func(head Head, log Committed) (Batch, error)

// Committed is what a Plan may ask of the log that it appends to.
type Committed interface {
	tlog.HashReader
	// Find answers all that is asked at once, so that a store on another machine needs one message for a batch of any size.
	Find(Query) (Found, error)
}

// A Query names records, chains and cases.
type Query struct {
	RecordIDs []string
	Chains    []string
	Cases     []evidence.Digest
}

// Found is what a log has of what a Query names. What it has nothing of is missing. It belongs to whoever has asked.
type Found struct {
	Places map[string]int64          // of records, by their ids
	Chains map[string]int64          // how many records there are of a chain
	Cases  map[evidence.Digest]int64 // how many submissions of a case
}

// NewFound returns one that has nothing.
func NewFound() Found {
	return Found{Places: map[string]int64{}, Chains: map[string]int64{}, Cases: map[evidence.Digest]int64{}}
}

// A Batch is what one transaction stores: all of it or nothing.
type Batch struct {
	Rows   []Row       // from the index Head.Size on
	Hashes []tlog.Hash // from the stored hash index tlog.StoredHashCount(Head.Size) on
	Next   Head        // the head with them

	Briefs []StoredBrief // of these rows, in log order; a row can be without one

	Waits  []Wait  // time stamps that these rows wait for
	Stamps []Stamp // time stamps of earlier rows, which wait for them no longer

	Urgent bool // it is appended even if that takes the last of the room: see urgent
}

// A Wait is a time stamp that a record is to get from an authority, which has not given it yet.
type Wait struct {
	Index     int64 // of the record
	Authority string
	Since     time.Time // UTC, in milliseconds
}

// A Stamp adds a time stamp to the row that waits for it from an authority. Append returns ErrConflict, and stores
// nothing, when the row does not wait for it: another writer has stamped it.
type Stamp struct {
	Index     int64
	Authority string // "": the row did not wait for it
	Timestamp evidence.Timestamp
}

// An Owed is how much records wait for from one authority.
type Owed struct {
	Authority string
	Records   int64
	Since     time.Time // how long the one waits that has waited longest
}

// Check says whether the batch fits onto a head. Stores call it last before they write.
func (b *Batch) Check(head Head) error {
	if b.Next.Size != head.Size+int64(len(b.Rows)) {
		return fmt.Errorf("a batch of %d rows leads from size %d to %d", len(b.Rows), head.Size, b.Next.Size)
	}
	if want := tlog.StoredHashCount(b.Next.Size) - tlog.StoredHashCount(head.Size); int64(len(b.Hashes)) != want {
		return fmt.Errorf("a batch of %d rows has %d hashes, want %d", len(b.Rows), len(b.Hashes), want)
	}
	for i, row := range b.Rows {
		if row.Index != head.Size+int64(i) {
			return fmt.Errorf("row %d of a batch at size %d has the index %d", i, head.Size, row.Index)
		}
	}
	if err := checkBriefs(b.Briefs, head.Size, b.Next.Size); err != nil {
		return err
	}
	for _, w := range b.Waits {
		if w.Index < head.Size || w.Index >= b.Next.Size || w.Authority == "" {
			return fmt.Errorf("a batch at size %d has record %d wait for the authority %q", head.Size, w.Index, w.Authority)
		}
	}
	for _, s := range b.Stamps {
		if s.Index < 0 || s.Index >= head.Size {
			return fmt.Errorf("a batch at size %d stamps record %d", head.Size, s.Index)
		}
	}
	return nil
}
