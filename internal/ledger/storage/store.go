package storage

import (
	"context"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// A Store keeps the rows of one log. It knows their order and their keys, and nothing of what they mean: the Ledger
// decides what is appended, the Store makes it durable, whole or not at all. Code that needs only a part of a Store names that part.
//
// A Store is safe for concurrent use. Several processes may have one store open at the same time. Every method
// returns the context's error, having done nothing, if the context was done before the call, and ErrClosed after
// Close.
type Store interface {
	Log
	Outbox
	Archives
	Checkpoints
	Briefs
	Close() error
}

// Records reads the rows of a log, and the hashes over them.
type Records interface {
	// Head returns the committed head. That of a new store is EmptyHead.
	Head(ctx context.Context) (Head, error)
	// Rows returns those rows in log order whose index is at least from and less than from+n. Rows that are missing
	// are left out.
	Rows(ctx context.Context, from, n int64) ([]Row, error)
	// RowsAt returns the rows at these indexes in log order. Rows that are missing are left out.
	RowsAt(ctx context.Context, at []int64) ([]Row, error)
	// ByRecordID returns the row of a record, or ErrNotFound.
	ByRecordID(ctx context.Context, id string) (Row, error)
	// ByDigest returns the row with a payload digest, or ErrNotFound.
	ByDigest(ctx context.Context, digest evidence.Digest) (Row, error)
	// ByChain returns the rows of a chain in log order, or ErrNotFound if there are none.
	ByChain(ctx context.Context, chainID string) ([]Row, error)
	// InChain returns, in log order, the first n rows of a chain at the index from and later.
	InChain(ctx context.Context, chainID string, from, n int64) ([]Row, error)
	// LastOfChain returns the last row of a chain, or ErrNotFound.
	LastOfChain(ctx context.Context, chainID string) (Row, error)
	// Hashes returns the hashes at these stored hash indexes, in this order, or ErrNotFound if one is missing.
	Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error)
}

// A Log is Records to which batches are appended.
type Log interface {
	Records

	// Append is the only way by which the log grows. It waits, as long as the context lets it, until no other writer
	// in any process is at work; calls plan, once, with the committed head and the committed hashes; and stores what
	// plan returns in the same transaction. When Append returns nil, the batch is durable. From the call of plan on
	// the context does not count any more: a batch holds the records of others than the caller.
	//
	// Append refuses a record id that the log has already. The id is a part of the payload, so no payload is there twice either.
	//
	// If Append returns the error of plan, a *DuplicateError or ErrConflict, nothing was stored. With any other error the batch was
	// stored whole or not at all, and ByRecordID says which: nothing may happen to the log for the sake of an Append
	// that has returned.
	Append(ctx context.Context, plan Plan) error
}

// An Outbox says which records wait for time stamps.
type Outbox interface {
	// Waiting returns, in log order, the first n time stamps that records at the index from and later wait for from
	// this authority.
	Waiting(ctx context.Context, authority string, from, n int64) ([]Wait, error)
	// Owing sums up for each authority, by name, what records wait for.
	Owing(ctx context.Context) ([]Owed, error)
	// Forget drops this authority from every waiting record that already has a time stamp, and returns how many it dropped. Records
	// without a time stamp go on waiting: a record never is without a time stamp and waits for none.
	Forget(ctx context.Context, authority string) (int64, error)
}

// Archives says which files hold what rows have shed.
type Archives interface {
	// Archives returns the files in log order: the first begins with the log, and each where the one before it ends.
	Archives(ctx context.Context) ([]Archived, error)
	// PutArchive notes a file, durably. It replaces the one that has the digest old and the same range, or, if old is
	// zero, comes after the last. It returns ErrConflict if that does not fit what is noted.
	PutArchive(ctx context.Context, old evidence.Digest, next Archived) error
	// Shed takes out of rows what an archive holds of them: payload, signatures, and as many time stamps as are named, from the first
	// on. Later ones stay. It returns ErrConflict, having done nothing, if a row is in no archive or waits for a time
	// stamp. A row that has shed already stays as it is.
	Shed(ctx context.Context, rows []Shedding) error
}

// Checkpoints keeps the last signed checkpoint.
type Checkpoints interface {
	// Checkpoint returns it, or "" if there is no log here yet.
	Checkpoint(ctx context.Context) (string, error)
	// SetCheckpoint replaces the checkpoint old by next, durably, or returns ErrConflict if another one is stored.
	SetCheckpoint(ctx context.Context, old, next string) error
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

// A Notifier is a Store that tells, without being asked, when any process has appended.
type Notifier interface {
	// Listen calls grown as soon as it hears of every transaction from then on, and whenever one was committed; of several it may
	// tell at once. It returns when the context is done, or with the reason why it hears of nothing any more.
	Listen(ctx context.Context, grown func()) error
}
