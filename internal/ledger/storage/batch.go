package storage

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/plural"
)

// A Plan decides what to append to a log that is locked against all other writers. It must not call the Store.
type Plan func(head Head, log Committed) (Batch, error)

// Committed is what a Plan can read of the log.
type Committed interface {
	tlog.HashReader
	// Find answers the whole query at once, so that a store on another machine needs one message for a batch of any
	// size.
	Find(Query) (Found, error)
}

// A Query names records, chains, cases, and the tags of actors and subjects.
type Query struct {
	RecordIDs []string
	Chains    []string
	Cases     []evidence.Digest
	Actors    []evidence.Digest
	Subjects  []evidence.Digest
}

// Found is what a log has of what a Query names. What the log lacks is missing from the maps. The caller may change
// it.
type Found struct {
	Places map[string]int64          // of records, by their ids
	Chains map[string]int64          // number of records in a chain
	Cases  map[evidence.Digest]int64 // number of submissions of a case

	Actors   map[evidence.Digest]int64 // number of counted records of an actor
	Subjects map[evidence.Digest]int64 // number of judgments about a subject
}

// NewFound returns an empty Found.
func NewFound() Found {
	return Found{Places: map[string]int64{}, Chains: map[string]int64{}, Cases: map[evidence.Digest]int64{},
		Actors: map[evidence.Digest]int64{}, Subjects: map[evidence.Digest]int64{}}
}

// A Batch is what one transaction stores: all of it or nothing.
type Batch struct {
	Rows   []Row       // from the index Head.Size on
	Hashes []tlog.Hash // from the stored hash index tlog.StoredHashCount(Head.Size) on
	Next   Head        // the head with them

	Briefs []StoredBrief // of these rows, in log order; some rows may have none

	Waits  []Wait  // time stamps that these rows wait for
	Stamps []Stamp // time stamps of earlier rows, which no longer wait for them

	Urgent bool // the batch may use the last free room of the disk

	Before func() error // called when all is written but not committed; after its error nothing is stored. nil: there is nothing to wait for
}

// MayCommit calls Before. Stores call it right before they commit.
func (b *Batch) MayCommit() error {
	if b.Before == nil {
		return nil
	}
	return b.Before()
}

// A Wait is a time stamp that a record still needs from an authority.
type Wait struct {
	Index     int64 // of the record
	Authority string
	Since     time.Time // UTC, in milliseconds
}

// A Stamp adds a time stamp to a row that waits for it. Append returns ErrConflict, and stores nothing, if the row
// does not wait: another writer has stamped it.
type Stamp struct {
	Index     int64
	Authority string // "": the row did not wait for it
	Timestamp evidence.Timestamp
}

// An Owed summarises the records that wait for one authority.
type Owed struct {
	Authority string
	Records   int64
	Since     time.Time // of the record that has waited longest
}

// Check returns an error if the batch does not fit a head. Stores call it last before they write.
func (b *Batch) Check(head Head) error {
	if b.Next.Size != head.Size+int64(len(b.Rows)) {
		return fmt.Errorf("a batch of %d rows changes the size from %d to %d", len(b.Rows), head.Size, b.Next.Size)
	}
	if want := tlog.StoredHashCount(b.Next.Size) - tlog.StoredHashCount(head.Size); int64(len(b.Hashes)) != want {
		return fmt.Errorf("a batch of %d rows has %d hashes, want %d", len(b.Rows), len(b.Hashes), want)
	}
	for i, row := range b.Rows {
		if row.Index != head.Size+int64(i) {
			return fmt.Errorf("row %d of a batch at size %d has index %d", i, head.Size, row.Index)
		}
		if (row.Counts.ActorSeq > 0) != !row.Actor.IsZero() || (row.Counts.SubjectSeq > 0) != !row.Counts.Subject.IsZero() || row.Counts.SubjectSeq > 0 && row.Actor.IsZero() {
			return fmt.Errorf("row %d of a batch at size %d has a count without a tag, or a tag without a count", i, head.Size)
		}
	}
	if err := checkBriefs(b.Briefs, head.Size, b.Next.Size); err != nil {
		return err
	}
	for _, w := range b.Waits {
		if w.Index < head.Size || w.Index >= b.Next.Size || w.Authority == "" {
			return fmt.Errorf("in a batch at size %d, record %d waits for the authority %q", head.Size, w.Index, w.Authority)
		}
	}
	for _, s := range b.Stamps {
		if s.Index < 0 || s.Index >= head.Size {
			return fmt.Errorf("a batch at size %d stamps record %d", head.Size, s.Index)
		}
	}
	return nil
}

// A Head is the size of a log and the RFC 6962 hash over all of it.
type Head struct {
	Size int64
	Root tlog.Hash
}

// Check returns ErrDamaged for a size that no log can have. A database can come from anywhere, like a backup, and on
// some sizes the tree arithmetic would not end.
func (h Head) Check() error {
	if h.Size < 0 || h.Size > operator.MaxEntries {
		return fmt.Errorf("%w: the database says that the log has %d records, but a log can have at most %d", ErrDamaged, h.Size, int64(operator.MaxEntries))
	}
	return nil
}

func (h Head) String() string { return fmt.Sprintf("%s, root %v", plural.Of(h.Size, "record"), h.Root) }

// EmptyHead is the head of a log without records.
var EmptyHead = Head{Root: emptyRoot()}

func emptyRoot() tlog.Hash {
	root, err := tlog.TreeHash(0, nil)
	if err != nil {
		panic(err) // the hash of an empty tree reads nothing
	}
	return root
}

// OpenCheckpoint returns the head in a signed checkpoint, or ErrCheckpoint if this key did not sign it.
func OpenCheckpoint(signed string, by note.Verifier) (Head, error) {
	checkpoint, err := operator.OpenCheckpoint(signed, by)
	if err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	return Head{Size: checkpoint.Size, Root: checkpoint.Root}, nil
}

// A Lock is a mutex that can be waited for with a context.
type Lock chan struct{}

// NewLock returns a lock that is free.
func NewLock() Lock { return make(Lock, 1) }

// Acquire takes the lock when it is free, or returns the context's error.
func (l Lock) Acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release frees the lock.
func (l Lock) Release() { <-l }
