package sqlite

import (
	"context"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// Archives implements storage.Store.
func (s *Store) Archives(ctx context.Context) ([]storage.Archived, error) {
	return reading(ctx, s, func() (list []storage.Archived, err error) {
		rows, err := s.readers.QueryContext(ctx, `SELECT first, past, file, digest, shed FROM archives ORDER BY first`)
		if err != nil {
			return nil, err
		}
		err = scan(rows, func() error {
			var a storage.Archived
			var digest []byte
			if err := rows.Scan(&a.From, &a.To, &a.File, &digest, &a.Shed); err != nil {
				return err
			}
			err := fixed(a.Digest[:], digest)
			list = append(list, a)
			return err
		})
		return list, err
	})
}

// PutArchive implements storage.Store.
func (s *Store) PutArchive(ctx context.Context, old evidence.Digest, next storage.Archived) error {
	return s.transact(ctx, func(ctx context.Context) error {
		head, err := scanHead(s.headNow.QueryRowContext(ctx))
		if err != nil {
			return err
		}
		if err := next.Check(head); err != nil {
			return err
		}
		if old.IsZero() {
			return s.changeOne(ctx, `INSERT INTO archives (first, past, file, digest, shed) SELECT ?1, ?2, ?3, ?4, ?5
				WHERE ?1 = (SELECT coalesce(max(past), 0) FROM archives)`, next.From, next.To, next.File, next.Digest[:], next.Shed)
		}
		return s.changeOne(ctx, `UPDATE archives SET file = ?, digest = ?, shed = ? WHERE first = ? AND past = ? AND digest = ?`,
			next.File, next.Digest[:], next.Shed, next.From, next.To, old[:])
	})
}

// changeOne returns storage.ErrConflict if the statement changed no row.
func (s *Store) changeOne(ctx context.Context, statement string, args ...any) error {
	result, err := s.writer.ExecContext(ctx, statement, args...)
	if err != nil {
		return translate(err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(storage.ErrConflict, err)
	}
	return nil
}

// Shed implements storage.Store.
func (s *Store) Shed(ctx context.Context, rows []storage.Shedding) error {
	return s.transact(ctx, func(ctx context.Context) error {
		for _, r := range rows {
			if err := s.mark(ctx, r); err != nil {
				return fmt.Errorf("row %d: %w", r.Index, err)
			}
		}
		for _, statement := range []string{
			`PRAGMA defer_foreign_keys = 1`, // until the rows are inserted again
			`DELETE FROM timestamps WHERE EXISTS (SELECT 1 FROM shedding s WHERE s.idx = timestamps.idx AND position < stamps)
				AND idx IN (SELECT idx FROM shedding)`,
			`DELETE FROM records WHERE idx IN (SELECT idx FROM shedding)`,
			`INSERT INTO records (idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, dictionary, stamps, packed)
				SELECT idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, 0, 0, x'' FROM shedding`,
			`DELETE FROM shedding`,
		} {
			if _, err := s.writer.ExecContext(ctx, statement); err != nil {
				return translate(err)
			}
		}
		return nil
	})
}

// mark copies a row into the table shedding, unless the row has shed already. It returns storage.ErrConflict if no
// archive holds the row, if the row still waits for a time stamp, or if its time stamp is not in the archive.
func (s *Store) mark(ctx context.Context, r storage.Shedding) error {
	var full, archived, waits bool
	var stamped int
	err := s.writer.QueryRowContext(ctx, `SELECT packed <> x'', stamps, EXISTS (SELECT 1 FROM archives WHERE first <= ?1 AND ?1 < past),
		EXISTS (SELECT 1 FROM waiting WHERE idx = ?1) FROM records WHERE idx = ?1`, r.Index).Scan(&full, &stamped, &archived, &waits)
	if err != nil {
		return translate(err)
	}
	if !archived || waits {
		return storage.ErrConflict
	}
	if !full { // the time stamps that it has now came after those in the archive
		return nil
	}
	if r.Timestamps < stamped {
		return storage.ErrConflict
	}
	_, err = s.writer.ExecContext(ctx, `INSERT INTO shedding SELECT idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, ?
		FROM records WHERE idx = ?`, r.Timestamps, r.Index)
	return translate(err)
}

// reclaimPages is how many pages one transaction frees. No process can append during it.
const reclaimPages = 512

// Reclaim implements storage.Reclaimer. It removes free pages from the file, a few at a time. Then it empties the
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

func (s *Store) pragma(ctx context.Context, name string) (int64, error) {
	return reading(ctx, s, func() (n int64, err error) {
		conn, err := s.readers.Conn(ctx)
		if err != nil {
			return 0, err
		}
		defer conn.Close()                                                         // returns it to the pool
		if _, err := scanHead(conn.QueryRowContext(ctx, selectHead)); err != nil { // by this read the connection learns what others changed
			return 0, err
		}
		err = conn.QueryRowContext(ctx, `PRAGMA `+name).Scan(&n)
		return n, err
	})
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
	return scan(rows, func() error { return nil })
}
