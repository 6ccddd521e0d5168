// Package storage defines what a ledger needs of a database: the rows of one log, their hashes, and their briefs. The
// stores are ledger/sqlite and postgres, which run the statements of SQL here; storetest checks each of them against this
// contract.
//
// A Store has parts for users that need no more: Records reads, Expiry removes content, Dictionaries has what rows are
// compressed with, Briefs what lists show. Values keep what is sealed apart of records.
//
// # The statements are written once
//
// SQL has the statements of both databases, in PostgreSQL's words. An Engine runs them: on SQLite it spells and prepares
// each once, and to PostgreSQL it sends as many as possible in one message. A Dialect has what the tables of a database
// have in their own way, because it is faster there: SQLite's index of digests by stretches, and its table of actors.
// Refused: database/sql for PostgreSQL, because it waits for the answer to each statement before it sends the next.
//
// # The head of the log is its last row
//
// If every transaction updated one row, a lone record would write a page more in SQLite, and PostgreSQL would keep the old
// versions for as long as a backup reads. So the root is in the last row of a batch, and each hash of the tree in the row
// of the record that completes it, beside the records: a record that is removed by mistake takes no hash with it.
//
// # A row is compressed by itself
//
// So each record is read and proved without others. A dictionary has frequent words and synthetic records of the installation
// with its certificates, never a user's text. Of 2 KiB of English prose 1,400 bytes remain. Refused: stronger levels of
// zstd, which take 2 to 30 times as long for 3 to 8 % of a record, and codes for words, which took 400 lines for 15 %.
package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/plural"
)

// A Store keeps the rows of one log. It knows their order and their keys, but not their meaning: the Ledger decides
// what to append, and the Store makes it durable, whole or not at all.
//
// A Store is safe for concurrent use, and several processes may have it open. If the context is done before a call,
// every method does nothing and returns the context's error. After Close, every method returns ErrClosed.
type Store interface {
	Records
	Expiry
	Dictionaries
	Briefs
	// Append is the only way in which the log grows. It waits until no other writer in any process works, or the
	// context ends. Then it calls plan once, with the committed head and hashes, and stores the returned batch in the
	// same transaction. When Append returns nil, the batch is durable. From the call of plan on, the context no
	// longer counts: a batch contains records of other callers.
	//
	// Append refuses a record id that the log has already. The id is a part of the payload, so no payload occurs
	// twice either.
	//
	// If Append returns the error of plan, a *DuplicateError or ErrConflict, it has stored nothing. After any other
	// error the batch was stored whole or not at all, and ByRecordID tells which. Once Append has returned, its batch
	// is not stored any more.
	Append(ctx context.Context, plan Plan) error
	// Waiting returns, in log order, the first n waits for this authority of records from index from on.
	Waiting(ctx context.Context, authority string, from, n int64) ([]Wait, error)
	// Owing returns for each authority, sorted by name, how many records wait for it, and since when.
	Owing(ctx context.Context) ([]Owed, error)
	// Forget drops this authority from every waiting record that already has a time stamp, and returns how many it
	// dropped. A record without a time stamp keeps waiting, so that every record has a stamp or waits for one.
	Forget(ctx context.Context, authority string) (int64, error)
	// Checkpoint returns it, or "" if Create has not begun a log here.
	Checkpoint(ctx context.Context) (string, error)
	// SetCheckpoint replaces the checkpoint old by next, durably. It returns ErrConflict if another one is stored.
	SetCheckpoint(ctx context.Context, old, next string) error
	// Pack packs rows for Append, with the newest dictionary that this process knows of.
	Pack(ctx context.Context, rows []Row) error
	// Check checks the file or server. Without complaints, every row is also found by its record id and its digest, and
	// no record id occurs twice.
	Check(ctx context.Context) (complaints []string, err error)
	// Probe returns ErrDiskFull, ErrReadOnly, or another reason why no record could be appended now. It may write, but
	// changes nothing. It returns nil if the database does not tell.
	Probe(ctx context.Context) error
	// ReadOnly returns ErrReadOnly, with the reason, if the store cannot be written. Otherwise it returns nil.
	ReadOnly() error
	// InPlace returns ErrMoved, with the file, if the store has files that are not where they were opened.
	InPlace() error
	// Listen calls grown once it can hear of every later transaction of any process, and after each commit; one call may
	// stand for several. It returns when the context is done, with the error that ends the notifications, or at once if
	// the database does not notify.
	Listen(ctx context.Context, grown func()) error
	Close() error
}

// Records reads the rows of a log, and the hashes over them.
type Records interface {
	// Head returns the committed head. A new store has EmptyHead.
	Head(ctx context.Context) (Head, error)
	// Rows returns the rows from index from to before from+n, in log order. It leaves out missing rows.
	Rows(ctx context.Context, from, n int64) ([]Row, error)
	// RowsAt returns the rows at these indexes in log order. It leaves out missing rows.
	RowsAt(ctx context.Context, at []int64) ([]Row, error)
	// ByRecordID returns the row of a record, or ErrNotFound.
	ByRecordID(ctx context.Context, id string) (Row, error)
	// ByDigest returns the row with a payload digest, or ErrNotFound.
	ByDigest(ctx context.Context, digest evidence.Digest) (Row, error)
	// ByChain returns the rows of a chain in log order, or ErrNotFound if there are none.
	ByChain(ctx context.Context, chainID string) ([]Row, error)
	// InChain returns, in log order, the first n rows of a chain from index from on.
	InChain(ctx context.Context, chainID string, from, n int64) ([]Row, error)
	// OfActor returns, in log order, the first n counted rows of an actor, by the actor's tag, from index from on.
	OfActor(ctx context.Context, actor evidence.Digest, from, n int64) ([]Row, error)
	// About returns, in log order, the first n rows that judge a subject, by the subject's tag, from index from on.
	About(ctx context.Context, subject evidence.Digest, from, n int64) ([]Row, error)
	// LastOfChain returns the last row of a chain, or ErrNotFound.
	LastOfChain(ctx context.Context, chainID string) (Row, error)
	// Hashes returns the hashes at these stored hash indexes, in this order, or ErrNotFound if one is missing.
	Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error)
}

// Expiry removes the content of rows. First it is noted which rows an act of the log is about, then the act is
// appended, then their content goes: so a process that is interrupted, or another one, can finish what the act says.
type Expiry interface {
	// PutExpiring notes rows that an act will be about, durably. It returns ErrConflict, and does nothing, if a row
	// waits for a time stamp or is noted for another act.
	PutExpiring(ctx context.Context, act string, indexes []int64) error
	// Expiring returns, in log order, the first n rows that are noted, from index from on.
	Expiring(ctx context.Context, from, n int64) ([]Expiring, error)
	// Expire replaces the content of rows by what the log hashed for them (Row.ExpiredRow), and their briefs, and
	// removes all their time stamps and their notes. It returns ErrConflict, and does nothing, if a row is not noted
	// for this act.
	Expire(ctx context.Context, act string, rows []Row, briefs []StoredBrief) error
	// DropExpiring removes the notes for an act that was not appended.
	DropExpiring(ctx context.Context, act string) error
	// Reclaim frees the room of what has expired, and overwrites it where the store can.
	Reclaim(ctx context.Context, progress func(done, total int64)) error
}

// Expiring is a row whose content is to be removed.
type Expiring struct {
	Index int64
	Act   string // record id
}

// ExpiredRow returns what stays of a row whose content an act has removed. It returns ErrDamaged, wrapped, if the row
// is not a record.
func (row *Row) ExpiredRow(act string) (Row, error) {
	entry, err := row.LogEntry()
	if err != nil || row.Entry != nil {
		return *row, err
	}
	left := *row
	left.Payload, left.Signatures, left.Timestamps, left.Packed = nil, nil, nil, Packed{}
	left.Entry, left.ExpiredBy = entry, act
	return left, nil
}

// Briefs is what a Store keeps beside its rows and can rebuild from them: what a list shows of each record, and the
// keys under which the record is found by what it names. See package brief.
type Briefs interface {
	// Briefs returns the briefs that a query selects, in log order. For a row without a brief it returns the row's
	// own members. It reads no payload.
	Briefs(ctx context.Context, q BriefQuery) ([]StoredBrief, error)
	// Places returns the places of the records that a lookup selects, in log order and each once, at most its Most.
	Places(ctx context.Context, q Lookup) ([]int64, error)
	// BriefKeys returns the keys of the rows from index from to before from+n, sorted by index and key. Package fsck
	// uses it.
	BriefKeys(ctx context.Context, from, n int64) ([]BriefKey, error)

	// PutBriefs replaces all briefs of the rows in a range.
	PutBriefs(ctx context.Context, in Range, briefs []StoredBrief) error
	// Replaced returns how often PutBriefs was called for a range that is not empty. A reader that keeps what it read
	// of briefs must read them again when the number has changed, because records may have expired.
	Replaced(ctx context.Context) (int64, error)
}

// A StoredBrief is a brief as a store keeps it. The first five members are the row's, and stores do not write them
// again.
type StoredBrief struct {
	Index    int64
	RecordID string
	Digest   evidence.Digest
	ChainID  string
	Case     evidence.Digest

	Line  []byte  // nil: the row has no brief
	Names []byte  // set only if BriefQuery.Names asks for them
	Keys  []int64 // sorted, each once; written, but never read back
}

// A BriefQuery selects the rows in At. If At is nil, it selects the first N from index From on of a chain, of all
// chains of trials, or of the log.
type BriefQuery struct {
	At     []int64
	From   int64
	N      int64
	Chain  string
	Trials bool
	Names  bool // also return Names
}

// A Lookup selects records by their ids, by their digests, and by their keys.
type Lookup struct {
	RecordIDs []string
	Digests   []evidence.Digest
	Keys      []int64
	Most      int
}

// A BriefKey is one key of a row.
type BriefKey struct{ Index, Key int64 }

// A Range is the rows from index From to before To.
type Range struct{ From, To int64 }

func firstPlaces(places []int64, most int) []int64 {
	slices.Sort(places)
	places = slices.Compact(places)
	return places[:min(len(places), max(0, most))]
}

func checkBriefs(briefs []StoredBrief, from, to int64) error {
	for _, b := range briefs {
		if b.Index < from || b.Index >= to || b.Line == nil {
			return fmt.Errorf("a brief of row %d is not for the rows %d to %d", b.Index, from, to-1)
		}
		from = b.Index + 1
	}
	return nil
}

// Check returns an error if a store cannot replace the briefs of a range by these. Stores call it before they write.
func (r Range) Check(briefs []StoredBrief, head Head) error {
	if r.From < 0 || r.To < r.From || r.To > head.Size {
		return fmt.Errorf("a log of %d records does not have the rows %d to %d", head.Size, r.From, r.To-1)
	}
	return checkBriefs(briefs, r.From, r.To)
}

// Values keep what is sealed apart of records: each value by its name, encrypted, and its key in another place. They are safe for concurrent use, also by
// several processes. Every change is durable when its call returns, and a crash leaves all of it or nothing.
type Values interface {
	// Add keeps new values, all or none. Many callers at once share the work. If one of the names is there, the error wraps fs.ErrExist.
	Add(ctx context.Context, values []Value) error
	// Read returns a value. If there is none of this name, the error wraps fs.ErrNotExist. It wraps ErrDamaged if that cannot be told.
	Read(ctx context.Context, name string) (Value, error)
	// DestroyKey makes a value unreadable for ever, here and in every copy that lacks the key. It can be repeated. If there is no such value or key,
	// it does nothing.
	DestroyKey(ctx context.Context, name string) error
	// Remove removes a value whose key is destroyed, if it is there.
	Remove(ctx context.Context, name string) error
	// Each calls found for each name, in no order. It may miss values that are added or removed meanwhile.
	Each(ctx context.Context, found func(name string) error) error
	// Where describes the place of a value, for people.
	Where(name string) string
}

// A Value is sealed apart of a record.
type Value struct {
	Name   string
	Sealed []byte
	Key    []byte // of 32 bytes; nil: there is none, or it was destroyed
}

var (
	// ErrNotFound means that the store has no such row or hash.
	ErrNotFound = errors.New("not in the log")
	// ErrConflict means that another writer has replaced the checkpoint, or stamped a record, meanwhile.
	ErrConflict = errors.New("another writer was first")
	// ErrDuplicate is matched by every *DuplicateError.
	ErrDuplicate = errors.New("already in the log")
	// ErrNotUnique means that a key of a new row is in the database already. Engines return it.
	ErrNotUnique = errors.New("a key is in the database already")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("the ledger is closed")
	// ErrDiskFull means that there is no room for more. Nothing is lost, and appending works again once there is
	// room.
	ErrDiskFull = errors.New("no space left for the ledger")
	// ErrBusy means that the store could not be written for a while, because another process holds its lock. Nothing
	// was changed.
	ErrBusy = errors.New("another process holds the log")
	// ErrAway means that the store's database cannot be used now. It is wrapped by errors that say why.
	ErrAway = errors.New("the database of the ledger is away")
	// ErrMoved means that the files of the log are not where this process opened them: they were removed, renamed or
	// replaced, or another disk is mounted there. Nothing can be appended until they are back, or the process opens
	// them again.
	ErrMoved = errors.New("the log's files are not where they were opened")
	// ErrReadOnly means that the ledger or its database can only be read.
	ErrReadOnly = errors.New("the ledger is open for reading only")
	// ErrExpired means that the content of a record was deleted. The log keeps its hashes.
	ErrExpired = errors.New("the record has expired")
	// ErrCheckpoint means that this log's key did not sign the checkpoint.
	ErrCheckpoint = errors.New("the checkpoint is not this log's")
	// ErrDamaged means that stored data contradict each other. Package fsck reports what and where.
	ErrDamaged = errors.New("the ledger is damaged")
)

// A DuplicateError names the record that is in the log already.
type DuplicateError struct {
	RecordID string // of the record in the log
	Index    int64
	Field    string // what the refused record shares with it: "record_id" or "digest"
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%v: record %s at index %d has this %s", ErrDuplicate, e.RecordID, e.Index, e.Field)
}

func (e *DuplicateError) Is(target error) bool { return target == ErrDuplicate }

// Unreadable reports whether an error concerns one record, not the whole store.
func Unreadable(err error) bool { return errors.Is(err, ErrDamaged) }

// Known returns an error if the tables of a log have another version than the one that this program knows.
func Known(has, want string) error {
	if has == want {
		return nil
	}
	return fmt.Errorf("the tables have version %q, and this program knows version %s alone: the program that wrote it reads it; one of before version 1 is read by that of commit 4f6f114d", has, want)
}

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
	Copied bool        // as another store has them
	Hashes []tlog.Hash // from the stored hash index tlog.StoredHashCount(Head.Size) on
	Next   Head        // the head with them

	Briefs []StoredBrief // of these rows, in log order; some rows may have none

	Waits  []Wait  // time stamps that these rows wait for
	Stamps []Stamp // time stamps of earlier rows, which no longer wait for them

	Urgent bool // the batch may use the last free room of the disk
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
