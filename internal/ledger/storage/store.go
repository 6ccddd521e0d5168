package storage

import (
	"context"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// A Store keeps the rows of one log. It knows their order and their keys, but not their meaning: the Ledger decides
// what to append, and the Store makes it durable, whole or not at all.
//
// A Store is safe for concurrent use, and several processes may have it open. If the context is done before a call,
// every method does nothing and returns the context's error. After Close, every method returns ErrClosed.
type Store interface {
	Log
	Outbox
	Expiry
	Checkpoints
	Dictionaries
	Briefs
	// Pack packs rows for Append, with the newest dictionary that this process knows of.
	Pack(ctx context.Context, rows []Row) error
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

// A Log is Records to which batches can be appended.
type Log interface {
	Records

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
}

// An Outbox lists the records that wait for time stamps.
type Outbox interface {
	// Waiting returns, in log order, the first n waits for this authority of records from index from on.
	Waiting(ctx context.Context, authority string, from, n int64) ([]Wait, error)
	// Owing returns for each authority, sorted by name, how many records wait for it, and since when.
	Owing(ctx context.Context) ([]Owed, error)
	// Forget drops this authority from every waiting record that already has a time stamp, and returns how many it
	// dropped. A record without a time stamp keeps waiting, so that every record has a stamp or waits for one.
	Forget(ctx context.Context, authority string) (int64, error)
}

// Checkpoints keeps the last signed checkpoint.
type Checkpoints interface {
	// Checkpoint returns it, or "" if Create has not begun a log here.
	Checkpoint(ctx context.Context) (string, error)
	// SetCheckpoint replaces the checkpoint old by next, durably. It returns ErrConflict if another one is stored.
	SetCheckpoint(ctx context.Context, old, next string) error
}

// A Checker is a Store that can check its file or server. If Check returns no complaints, every row is also found by
// its record id and its digest, and no record id occurs twice.
type Checker interface {
	Check(ctx context.Context) (complaints []string, err error)
}

// A Prober is a Store that can tell whether a record could be appended now.
type Prober interface {
	// Probe returns ErrDiskFull, ErrReadOnly, or another reason why the store cannot be written. It may write, but
	// changes nothing.
	Probe(ctx context.Context) error
}

// A Protected is a Store that can be open for reading only.
type Protected interface {
	// ReadOnly returns ErrReadOnly, with the reason, if the store cannot be written. Otherwise it returns nil.
	ReadOnly() error
}

// A Placed is a Store whose files can be moved away while they are open.
type Placed interface {
	// InPlace returns ErrMoved, with the file, if they are not where they were opened.
	InPlace() error
}

// A Notifier is a Store that can notify when any process has appended.
type Notifier interface {
	// Listen calls grown once it can hear of every later transaction, and after each commit; one call may stand for
	// several. It returns when the context is done, or with the error that ends the notifications.
	Listen(ctx context.Context, grown func()) error
}
