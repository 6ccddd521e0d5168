package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/ledger/storage"
)

// errBusy says that another connection holds the lock that is needed.
var errBusy = errors.New("the database is locked")

// lockTime is how long a transaction waits for its turn: others take milliseconds, but for a file that is written anew. Who holds the lock
// for longer stands still, and to wait for it helps nobody.
const lockTime = 20 * time.Second

// transact runs f in a transaction that excludes every other writer. Waiting to begin ends with the context. After
// that nothing is cancelled, so that the outcome is known: what f does takes a millisecond or so.
func (s *Store) transact(ctx context.Context, f func(context.Context) error) error {
	waiting, cancel := context.WithTimeoutCause(ctx, s.lockTime, errWaited)
	defer cancel()
	if err := s.enter(waiting); err != nil {
		return err
	}
	defer s.writing.Release()
	if err := s.retry(waiting, func() error { return s.exec("BEGIN IMMEDIATE") }); err != nil {
		return s.judge(err)
	}
	// A crash from here to COMMIT leaves at most frames in the write-ahead log that no commit follows: they are
	// ignored by whoever opens the file next.
	err := f(context.WithoutCancel(ctx))
	if err == nil {
		// A crash inside leaves all or nothing: the transaction counts when its commit frame is on disk. If COMMIT
		// fails, the transaction is void in every process that runs; but when writing failed after the commit frame
		// and the machine crashes before the next transaction overwrites it, it may be found complete. The caller was
		// told of an error then, and finds out by the record's id.
		err = s.exec("COMMIT")
	}
	if err != nil {
		// SQLite has ended some failed transactions itself; then there is nothing to roll back, and it says so.
		_ = s.exec("ROLLBACK")
	}
	return s.judge(err)
	// A crash from here on finds the transaction in the write-ahead log. Moving it into the database file is SQLite's
	// business, which can be interrupted and repeated at any point.
}

// errWaited is the cause with which waiting for a turn ends.
var errWaited = fmt.Errorf("it took longer than %v", lockTime)

// enter waits for this process's turn to write.
func (s *Store) enter(ctx context.Context) error {
	if s.readOnly != nil {
		return s.readOnly
	}
	err := s.writing.Acquire(ctx)
	if err != nil && isLate(context.Cause(ctx)) {
		return fmt.Errorf("%w: other transactions of this process wait for it, too%s: %w", storage.ErrBusy, s.holder(), err)
	}
	if err == nil && s.closed.Load() {
		s.writing.Release()
		err = storage.ErrClosed
	}
	return err
}

// exec takes no context: a COMMIT or ROLLBACK that was broken off would leave the transaction open.
func (s *Store) exec(statement string) error {
	_, err := s.writer.ExecContext(context.Background(), statement)
	return translate(err)
}

// retry repeats what found the database locked by another process. Where it waits in vain, the error says for whom.
func (s *Store) retry(ctx context.Context, try func() error) error {
	err := retry(ctx, try)
	if isLate(err) {
		return fmt.Errorf("%w: waited in vain for the lock on %s%s: %w", storage.ErrBusy, s.path, s.holder(), err)
	}
	return err
}

// isLate reports whether somebody waited for a turn until their time was over.
func isLate(err error) bool {
	return errors.Is(err, errWaited) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, storage.ErrBusy)
}

// retry repeats what found the database locked by another process, until the context ends. The pauses are short, since
// a transaction is, and uneven, so that two processes do not keep in step.
func retry(ctx context.Context, try func() error) error {
	for longest := 200 * time.Microsecond; ; longest = min(2*longest, 10*time.Millisecond) {
		err := try()
		if !errors.Is(err, errBusy) {
			return err
		}
		pause := time.NewTimer(rand.N(longest))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("waiting for another process: %w", context.Cause(ctx))
		}
	}
}

// translate puts SQLite's errors into the ledger's words.
func translate(err error) error {
	var failure *sqlite.Error
	if errors.Is(err, sql.ErrNoRows) {
		return storage.ErrNotFound
	}
	if !errors.As(err, &failure) {
		return err
	}
	meaning := map[int]error{
		sqlite3.SQLITE_BUSY:     errBusy,
		sqlite3.SQLITE_LOCKED:   errBusy,
		sqlite3.SQLITE_FULL:     storage.ErrDiskFull,
		sqlite3.SQLITE_READONLY: storage.ErrReadOnly,
		sqlite3.SQLITE_PERM:     fs.ErrPermission,
		sqlite3.SQLITE_CORRUPT:  storage.ErrDamaged,
		sqlite3.SQLITE_NOTADB:   storage.ErrDamaged,
	}[failure.Code()&0xff]
	if meaning == nil {
		return err
	}
	return fmt.Errorf("%w: %w", meaning, err)
}

// breaksUnique reports whether an insertion failed because a key is there already.
func breaksUnique(err error) bool {
	if err == nil {
		return false
	}
	var failure *sqlite.Error
	return errors.As(err, &failure) && failure.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}
