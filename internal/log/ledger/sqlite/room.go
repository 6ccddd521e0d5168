package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/kit/atomicfile"
	"jurat/internal/log/ledger/storage"
)

// leastRoom is how many bytes must be free on the disk, so that a record certainly fits.
const leastRoom = 1 << 20

// trouble is why the last transaction failed, if the disk may be the cause.
type trouble struct{ err error }

// Probe implements storage.Store. It checks the free room, and commits a transaction that changes nothing: the disk
// can be full for this user alone, or fail for another reason, or a process that has stopped can hold the lock.
func (s *Store) Probe(ctx context.Context) error {
	if s.closed.Load() {
		return storage.ErrClosed
	}
	if s.readOnly != nil {
		return s.readOnly
	}
	if err := s.room(); err != nil {
		return err
	}
	return s.transact(ctx, func(ctx context.Context) error {
		if err := s.keepReserve(); err != nil {
			return err
		}
		_, err := s.writer.ExecContext(ctx, `UPDATE head SET checkpoint = checkpoint`)
		return translate(err)
	})
}

// room returns storage.ErrDiskFull if less than leastRoom is free and the system tells so.
func (s *Store) room() error {
	free, known, err := s.free()
	if err == nil && known && free < leastRoom {
		err = fmt.Errorf("%w: %d bytes are free on the disk of %s", storage.ErrDiskFull, free, s.path)
	}
	return err
}

// free returns how many bytes are free, and whether the system tells.
func (s *Store) free() (uint64, bool, error) { return freeBytes(filepath.Dir(s.path)) }

// judge remembers how a transaction ended. On a disk without room it treats an input or output error as
// storage.ErrDiskFull, because SQLite does not always distinguish the two.
func (s *Store) judge(err error) error {
	var failure *sqlite.Error
	if errors.As(err, &failure) && failure.Code()&0xff == sqlite3.SQLITE_IOERR {
		if full := s.room(); errors.Is(full, storage.ErrDiskFull) {
			err = fmt.Errorf("%w: %w", full, err)
		}
		s.trouble.Store(&trouble{err})
		return err
	}
	switch {
	case err == nil:
		s.trouble.Store(nil)
	case errors.Is(err, storage.ErrDiskFull), errors.Is(err, storage.ErrReadOnly):
		s.trouble.Store(&trouble{err})
	}
	return err
}

// whyNotOpened adds to an error of opening a file why it, or its folder, cannot be written. SQLite itself gives no
// reason.
func whyNotOpened(path string, err error) error {
	if why := protected(path); why != nil {
		return fmt.Errorf("%w: %w", why, err)
	}
	return err
}

// reserveSize is how much room is reserved for what must be recorded on a full disk. A revocation takes about 0.1 MB.
const reserveSize = 2 << 20

// The reserve is a file of zeros beside the database. When the disk is full, it is removed for a revocation, or for a
// program that starts. While it is missing, only revocations are appended: other records would use up the room that
// was reserved for them. It is written again when there is room. On a system that does not tell the free room there
// is no reserve.
func (s *Store) reservePath() string { return s.path + "-reserve" }

// keepReserve writes the reserve if it is missing. It returns storage.ErrDiskFull if there is no room for it.
func (s *Store) keepReserve() error {
	if s.unsafe {
		return nil
	}
	if missing, err := s.reserveMissing(); err != nil || !missing {
		return err
	}
	file, err := os.OpenFile(s.reservePath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return s.whyNoReserve(err)
	}
	_, err = file.Write(make([]byte, reserveSize)) // zeros, because a sparse file would take no room
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(s.whyNoReserve(err), s.useReserve())
	}
	return nil
}

// reserveMissing reports whether the reserve is to be written. It returns storage.ErrDiskFull if there is no room for it.
func (s *Store) reserveMissing() (bool, error) {
	if info, err := os.Stat(s.reservePath()); err == nil && info.Size() == reserveSize {
		return false, nil
	}
	free, known, err := s.free()
	if err != nil || !known {
		return false, nil
	}
	if free < reserveSize+leastRoom {
		return true, fmt.Errorf("%w: the disk of %[3]s has %[2]d bytes left, reserved for revocations: make room", storage.ErrDiskFull, free, s.path)
	}
	return true, nil
}

func (s *Store) whyNoReserve(err error) error {
	return fmt.Errorf("%w: reserving room for revocations: %w", storage.ErrDiskFull, err)
}

func (s *Store) useReserve() error {
	if err := os.Remove(s.reservePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("using the room reserved for revocations: %w", err)
	}
	return nil
}

// makeWay makes sure that a batch has room: an urgent one may use the reserve, others must leave it. The caller is in
// the batch's transaction.
func (s *Store) makeWay(batch *storage.Batch) error {
	if !batch.Urgent {
		return s.keepReserve()
	}
	if full := s.room(); full == nil && s.trouble.Load() == nil {
		return nil
	}
	return s.useReserve()
}

// giveWay removes the reserve of a file that is about to be opened on a full disk: opening it needs some room.
func giveWay(path string) error {
	s := &Store{path: path}
	if !errors.Is(s.room(), storage.ErrDiskFull) {
		return nil
	}
	return s.useReserve()
}

// pace makes commits leave the write-ahead log where it is while the disk may not have room for its pages in the
// database file: moving it would use up the room that is reserved for revocations, and still break off. The caller
// holds writing.
func (s *Store) pace() error {
	free, known, err := s.free()
	most := int64(movedAt * pageSize)
	if _, size, err := atomicfile.Look(s.path + "-wal"); err == nil {
		most = max(most, size) // it grew while it stayed
	}
	still, pages := err == nil && known && free < uint64(most)+leastRoom, movedAt
	if still == s.still {
		return nil
	}
	if still {
		pages = 0
	}
	err = s.exec(fmt.Sprintf("PRAGMA wal_autocheckpoint(%d)", pages))
	if err == nil {
		s.still = still
	}
	return err
}

// reclaimPages is how many pages one transaction frees. No process can append during it.
const reclaimPages = 512

// Reclaim implements storage.Store. It removes free pages from the file, a few at a time. Then it empties the
// write-ahead log, so that neither contains deleted text. A file that lacks
// incremental vacuum, because of a crash when it was made, is rewritten once. No process can append meanwhile.
func (s *Store) Reclaim(ctx context.Context, progress func(done, total int64)) error {
	mode, err := s.pragma(ctx, "auto_vacuum")
	if err != nil {
		return err
	}
	const incremental = 2
	if mode != incremental {
		err = s.outsideTransaction(ctx, `PRAGMA auto_vacuum = INCREMENTAL`, `VACUUM`)
	} else {
		err = s.freePages(ctx, progress)
	}
	return errors.Join(err, s.emptyWAL(ctx))
}

func (s *Store) freePages(ctx context.Context, progress func(done, total int64)) error {
	total := int64(-1)
	for {
		free, err := s.pragma(ctx, "freelist_count")
		if err != nil {
			return err
		}
		if total < 0 {
			total = free
		}
		if progress != nil && total > 0 {
			progress(total-free, max(total, total-free))
		}
		if free == 0 {
			return nil
		}
		if err := s.outsideTransaction(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, reclaimPages)); err != nil {
			return err
		}
		if left, err := s.pragma(ctx, "freelist_count"); err != nil || left >= free {
			return err // another process filled as many pages meanwhile: leave the rest to the next call
		}
	}
}

// emptyWAL moves the write-ahead log into the database file and empties it. That needs a moment in which no reader
// uses the log. If none comes in time, emptyWAL returns storage.ErrBusy.
func (s *Store) emptyWAL(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.lockTime, errWaited)
	defer cancel()
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.writing.Release()
	err := s.retry(ctx, func() error {
		var busy, frames, moved int
		if err := s.writer.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved); err != nil {
			return translate(err)
		}
		if busy != 0 {
			return errBusy
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("emptying %s-wal, which may still contain deleted text: %w", s.path, err)
	}
	return nil
}

func (s *Store) pragma(ctx context.Context, name string) (n int64, err error) {
	err = engine{s}.Read(ctx, func(storage.Reader) error {
		conn, err := s.readers.Conn(ctx)
		if err != nil {
			return translate(err)
		}
		defer conn.Close()                                                                      // returns it to the pool
		if err := conn.QueryRowContext(ctx, `SELECT count(*) FROM meta`).Scan(&n); err != nil { // by this read the connection learns what others changed
			return translate(err)
		}
		return translate(conn.QueryRowContext(ctx, `PRAGMA `+name).Scan(&n))
	})
	return n, err
}

// outsideTransaction runs statements that must not be inside a transaction, in this process's turn to write.
func (s *Store) outsideTransaction(ctx context.Context, statements ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.lockTime, errWaited)
	defer cancel()
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.writing.Release()
	for _, statement := range statements {
		if err := s.retry(ctx, func() error { return s.drain(statement) }); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// drain runs a statement to its end: a pragma works while its rows are read. It takes no context, because it must not
// be interrupted.
func (s *Store) drain(statement string) error {
	rows, err := s.writer.QueryContext(context.Background(), statement)
	if err != nil {
		return translate(err)
	}
	return translate(each(rows, func() error { return nil }))
}

// leave returns a connection that must be closed last, or nil. If the disk has no room for the write-ahead log in the
// database file, moving it at the end would take the last free bytes and still break off, and no program could start
// again. A connection that only reads moves nothing when it is the last. The log then stays beside the file, durable,
// and is moved when there is room.
func (s *Store) leave() (*sql.DB, error) {
	log, err := os.Stat(s.path + "-wal")
	if err != nil || s.readOnly != nil {
		return nil, nil // there is nothing to move
	}
	if free, known, err := s.free(); err != nil || !known || free >= uint64(log.Size())+leastRoom {
		return nil, nil
	}
	last, err := sql.Open("sqlite", dataSource(s.path, url.Values{"mode": {"ro"}}))
	if err != nil {
		return nil, err
	}
	last.SetMaxOpenConns(1)
	var tables int
	if err := last.QueryRow(`SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return nil, errors.Join(fmt.Errorf("leaving the write-ahead log where it is: %w", err), last.Close())
	}
	return last, nil
}
