package sqlite

import (
	"context"
	"errors"
	"fmt"

	"jurat/internal/ledger/storage"
)

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

// freePages removes free pages from the file.
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
