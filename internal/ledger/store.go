package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// A Store keeps the rows of one log. It knows their order and their keys, and nothing of what they mean: the Ledger
// decides what is appended, the Store makes it durable, whole or not at all.
//
// A Store is safe for concurrent use. Several processes may have one store open at the same time. Every method
// returns the context's error, having done nothing, when the context was done before it began, and ErrClosed after
// Close.
type Store interface {
	// Head returns the committed head. That of a new store is EmptyHead.
	Head(ctx context.Context) (Head, error)

	// Append is the only way by which the log grows. It waits, as long as the context lets it, until no other writer
	// in any process is at work; calls plan, once, with the committed head and the committed hashes; and stores what
	// plan returns in the same transaction. When Append returns nil, the batch is durable. From the call of plan on
	// the context does not count any more: a batch holds the records of others than the caller.
	//
	// A record id that is there already is refused. That no payload is there twice follows, since its id is a part of it, and need
	// not be looked for.
	//
	// When it returns the error of plan, a *DuplicateError or ErrConflict, nothing was stored. With any other error the batch was
	// stored whole or not at all, and ByRecordID says which: nothing may happen to the log for the sake of an Append
	// that has returned.
	Append(ctx context.Context, plan Plan) error

	// Rows returns those rows in log order whose index is at least from and less than from+n. Rows that are missing
	// are left out.
	Rows(ctx context.Context, from, n int64) ([]Row, error)
	// RowsAt returns the rows at these indexes in log order. Rows that are missing are left out.
	RowsAt(ctx context.Context, at []int64) ([]Row, error)
	// ByRecordID returns the row of a record, or ErrNotFound.
	ByRecordID(ctx context.Context, id string) (Row, error)
	// ByDigest returns the row with a payload digest, or ErrNotFound.
	ByDigest(ctx context.Context, digest evidence.Digest) (Row, error)
	// ByChain returns the rows of a chain in log order, or ErrNotFound when there are none.
	ByChain(ctx context.Context, chainID string) ([]Row, error)
	// InChain returns, in log order, the first n rows of a chain at the index from and later.
	InChain(ctx context.Context, chainID string, from, n int64) ([]Row, error)
	// LastOfChain returns the last row of a chain, or ErrNotFound.
	LastOfChain(ctx context.Context, chainID string) (Row, error)
	// Hashes returns the hashes at these stored hash indexes, in this order, or ErrNotFound when one is missing.
	Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error)

	// Waiting returns, in log order, the first n time stamps that records at the index from and later wait for from
	// this authority.
	Waiting(ctx context.Context, authority string, from, n int64) ([]Wait, error)
	// Owing sums up for each authority, by name, what records wait for.
	Owing(ctx context.Context) ([]Owed, error)
	// Forget has no record that has a time stamp wait for this authority any more, and returns how many did. Those that
	// have none go on waiting: no record is without a time stamp and waits for none.
	Forget(ctx context.Context, authority string) (int64, error)

	// Archives returns the files that hold what rows have shed, in log order: the first begins with the log, and each where the
	// one before it ends.
	Archives(ctx context.Context) ([]Archived, error)
	// PutArchive notes a file, durably. It takes the place of the one that has the digest old and the same range, or, where old is
	// zero, comes after the last. It returns ErrConflict when that is not how it is.
	PutArchive(ctx context.Context, old evidence.Digest, next Archived) error
	// Shed takes out of rows what an archive holds of them: payload, signatures, and as many time stamps as are named, from the first
	// on. What comes later stays. It returns ErrConflict, having done nothing, when a row is in no archive or waits for a time
	// stamp. A row that has shed already stays as it is.
	Shed(ctx context.Context, rows []Shedding) error

	// Checkpoint returns the last signed checkpoint, or "": then there is no log here yet.
	Checkpoint(ctx context.Context) (string, error)
	// SetCheckpoint replaces the checkpoint old by next, durably, or returns ErrConflict when it is not old.
	SetCheckpoint(ctx context.Context, old, next string) error

	Briefs

	Close() error
}

// A Checker is a Store that can say what is wrong with the file or server underneath it. That it complains of nothing means, too, that
// every row is found by its record id and its digest, and no record id stands in two.
type Checker interface {
	Check(ctx context.Context) (complaints []string, err error)
}

// A Prober is a Store that can find out whether anything could be appended to it now, without appending.
type Prober interface {
	// Probe returns ErrDiskFull, ErrReadOnly, or why else the store takes nothing. It may write, and changes nothing.
	Probe(ctx context.Context) error
}

// A Protected is a Store that is opened for reading where nothing can be written.
type Protected interface {
	// ReadOnly returns ErrReadOnly with the reason why nothing can be written, or nil if it can.
	ReadOnly() error
}

// A Reclaimer is a Store that keeps the room of what was shed until it is told to give it back.
type Reclaimer interface {
	Reclaim(ctx context.Context, progress func(done, total int64)) error
}

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

// A Row is a record as a store keeps it.
type Row struct {
	Index      int64 // place in the log, from 0
	RecordID   string
	Digest     evidence.Digest
	ChainID    string          // "": in no chain
	Case       evidence.Digest // of a submission: what is submitted; zero for everything else
	Counts     evidence.LogCounts
	Payload    []byte // canonical
	Signatures [][]byte
	Timestamps []evidence.Timestamp // in the order in which they came; alone of all this they may become more

	// A row that has shed has neither payload nor signatures in the store: an archive has them. Of one that has expired the archive
	// has nothing but these.
	Entry     []byte // what the log hashed
	ExpiredBy string // record id of the act that says so
}

// HasShed reports whether what makes the row a record is in an archive.
func (r *Row) HasShed() bool { return len(r.Payload) == 0 }

// An Archived is a file that holds a range of the log.
type Archived struct {
	From, To int64 // indexes: the first, and the one after the last; multiples of TileWidth
	File     string
	Digest   evidence.Digest // of its table of contents, and thereby of all that is in it
	Shed     bool            // the rows have shed
}

// TileWidth is how many hashes a C2SP tile has side by side. Archives begin and end where tiles do.
const TileWidth = 256

// Check says whether a store can note this file.
func (a *Archived) Check(head Head) error {
	if a.From < 0 || a.To <= a.From || a.From%TileWidth != 0 || a.To%TileWidth != 0 || a.To > head.Size || a.File == "" || a.Digest.IsZero() {
		return fmt.Errorf("no archive can hold %d to %d of a log of %d records in the file %q", a.From, a.To, head.Size, a.File)
	}
	return nil
}

// A Shedding says how much of a row an archive holds.
type Shedding struct {
	Index      int64
	Timestamps int
}

// A Head is the size of a log and the RFC 6962 hash over all of it.
type Head struct {
	Size int64
	Root tlog.Hash
}

// Check refuses a size that no log can have. A database can come from anywhere, as a backup does, and the arithmetic of trees does not
// end on some numbers.
func (h Head) Check() error {
	if h.Size < 0 || h.Size > evidence.MaxEntries {
		return fmt.Errorf("%w: the database says that the log has %d records, and no log can have more than %d", ErrDamaged, h.Size, int64(evidence.MaxEntries))
	}
	return nil
}

func (h Head) String() string { return fmt.Sprintf("%d records, root %v", h.Size, h.Root) }

// EmptyHead is the head of a log without records.
var EmptyHead = Head{Root: emptyRoot()}

func emptyRoot() tlog.Hash {
	root, err := tlog.TreeHash(0, nil)
	if err != nil {
		panic(err) // the hash of nothing reads nothing
	}
	return root
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

var (
	// ErrNotFound says that the store has no such row or hash.
	ErrNotFound = errors.New("not in the log")
	// ErrConflict says that another writer has replaced the checkpoint, or stamped a record, meanwhile.
	ErrConflict = errors.New("another writer was first")
	// ErrDuplicate is in the chain of every *DuplicateError.
	ErrDuplicate = errors.New("already in the log")
	// ErrClosed is returned by everything that is called after Close.
	ErrClosed = errors.New("the ledger is closed")
	// ErrDiskFull says that there is no room for more. What was there stands, and appending works again with room.
	ErrDiskFull = errors.New("no space left for the ledger")
	// ErrBusy says that the store could not be written to for a while, because another process holds its lock: nothing was changed.
	ErrBusy = errors.New("another process holds the log")
	// ErrReadOnly says that the ledger or its database was opened, or can be opened, only for reading.
	ErrReadOnly = errors.New("the ledger is open for reading only")
	// ErrArchive says that an archive file cannot be read: it is missing, or not what it was.
	ErrArchive = errors.New("the archive cannot be read")
	// ErrExpired says that a record was deleted after its retention time. The log keeps its hashes.
	ErrExpired = errors.New("the record has expired")
	// ErrDamaged says that what is stored contradicts itself. Fsck names what and where.
	ErrDamaged = errors.New("the ledger is damaged")
)

// A DuplicateError names the record that is in the log already.
type DuplicateError struct {
	RecordID string // of the record in the log
	Index    int64
	Field    string // what the refused one shares with it: "record_id" or "digest"
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%v: record %s at index %d has this %s", ErrDuplicate, e.RecordID, e.Index, e.Field)
}

func (e *DuplicateError) Is(target error) bool { return target == ErrDuplicate }
