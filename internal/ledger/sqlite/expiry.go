package sqlite

import (
	"context"
	"errors"
	"fmt"

	"jurat/internal/ledger/storage"
)

// PutExpiring implements storage.Store.
func (s *Store) PutExpiring(ctx context.Context, act string, indexes []int64) error {
	return s.transact(ctx, func(ctx context.Context) error {
		for _, index := range indexes {
			err := s.changeOne(ctx, `INSERT INTO expiring SELECT idx, ?2 FROM records WHERE idx = ?1 AND NOT EXISTS (SELECT 1 FROM waiting WHERE waiting.idx = ?1)
				ON CONFLICT (idx) DO UPDATE SET act = excluded.act WHERE act = excluded.act`, index, act)
			if err != nil {
				return fmt.Errorf("row %d: %w", index, err)
			}
		}
		return nil
	})
}

// Expiring implements storage.Store.
func (s *Store) Expiring(ctx context.Context, from, n int64) ([]storage.Expiring, error) {
	return reading(ctx, s, func() (list []storage.Expiring, err error) {
		rows, err := s.readers.QueryContext(ctx, `SELECT idx, act FROM expiring WHERE idx >= ? ORDER BY idx LIMIT +?`, from, max(0, n))
		if err != nil {
			return nil, err
		}
		err = scan(rows, func() error {
			var e storage.Expiring
			err := rows.Scan(&e.Index, &e.Act)
			list = append(list, e)
			return err
		})
		return list, err
	})
}

// Expire implements storage.Store.
func (s *Store) Expire(ctx context.Context, act string, rows []storage.Row, briefs []storage.StoredBrief) error {
	if err := s.packer.Pack(ctx, rows); err != nil {
		return err
	}
	return s.transact(ctx, func(ctx context.Context) error {
		for i := range rows {
			r := &rows[i]
			err := s.changeOne(ctx, `INSERT INTO emptied SELECT idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, ?2, ?3
				FROM records WHERE idx = ?1 AND EXISTS (SELECT 1 FROM expiring WHERE expiring.idx = ?1 AND act = ?4)`, r.Index, r.Packed.Dictionary, r.Packed.Blob, act)
			if err != nil {
				return fmt.Errorf("row %d: %w", r.Index, err)
			}
		}
		for _, statement := range []string{
			`PRAGMA defer_foreign_keys = 1`, // until the rows are inserted again
			`DELETE FROM timestamps WHERE idx IN (SELECT idx FROM emptied)`,
			`DELETE FROM records WHERE idx IN (SELECT idx FROM emptied)`,
			`INSERT INTO records (idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, dictionary, stamps, packed)
				SELECT idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, dictionary, 0, packed FROM emptied`,
			`DELETE FROM briefs WHERE idx IN (SELECT idx FROM emptied)`,
			`DELETE FROM links WHERE stretch IN (SELECT idx >> 11 FROM emptied) AND idx IN (SELECT idx FROM emptied)`,
			`DELETE FROM expiring WHERE idx IN (SELECT idx FROM emptied)`,
			`DELETE FROM emptied`,
			briefsReplaced,
		} {
			if _, err := s.writer.ExecContext(ctx, statement); err != nil {
				return translate(err)
			}
		}
		return s.insertBriefs(ctx, briefs)
	})
}

// DropExpiring implements storage.Store.
func (s *Store) DropExpiring(ctx context.Context, act string) error {
	return s.transact(ctx, func(ctx context.Context) error {
		_, err := s.writer.ExecContext(ctx, `DELETE FROM expiring WHERE act = ?`, act)
		return translate(err)
	})
}

// changeOne returns storage.ErrConflict if the statement changed no row.
func (s *Store) changeOne(ctx context.Context, statement string, args ...any) error {
	result, err := s.run(ctx, statement, args...)
	if err != nil {
		return translate(err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(storage.ErrConflict, err)
	}
	return nil
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
		defer conn.Close()                                                                      // returns it to the pool
		if err := conn.QueryRowContext(ctx, `SELECT count(*) FROM meta`).Scan(&n); err != nil { // by this read the connection learns what others changed
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
