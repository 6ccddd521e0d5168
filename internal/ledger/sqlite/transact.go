package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/ledger/storage"
	"jurat/internal/plural"
)

// errBusy means that another connection holds the lock that is needed.
var errBusy = errors.New("the database is locked")

// lockTime is how long a transaction waits for its turn. Other transactions take milliseconds, unless Reclaim
// rewrites the file. A process that holds the lock longer has probably stopped, and waiting longer would not help.
const lockTime = 20 * time.Second

// transact runs f in a transaction that excludes every other writer. The context ends the wait for the transaction to
// begin; then transact returns the context's error, or storage.ErrBusy after lockTime. After that nothing is
// cancelled, so that the outcome is known: f takes about a millisecond.
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
	// Before the transaction nothing is written to files that were moved. After it nothing is acknowledged there.
	err := s.InPlace()
	// A crash from here to COMMIT leaves at most frames in the write-ahead log without a commit frame. The next
	// process that opens the file ignores them.
	if err == nil {
		err = f(context.WithoutCancel(ctx))
	}
	if err == nil {
		// A crash during COMMIT leaves all or nothing: the transaction counts once its commit frame is on disk. If
		// COMMIT fails, every running process ignores the transaction. One exception: writing failed after the commit
		// frame, and the machine crashes before the next transaction overwrites it. Then the transaction may be found
		// complete. The caller got an error, and learns the outcome by the record's id.
		err = s.exec("COMMIT")
	}
	if err != nil {
		// SQLite has rolled back some failed transactions itself. Then ROLLBACK fails, which does no harm.
		_ = s.exec("ROLLBACK")
	} else {
		err = s.InPlace()
	}
	return s.judge(err)
	// A crash from here on finds the transaction in the write-ahead log. SQLite moves it into the database file, and
	// can be interrupted there and repeat it at any point.
}

// errWaited is the cause that ends the wait for a turn.
var errWaited = fmt.Errorf("it took longer than %v", lockTime)

// enter waits for this process's turn to write. It returns storage.ErrReadOnly, storage.ErrBusy or storage.ErrClosed,
// wrapped, or the context's error.
func (s *Store) enter(ctx context.Context) error {
	if s.readOnly != nil {
		return s.readOnly
	}
	err := s.writing.Acquire(ctx)
	if err != nil && isLate(context.Cause(ctx)) {
		return fmt.Errorf("%w: other transactions of this process also wait for the lock%s: %w", storage.ErrBusy, s.holder(), err)
	}
	if err == nil && s.closed.Load() {
		s.writing.Release()
		err = storage.ErrClosed
	}
	return err
}

// exec takes no context: an interrupted COMMIT or ROLLBACK would leave the transaction open.
func (s *Store) exec(statement string) error {
	_, err := s.writer.ExecContext(context.Background(), statement)
	return translate(err)
}

// retry repeats try while another process has the database locked. After lockTime it returns storage.ErrBusy, and
// names the process.
func (s *Store) retry(ctx context.Context, try func() error) error {
	err := retry(ctx, try)
	if isLate(err) {
		return fmt.Errorf("%w: waiting for the lock on %s%s: %w", storage.ErrBusy, s.path, s.holder(), err)
	}
	return err
}

// isLate reports whether a wait for a turn ended because its time was over.
func isLate(err error) bool {
	return errors.Is(err, errWaited) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, storage.ErrBusy)
}

// retry repeats try while another process has the database locked, until the context ends. The pauses are short, like
// transactions, and random, so that two processes do not stay in step.
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

// translate replaces SQLite's errors by those of package storage.
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
	if failure.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		meaning = storage.ErrNotUnique
	}
	if meaning == nil || errors.Is(err, meaning) {
		return err
	}
	return fmt.Errorf("%w: %w", meaning, err)
}

// header is how long a database is at least.
const header = 100

// An opened is a file as this process opened it.
type opened struct {
	path string
	is   fs.FileInfo
}

// remember notes which files are open. The caller has run a transaction, so SQLite has made those beside the database.
func (s *Store) remember() error {
	for _, path := range []string{s.path, s.path + "-wal", s.path + "-shm"} {
		is, err := os.Stat(path)
		if err != nil {
			return err
		}
		s.files = append(s.files, opened{path, is})
	}
	return nil
}

// InPlace implements storage.Placed. SQLite goes on writing to files that were removed, renamed or replaced, and reports success: what it commits there is
// in no file that a later process opens.
func (s *Store) InPlace() error {
	for _, f := range s.files {
		now, err := os.Stat(f.path)
		switch {
		case err == nil && f.path == s.path && now.Size() < header:
			return fmt.Errorf("%w: %s was cut off", storage.ErrMoved, f.path)
		case err == nil && os.SameFile(f.is, now):
		case err == nil:
			return fmt.Errorf("%w: another file is now at %s", storage.ErrMoved, f.path)
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s is gone", storage.ErrMoved, f.path)
		default:
			return fmt.Errorf("%w: %w", storage.ErrMoved, err)
		}
	}
	return nil
}

// Check implements storage.Checker: SQLite reads every page and compares every index with its table. SQLite does not
// report a missing index, so Check looks for the indexes by which rows are found.
func (s *Store) Check(ctx context.Context) (complaints []string, err error) {
	strays, unique, digests := 0, 0, 0
	err = engine{s}.Read(ctx, func(from storage.Reader) error {
		return from.Run(ctx,
			storage.Statement{Text: `PRAGMA integrity_check`, Row: func(scan storage.Scan) error {
				var line string
				err := scan(&line)
				if line != "ok" {
					complaints = append(complaints, line)
				}
				return err
			}},
			storage.Statement{Text: `SELECT (SELECT count(*) FROM tags WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.idx = tags.idx)),
				(SELECT count(*) FROM pragma_index_list('records') l, pragma_index_info(l.name) i WHERE l."unique" AND i.name = 'record_id'),
				(SELECT count(*) FROM pragma_index_list('records') WHERE name = 'records_by_digest')`,
				Row: func(scan storage.Scan) error { return scan(&strays, &unique, &digests) }})
	})
	if err != nil {
		return complaints, err
	}
	if strays > 0 {
		complaints = append(complaints, fmt.Sprintf("the table of counts has %s without a record", plural.Of(strays, "row")))
	}
	if unique*digests != 1 {
		complaints = append(complaints, "the table of records lacks an index for finding its rows")
	}
	return complaints, nil
}
